"""Chapter 08: a matrix of one-byte weights times a vector."""

from __future__ import annotations

import numpy as np

from .kernels import WrongKernel, right, run
from .spec import Exercise, Mistake

BLOCK_N, BLOCK_K = 16, 64
OTHER_BLOCKS = 32, 32
SLACK = 1.1  # times the formula


def wrong(name: str) -> WrongKernel:
    return WrongKernel("_ch08_wrong_products", f"gemv_{name}")


def gemv_bytes(n: int, k: int, itemsize: int, block_n: int) -> int:
    """Every weight once, x once a program, a scale and an output a row."""
    return n * k + -(-n // block_n) * k * itemsize + 8 * n


def limits(w: np.ndarray, x: np.ndarray, block_n: int, block_k: int) -> dict[str, float]:
    n, k = w.shape
    bytes_ = SLACK * gemv_bytes(n, k, x.itemsize, block_n)
    return {"at_most_bytes": bytes_, "coalescing": 0.9 if k % block_k == 0 else 0.0}


def drive_gemv(kernel, w, scale, x, block_n, block_k):
    n, k = w.shape
    args = [w, scale, x, np.empty(n, np.float32), n, k]
    constants = {"BLOCK_N": block_n, "BLOCK_K": block_k}
    grid = (-(-n // block_n),)
    return run(kernel, grid, args, {"y": 3}, constants, **limits(w, x, block_n, block_k))


def gemv(w, scale, x, block_n, block_k):
    weights = w.astype(np.float64) * scale.astype(np.float64)[:, None]
    return right({"y": weights @ x.astype(np.float64)}, **limits(w, x, block_n, block_k))


def _case(rng, n, k, dtype, blocks=(BLOCK_N, BLOCK_K)):
    w = rng.integers(-127, 128, (n, k)).astype(np.int8)
    w[0, 0] = 101
    scale = (0.001 + 0.02 * rng.random(n)).astype(np.float32)
    return w, scale, (rng.standard_normal(k) + 0.5).astype(dtype), *blocks


def _cases(rng):
    n, k = (2 * int(size) + 1 for size in rng.integers((9, 40), (16, 60)))
    return [
        _case(rng, 2 * BLOCK_N, 2 * BLOCK_K, np.float32),
        _case(rng, n, k, np.float16),
        _case(rng, BLOCK_N + 1, 3 * BLOCK_K, np.float16),
        _case(rng, 17, 33, np.float32, OTHER_BLOCKS),
        _case(rng, 1, 1, np.float32),
    ]


INT8_GEMV_KERNEL = Exercise(
    id="08.int8_gemv_kernel",
    points=3,
    minutes=15,
    difficulty=2,
    teaches="weights can stay small until they are in registers: only then do they become floats",
    cases=_cases,
    expect=gemv,
    tolerance=1e-5,
    drive=drive_gemv,
    needs_triton=True,
    mistakes=[
        Mistake(
            wrong("no_mask"),
            "Nothing is masked: the last program and the last step read past the weights. Compare "
            "rows with n and the inner index with k.",
        ),
        Mistake(
            wrong("no_other"),
            "Masked lanes have no value, and the sum along a row takes them in. Give the loads "
            "other=0.",
        ),
        Mistake(
            wrong("tail_dropped"),
            "The loop makes k // BLOCK_K steps and drops the rest of k. It needs "
            "tl.cdiv(k, BLOCK_K), with a mask.",
        ),
        Mistake(
            wrong("no_scale"),
            "The scales are not used: y is in units of the integers. Multiply each row's sum by "
            "its scale.",
        ),
        Mistake(
            wrong("one_scale"),
            "Every row of a program gets the scale of its first row. Load BLOCK_N scales, one a "
            "row.",
        ),
        Mistake(
            wrong("scale_every_step"),
            "The running sum is multiplied by the scale at every step, so early columns are scaled "
            "many times. Scale once, after the loop.",
        ),
        Mistake(
            wrong("integer_x"),
            "x is rounded to int8 to fit the weights. Turn the weights into float32 instead.",
        ),
        Mistake(
            wrong("sums_in_half"),
            "Sums are kept in float16, which runs out of digits. Keep them in float32.",
        ),
        Mistake(
            wrong("x_for_every_row"),
            "x is loaded anew for every row of the tile. Load its BLOCK_K numbers once and "
            "broadcast them with [None, :].",
        ),
    ],
    hints=[
        "Of the bytes that this product reads, how many are weights? So when should a weight stop "
        "being one byte?",
        "Keep BLOCK_N float32 sums. In a loop over k, load a BLOCK_N x BLOCK_K piece of w and "
        "BLOCK_K numbers of x, turn both into float32, multiply, and tl.sum along axis 1. Scale "
        "after the loop.",
        "w = tl.load(w_ptr + rows[:, None] * k + inner[None, :], mask=..., other=0).to(tl.float32);"
        " x = tl.load(x_ptr + inner, mask=inner < k, other=0.0).to(tl.float32); "
        "total += tl.sum(w * x[None, :], 1); after the loop, total * tl.load(scale_ptr + rows, "
        "mask=rows < n, other=0.0)",
    ],
)
