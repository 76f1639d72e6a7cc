"""How chapter 04's answers are run: tensors as a model passes them, gradients, what is held."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np

from .tensors import of_dtype, refused, to_tensors


def as_in_a_model(arrays: list[np.ndarray]) -> list:
    """Tensors (batch, n_head, seq_len, head_dim) that lie in memory as (batch, seq_len, n_head,
    head_dim), which is what splitting a projection into heads gives. `.view` fails on them."""
    tensors = [to_tensors(array) for array in arrays]
    return [tensor.transpose(1, 2).contiguous().transpose(1, 2) for tensor in tensors]


def drive_heads(answer: Callable[..., Any], *case: Any) -> Any:
    """Run an answer on tensors laid out as in a model. A change in place shows in the arrays."""
    arrays = [value for value in case if isinstance(value, np.ndarray)]
    tensors = as_in_a_model(arrays)
    result = answer(*tensors, *case[len(arrays) :])
    for array, tensor in zip(arrays, tensors, strict=True):
        to_tensors(array).copy_(tensor.detach())
    return result


def drive_rope(answer: Callable[..., Any], *case: Any) -> Any:
    """The turned tensor, in the dtype that came in."""
    return of_dtype(case[0], drive_heads(answer, *case))


def drive_attention(answer: Callable[..., Any], q, k, v, causal) -> Any:
    """The output, and whether gradients flow back to q, k and v."""
    out = of_dtype(q, drive_heads(answer, q, k, v, causal))
    return {"out": out, "gradients reach q, k and v": gradients_flow(answer)}


def gradients_flow(answer: Callable[..., Any]) -> bool:
    """Whether the gradient of an attention predicts how its own output changes.

    A step along one direction is compared with the slope that autograd gives. An answer that
    works in place on its own buffers may stop autograd with an error; that is not judged here.
    """
    import torch

    generator = torch.Generator().manual_seed(3)
    shape, options = (1, 2, 5, 4), {"generator": generator, "dtype": torch.float64}
    inputs, directions = ([torch.randn(shape, **options) for _ in "qkv"] for _ in range(2))
    weights = torch.randn(shape, **options)
    leaves = [tensor.clone().requires_grad_() for tensor in inputs]
    total = (answer(*leaves, True) * weights).sum()
    try:
        total.backward()
    except RuntimeError as error:
        return "inplace operation" in str(error)
    if any(leaf.grad is None for leaf in leaves):
        return False
    pairs = zip(leaves, directions, strict=True)
    slope = sum(float((leaf.grad * direction).sum()) for leaf, direction in pairs)
    step = 1e-2
    ends = []
    for sign in (1, -1):
        moved = [x + sign * step * d for x, d in zip(inputs, directions, strict=True)]
        with torch.no_grad():
            ends.append(float((answer(*moved, True) * weights).sum()))
    risen = (ends[0] - ends[1]) / (2 * step)
    return abs(slope - risen) < 0.02 * (abs(slope) + abs(risen))


def drive_without_autograd(answer: Callable[..., Any], *case: Any) -> Any:
    """Run a backward pass by hand, where autograd records nothing and refuses to run."""
    import torch

    with torch.inference_mode(), refused(torch.autograd, "grad backward", "autograd is off here"):
        return list(drive_heads(answer, *case))


def drive_chunks(answer: Callable[..., Any], row: np.ndarray, sizes: list[int]) -> Any:
    """Hand out a row in chunks, one at a time, and see how much of it is kept.

    Tensors are watched; so is what Python and numpy hold once the first quarter has gone by.
    """
    from ._ch04_limits import Watched

    whole, grown = to_tensors(row), [0]

    def chunks():
        start = 0
        for number, size in enumerate(sizes):
            if number > len(sizes) // 4 > 2:
                grown.append(tracemalloc.get_traced_memory()[0])
            yield whole[start : start + size].clone()
            start += size

    tracemalloc.start()
    try:
        with Watched([whole]) as held:
            maximum, total = answer(chunks())
    finally:
        tracemalloc.stop()
    # A few chunks' worth of temporaries, in float64 too; a short row fits whole.
    limit = max(16 * max(sizes), 64) * row.itemsize
    most = max(held.peak, max(grown[1:], default=0) - min(grown[1:], default=0))
    few = "a few at a time"
    kept = few if most <= limit else f"{most // row.itemsize:,} elements at once"
    return {"maximum": maximum, "total": total, "chunks kept": kept}


def memory_limit(q: np.ndarray, block_q: int, block_k: int) -> int:
    """Elements that one tensor of a tiled attention may have: 4 outputs, or 2 tiles."""
    batch, n_head, seq_len, head_dim = q.shape
    return batch * n_head * max(4 * seq_len * head_dim, 2 * block_q * block_k)


def flop_limit(q: np.ndarray, causal: bool, block_q: int, block_k: int) -> int:
    """FLOPs of the two products over every tile that is not masked whole, last tiles as full."""
    batch, n_head, seq_len, head_dim = q.shape
    tiles = 0
    for first_query in range(0, seq_len, block_q):
        last_query = min(first_query + block_q, seq_len) - 1
        seen = last_query + 1 if causal else seq_len
        tiles += -(-seen // block_k)
    return 4 * batch * n_head * tiles * block_q * block_k * head_dim


def within(q: np.ndarray, causal: bool, block_q: int, block_k: int) -> dict[str, str]:
    """The two limits of a tiled attention, in the words that a good answer's report has."""
    return {
        "memory": f"no tensor above {memory_limit(q, block_q, block_k):,} elements",
        "work": f"at most {flop_limit(q, causal, block_q, block_k):,} FLOPs",
    }


def drive_tiled(answer: Callable[..., Any], q, k, v, causal, block_q, block_k) -> Any:
    """The output, the largest tensor that was made, and the FLOPs of matrix products."""
    import torch

    from ._ch04_limits import Watched

    tensors = as_in_a_model([q, k, v])
    unseen = refused(torch.Tensor, "numpy __array__", "the check sees torch alone: stay in it")
    with unseen, Watched(tensors) as held:
        out = of_dtype(q, answer(*tensors, causal, block_q, block_k))
    for array, tensor in zip((q, k, v), tensors, strict=True):
        to_tensors(array).copy_(tensor.detach())
    report = within(q, causal, block_q, block_k)
    most = memory_limit(q, block_q, block_k)
    largest, peak = held.largest // q.itemsize, held.peak // q.itemsize
    if largest > most:
        report["memory"] = f"a tensor as large as {largest:,} elements"
    elif peak > 7 * most:
        report["memory"] = f"tensors as large as {peak:,} elements at once"
    widest = max(block_q, block_k, q.shape[3])
    if held.longest > widest:
        report["work"] = f"a product with an axis of {held.longest}, tiles have {widest}"
    elif held.flops > flop_limit(q, causal, block_q, block_k):
        report["work"] = f"{held.flops:,} FLOPs"
    return {"out": out} | report
