"""Mistakes in chapter 08's int8 matrix-vector product, as kernels. Needs Triton: see kernels.py."""

import triton
import triton.language as tl


@triton.jit
def no_mask(w_ptr, scale_ptr, x_ptr, y_ptr, n, k, BLOCK_N: tl.constexpr,
            BLOCK_K: tl.constexpr):  # fmt: skip
    rows = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    total = tl.zeros((BLOCK_N,), dtype=tl.float32)
    for step in range(0, tl.cdiv(k, BLOCK_K)):
        inner = step * BLOCK_K + tl.arange(0, BLOCK_K)
        w = tl.load(w_ptr + rows[:, None] * k + inner[None, :])
        x = tl.load(x_ptr + inner)
        total += tl.sum(w.to(tl.float32) * x.to(tl.float32)[None, :], 1)
    total *= tl.load(scale_ptr + rows)
    tl.store(y_ptr + rows, total)


@triton.jit
def no_other(w_ptr, scale_ptr, x_ptr, y_ptr, n, k, BLOCK_N: tl.constexpr,
             BLOCK_K: tl.constexpr):  # fmt: skip
    rows = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    total = tl.zeros((BLOCK_N,), dtype=tl.float32)
    for step in range(0, tl.cdiv(k, BLOCK_K)):
        inner = step * BLOCK_K + tl.arange(0, BLOCK_K)
        w = tl.load(w_ptr + rows[:, None] * k + inner[None, :],
                    mask=(rows[:, None] < n) & (inner[None, :] < k))  # fmt: skip
        x = tl.load(x_ptr + inner, mask=inner < k)
        total += tl.sum(w.to(tl.float32) * x.to(tl.float32)[None, :], 1)
    total *= tl.load(scale_ptr + rows, mask=rows < n, other=0.0)
    tl.store(y_ptr + rows, total, mask=rows < n)


@triton.jit
def tail_dropped(w_ptr, scale_ptr, x_ptr, y_ptr, n, k, BLOCK_N: tl.constexpr,
                 BLOCK_K: tl.constexpr):  # fmt: skip
    rows = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    total = tl.zeros((BLOCK_N,), dtype=tl.float32)
    for step in range(0, k // BLOCK_K):
        inner = step * BLOCK_K + tl.arange(0, BLOCK_K)
        w = tl.load(w_ptr + rows[:, None] * k + inner[None, :],
                    mask=rows[:, None] < n, other=0)  # fmt: skip
        x = tl.load(x_ptr + inner)
        total += tl.sum(w.to(tl.float32) * x.to(tl.float32)[None, :], 1)
    total *= tl.load(scale_ptr + rows, mask=rows < n, other=0.0)
    tl.store(y_ptr + rows, total, mask=rows < n)


@triton.jit
def no_scale(w_ptr, scale_ptr, x_ptr, y_ptr, n, k, BLOCK_N: tl.constexpr,
             BLOCK_K: tl.constexpr):  # fmt: skip
    rows = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    total = tl.zeros((BLOCK_N,), dtype=tl.float32)
    for step in range(0, tl.cdiv(k, BLOCK_K)):
        inner = step * BLOCK_K + tl.arange(0, BLOCK_K)
        w = tl.load(w_ptr + rows[:, None] * k + inner[None, :],
                    mask=(rows[:, None] < n) & (inner[None, :] < k), other=0)  # fmt: skip
        x = tl.load(x_ptr + inner, mask=inner < k, other=0.0)
        total += tl.sum(w.to(tl.float32) * x.to(tl.float32)[None, :], 1)
    tl.store(y_ptr + rows, total, mask=rows < n)


@triton.jit
def one_scale(w_ptr, scale_ptr, x_ptr, y_ptr, n, k, BLOCK_N: tl.constexpr,
              BLOCK_K: tl.constexpr):  # fmt: skip
    rows = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    total = tl.zeros((BLOCK_N,), dtype=tl.float32)
    for step in range(0, tl.cdiv(k, BLOCK_K)):
        inner = step * BLOCK_K + tl.arange(0, BLOCK_K)
        w = tl.load(w_ptr + rows[:, None] * k + inner[None, :],
                    mask=(rows[:, None] < n) & (inner[None, :] < k), other=0)  # fmt: skip
        x = tl.load(x_ptr + inner, mask=inner < k, other=0.0)
        total += tl.sum(w.to(tl.float32) * x.to(tl.float32)[None, :], 1)
    total *= tl.load(scale_ptr + tl.program_id(0) * BLOCK_N)
    tl.store(y_ptr + rows, total, mask=rows < n)


@triton.jit
def scale_every_step(w_ptr, scale_ptr, x_ptr, y_ptr, n, k, BLOCK_N: tl.constexpr,
                     BLOCK_K: tl.constexpr):  # fmt: skip
    rows = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    total = tl.zeros((BLOCK_N,), dtype=tl.float32)
    for step in range(0, tl.cdiv(k, BLOCK_K)):
        inner = step * BLOCK_K + tl.arange(0, BLOCK_K)
        w = tl.load(w_ptr + rows[:, None] * k + inner[None, :],
                    mask=(rows[:, None] < n) & (inner[None, :] < k), other=0)  # fmt: skip
        x = tl.load(x_ptr + inner, mask=inner < k, other=0.0)
        total += tl.sum(w.to(tl.float32) * x.to(tl.float32)[None, :], 1)
        total *= tl.load(scale_ptr + rows, mask=rows < n, other=0.0)
    tl.store(y_ptr + rows, total, mask=rows < n)


@triton.jit
def integer_x(w_ptr, scale_ptr, x_ptr, y_ptr, n, k, BLOCK_N: tl.constexpr,
              BLOCK_K: tl.constexpr):  # fmt: skip
    rows = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    total = tl.zeros((BLOCK_N,), dtype=tl.float32)
    for step in range(0, tl.cdiv(k, BLOCK_K)):
        inner = step * BLOCK_K + tl.arange(0, BLOCK_K)
        w = tl.load(w_ptr + rows[:, None] * k + inner[None, :],
                    mask=(rows[:, None] < n) & (inner[None, :] < k), other=0)  # fmt: skip
        x = tl.load(x_ptr + inner, mask=inner < k, other=0.0)
        total += tl.sum((w.to(tl.int32) * x.to(tl.int8)[None, :]).to(tl.float32), 1)
    total *= tl.load(scale_ptr + rows, mask=rows < n, other=0.0)
    tl.store(y_ptr + rows, total, mask=rows < n)


@triton.jit
def sums_in_half(w_ptr, scale_ptr, x_ptr, y_ptr, n, k, BLOCK_N: tl.constexpr,
                 BLOCK_K: tl.constexpr):  # fmt: skip
    rows = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    total = tl.zeros((BLOCK_N,), dtype=tl.float16)
    for step in range(0, tl.cdiv(k, BLOCK_K)):
        inner = step * BLOCK_K + tl.arange(0, BLOCK_K)
        w = tl.load(w_ptr + rows[:, None] * k + inner[None, :],
                    mask=(rows[:, None] < n) & (inner[None, :] < k), other=0)  # fmt: skip
        x = tl.load(x_ptr + inner, mask=inner < k, other=0.0)
        total += tl.sum(w.to(tl.float32) * x.to(tl.float32)[None, :], 1).to(tl.float16)
    total = total.to(tl.float32) * tl.load(scale_ptr + rows, mask=rows < n, other=0.0)
    tl.store(y_ptr + rows, total, mask=rows < n)


@triton.jit
def x_for_every_row(w_ptr, scale_ptr, x_ptr, y_ptr, n, k, BLOCK_N: tl.constexpr,
                    BLOCK_K: tl.constexpr):  # fmt: skip
    rows = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    total = tl.zeros((BLOCK_N,), dtype=tl.float32)
    for step in range(0, tl.cdiv(k, BLOCK_K)):
        inner = step * BLOCK_K + tl.arange(0, BLOCK_K)
        w = tl.load(w_ptr + rows[:, None] * k + inner[None, :],
                    mask=(rows[:, None] < n) & (inner[None, :] < k), other=0)  # fmt: skip
        again = inner[None, :] + 0 * rows[:, None]
        x = tl.load(x_ptr + again, mask=again < k, other=0.0)
        total += tl.sum(w.to(tl.float32) * x.to(tl.float32), 1)
    total *= tl.load(scale_ptr + rows, mask=rows < n, other=0.0)
    tl.store(y_ptr + rows, total, mask=rows < n)
