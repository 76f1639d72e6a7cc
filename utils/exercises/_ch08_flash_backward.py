"""Chapter 08: the backward kernels of FlashAttention."""

from __future__ import annotations

import math

import numpy as np

from ._ch08_flash_reference import (
    attention64,
    cancelling,
    gradients64,
    heads,
    key_gradient_bytes,
    large_scores,
    limits,
    normal,
    query_gradient_bytes,
)
from .kernels import WrongKernel, right, run
from .spec import Exercise, Mistake


def drive(kernel, q, k, v, d_out, causal, block_q, block_k):
    """Launch it twice, for the keys and for the queries, and put both reports together."""
    out, lse = attention64(q, k, v, causal)
    delta = (out * d_out).sum(-1).astype(np.float32)
    parts, untouched = {}, 0
    for keys in (True, False):
        try:
            parts[keys] = _launch(
                kernel, keys, q, k, v, d_out, lse, delta, causal, block_q, block_k
            )
        except NotImplementedError:
            untouched += 1
            if untouched == 2:
                raise
            side = "True" if keys else "False"
            parts[keys] = {"says": f"The branch for KEYS={side} is still to be written."}
    return _joined(parts[True], parts[False])


def _launch(kernel, keys, q, k, v, d_out, lse, delta, causal, block_q, block_k):
    batch, n_head, seq_len, head_dim = q.shape
    n_kv_head, block = k.shape[1], block_k if keys else block_q
    gradients = [np.zeros_like(x) for x in (q, k, v)]
    args = [q, k, v, d_out, lse.astype(np.float32), delta, *gradients, seq_len]
    constants = {
        "GROUP": n_head // n_kv_head,
        "HEAD_DIM": head_dim,
        "BLOCK_Q": block_q,
        "BLOCK_K": block_k,
        "CAUSAL": causal,
        "KEYS": keys,
    }
    count = key_gradient_bytes if keys else query_gradient_bytes
    return run(
        kernel,
        (-(-seq_len // block), batch * (n_kv_head if keys else n_head)),
        [*args, 1 / math.sqrt(head_dim)],
        {"d_k": 7, "d_v": 8} if keys else {"d_q": 6},
        constants,
        **limits(count, q, k, causal, block_q, block_k),
    )


def _joined(keys: dict, queries: dict) -> dict:
    """One dictionary. What both have, but for the sentence, gets a name of its own."""
    joined = {"says": keys["says"] or queries["says"]}
    for part, report in (("keys", keys), ("queries", queries)):
        for name, value in report.items():
            if name != "says":
                joined[name if name.startswith("d_") else f"{name}, {part}"] = value
    return joined


def expect(q, k, v, d_out, causal, block_q, block_k):
    d_q, d_k, d_v = gradients64(q, k, v, d_out, causal)
    case = q, k, causal, block_q, block_k
    return _joined(
        right({"d_k": d_k, "d_v": d_v}, **limits(key_gradient_bytes, *case)),
        right({"d_q": d_q}, **limits(query_gradient_bytes, *case)),
    )


def cases(rng):
    def with_gradient(q, k, v):
        return q, k, v, normal(rng, *q.shape)

    half = cancelling(rng, 64)
    nothing = np.zeros_like(half)
    return [
        (*with_gradient(*heads(rng, 1, 2, 1, 40)), True, 16, 16),
        (*with_gradient(*heads(rng, 1, 2, 2, 33, head_dim=32)), False, 32, 32),
        (*with_gradient(*large_scores(rng, 10, 1, 1, 1, 48)), True, 32, 16),
        (nothing, nothing, nothing, half, False, 32, 64),
        (*with_gradient(*heads(rng, 2, 2, 1, int(rng.integers(17, 31)))), True, 16, 32),
    ]


def _wrong(name: str) -> WrongKernel:
    return WrongKernel("_ch08_wrong_flash", f"backward_{name}")


FLASH_BACKWARD = Exercise(
    id="08.flash_backward_kernels",
    points=6,
    minutes=30,
    difficulty=4,
    teaches="weights are made again from one number a row, and each sum has one owner",
    cases=cases,
    expect=expect,
    drive=drive,
    tolerance=2e-5,
    needs_triton=True,
    mistakes=[
        Mistake(
            _wrong("no_delta"),
            "The softmax's gradient lacks its second term: subtract the row's delta from "
            "d_weights.",
        ),
        Mistake(
            _wrong("no_scale"),
            "The scores are scaled, so their gradient is too: d_q and d_k need the factor `scale`.",
        ),
        Mistake(
            _wrong("scores_not_scaled"),
            "The scores that you compute again are not multiplied by `scale`, so the weights are "
            "not those of the forward pass.",
        ),
        Mistake(
            _wrong("no_lse"),
            "exp(scores) is not yet a weight. Subtract the row's log-sum-exp first: that divides "
            "by the row's total.",
        ),
        Mistake(
            _wrong("future_seen"),
            "You forgot the mask: with CAUSAL a hidden key has weight 0 and gets no gradient from "
            "earlier queries.",
        ),
        Mistake(
            _wrong("first_of_group"),
            "Only the first query head of the group reaches d_k and d_v. A key head sums over all "
            "GROUP of them.",
        ),
        Mistake(
            _wrong("nothing_skipped"),
            "The numbers are right, but tiles are read in which every score is hidden. Queries "
            "see no keys after them, keys are seen by no queries before them.",
        ),
        Mistake(
            _wrong("starts_late"),
            "The first query tile that sees a key tile is left out where the blocks differ. It "
            "is the one that holds the key tile's first position: first // BLOCK_Q.",
        ),
        Mistake(
            _wrong("undefined"),
            "d_scores are 0 for queries past seq_len, but what a load of q without `other` puts "
            "there may be NaN, and 0 times NaN is NaN. Load with other=0.0.",
        ),
        Mistake(
            _wrong("half_sums"),
            "d_v is summed in half precision, where small parts are lost. Sum in float32 and "
            "round once, at the store.",
        ),
    ],
    hints=[
        "Which of d_q, d_k, d_v does a key tile own, which a query tile? What does each have to "
        "read to compute the weights of one tile again?",
        "KEYS: load k and v once. For each of GROUP heads and each query tile from first // "
        "BLOCK_Q on: load q, d_out, lse, delta; weights = exp(scores - lse), 0 where hidden; "
        "d_v += weightsᵀ @ d_out; d_k += d_scoresᵀ @ q. Else: d_q += d_scores @ k, as forward.",
        "transposed tiles save a transpose: scores = tl.dot(k, tl.trans(q)) * scale; weights = "
        "tl.where(seen, tl.exp(scores - lse[None, :]), 0.0); d_scores = weights * (tl.dot(v, "
        "tl.trans(d_out)) - delta[None, :]) * scale",
    ],
)
