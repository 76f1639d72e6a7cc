"""Chapter 04: many heads, and heads that share keys."""

from __future__ import annotations

import math

import numpy as np

from ._ch04_attention import right
from ._ch04_drive import drive_heads
from ._ch04_reference import attention64, normal
from .spec import Exercise, Mistake
from .tensors import drive_tensors


def _multi_head(x, w_qkv, w_out, n_head, causal):
    """Head by head, column by column."""
    x, w_qkv, w_out = (array.astype(np.float64) for array in (x, w_qkv, w_out))
    d_model = x.shape[2]
    head_dim = d_model // n_head
    out = np.zeros(x.shape)
    for head in range(n_head):
        columns = slice(head * head_dim, (head + 1) * head_dim)
        q, k, v = (x @ w_qkv[:, i * d_model : (i + 1) * d_model][:, columns] for i in range(3))
        mixed = attention64(q[:, None], k[:, None], v[:, None], causal)[:, 0]
        out += mixed @ w_out[columns]
    return out


def _multi_head_cases(rng):
    def case(batch, seq_len, d_model, n_head, causal):
        return (
            normal(rng, batch, seq_len, d_model),
            normal(rng, d_model, 3 * d_model) / math.sqrt(d_model),
            normal(rng, d_model, d_model) / math.sqrt(d_model),
            n_head,
            causal,
        )

    return [
        case(2, 5, 12, 3, True),
        case(2, 5, 12, 3, False),
        case(1, 4, 16, 4, True),
        case(1, 1, 8, 2, True),
        case(3, 7, 6, 1, True),
        case(1, int(rng.integers(2, 12)), 8, 4, False),
        case(2, int(rng.integers(2, 12)), 20, 5, True),
    ]


def split(y, n_head):
    """(batch, seq_len, d_model) -> (batch, n_head, seq_len, head_dim)."""
    return y.reshape(*y.shape[:2], n_head, -1).transpose(1, 2)


def merge(y):
    """(batch, n_head, seq_len, head_dim) -> (batch, seq_len, d_model)."""
    return y.transpose(1, 2).reshape(y.shape[0], y.shape[2], -1)


def _straight(y, n_head):
    return y.reshape(y.shape[0], n_head, y.shape[1], -1)


def _dealt(y, n_head):
    return y.reshape(*y.shape[:2], -1, n_head).permute(0, 3, 1, 2)


def _multi_head_like(divide=split, join=merge, parts=None, project=True, attend=right):
    def answer(x, w_qkv, w_out, n_head, causal):
        qkv = x @ w_qkv
        q, k, v = parts(qkv, n_head) if parts else qkv.chunk(3, -1)
        mixed = attend(*(divide(part, n_head) for part in (q, k, v)), causal)
        out = join(mixed).reshape(x.shape)
        return out @ w_out if project else out

    return answer


def _by_head(qkv, n_head):
    grouped = qkv.reshape(*qkv.shape[:2], n_head, 3, -1)
    return (grouped[:, :, :, i].reshape(*qkv.shape[:2], -1) for i in range(3))


MULTI_HEAD = Exercise(
    id="04.multi_head",
    points=3,
    minutes=10,
    difficulty=3,
    teaches="a head is a slice of columns, and reshape is not transpose",
    cases=_multi_head_cases,
    expect=_multi_head,
    drive=drive_tensors,
    tolerance=1e-5,
    mistakes=[
        Mistake(
            _multi_head_like(divide=_straight),
            "The heads are split in the wrong order. Reshaping (batch, seq_len, d_model) straight "
            "to (batch, n_head, seq_len, head_dim) mixes positions: split the last axis, then "
            "swap.",
        ),
        Mistake(
            _multi_head_like(divide=_dealt, join=lambda y: y.permute(0, 2, 3, 1)),
            "You dealt the columns out like cards: head h took every n_head-th one. Head h owns "
            "head_dim neighbouring columns.",
        ),
        Mistake(
            _multi_head_like(join=lambda y: y),
            "The heads come back in the wrong order: swap n_head and seq_len back before you "
            "reshape to d_model.",
        ),
        Mistake(
            _multi_head_like(parts=_by_head),
            "You took q, k and v of each head side by side. The first d_model columns of w_qkv "
            "are all queries, then come all keys, then all values.",
        ),
        Mistake(
            _multi_head_like(parts=lambda qkv, n: qkv.chunk(3, -1)[::-1]),
            "q and v have changed places: the columns are queries, keys, values.",
        ),
        Mistake(
            _multi_head_like(project=False),
            "The output projection w_out is missing: without it heads never exchange anything.",
        ),
        Mistake(
            _multi_head_like(divide=lambda y, n_head: y[:, None], join=lambda y: y[:, 0]),
            "That is one head with all d_model columns. Split q, k and v into n_head heads first.",
        ),
        Mistake(
            _multi_head_like(attend=lambda q, k, v, causal: right(q, k, v, True)),
            "You mask even when causal is False: hand causal on to attention.",
        ),
    ],
    hints=[
        "After x @ w_qkv you have (batch, seq_len, 3 · d_model). Which columns belong to head 2's "
        "keys?",
        "Chunk into q, k, v; reshape each to (batch, seq_len, n_head, head_dim); swap axes 1 and "
        "2; attention; swap back; reshape to d_model; @ w_out.",
        "q.reshape(batch, seq_len, n_head, -1).transpose(1, 2), and at the end "
        "out.transpose(1, 2).reshape(batch, seq_len, d_model) @ w_out",
    ],
)


def _grouped(q, k, v, causal):
    sharing = q.shape[1] // k.shape[1]
    heads = []
    for head in range(q.shape[1]):
        shared = [x[:, head // sharing][:, None] for x in (k, v)]
        heads.append(attention64(q[:, head][:, None], *shared, causal))
    return np.concatenate(heads, axis=1)


def _grouped_cases(rng):
    def case(batch, n_head, n_kv_head, seq_len, head_dim, causal, dtype=np.float32):
        shapes = [(batch, heads, seq_len, head_dim) for heads in (n_head, n_kv_head, n_kv_head)]
        return *(normal(rng, *shape, dtype=dtype) for shape in shapes), causal

    return [
        case(2, 8, 2, 5, 4, True),
        case(1, 6, 3, 7, 4, True),
        case(1, 6, 3, 7, 4, False),
        case(2, 4, 4, 3, 2, True),
        case(1, 4, 1, 6, 3, False),
        case(1, 8, 4, int(rng.integers(2, 12)), 5, True, np.float64),
    ]


def _grouped_like(share, share_values=None, always=None):
    """share(keys, times): the keys or values that each query head reads."""

    def answer(q, k, v, causal):
        times = q.shape[1] // k.shape[1]
        values = (share_values or share)(v, times)
        return right(q, share(k, times), values, causal if always is None else always)

    return answer


def _neighbours(x, times):
    return x.repeat_interleave(times, 1)


GROUPED_QUERY = Exercise(
    id="04.grouped_query",
    points=2,
    minutes=5,
    difficulty=2,
    teaches="neighbouring query heads share a key head",
    cases=_grouped_cases,
    expect=_grouped,
    drive=drive_heads,
    tolerance=1e-5,
    mistakes=[
        Mistake(
            _grouped_like(lambda x, times: x.repeat(1, times, 1, 1)),
            "Query head h read key head h % n_kv_head. Neighbours share: it is h // group, where "
            "group is n_head // n_kv_head.",
        ),
        Mistake(
            _grouped_like(lambda x, times: x[:, :1]),
            "Every query head read key head 0. That is right only for n_kv_head = 1.",
        ),
        Mistake(
            _grouped_like(_neighbours, lambda x, times: x.repeat(1, times, 1, 1)),
            "Keys are shared by neighbours, values are not: treat both alike.",
        ),
        Mistake(
            _grouped_like(lambda x, times: x.mean(1, keepdim=True)),
            "You averaged the key and value heads. Each query head reads exactly one of them.",
        ),
        Mistake(
            _grouped_like(_neighbours, always=True),
            "You mask even when causal is False: hand causal on to attention.",
        ),
    ],
    hints=[
        "With 8 query heads and 2 key heads, which query heads read key head 1?",
        "Make k and v as long as q along axis 1, each head repeated n_head // n_kv_head times in "
        "a row. Then it is plain attention.",
        "k.repeat_interleave(group, dim=1), likewise v; attention(q, k, v, causal)",
    ],
)
