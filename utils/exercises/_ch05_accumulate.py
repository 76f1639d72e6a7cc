"""Chapter 05: a batch in parts."""

from __future__ import annotations

import numpy as np

from ._ch05_drive import drive_accumulate, held
from .spec import Exercise, Mistake


def _accumulated(weights, micro_batches):
    """All targets at once, by the formula of the softmax's gradient."""
    x = np.concatenate([part[0].reshape(-1, part[0].shape[-1]) for part in micro_batches])
    y = np.concatenate([part[1].ravel() for part in micro_batches])
    logits = x @ weights["w"] + weights["b"]
    p = np.exp(logits - logits.max(1, keepdims=True))
    p /= p.sum(1, keepdims=True)
    p[np.arange(len(y)), y] -= 1
    return {"gradients": {"w": x.T @ p / len(y), "b": p.sum(0) / len(y)}, "memory": held(1)}


def _accumulate_cases(rng):
    def case(*sizes):
        d, classes = 4, 5
        parts = [
            [rng.normal(size=(rows, seq_len, d)), rng.integers(0, classes, size=(rows, seq_len))]
            for rows, seq_len in sizes
        ]
        return {"w": rng.normal(size=(d, classes)), "b": rng.normal(size=classes)}, parts

    return [
        case((4, 3), (4, 3)),
        case((4, 3), (1, 3)),
        case((2, 6), (2, 1), (2, 3)),
        case((3, 4)),
        case(*(tuple(int(n) for n in rng.integers(1, 6, 2)) for _ in range(5)), (6, 1)),
    ]


def _share(y, parts):
    return y.numel() / sum(targets.numel() for _, targets in parts)


def _accumulate_like(weigh=_share, last=False):
    def answer(loss_of, weights, micro_batches):
        import torch

        total = {name: torch.zeros_like(w) for name, w in weights.items()}
        for x, y in micro_batches:
            loss = loss_of(weights, x, y) * weigh(y, micro_batches)
            found = torch.autograd.grad(loss, list(weights.values()))
            for name, g in zip(weights, found, strict=True):
                total[name] = g if last else total[name] + g
        return total

    return answer


def _all_graphs(loss_of, weights, micro_batches):
    import torch

    n = sum(y.numel() for _, y in micro_batches)
    loss = sum(loss_of(weights, x, y) * y.numel() / n for x, y in micro_batches)
    found = torch.autograd.grad(loss, list(weights.values()))
    return dict(zip(weights, found, strict=True))


ACCUMULATE_GRADIENTS = Exercise(
    id="05.accumulate_gradients",
    points=3,
    minutes=10,
    difficulty=3,
    teaches="a mean of means is not the mean, and only one part's graph may be alive",
    cases=_accumulate_cases,
    expect=_accumulated,
    drive=drive_accumulate,
    tolerance=1e-9,
    mistakes=[
        Mistake(
            _accumulate_like(weigh=lambda y, parts: 1 / len(parts)),
            "You averaged the micro-batches' means. A micro-batch with fewer targets counts less: "
            "weigh each by its share of all targets.",
        ),
        Mistake(
            _accumulate_like(weigh=lambda y, parts: 1),
            "You added up means, so the gradient grows with the number of micro-batches.",
        ),
        Mistake(
            _accumulate_like(weigh=lambda y, parts: y.numel()),
            "This is the gradient of the sum over all targets. Divide by their number.",
        ),
        Mistake(
            _accumulate_like(weigh=lambda y, parts: len(y) / sum(len(p[1]) for p in parts)),
            "You weighed micro-batches by their rows. Rows differ in length: count targets.",
        ),
        Mistake(
            _accumulate_like(last=True),
            "Only the last micro-batch is left. Add to the gradients, do not replace them.",
        ),
        Mistake(
            _all_graphs,
            "The gradients are right, but you kept every micro-batch's graph until the end, so "
            "nothing was saved. Go backward after each forward.",
        ),
    ],
    hints=[
        "A micro-batch's loss is the mean over its own targets. With which weight does it enter "
        "the mean over all targets?",
        "n = targets in all. For each micro-batch: loss · y.numel() / n, backward at once, add up.",
        "loss = loss_of(weights, x, y) * y.numel() / n; loss.backward(); at the end "
        "{name: w.grad for name, w in weights.items()}",
    ],
)
