"""Second answers to chapter 08's matrix products."""

from utils.meter.on_paper import tl, triton


@triton.jit
def matmul_kernel(a, b, c, m, n, k, am, ak, bk, bn, cm, cn, BLOCK_M: tl.constexpr,
                  BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr):  # fmt: skip
    """Down the columns of tiles; rows and columns that stick out wrap around instead of a mask."""
    n_m = tl.cdiv(m, BLOCK_M)
    i = (tl.program_id(0) % n_m) * BLOCK_M + tl.arange(0, BLOCK_M)
    j = (tl.program_id(0) // n_m) * BLOCK_N + tl.arange(0, BLOCK_N)
    inner = tl.arange(0, BLOCK_K)
    left = a + (i % m)[:, None] * am + inner[None, :] * ak
    right = b + inner[:, None] * bk + (j % n)[None, :] * bn
    total = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for start in range(0, k, BLOCK_K):
        x = tl.load(left, mask=inner[None, :] < k - start, other=0)
        y = tl.load(right, mask=inner[:, None] < k - start, other=0)
        total += tl.dot(x, y, input_precision="ieee")
        left += BLOCK_K * ak
        right += BLOCK_K * bk
    tl.store(c + i[:, None] * cm + j[None, :] * cn, total, (i < m)[:, None] & (j < n)[None, :])


def grouped_order(pid, tiles_m, tiles_n, group):
    """Take away whole groups, then whole columns."""
    first = 0
    while pid >= min(group, tiles_m - first) * tiles_n:
        pid -= min(group, tiles_m - first) * tiles_n
        first += group
    column, row = divmod(pid, min(group, tiles_m - first))
    return [first + row, column]


@triton.jit
def matmul_bias_relu_kernel(a, b, bias, c, m, n, k, am, ak, bk, bn, cm, cn, BLOCK_M: tl.constexpr,
                            BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr):  # fmt: skip
    """The sum starts at the bias."""
    n_n = tl.cdiv(n, BLOCK_N)
    i = (tl.program_id(0) // n_n * BLOCK_M + tl.arange(0, BLOCK_M))[:, None]
    j = (tl.program_id(0) % n_n * BLOCK_N + tl.arange(0, BLOCK_N))[None, :]
    total = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    total += tl.load(bias + j, j < n, other=0)
    for start in range(0, k, BLOCK_K):
        left = start + tl.arange(0, BLOCK_K)
        x = tl.load(a + i * am + left[None, :] * ak, (i < m) & (left[None, :] < k), other=0)
        y = tl.load(b + left[:, None] * bk + j * bn, (left[:, None] < k) & (j < n), other=0)
        total = tl.dot(x, y, acc=total)
    total = tl.where(total > 0, total, 0.0)
    tl.store(c + i * cm + j * cn, total, (i < m) & (j < n))


@triton.jit
def int8_gemv_kernel(w, scale, x, y, n, k, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr):
    """Weights scaled as they arrive; a tile of partial sums, added up at the end."""
    i = (tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N))[:, None]
    factor = tl.load(scale + i, i < n, other=0)
    partial = tl.zeros((BLOCK_N, BLOCK_K), dtype=tl.float32)
    for start in range(0, k, BLOCK_K):
        j = (start + tl.arange(0, BLOCK_K))[None, :]
        weights = tl.load(w + i * k + j, (i < n) & (j < k), other=0) * factor
        partial += weights * tl.load(x + j, j < k, other=0)
    sums = tl.sum(partial, 1, keep_dims=True)
    tl.store(y + i, sums, i < n)
