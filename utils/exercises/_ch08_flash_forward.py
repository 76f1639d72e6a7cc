"""Chapter 08: the forward kernel of FlashAttention."""

from __future__ import annotations

import math

import numpy as np

from ._ch08_flash_reference import (
    attention64,
    cancelling,
    forward_bytes,
    heads,
    large_scores,
    limits,
    low_first,
)
from .kernels import WrongKernel, right, run
from .spec import Exercise, Mistake


def drive(kernel, q, k, v, causal, block_q, block_k):
    batch, n_head, seq_len, head_dim = q.shape
    args = [q, k, v, np.empty_like(q), np.empty(q.shape[:3], np.float32), seq_len]
    constants = {
        "GROUP": n_head // k.shape[1],
        "HEAD_DIM": head_dim,
        "BLOCK_Q": block_q,
        "BLOCK_K": block_k,
        "CAUSAL": causal,
    }
    return run(
        kernel,
        (-(-seq_len // block_q), batch * n_head),
        [*args, 1 / math.sqrt(head_dim)],
        {"out": 3, "lse": 4},
        constants,
        **limits(forward_bytes, q, k, causal, block_q, block_k),
    )


def expect(q, k, v, causal, block_q, block_k):
    out, lse = attention64(q, k, v, causal)
    return right({"out": out, "lse": lse}, **limits(forward_bytes, q, k, causal, block_q, block_k))


def cases(rng):
    values = cancelling(rng, 64)
    equal_keys = np.zeros_like(values)
    return [
        (*heads(rng, 1, 2, 1, 40), True, 16, 16),
        (*heads(rng, 1, 2, 2, 33, head_dim=32), False, 32, 32),
        (*low_first(*large_scores(rng, 30, 1, 1, 1, 48)), True, 32, 16),
        (equal_keys, equal_keys, values, False, 64, 32),
        (*heads(rng, 2, 2, 1, int(rng.integers(17, 31))), True, 16, 32),
    ]


def _wrong(name: str) -> WrongKernel:
    return WrongKernel("_ch08_wrong_flash", f"forward_{name}")


FLASH_FORWARD = Exercise(
    id="08.flash_forward_kernel",
    points=6,
    minutes=30,
    difficulty=4,
    teaches="the online softmax in one kernel: scores never leave the chip",
    cases=cases,
    expect=expect,
    drive=drive,
    tolerance=1e-5,
    needs_triton=True,
    mistakes=[
        Mistake(
            _wrong("out_not_rescaled"),
            "When the maximum rises, the output so far must shrink by the same factor as the "
            "total: exp(top - new).",
        ),
        Mistake(
            _wrong("total_not_rescaled"),
            "You shrink the output when the maximum rises, but not the total.",
        ),
        Mistake(
            _wrong("no_maximum"),
            "exp of a score as it is overflows where scores are large. Subtract the row's running "
            "maximum first.",
        ),
        Mistake(
            _wrong("not_divided"),
            "Divide the output by the total when the last key tile is done.",
        ),
        Mistake(
            _wrong("no_scale"),
            "The scores are not multiplied by `scale`.",
        ),
        Mistake(
            _wrong("diagonal_seen"),
            "The tiles on the diagonal are masked in part: in them, hide the keys after each "
            "query.",
        ),
        Mistake(
            _wrong("nothing_skipped"),
            "The numbers are right, but keys and values are read that no query of the tile may "
            "see. End the loop at the query tile's last row.",
        ),
        Mistake(
            _wrong("diagonal_skipped"),
            "The loop ends where the query tile begins, so the tiles on the diagonal are left "
            "out. It ends after the tile's last query.",
        ),
        Mistake(
            _wrong("tail_counts"),
            "Keys past seq_len count in the softmax: a masked load gives them a score of 0, and "
            "exp(0) is 1. Their score is minus infinity.",
        ),
        Mistake(
            _wrong("values_undefined"),
            "The weights of keys past seq_len are 0, but what a load without `other` puts there "
            "may be NaN, and 0 times NaN is NaN. Load v with other=0.0.",
        ),
        Mistake(
            _wrong("no_masks"),
            "Nothing is masked, and seq_len is no multiple of the blocks. Mask the loads and "
            "stores of rows past seq_len.",
        ),
        Mistake(
            _wrong("own_key_head"),
            "Each query head reads a key head of its own number. GROUP query heads share one: it "
            "is head // GROUP.",
        ),
        Mistake(
            _wrong("lse_is_maximum"),
            "`lse` holds the maximum only. The log-sum-exp is top + log(total).",
        ),
        Mistake(
            _wrong("lse_is_total"),
            "`lse` holds the total as it is. The log-sum-exp is top + log(total).",
        ),
        Mistake(
            _wrong("half_sums"),
            "The output is summed in half precision, where small parts are lost. Sum in float32 "
            "and round once, at the store.",
        ),
    ],
    hints=[
        "For one tile of queries: what do you carry from one key tile to the next? Chapter 4's "
        "tiled_attention carried three things.",
        "Load q. Carry top (BLOCK_Q,) at -infinity, total (BLOCK_Q,) and mixed (BLOCK_Q, HEAD_DIM) "
        "at 0, all float32. Each key tile: scores = tl.dot(q, tl.trans(k)) * scale, hide, new = "
        "tl.maximum(top, tl.max(scores, 1)), correct total and mixed by exp(top - new), add.",
        "key_row = head // GROUP * seq_len + key; scores = tl.where(seen, scores, float('-inf')); "
        "mixed = mixed * shrink[:, None] + tl.dot(weights.to(v.dtype), v); the loop ends at "
        "min(first + BLOCK_Q, seq_len) if CAUSAL else seq_len",
    ],
)
