"""Second answers to chapter 08's matrix products."""

import triton
import triton.language as tl


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
