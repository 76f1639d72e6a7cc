# ---
# jupyter:
#   course:
#     title: "7. Write one"
#     minutes: 120
#     hardware: "no GPU; with one, kernels are compiled and timed; Triton is for Linux"
#     needs: "chapters 3 and 6"
#     leaves_with: "seven kernels of your own, graded on the bytes they move"
# ---

# %% [markdown] key="title"
# # 7. Write one
#
# To be written.

# %% key="setup" tags=["setup"]
import torch

from utils import show
from utils.course import against_prediction, check, hint, predict, quiz
from utils.course import progress, reveal, start
from utils.meter import measure
from utils.meter.on_paper import tl, triton  # the real ones, safe on a CPU

machine = start("07")
device = "cuda" if machine.device == "cuda" else "cpu"

# %% key="recall"
quiz("07.recall")

# %% [markdown] key="add_kernel-intro"
# ## Exercise: add two vectors
#
# ●○○○ · 10 minutes · 2 points
#
# `x_ptr` and `y_ptr` point at `n` numbers each, `out_ptr` at room for `n` more. Program `p` owns the elements `p * BLOCK` to
# `(p + 1) * BLOCK - 1`. Write `x + y` there. `n` need not be a multiple of `BLOCK`: lanes past the end must touch nothing.

# %% key="add_kernel" tags=["exercise"]
@triton.jit
def add_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    """out = x + y, all of n elements; one program a block.

    >>> x, out = torch.tensor([1.0, 2.0, 3.0]), torch.empty(3)
    >>> add_kernel[(2,)](x, x, out, 3, BLOCK=2)
    >>> out
    tensor([2., 4., 6.])
    """
    ### BEGIN SOLUTION
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = i < n
    x = tl.load(x_ptr + i, mask=inside)
    y = tl.load(y_ptr + i, mask=inside)
    tl.store(out_ptr + i, x + y, mask=inside)
    ### END SOLUTION


# %% key="add_kernel-check" tags=["check"]
add_kernel = check("07.add_kernel", add_kernel)

# %% key="add-run"
# Needs Triton.
x = torch.randn(1000, device=device)
out = torch.empty_like(x)
add_kernel[(4,)](x, x, out, 1000, BLOCK=256)
print(measure(add_kernel, (4,), x, x, out, 1000, BLOCK=256))

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
