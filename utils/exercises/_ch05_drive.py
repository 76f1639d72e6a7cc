"""How chapter 05's answers are run: weights from a plain dict, gradients, what is held at once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .tensors import refused, to_tensors


def causal_attention(q, k, v, causal=True):
    """What block and gpt are given to mix tokens with: (batch, n_head, seq_len, head_dim).

    Its scores are halved, so that an answer which brings an attention of its own is seen.
    """
    scores = q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5 / 2
    if causal:
        future = scores.new_ones(scores.shape[-2:]).triu(1).bool()
        scores = scores.masked_fill(future, float("-inf"))
    return scores.softmax(-1) @ v


def probe(out):
    """A scalar that every element of out adds to with a weight of its own."""
    import torch

    return (out * torch.arange(1, out.numel() + 1).to(out).sin().view(out.shape)).sum()


def gradients_of(total, leaves: dict) -> dict:
    """name -> gradient; zeros for a leaf that the total does not depend on."""
    import torch

    if not total.requires_grad:
        return {name: torch.zeros_like(leaf) for name, leaf in leaves.items()}
    found = torch.autograd.grad(total, list(leaves.values()), allow_unused=True)
    pairs = zip(leaves.items(), found, strict=True)
    return {name: torch.zeros_like(leaf) if g is None else g for (name, leaf), g in pairs}


def leaves_of(weights: dict) -> dict:
    """Fresh tensors that record gradients."""
    return {name: to_tensors(w).clone().requires_grad_() for name, w in weights.items()}


def drive_block(answer: Callable[..., Any], x, weights, n_head) -> Any:
    """The output of a block, and the gradients of its input and weights."""
    leaves = leaves_of({"x": x} | weights)
    given = dict(leaves)
    out = answer(given.pop("x"), given, n_head, causal_attention)
    return {"out": out, "gradients": gradients_of(probe(out), leaves)}


def drive_gpt(answer: Callable[..., Any], tokens, weights, n_layer, n_head) -> Any:
    """The logits, and the gradients of all weights."""
    leaves = leaves_of(weights)
    logits = answer(to_tensors(tokens), dict(leaves), n_layer, n_head, causal_attention)
    return {"logits": logits, "gradients": gradients_of(probe(logits), leaves)}


def drive_cross_entropy(answer: Callable[..., Any], logits, targets) -> Any:
    """The loss, and its gradient. What the answer is to write is not there to be called."""
    import torch.nn.functional as F

    leaves = leaves_of({"logits": logits})
    with refused(F, "cross_entropy nll_loss", "leave F.cross_entropy and F.nll_loss aside"):
        loss = answer(leaves["logits"], to_tensors(targets))
    return {"loss": loss, "gradient": gradients_of(loss, leaves)["logits"]}


def drive_get_batch(answer: Callable[..., Any], tokens, ends, seq_len, u) -> Any:
    """x, y and their dtype."""
    x, y = answer(*to_tensors([tokens, ends]), seq_len, to_tensors(u))
    return {"x": x, "y": y, "dtype": " ".join(str(part.dtype) for part in (x, y))}


def drive_adamw(answer: Callable[..., Any], w, g, m, v, *numbers) -> Any:
    """One step. Working in place is fine: the arrays are copies."""
    copies = [to_tensors(array).clone() for array in (w, g, m, v)]
    return list(answer(*copies, *numbers))


def drive_accumulate(answer: Callable[..., Any], weights, micro_batches) -> Any:
    """The gradients, and how many micro-batches were waiting for their backward pass at once.

    The loss is that of a linear classifier: mean cross-entropy of x @ w + b.
    """
    import torch
    import torch.nn.functional as F

    waiting = most = 0
    largest = max(targets.size for _, targets in micro_batches)

    class Counted(torch.autograd.Function):
        """Passes the loss through; its backward pass says that the graph was used."""

        @staticmethod
        def forward(ctx, loss):
            nonlocal waiting, most
            waiting += 1
            most = max(most, waiting)
            return loss.clone()

        @staticmethod
        def backward(ctx, gradient):
            nonlocal waiting
            waiting -= 1
            return gradient

    def loss_of(weights, x, y):
        nonlocal most
        logits = x @ weights["w"] + weights["b"]
        loss = F.cross_entropy(logits.flatten(0, 1), y.flatten())
        if y.numel() > largest:  # parts joined to one
            most = max(most, len(micro_batches))
        return Counted.apply(loss) if loss.requires_grad else loss

    leaves = leaves_of(weights)
    parts = [tuple(to_tensors(part)) for part in micro_batches]
    found = answer(loss_of, leaves, parts)
    return {"gradients": dict(found), "memory": held(most)}


def held(n: int) -> str:
    """In words, how many graphs were alive."""
    return "one micro-batch at a time" if n == 1 else f"{n} micro-batches at once"


def as_state(weights: dict[str, np.ndarray]) -> dict:
    """Arrays as a state that a torch module loads."""
    return {name: to_tensors(array) for name, array in weights.items()}
