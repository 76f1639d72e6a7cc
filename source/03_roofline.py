# ---
# jupyter:
#   course:
#     title: "3. Is it bytes or FLOPs?"
#     minutes: 70
#     hardware: "no GPU; with one, the same cells measure it"
#     needs: "chapter 0's profile of your machine"
#     leaves_with: "the roof of your own machine, and where decoding, training and softmax sit under it"
# ---

# %% [markdown] key="title"
# # 3. Is it bytes or FLOPs?
#
# Your machine can do hundreds of billions of multiplications a second. Most of the time it does not: it waits for
# numbers to arrive. This chapter gives you one picture, the roofline, that says when it waits and for how long.

# %% key="setup" tags=["setup"]
import torch

from utils.course import check, start

machine = start("03")

# %% [markdown] key="intensity-intro"
# ## Exercise: arithmetic intensity
#
# ●○○○ · 8 minutes · 2 points
#
# Count both. For a matrix product of `m x k` by `k x n`,
# with each matrix read or written once, return FLOPs divided by bytes.

# %% key="arithmetic_intensity" tags=["exercise"]
def arithmetic_intensity(
    m: int, n: int, k: int, bytes_per_element: int
) -> float:
    """FLOP per byte of (m, k) @ (k, n) when each matrix is touched once.

    >>> round(arithmetic_intensity(64, 4096, 4096, 2), 1)
    62.1
    """
    ### BEGIN SOLUTION
    flops = 2 * m * n * k
    moved = (m * k + k * n + m * n) * bytes_per_element
    return flops / moved
    ### END SOLUTION


# %% key="arithmetic_intensity-check" tags=["check"]
arithmetic_intensity = check("03.arithmetic_intensity", arithmetic_intensity)
