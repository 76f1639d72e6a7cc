"""Mistakes in chapter 08's fused epilogue, as kernels. Needs Triton: see kernels.py."""

import triton
import triton.language as tl


@triton.jit
def bias_not_masked(
    a_ptr, b_ptr, bias_ptr, c_ptr, m, n, k, stride_am, stride_ak, stride_bk, stride_bn, stride_cm,
    stride_cn, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    pid = tl.program_id(0)
    n_n = tl.cdiv(n, BLOCK_N)
    rows = (pid // n_n) * BLOCK_M + tl.arange(0, BLOCK_M)[:, None]
    columns = (pid % n_n) * BLOCK_N + tl.arange(0, BLOCK_N)[None, :]
    inside = (rows < m) & (columns < n)
    total = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for start in range(0, k, BLOCK_K):
        inner = start + tl.arange(0, BLOCK_K)
        x = tl.load(a_ptr + rows * stride_am + inner[None, :] * stride_ak,
                    mask=(rows < m) & (inner[None, :] < k), other=0.0)  # fmt: skip
        y = tl.load(b_ptr + inner[:, None] * stride_bk + columns * stride_bn,
                    mask=(inner[:, None] < k) & (columns < n), other=0.0)  # fmt: skip
        total = tl.dot(x, y, total)
    total = tl.maximum(total + tl.load(bias_ptr + columns), 0.0)
    tl.store(c_ptr + rows * stride_cm + columns * stride_cn, total, mask=inside)


@triton.jit
def bias_by_row(
    a_ptr, b_ptr, bias_ptr, c_ptr, m, n, k, stride_am, stride_ak, stride_bk, stride_bn, stride_cm,
    stride_cn, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    pid = tl.program_id(0)
    n_n = tl.cdiv(n, BLOCK_N)
    rows = (pid // n_n) * BLOCK_M + tl.arange(0, BLOCK_M)[:, None]
    columns = (pid % n_n) * BLOCK_N + tl.arange(0, BLOCK_N)[None, :]
    inside = (rows < m) & (columns < n)
    total = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for start in range(0, k, BLOCK_K):
        inner = start + tl.arange(0, BLOCK_K)
        x = tl.load(a_ptr + rows * stride_am + inner[None, :] * stride_ak,
                    mask=(rows < m) & (inner[None, :] < k), other=0.0)  # fmt: skip
        y = tl.load(b_ptr + inner[:, None] * stride_bk + columns * stride_bn,
                    mask=(inner[:, None] < k) & (columns < n), other=0.0)  # fmt: skip
        total = tl.dot(x, y, total)
    bias = tl.load(bias_ptr + rows, mask=rows < m, other=0.0)
    total = tl.maximum(total + bias, 0.0)
    tl.store(c_ptr + rows * stride_cm + columns * stride_cn, total, mask=inside)


@triton.jit
def relu_first(
    a_ptr, b_ptr, bias_ptr, c_ptr, m, n, k, stride_am, stride_ak, stride_bk, stride_bn, stride_cm,
    stride_cn, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    pid = tl.program_id(0)
    n_n = tl.cdiv(n, BLOCK_N)
    rows = (pid // n_n) * BLOCK_M + tl.arange(0, BLOCK_M)[:, None]
    columns = (pid % n_n) * BLOCK_N + tl.arange(0, BLOCK_N)[None, :]
    inside = (rows < m) & (columns < n)
    total = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for start in range(0, k, BLOCK_K):
        inner = start + tl.arange(0, BLOCK_K)
        x = tl.load(a_ptr + rows * stride_am + inner[None, :] * stride_ak,
                    mask=(rows < m) & (inner[None, :] < k), other=0.0)  # fmt: skip
        y = tl.load(b_ptr + inner[:, None] * stride_bk + columns * stride_bn,
                    mask=(inner[:, None] < k) & (columns < n), other=0.0)  # fmt: skip
        total = tl.dot(x, y, total)
    bias = tl.load(bias_ptr + columns, mask=columns < n, other=0.0)
    total = tl.maximum(total, 0.0) + bias
    tl.store(c_ptr + rows * stride_cm + columns * stride_cn, total, mask=inside)


@triton.jit
def relu_every_step(
    a_ptr, b_ptr, bias_ptr, c_ptr, m, n, k, stride_am, stride_ak, stride_bk, stride_bn, stride_cm,
    stride_cn, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    pid = tl.program_id(0)
    n_n = tl.cdiv(n, BLOCK_N)
    rows = (pid // n_n) * BLOCK_M + tl.arange(0, BLOCK_M)[:, None]
    columns = (pid % n_n) * BLOCK_N + tl.arange(0, BLOCK_N)[None, :]
    inside = (rows < m) & (columns < n)
    total = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for start in range(0, k, BLOCK_K):
        inner = start + tl.arange(0, BLOCK_K)
        x = tl.load(a_ptr + rows * stride_am + inner[None, :] * stride_ak,
                    mask=(rows < m) & (inner[None, :] < k), other=0.0)  # fmt: skip
        y = tl.load(b_ptr + inner[:, None] * stride_bk + columns * stride_bn,
                    mask=(inner[:, None] < k) & (columns < n), other=0.0)  # fmt: skip
        total = tl.maximum(tl.dot(x, y, total), 0.0)
    bias = tl.load(bias_ptr + columns, mask=columns < n, other=0.0)
    total = tl.maximum(total + bias, 0.0)
    tl.store(c_ptr + rows * stride_cm + columns * stride_cn, total, mask=inside)


@triton.jit
def bias_every_step(
    a_ptr, b_ptr, bias_ptr, c_ptr, m, n, k, stride_am, stride_ak, stride_bk, stride_bn, stride_cm,
    stride_cn, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    pid = tl.program_id(0)
    n_n = tl.cdiv(n, BLOCK_N)
    rows = (pid // n_n) * BLOCK_M + tl.arange(0, BLOCK_M)[:, None]
    columns = (pid % n_n) * BLOCK_N + tl.arange(0, BLOCK_N)[None, :]
    inside = (rows < m) & (columns < n)
    total = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for start in range(0, k, BLOCK_K):
        inner = start + tl.arange(0, BLOCK_K)
        x = tl.load(a_ptr + rows * stride_am + inner[None, :] * stride_ak,
                    mask=(rows < m) & (inner[None, :] < k), other=0.0)  # fmt: skip
        y = tl.load(b_ptr + inner[:, None] * stride_bk + columns * stride_bn,
                    mask=(inner[:, None] < k) & (columns < n), other=0.0)  # fmt: skip
        bias = tl.load(bias_ptr + columns, mask=columns < n, other=0.0)
        total = tl.dot(x, y, total) + bias
    total = tl.maximum(total, 0.0)
    tl.store(c_ptr + rows * stride_cm + columns * stride_cn, total, mask=inside)


@triton.jit
def no_relu(
    a_ptr, b_ptr, bias_ptr, c_ptr, m, n, k, stride_am, stride_ak, stride_bk, stride_bn, stride_cm,
    stride_cn, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    pid = tl.program_id(0)
    n_n = tl.cdiv(n, BLOCK_N)
    rows = (pid // n_n) * BLOCK_M + tl.arange(0, BLOCK_M)[:, None]
    columns = (pid % n_n) * BLOCK_N + tl.arange(0, BLOCK_N)[None, :]
    inside = (rows < m) & (columns < n)
    total = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for start in range(0, k, BLOCK_K):
        inner = start + tl.arange(0, BLOCK_K)
        x = tl.load(a_ptr + rows * stride_am + inner[None, :] * stride_ak,
                    mask=(rows < m) & (inner[None, :] < k), other=0.0)  # fmt: skip
        y = tl.load(b_ptr + inner[:, None] * stride_bk + columns * stride_bn,
                    mask=(inner[:, None] < k) & (columns < n), other=0.0)  # fmt: skip
        total = tl.dot(x, y, total)
    bias = tl.load(bias_ptr + columns, mask=columns < n, other=0.0)
    total += bias
    tl.store(c_ptr + rows * stride_cm + columns * stride_cn, total, mask=inside)


@triton.jit
def through_memory(
    a_ptr, b_ptr, bias_ptr, c_ptr, m, n, k, stride_am, stride_ak, stride_bk, stride_bn, stride_cm,
    stride_cn, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    pid = tl.program_id(0)
    n_n = tl.cdiv(n, BLOCK_N)
    rows = (pid // n_n) * BLOCK_M + tl.arange(0, BLOCK_M)[:, None]
    columns = (pid % n_n) * BLOCK_N + tl.arange(0, BLOCK_N)[None, :]
    inside = (rows < m) & (columns < n)
    total = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for start in range(0, k, BLOCK_K):
        inner = start + tl.arange(0, BLOCK_K)
        x = tl.load(a_ptr + rows * stride_am + inner[None, :] * stride_ak,
                    mask=(rows < m) & (inner[None, :] < k), other=0.0)  # fmt: skip
        y = tl.load(b_ptr + inner[:, None] * stride_bk + columns * stride_bn,
                    mask=(inner[:, None] < k) & (columns < n), other=0.0)  # fmt: skip
        total = tl.dot(x, y, total)
    c = c_ptr + rows * stride_cm + columns * stride_cn
    tl.store(c, total, mask=inside)
    bias = tl.load(bias_ptr + columns, mask=columns < n, other=0.0)
    total = tl.load(c, mask=inside, other=0.0) + bias
    tl.store(c, tl.maximum(total, 0.0), mask=inside)
