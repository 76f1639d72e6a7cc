"""Chapter 04: attention in tiles."""

from __future__ import annotations

import numpy as np

from ._ch04_attention import right
from ._ch04_drive import drive_tiled, within
from ._ch04_reference import attention64, normal, whole
from .spec import Exercise, Mistake


def _expected(q, k, v, causal, block_q, block_k):
    return {"out": attention64(q, k, v, causal)} | within(q, causal, block_q, block_k)


def _cases(rng):
    def qkv(*shape, **options):
        return [normal(rng, *shape, **options) for _ in "qkv"]

    large = [whole(rng, 30, 1, 2, 12, 16) for _ in "qk"] + [normal(rng, 1, 2, 12, 16)]
    return [
        (*qkv(2, 3, 8, 4), True, 4, 4),
        (*qkv(2, 3, 8, 4), False, 4, 4),
        (*qkv(1, 2, 11, 6), True, 4, 3),
        (*qkv(1, 2, 13, 6), False, 3, 5),
        (*qkv(1, 1, 5, 3), True, 8, 16),
        (*large, True, 4, 4),
        (*qkv(1, 1, int(rng.integers(20, 30)), 4, dtype=np.float64), True, 6, 4),
        (*qkv(1, 1, 512, 1), True, 64, 32),
        (*qkv(1, 1, 150, 4), False, 32, 32),
    ]


def _tiled_like(
    rescale_out=True, rescale_sum=True, divide=True, diagonal=True, skip="masked", partial=True
):
    """Tiled attention with a step left out. skip: which key tiles a causal query tile leaves out:
    "masked" whole ones, "none", or all that are "partly" masked."""

    def answer(q, k, v, causal, block_q, block_k):
        seq_len, scale = q.shape[2], q.shape[-1] ** -0.5
        out = q.new_zeros(q.shape)
        for i in range(0, seq_len if partial else seq_len - block_q + 1, block_q):
            rows = q[:, :, i : i + block_q] * scale
            end = min(i + block_q, seq_len)
            top = q.new_full((*rows.shape[:3], 1), -1e30)
            total, mixed = q.new_zeros(top.shape), q.new_zeros(rows.shape)
            for j in range(0, seq_len if partial else seq_len - block_k + 1, block_k):
                last = {"masked": j, "none": 0, "partly": j + block_k - 1}[skip]
                if causal and last >= (i + 1 if skip == "partly" and j else end):
                    continue
                scores = rows @ k[:, :, j : j + block_k].transpose(-2, -1)
                if causal and diagonal:
                    # key - query > 0 is the future
                    future = scores.new_ones(scores.shape[-2:]).triu(i - j + 1).bool()
                    scores = scores.masked_fill(future, -1e30)
                new = top.maximum(scores.amax(-1, keepdim=True))
                weights = (scores - new).exp()
                factor = (top - new).exp()
                added = weights @ v[:, :, j : j + block_k]
                total = total * (factor if rescale_sum else 1) + weights.sum(-1, keepdim=True)
                mixed = mixed * (factor if rescale_out else 1) + added
                top = new
            out[:, :, i : i + block_q] = mixed / total if divide else mixed
        return out

    return answer


def _tile_softmaxes(q, k, v, causal, block_q, block_k):
    """Softmax within each key tile, outputs averaged over the tiles that a query sees."""
    out, seq_len, scale = q.new_zeros(q.shape), q.shape[2], q.shape[-1] ** -0.5
    for i in range(0, seq_len, block_q):
        rows = q[:, :, i : i + block_q] * scale
        mixed, count = q.new_zeros(rows.shape), q.new_zeros(rows.shape[2], 1)
        for j in range(0, min(i + block_q, seq_len) if causal else seq_len, block_k):
            scores = rows @ k[:, :, j : j + block_k].transpose(-2, -1)
            seen = scores.new_ones(scores.shape[-2:])
            if causal:
                seen = seen.tril(i - j)
            weights = scores.masked_fill(seen == 0, -1e30).softmax(-1) * seen
            mixed += weights @ v[:, :, j : j + block_k]
            count += seen.amax(-1, keepdim=True)
        out[:, :, i : i + block_q] = mixed / count
    return out


def _strips(q, k, v, causal, block_q, block_k, cut=True):
    """A tile of queries against all the keys that it sees."""
    out, seq_len = q.new_zeros(q.shape), q.shape[2]
    for i in range(0, seq_len, block_q):
        end = min(i + block_q, seq_len)
        seen = end if causal and cut else seq_len
        scores = q[:, :, i:end] @ k[:, :, :seen].transpose(-2, -1) * q.shape[-1] ** -0.5
        if causal:
            future = scores.new_ones(scores.shape[-2:]).triu(i + 1).bool()
            scores = scores.masked_fill(future, float("-inf"))
        out[:, :, i:end] = scores.softmax(-1) @ v[:, :, :seen]
    return out


TILED_ATTENTION = Exercise(
    id="04.tiled_attention",
    points=5,
    minutes=20,
    difficulty=4,
    teaches="attention needs neither the matrix of scores nor the half that is masked",
    cases=_cases,
    expect=_expected,
    drive=drive_tiled,
    tolerance=1e-5,
    mistakes=[
        Mistake(
            lambda q, k, v, causal, block_q, block_k: right(q, k, v, causal),
            "The numbers are right, but you hold all seq_len x seq_len scores. Hold one tile of "
            "them at a time.",
        ),
        Mistake(
            _strips,
            "You hold a strip: a tile of queries against all keys it sees. Go through the keys in "
            "tiles too, with a running maximum and total.",
        ),
        Mistake(
            _tiled_like(skip="none"),
            "The numbers are right, but you compute tiles in which every score is masked. A key "
            "tile that begins after the query tile's last row can be skipped.",
        ),
        Mistake(
            _tiled_like(rescale_out=False),
            "When the maximum rises, the output so far must shrink by the same factor as the "
            "total: exp(old - new).",
        ),
        Mistake(
            _tiled_like(rescale_out=False, rescale_sum=False),
            "When the maximum rises, multiply both the total and the output so far by "
            "exp(old - new).",
        ),
        Mistake(
            _tiled_like(rescale_sum=False),
            "You shrink the output when the maximum rises, but not the total.",
        ),
        Mistake(
            _tiled_like(divide=False),
            "Divide the output by the total when the last key tile is done.",
        ),
        Mistake(
            _tiled_like(diagonal=False),
            "The tiles on the diagonal are masked in part: in them, hide the keys after each "
            "query.",
        ),
        Mistake(
            _tiled_like(skip="partly"),
            "You skip key tiles of which some keys can be seen: a tile is needless only if it "
            "begins after the query tile's last row.",
        ),
        Mistake(
            _tiled_like(partial=False),
            "The last tile may be smaller: when the block does not divide seq_len, your code "
            "leaves the rest out.",
        ),
        Mistake(
            _tile_softmaxes,
            "You averaged the softmaxes of the tiles. A tile with larger scores must count more: "
            "carry a running maximum and total.",
        ),
    ],
    hints=[
        "For one tile of queries: what must you carry from one key tile to the next?",
        "Carry top (rows, 1) at -infinity, total (rows, 1) at 0, out (rows, head_dim) at 0. Each "
        "key tile: scores, mask, new top, factor = exp(top - new), then correct total and out, "
        "add to both. At the end out / total.",
        "total = total * factor + w.sum(-1, keepdim=True); out = out * factor + w @ v_tile; "
        "causal: leave the loop when the key tile's first index >= the query tile's end",
    ],
)
