"""Attention in float64 with numpy, one query after the other: what chapter 04 compares with."""

from __future__ import annotations

import numpy as np


def softmax64(row: np.ndarray) -> np.ndarray:
    """Softmax of one row, in float64."""
    raised = np.exp(row.astype(np.float64) - float(row.max()))
    return raised / raised.sum()


def attention64(q, k, v, causal: bool) -> np.ndarray:
    """(batch, n_head, seq_len, head_dim), one query at a time. Query i sees keys 0 to i."""
    q, k, v = (np.asarray(x, dtype=np.float64) for x in (q, k, v))
    out = np.zeros((*q.shape[:3], v.shape[3]))
    for batch, head, query in np.ndindex(q.shape[:3]):
        seen = query + 1 if causal else k.shape[2]
        scores = k[batch, head, :seen] @ q[batch, head, query] / np.sqrt(q.shape[3])
        out[batch, head, query] = softmax64(scores) @ v[batch, head, :seen]
    return out


def normal(rng: np.random.Generator, *shape: int, dtype=np.float32) -> np.ndarray:
    """Standard normal numbers."""
    return rng.normal(size=shape).astype(dtype)


def whole(rng: np.random.Generator, largest: int, *shape: int) -> np.ndarray:
    """Whole numbers in float32, so that products of them are exact however large."""
    return rng.integers(-largest, largest + 1, size=shape).astype(np.float32)
