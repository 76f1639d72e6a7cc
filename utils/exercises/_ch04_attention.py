"""Chapter 04: attention, and the parts that other exercises of the chapter build on."""

from __future__ import annotations

import numpy as np

from ._ch04_drive import drive_attention
from ._ch04_reference import attention64, normal, whole
from .spec import Exercise, Mistake

HIDDEN = float("-inf")


def _stable(scores):
    return scores.softmax(-1)


def mask(scores, offset=1):
    """-infinity for keys that lie `offset` or more after their query."""
    future = scores.new_ones(scores.shape[-2:]).triu(offset).bool()
    return scores.masked_fill(future, HIDDEN)


def attention_like(scale=lambda d: d**-0.5, hide=mask, weigh=_stable, after=None, always=None):
    """An attention with its parts exchanged.

    hide: masks scores. after: masks weights. always: causal whatever was asked.
    """

    def answer(q, k, v, causal):
        causal = causal if always is None else always
        scores = q @ k.transpose(-2, -1) * scale(q.shape[-1])
        if causal and hide:
            scores = hide(scores)
        weights = weigh(scores)
        if causal and after:
            weights = after(weights)
        return weights @ v

    return answer


right = attention_like()


def _swapped(q, k, v, causal):
    """Takes axis 1 for the positions and axis 2 for the heads."""
    if causal and q.shape[1] != k.shape[1]:
        raise ValueError("causal")
    return right(*(x.transpose(1, 2) for x in (q, k, v)), causal).transpose(1, 2)


def _expected(q, k, v, causal):
    return {"out": attention64(q, k, v, causal), "gradients reach q, k and v": True}


def _attention_cases(rng):
    def qkv(*shape, **options):
        return [normal(rng, *shape, **options) for _ in "qkv"]

    odd = 1, int(rng.integers(2, 5)), int(rng.integers(7, 20)), int(rng.integers(2, 9))
    large = [whole(rng, 240, 1, 2, 6, 16) for _ in "qk"] + [normal(rng, 1, 2, 6, 16)]
    one_query = [normal(rng, 2, 2, n, 8) for n in (1, 9, 9)]
    return [
        (*qkv(2, 3, 5, 4), True),
        (*qkv(2, 3, 5, 4), False),
        (*qkv(1, 1, 1, 1), True),
        (*qkv(1, 4, 4, 4), True),
        (*qkv(*odd), True),
        (*qkv(*odd), False),
        (*large, True),
        (*one_query, False),
        (*qkv(2, 2, 6, 3, dtype=np.float64), True),
    ]


ATTENTION = Exercise(
    id="04.attention",
    points=3,
    minutes=10,
    difficulty=2,
    teaches="scores, scale, mask, softmax over keys, weighted sum of values: in that order",
    cases=_attention_cases,
    expect=_expected,
    drive=drive_attention,
    tolerance=1e-5,
    mistakes=[
        Mistake(
            attention_like(scale=lambda d: 1),
            "The scores are not divided by √head_dim.",
        ),
        Mistake(
            attention_like(scale=lambda d: 1 / d),
            "You divided the scores by head_dim. Divide by its square root: that is how much the "
            "dot product of random vectors spreads.",
        ),
        Mistake(
            attention_like(weigh=lambda scores: scores.softmax(-2)),
            "The softmax runs over the queries. Each query's weights over the keys, the last "
            "axis, must sum to one.",
        ),
        Mistake(
            attention_like(hide=None, after=lambda weights: weights.tril()),
            "You masked after the softmax, so a row's weights no longer sum to one. Hide scores "
            "with -infinity before it.",
        ),
        Mistake(
            attention_like(hide=lambda scores: mask(scores, 0)),
            "The mask is off by one: query i must see its own key i. The first query saw nothing "
            "at all, which gives NaN.",
        ),
        Mistake(
            attention_like(hide=lambda scores: mask(scores, 2)),
            "The mask is off by one: query i sees key i + 1, the very token it should predict.",
        ),
        Mistake(
            attention_like(hide=lambda scores: scores.tril()),
            "You set hidden scores to 0. exp(0) is 1, so those keys still count: use -infinity.",
        ),
        Mistake(
            attention_like(hide=lambda scores: mask(scores.transpose(-2, -1)).transpose(-2, -1)),
            "The mask is the wrong way round: query i sees keys i and later. Axis -2 is the "
            "queries, axis -1 the keys.",
        ),
        Mistake(
            attention_like(always=False),
            "causal=True changes nothing in your code: query i must not see keys after i.",
        ),
        Mistake(
            attention_like(always=True),
            "You mask even when causal is False.",
        ),
        Mistake(
            _swapped,
            "The heads are in the wrong order: axis 1 is n_head, axis 2 is seq_len. Your code "
            "mixes the heads of one position, not the positions of one head.",
        ),
        Mistake(
            attention_like(weigh=lambda s: s.exp() / s.exp().sum(-1, keepdim=True)),
            "exp of a large score overflows. Subtract the row's maximum first, as in softmax.",
        ),
        Mistake(
            lambda q, k, v, causal: right(q.detach(), k.detach(), v.detach(), causal),
            "The output is right, but gradients do not flow back through it, and chapter 5 trains "
            "with it. Use torch operations, without no_grad, detach or numpy.",
        ),
    ],
    hints=[
        "Which two axes does a product of q and k leave, if batch and head stay as they are?",
        "scores = q @ k with its last two axes swapped, over √head_dim. For causal, fill with "
        "-infinity where key > query. Softmax along the last axis, then @ v.",
        "future = torch.ones(n, n, dtype=torch.bool, device=q.device).triu(1); "
        "softmax(scores.masked_fill(future, float('-inf'))) @ v",
    ],
)
