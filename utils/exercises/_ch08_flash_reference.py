"""Chapter 08's FlashAttention: the plain formula in float64, inputs, and the bytes of tiles."""

from __future__ import annotations

import math

import numpy as np

SLACK = 1.1  # of the formula's bytes


def attention64(q, k, v, causal):
    """(output, log-sum-exp of each row) in float64, with the whole matrix of scores.

    q (batch, n_head, seq_len, head_dim); k and v may have fewer heads, each for a group.
    """
    q, k, v = (np.asarray(x, dtype=np.float64) for x in (q, k, v))
    k, v = (np.repeat(x, q.shape[1] // x.shape[1], axis=1) for x in (k, v))
    scores = np.einsum("bhid,bhjd->bhij", q, k) / math.sqrt(q.shape[3])
    if causal:
        scores[..., ~np.tri(q.shape[2], dtype=bool)] = -np.inf
    top = scores.max(-1, keepdims=True)
    lse = top + np.log(np.exp(scores - top).sum(-1, keepdims=True))
    return np.einsum("bhij,bhjd->bhid", np.exp(scores - lse), v), lse[..., 0]


def gradients64(q, k, v, d_out, causal):
    """What PyTorch's autograd says of the plain formula, in float64: d_q, d_k, d_v."""
    import torch

    leaves = [torch.from_numpy(x).double().requires_grad_() for x in (q, k, v)]
    group = q.shape[1] // k.shape[1]
    with torch.enable_grad():
        keys, values = (x.repeat_interleave(group, dim=1) for x in leaves[1:])
        scores = torch.einsum("bhid,bhjd->bhij", leaves[0], keys) / math.sqrt(q.shape[3])
        if causal:
            position = torch.arange(q.shape[2])
            scores = scores.masked_fill(position > position[:, None], -math.inf)
        out = torch.einsum("bhij,bhjd->bhid", scores.softmax(-1), values)
        gradients = torch.autograd.grad(out, leaves, torch.from_numpy(d_out).double())
    return [gradient.numpy() for gradient in gradients]


def forward_bytes(q, k, causal, block_q, block_k) -> int:
    """Bytes of the forward kernel: q, output and log-sum-exp once, keys and values once for each
    query tile that sees them."""
    batch, n_head, seq_len, head_dim = q.shape
    seen = sum(_keys_seen(seq_len, causal, block_q, block_k))
    return batch * n_head * (2 * head_dim * q.itemsize * (seq_len + seen) + 4 * seq_len)


def query_gradient_bytes(q, k, causal, block_q, block_k) -> int:
    """Bytes for d_q: q, d_out, d_q, and two numbers a row once; keys and values as forward."""
    batch, n_head, seq_len, head_dim = q.shape
    seen = sum(_keys_seen(seq_len, causal, block_q, block_k))
    return batch * n_head * (head_dim * q.itemsize * (3 * seq_len + 2 * seen) + 8 * seq_len)


def key_gradient_bytes(q, k, causal, block_q, block_k) -> int:
    """Bytes for d_k and d_v: four arrays once; queries, d_out and two numbers a row once for each
    key tile that they see, in each head of the group."""
    batch, n_head, seq_len, head_dim = q.shape
    row = 2 * head_dim * q.itemsize + 8
    seeing = 0
    for first in range(0, seq_len, block_k):
        begin = first // block_q * block_q if causal else 0
        seeing += seq_len - begin
    once = 4 * head_dim * q.itemsize * seq_len
    return batch * (k.shape[1] * once + n_head * row * seeing)


def _keys_seen(seq_len, causal, block_q, block_k):
    """For each query tile, the keys in the tiles that it visits."""
    for first in range(0, seq_len, block_q):
        end = min(first + block_q, seq_len) if causal else seq_len
        yield min(-(-end // block_k) * block_k, seq_len)


def limits(count, q, k, causal, block_q, block_k) -> dict[str, float]:
    """What `right` and `run` take: a tenth above the formula `count`. Rows that are not a multiple
    of 32 bytes begin inside a sector, so then coalescing is not asked for."""
    return {
        "at_most_bytes": SLACK * count(q, k, causal, block_q, block_k),
        "coalescing": 0.9 if q.shape[2] % 8 == 0 else 0.0,
    }


def normal(rng, *shape):
    return rng.standard_normal(shape).astype(np.float32)


def whole(rng, largest, *shape, dtype=np.float32):
    """Whole numbers, whose products are exact in tf32 and in half precision too."""
    return rng.integers(-largest, largest + 1, size=shape).astype(dtype)


def heads(rng, batch, n_head, n_kv_head, seq_len, head_dim=16):
    """q, k, v of standard normal numbers."""
    kv = batch, n_kv_head, seq_len, head_dim
    return normal(rng, batch, n_head, seq_len, head_dim), normal(rng, *kv), normal(rng, *kv)


def large_scores(rng, largest, *sizes):
    """q, k, v with scores that overflow exp."""
    q, k, v = heads(rng, *sizes)
    return whole(rng, largest, *q.shape), whole(rng, largest, *k.shape), v


def low_first(q, k, v):
    """All that query 0 sees, causally, is a score of -14,400: what hides a key must be lower."""
    q[..., 0, :4], k[..., 0, :] = 120, [-120] * 4 + [0] * (k.shape[3] - 4)
    return q, k, v


def cancelling(rng, seq_len, head_dim=16):
    """(seq_len, head_dim) half-precision whole numbers: the second half takes back what the first
    adds up to, but for a little. A sum in half precision loses that little."""
    first = rng.integers(200, 1001, size=(seq_len // 2, head_dim)).astype(np.float64)
    second = -first[rng.permutation(len(first))]
    second[0] += rng.integers(1, 8, size=head_dim)
    return np.concatenate([first, second]).astype(np.float16)[None, None]
