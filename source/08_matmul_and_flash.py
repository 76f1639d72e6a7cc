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
