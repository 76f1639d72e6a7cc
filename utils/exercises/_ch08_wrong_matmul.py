"""Mistakes in chapter 08's tiled matrix product, as kernels. Needs Triton: see kernels.py."""

import triton
import triton.language as tl


@triton.jit
def no_mask(a_ptr, b_ptr, c_ptr, m, n, k, stride_am, stride_ak, stride_bk, stride_bn, stride_cm,
            stride_cn, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
            BLOCK_K: tl.constexpr):  # fmt: skip
    pid = tl.program_id(0)
    n_n = tl.cdiv(n, BLOCK_N)
    rows = (pid // n_n) * BLOCK_M + tl.arange(0, BLOCK_M)[:, None]
    columns = (pid % n_n) * BLOCK_N + tl.arange(0, BLOCK_N)[None, :]
    total = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for step in range(0, tl.cdiv(k, BLOCK_K)):
        inner = step * BLOCK_K + tl.arange(0, BLOCK_K)
        x = tl.load(a_ptr + rows * stride_am + inner[None, :] * stride_ak)
        y = tl.load(b_ptr + inner[:, None] * stride_bk + columns * stride_bn)
        total = tl.dot(x, y, total)
    tl.store(c_ptr + rows * stride_cm + columns * stride_cn, total)


@triton.jit
def inner_not_masked(a_ptr, b_ptr, c_ptr, m, n, k, stride_am, stride_ak, stride_bk, stride_bn,
                     stride_cm, stride_cn, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
                     BLOCK_K: tl.constexpr):  # fmt: skip
    pid = tl.program_id(0)
    n_n = tl.cdiv(n, BLOCK_N)
    rows = (pid // n_n) * BLOCK_M + tl.arange(0, BLOCK_M)[:, None]
    columns = (pid % n_n) * BLOCK_N + tl.arange(0, BLOCK_N)[None, :]
    total = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for step in range(0, tl.cdiv(k, BLOCK_K)):
        inner = step * BLOCK_K + tl.arange(0, BLOCK_K)
        x = tl.load(a_ptr + rows * stride_am + inner[None, :] * stride_ak, mask=rows < m, other=0.0)
        y = tl.load(b_ptr + inner[:, None] * stride_bk + columns * stride_bn, mask=columns < n,
                    other=0.0)  # fmt: skip
        total = tl.dot(x, y, total)
    inside = (rows < m) & (columns < n)
    tl.store(c_ptr + rows * stride_cm + columns * stride_cn, total, mask=inside)


@triton.jit
def no_other(a_ptr, b_ptr, c_ptr, m, n, k, stride_am, stride_ak, stride_bk, stride_bn, stride_cm,
             stride_cn, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
             BLOCK_K: tl.constexpr):  # fmt: skip
    pid = tl.program_id(0)
    n_n = tl.cdiv(n, BLOCK_N)
    rows = (pid // n_n) * BLOCK_M + tl.arange(0, BLOCK_M)[:, None]
    columns = (pid % n_n) * BLOCK_N + tl.arange(0, BLOCK_N)[None, :]
    total = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for step in range(0, tl.cdiv(k, BLOCK_K)):
        inner = step * BLOCK_K + tl.arange(0, BLOCK_K)
        x = tl.load(a_ptr + rows * stride_am + inner[None, :] * stride_ak,
                    mask=(rows < m) & (inner[None, :] < k))  # fmt: skip
        y = tl.load(b_ptr + inner[:, None] * stride_bk + columns * stride_bn,
                    mask=(inner[:, None] < k) & (columns < n))  # fmt: skip
        total = tl.dot(x, y, total)
    inside = (rows < m) & (columns < n)
    tl.store(c_ptr + rows * stride_cm + columns * stride_cn, total, mask=inside)


@triton.jit
def tail_dropped(a_ptr, b_ptr, c_ptr, m, n, k, stride_am, stride_ak, stride_bk, stride_bn,
                 stride_cm, stride_cn, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
                 BLOCK_K: tl.constexpr):  # fmt: skip
    pid = tl.program_id(0)
    n_n = tl.cdiv(n, BLOCK_N)
    rows = (pid // n_n) * BLOCK_M + tl.arange(0, BLOCK_M)[:, None]
    columns = (pid % n_n) * BLOCK_N + tl.arange(0, BLOCK_N)[None, :]
    total = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for step in range(0, k // BLOCK_K):
        inner = step * BLOCK_K + tl.arange(0, BLOCK_K)
        x = tl.load(a_ptr + rows * stride_am + inner[None, :] * stride_ak, mask=rows < m, other=0.0)
        y = tl.load(b_ptr + inner[:, None] * stride_bk + columns * stride_bn, mask=columns < n,
                    other=0.0)  # fmt: skip
        total = tl.dot(x, y, total)
    inside = (rows < m) & (columns < n)
    tl.store(c_ptr + rows * stride_cm + columns * stride_cn, total, mask=inside)


@triton.jit
def assumes_rows(a_ptr, b_ptr, c_ptr, m, n, k, stride_am, stride_ak, stride_bk, stride_bn,
                 stride_cm, stride_cn, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
                 BLOCK_K: tl.constexpr):  # fmt: skip
    pid = tl.program_id(0)
    n_n = tl.cdiv(n, BLOCK_N)
    rows = (pid // n_n) * BLOCK_M + tl.arange(0, BLOCK_M)[:, None]
    columns = (pid % n_n) * BLOCK_N + tl.arange(0, BLOCK_N)[None, :]
    total = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for step in range(0, tl.cdiv(k, BLOCK_K)):
        inner = step * BLOCK_K + tl.arange(0, BLOCK_K)
        x = tl.load(a_ptr + rows * k + inner[None, :], mask=(rows < m) & (inner[None, :] < k),
                    other=0.0)  # fmt: skip
        y = tl.load(b_ptr + inner[:, None] * n + columns, mask=(inner[:, None] < k) & (columns < n),
                    other=0.0)  # fmt: skip
        total = tl.dot(x, y, total)
    tl.store(c_ptr + rows * n + columns, total, mask=(rows < m) & (columns < n))


@triton.jit
def b_steps_along_columns(a_ptr, b_ptr, c_ptr, m, n, k, stride_am, stride_ak, stride_bk, stride_bn,
                          stride_cm, stride_cn, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
                          BLOCK_K: tl.constexpr):  # fmt: skip
    pid = tl.program_id(0)
    n_n = tl.cdiv(n, BLOCK_N)
    rows = (pid // n_n) * BLOCK_M + tl.arange(0, BLOCK_M)[:, None]
    columns = (pid % n_n) * BLOCK_N + tl.arange(0, BLOCK_N)[None, :]
    inner = tl.arange(0, BLOCK_K)
    a = a_ptr + rows * stride_am + inner[None, :] * stride_ak
    b = b_ptr + inner[:, None] * stride_bk + columns * stride_bn
    total = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for step in range(0, tl.cdiv(k, BLOCK_K)):
        left = k - step * BLOCK_K
        x = tl.load(a, mask=(rows < m) & (inner[None, :] < left), other=0.0)
        y = tl.load(b, mask=(inner[:, None] < left) & (columns < n), other=0.0)
        total = tl.dot(x, y, total)
        a += BLOCK_K * stride_ak
        b += BLOCK_K * stride_bn
    inside = (rows < m) & (columns < n)
    tl.store(c_ptr + rows * stride_cm + columns * stride_cn, total, mask=inside)


@triton.jit
def tiles_swapped(a_ptr, b_ptr, c_ptr, m, n, k, stride_am, stride_ak, stride_bk, stride_bn,
                  stride_cm, stride_cn, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
                  BLOCK_K: tl.constexpr):  # fmt: skip
    pid = tl.program_id(0)
    n_m = tl.cdiv(m, BLOCK_M)
    rows = (pid // n_m) * BLOCK_M + tl.arange(0, BLOCK_M)[:, None]
    columns = (pid % n_m) * BLOCK_N + tl.arange(0, BLOCK_N)[None, :]
    total = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for step in range(0, tl.cdiv(k, BLOCK_K)):
        inner = step * BLOCK_K + tl.arange(0, BLOCK_K)
        x = tl.load(a_ptr + rows * stride_am + inner[None, :] * stride_ak,
                    mask=(rows < m) & (inner[None, :] < k), other=0.0)  # fmt: skip
        y = tl.load(b_ptr + inner[:, None] * stride_bk + columns * stride_bn,
                    mask=(inner[:, None] < k) & (columns < n), other=0.0)  # fmt: skip
        total = tl.dot(x, y, total)
    inside = (rows < m) & (columns < n)
    tl.store(c_ptr + rows * stride_cm + columns * stride_cn, total, mask=inside)


@triton.jit
def sums_in_half(a_ptr, b_ptr, c_ptr, m, n, k, stride_am, stride_ak, stride_bk, stride_bn,
                 stride_cm, stride_cn, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
                 BLOCK_K: tl.constexpr):  # fmt: skip
    pid = tl.program_id(0)
    n_n = tl.cdiv(n, BLOCK_N)
    rows = (pid // n_n) * BLOCK_M + tl.arange(0, BLOCK_M)[:, None]
    columns = (pid % n_n) * BLOCK_N + tl.arange(0, BLOCK_N)[None, :]
    total = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float16)
    for step in range(0, tl.cdiv(k, BLOCK_K)):
        inner = step * BLOCK_K + tl.arange(0, BLOCK_K)
        x = tl.load(a_ptr + rows * stride_am + inner[None, :] * stride_ak,
                    mask=(rows < m) & (inner[None, :] < k), other=0.0)  # fmt: skip
        y = tl.load(b_ptr + inner[:, None] * stride_bk + columns * stride_bn,
                    mask=(inner[:, None] < k) & (columns < n), other=0.0)  # fmt: skip
        total += tl.dot(x, y).to(tl.float16)
    inside = (rows < m) & (columns < n)
    tl.store(c_ptr + rows * stride_cm + columns * stride_cn, total, mask=inside)


@triton.jit
def rounds_to_half(a_ptr, b_ptr, c_ptr, m, n, k, stride_am, stride_ak, stride_bk, stride_bn,
                   stride_cm, stride_cn, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
                   BLOCK_K: tl.constexpr):  # fmt: skip
    pid = tl.program_id(0)
    n_n = tl.cdiv(n, BLOCK_N)
    rows = (pid // n_n) * BLOCK_M + tl.arange(0, BLOCK_M)[:, None]
    columns = (pid % n_n) * BLOCK_N + tl.arange(0, BLOCK_N)[None, :]
    total = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for step in range(0, tl.cdiv(k, BLOCK_K)):
        inner = step * BLOCK_K + tl.arange(0, BLOCK_K)
        x = tl.load(a_ptr + rows * stride_am + inner[None, :] * stride_ak,
                    mask=(rows < m) & (inner[None, :] < k), other=0.0)  # fmt: skip
        y = tl.load(b_ptr + inner[:, None] * stride_bk + columns * stride_bn,
                    mask=(inner[:, None] < k) & (columns < n), other=0.0)  # fmt: skip
        total = tl.dot(x, y, total)
    inside = (rows < m) & (columns < n)
    rounded = total.to(a_ptr.dtype.element_ty)
    tl.store(c_ptr + rows * stride_cm + columns * stride_cn, rounded, mask=inside)


@triton.jit
def last_step_only(a_ptr, b_ptr, c_ptr, m, n, k, stride_am, stride_ak, stride_bk, stride_bn,
                   stride_cm, stride_cn, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
                   BLOCK_K: tl.constexpr):  # fmt: skip
    pid = tl.program_id(0)
    n_n = tl.cdiv(n, BLOCK_N)
    rows = (pid // n_n) * BLOCK_M + tl.arange(0, BLOCK_M)[:, None]
    columns = (pid % n_n) * BLOCK_N + tl.arange(0, BLOCK_N)[None, :]
    total = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for step in range(0, tl.cdiv(k, BLOCK_K)):
        inner = step * BLOCK_K + tl.arange(0, BLOCK_K)
        x = tl.load(a_ptr + rows * stride_am + inner[None, :] * stride_ak,
                    mask=(rows < m) & (inner[None, :] < k), other=0.0)  # fmt: skip
        y = tl.load(b_ptr + inner[:, None] * stride_bk + columns * stride_bn,
                    mask=(inner[:, None] < k) & (columns < n), other=0.0)  # fmt: skip
        total = tl.dot(x, y)
    inside = (rows < m) & (columns < n)
    tl.store(c_ptr + rows * stride_cm + columns * stride_cn, total, mask=inside)


@triton.jit
def two_halves(a_ptr, b_ptr, c_ptr, m, n, k, stride_am, stride_ak, stride_bk, stride_bn, stride_cm,
               stride_cn, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
               BLOCK_K: tl.constexpr):  # fmt: skip
    pid = tl.program_id(0)
    n_n = tl.cdiv(n, BLOCK_N)
    HALF: tl.constexpr = BLOCK_N // 2
    rows = (pid // n_n) * BLOCK_M + tl.arange(0, BLOCK_M)[:, None]
    for half in range(2):
        columns = (pid % n_n) * BLOCK_N + half * HALF + tl.arange(0, HALF)[None, :]
        total = tl.zeros((BLOCK_M, HALF), dtype=tl.float32)
        for step in range(0, tl.cdiv(k, BLOCK_K)):
            inner = step * BLOCK_K + tl.arange(0, BLOCK_K)
            x = tl.load(a_ptr + rows * stride_am + inner[None, :] * stride_ak,
                        mask=(rows < m) & (inner[None, :] < k), other=0.0)  # fmt: skip
            y = tl.load(b_ptr + inner[:, None] * stride_bk + columns * stride_bn,
                        mask=(inner[:, None] < k) & (columns < n), other=0.0)  # fmt: skip
            total = tl.dot(x, y, total)
        inside = (rows < m) & (columns < n)
        tl.store(c_ptr + rows * stride_cm + columns * stride_cn, total, mask=inside)
