# ---
# jupyter:
#   course:
#     title: "8. The two kernels that matter"
#     minutes: 150
#     hardware: "no GPU; with one, kernels are compiled and timed; Triton is for Linux"
#     needs: "chapters 4, 6 and 7"
#     leaves_with: "a tiled matmul and a FlashAttention of your own, graded on the bytes they move"
# ---

# %% [markdown] key="title"
# # 8. The two kernels that matter
#
# To be written.

# %% key="setup" tags=["setup"]
import dataclasses
import math

import torch
import torch.nn.functional as F

from utils import lab, show
from utils.course import against_prediction, check, hint, mine, predict, quiz
from utils.course import progress, reveal, start
from utils.hardware import accelerator, median_time, time_samples
from utils.meter import measure, meter
from utils.meter.on_paper import launches, tl, triton, with_tail
from utils.show import Choice, Point, Roof, Series, Slider

torch.manual_seed(0)
machine = start("08")
device = "cuda" if machine.device == "cuda" else "cpu"

# %% key="recall"
quiz("08.recall")

# %% [markdown] key="matmul_kernel-intro"
# ## Exercise: a tiled product
#
# ●●●○ · 25 minutes · 5 points
#
# To be written.

# %% key="matmul_kernel" tags=["exercise"]
@triton.jit
def matmul_kernel(
    a_ptr,
    b_ptr,
    c_ptr,
    m,
    n,
    k,
    stride_am,
    stride_ak,
    stride_bk,
    stride_bn,
    stride_cm,
    stride_cn,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
):
    """c = a @ b, (m, k) @ (k, n); one program a tile of c.

    >>> a, c = torch.ones(3, 5), torch.empty(3, 3)
    >>> matmul_kernel[(1,)](a, a, c, 3, 3, 5, 5, 1, 1, 5, 3, 1, 16, 16, 16)
    >>> c[0]
    tensor([5., 5., 5.])
    """
    ### BEGIN SOLUTION
    pid = tl.program_id(0)
    tiles_n = tl.cdiv(n, BLOCK_N)
    rows = (pid // tiles_n) * BLOCK_M + tl.arange(0, BLOCK_M)
    columns = (pid % tiles_n) * BLOCK_N + tl.arange(0, BLOCK_N)
    inner = tl.arange(0, BLOCK_K)
    a = a_ptr + rows[:, None] * stride_am + inner[None, :] * stride_ak
    b = b_ptr + inner[:, None] * stride_bk + columns[None, :] * stride_bn
    row_ok, column_ok = rows[:, None] < m, columns[None, :] < n
    total = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for start in range(0, k, BLOCK_K):
        left = k - start  # of the inner dimension
        x = tl.load(a, mask=row_ok & (inner[None, :] < left), other=0.0)
        y = tl.load(b, mask=(inner[:, None] < left) & column_ok, other=0.0)
        total = tl.dot(x, y, total)
        a += BLOCK_K * stride_ak
        b += BLOCK_K * stride_bk
    c = c_ptr + rows[:, None] * stride_cm + columns[None, :] * stride_cn
    tl.store(c, total, mask=row_ok & column_ok)
    ### END SOLUTION


# %% key="matmul_kernel-check" tags=["check"]
matmul_kernel = check("08.matmul_kernel", matmul_kernel)

# %% [markdown] key="grouped_order-intro"
# ## Exercise: an order for the programs
#
# ●●○○ · 12 minutes · 2 points
#
# To be written.

# %% key="grouped_order" tags=["exercise"]
def grouped_order(
    pid: int, tiles_m: int, tiles_n: int, group: int
) -> tuple[int, int]:
    """(tile row, tile column) of program pid, in bands of `group` rows.

    >>> [grouped_order(pid, 4, 3, 2) for pid in range(4)]
    [(0, 0), (1, 0), (0, 1), (1, 1)]
    >>> grouped_order(6, 4, 3, 2)
    (2, 0)
    """
    ### BEGIN SOLUTION
    first = pid // (group * tiles_n) * group
    inside = pid % (group * tiles_n)
    height = min(group, tiles_m - first)
    return first + inside % height, inside // height
    ### END SOLUTION


# %% key="grouped_order-check" tags=["check"]
grouped_order = check("08.grouped_order", grouped_order)

# %% [markdown] key="matmul_bias_relu_kernel-intro"
# ## Exercise: a fused epilogue
#
# ●●○○ · 12 minutes · 3 points
#
# To be written.

# %% key="matmul_bias_relu_kernel" tags=["exercise"]
@triton.jit
def matmul_bias_relu_kernel(
    a_ptr,
    b_ptr,
    bias_ptr,
    c_ptr,
    m,
    n,
    k,
    stride_am,
    stride_ak,
    stride_bk,
    stride_bn,
    stride_cm,
    stride_cn,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
):
    """c = max(a @ b + bias, 0); bias has n numbers, one a column.

    >>> a, c, bias = torch.ones(2, 2), torch.empty(2, 2), torch.tensor([1.0, -9])
    >>> matmul_bias_relu_kernel[(1,)](
    ...     a, a, bias, c, 2, 2, 2, 2, 1, 2, 1, 2, 1, 16, 16, 16)
    >>> c[0]
    tensor([3., 0.])
    """
    ### BEGIN SOLUTION
    pid = tl.program_id(0)
    tiles_n = tl.cdiv(n, BLOCK_N)
    rows = (pid // tiles_n) * BLOCK_M + tl.arange(0, BLOCK_M)
    columns = (pid % tiles_n) * BLOCK_N + tl.arange(0, BLOCK_N)
    inner = tl.arange(0, BLOCK_K)
    a = a_ptr + rows[:, None] * stride_am + inner[None, :] * stride_ak
    b = b_ptr + inner[:, None] * stride_bk + columns[None, :] * stride_bn
    row_ok, column_ok = rows[:, None] < m, columns[None, :] < n
    total = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for start in range(0, k, BLOCK_K):
        left = k - start
        x = tl.load(a, mask=row_ok & (inner[None, :] < left), other=0.0)
        y = tl.load(b, mask=(inner[:, None] < left) & column_ok, other=0.0)
        total = tl.dot(x, y, total)
        a += BLOCK_K * stride_ak
        b += BLOCK_K * stride_bk
    bias = tl.load(bias_ptr + columns, mask=columns < n, other=0.0)
    total = tl.maximum(total + bias[None, :], 0.0)
    c = c_ptr + rows[:, None] * stride_cm + columns[None, :] * stride_cn
    tl.store(c, total, mask=row_ok & column_ok)
    ### END SOLUTION


# %% key="matmul_bias_relu_kernel-check" tags=["check"]
matmul_bias_relu_kernel = check(
    "08.matmul_bias_relu_kernel", matmul_bias_relu_kernel
)

# %% [markdown] key="int8_gemv_kernel-intro"
# ## Exercise: weights of one byte
#
# ●●○○ · 15 minutes · 3 points
#
# To be written.

# %% key="int8_gemv_kernel" tags=["exercise"]
@triton.jit
def int8_gemv_kernel(
    w_ptr,
    scale_ptr,
    x_ptr,
    y_ptr,
    n,
    k,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
):
    """y = (scale * w) @ x: w (n, k) int8 row after row, scale (n,), x (k,).

    >>> w = torch.tensor([[1, 2], [3, 4]], dtype=torch.int8)
    >>> scale, x, y = torch.tensor([1.0, 0.5]), torch.ones(2), torch.empty(2)
    >>> int8_gemv_kernel[(1,)](w, scale, x, y, 2, 2, BLOCK_N=4, BLOCK_K=16)
    >>> y
    tensor([3.0000, 3.5000])
    """
    ### BEGIN SOLUTION
    rows = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    row_ok = rows < n
    total = tl.zeros((BLOCK_N,), dtype=tl.float32)
    for start in range(0, k, BLOCK_K):
        inner = start + tl.arange(0, BLOCK_K)
        inner_ok = inner < k
        at = w_ptr + rows[:, None] * k + inner[None, :]
        inside = row_ok[:, None] & inner_ok[None, :]
        w = tl.load(at, mask=inside, other=0).to(tl.float32)
        x = tl.load(x_ptr + inner, mask=inner_ok, other=0.0).to(tl.float32)
        total += tl.sum(w * x[None, :], 1)
    scale = tl.load(scale_ptr + rows, mask=row_ok, other=0.0)
    tl.store(y_ptr + rows, total * scale, mask=row_ok)
    ### END SOLUTION


# %% key="int8_gemv_kernel-check" tags=["check"]
int8_gemv_kernel = check("08.int8_gemv_kernel", int8_gemv_kernel)

# %% [markdown] key="flash-intro"
# ## FlashAttention

# %% [markdown] key="at-scale"
# ## At scale
#
# To be written.
#
# ## What to remember
#
# - To be written.
#
# ## Sources
#
# - To be written.
