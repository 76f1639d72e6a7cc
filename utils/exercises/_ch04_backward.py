"""Chapter 04: the backward pass of attention, by hand."""

from __future__ import annotations

import numpy as np

from ._ch04_attention import mask
from ._ch04_drive import drive_without_autograd
from ._ch04_reference import normal
from .spec import Exercise, Mistake


def _autograd(q, k, v, d_out, causal):
    """What PyTorch's autograd says, in float64."""
    import torch

    q, k, v, d_out = (torch.from_numpy(x).double() for x in (q, k, v, d_out))
    leaves = [x.requires_grad_() for x in (q, k, v)]
    with torch.enable_grad():
        scores = torch.einsum("bhid,bhjd->bhij", leaves[0], leaves[1]) / q.shape[-1] ** 0.5
        if causal:
            position = torch.arange(q.shape[2])
            scores = scores.masked_fill(position > position[:, None], float("-inf"))
        out = torch.einsum("bhij,bhjd->bhid", scores.softmax(-1), leaves[2])
        gradients = torch.autograd.grad(out, leaves, d_out)
    return [gradient.numpy() for gradient in gradients]


def _cases(rng):
    def four(*shape, **options):
        return [normal(rng, *shape, **options) for _ in range(4)]

    odd = 1, int(rng.integers(1, 4)), int(rng.integers(5, 20)), int(rng.integers(2, 9))
    # Every score is about 800: exp overflows even in float64, the softmax is an ordinary one.
    large = four(1, 2, 6, 16, dtype=np.float64)
    large[0][..., 0] = large[1][..., 0] = 57
    return [
        (*four(2, 3, 5, 4), True),
        (*four(2, 3, 5, 4), False),
        (*four(1, 2, 1, 3), True),
        (*four(1, 1, 6, 6), True),
        (*four(*odd), True),
        (*four(*odd, dtype=np.float64), False),
        (*large, True),
    ]


def _through_softmax(weights, d_weights):
    return weights * (d_weights - (weights * d_weights).sum(-1, keepdim=True))


def _like(
    softmax_back=_through_softmax, scale_q=True, scale_k=True, turn_v=True, turn_k=True, always=None
):
    def answer(q, k, v, d_out, causal):
        scale = q.shape[-1] ** -0.5
        scores = q @ k.transpose(-2, -1) * scale
        if causal if always is None else always:
            scores = mask(scores)
        weights = scores.softmax(-1)
        d_v = (weights.transpose(-2, -1) if turn_v else weights) @ d_out
        d_scores = softmax_back(weights, d_out @ v.transpose(-2, -1))
        d_q = d_scores @ k * (scale if scale_q else 1)
        d_k = (d_scores.transpose(-2, -1) if turn_k else d_scores) @ q * (scale if scale_k else 1)
        return d_q, d_k, d_v

    return answer


ATTENTION_BACKWARD = Exercise(
    id="04.attention_backward",
    points=4,
    minutes=12,
    difficulty=4,
    teaches="the gradient of a row's softmax subtracts the row's own average",
    cases=_cases,
    expect=_autograd,
    drive=drive_without_autograd,
    tolerance=2e-5,
    mistakes=[
        Mistake(
            _like(softmax_back=lambda p, d: p * d),
            "The softmax's gradient lacks its second term. Raising one score lowers all other "
            "weights of its row: subtract the row's sum of weights · d_weights.",
        ),
        Mistake(
            _like(softmax_back=lambda p, d: p * (d - (p * d).sum(-2, keepdim=True))),
            "The sum in the softmax's gradient runs over the keys of one query, the last axis. "
            "Yours runs over the queries.",
        ),
        Mistake(
            _like(softmax_back=lambda p, d: p * (d - d.mean(-1, keepdim=True))),
            "You subtracted the plain mean of d_weights. It is the mean weighted by the weights.",
        ),
        Mistake(
            _like(scale_q=False, scale_k=False),
            "The factor 1 / √head_dim of the scores belongs into d_q and d_k too.",
        ),
        Mistake(
            _like(scale_k=False),
            "d_q has the factor 1 / √head_dim, d_k does not: both need it.",
        ),
        Mistake(
            _like(turn_v=False),
            "d_v gathers over queries: multiply the transposed weights with d_out.",
        ),
        Mistake(
            _like(turn_k=False),
            "d_k gathers over queries: multiply the transposed d_scores with q.",
        ),
        Mistake(
            _like(always=False),
            "You forgot the mask: with causal=True hidden keys get no gradient from earlier "
            "queries.",
        ),
    ],
    hints=[
        "Five steps forward: scores, scale, mask, softmax, product. Walk them backwards. Which "
        "gradients does out = weights @ v give?",
        "d_v = weightsᵀ @ d_out; d_weights = d_out @ vᵀ; d_scores = weights · (d_weights - row "
        "sum of weights · d_weights); then the product and the scale.",
        "d_q = d_scores @ k * scale; d_k = d_scores.transpose(-2, -1) @ q * scale",
    ],
)
