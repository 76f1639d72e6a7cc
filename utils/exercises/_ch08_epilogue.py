"""Chapter 08: a product with its bias and ReLU in the same kernel."""

from __future__ import annotations

import numpy as np

from ._ch08_matmul import (
    BLOCKS,
    OTHER_BLOCKS,
    SLACK,
    constants,
    n_tiles,
    normal,
    positive,
    stored,
    strides,
    tile_bytes,
    whole,
)
from .kernels import WrongKernel, right, run
from .spec import Exercise, Mistake


def wrong(name: str) -> WrongKernel:
    return WrongKernel("_ch08_wrong_products", f"epilogue_{name}")


def limits(a: np.ndarray, b: np.ndarray, blocks: list[int]) -> dict[str, float]:
    """The tile formula, and a piece of the bias for each tile."""
    (m, k), n = a.shape, b.shape[1]
    bias = 4 * n_tiles(m, n, blocks) * blocks[1]
    return {"at_most_bytes": SLACK * (tile_bytes(m, n, k, a.itemsize, blocks) + bias)}


def drive_bias_relu(kernel, a, b, bias, a_by, b_by, c_by, blocks):
    (m, k), n = a.shape, b.shape[1]
    a, b = stored(a, a_by), stored(b, b_by)
    c = stored(np.zeros((m, n), np.float32), c_by)
    args = [a, b, bias, c, m, n, k, *strides(a, b, c)]
    grid = (n_tiles(m, n, blocks),)
    return run(kernel, grid, args, {"c": 3}, constants(blocks), **limits(a, b, blocks))


def bias_relu(a, b, bias, a_by, b_by, c_by, blocks):
    sums = a.astype(np.float64) @ b.astype(np.float64) + bias.astype(np.float64)
    return right({"c": np.where(sums > 0, sums, 0)}, **limits(a, b, blocks))


def _cases(rng):
    m, n, k = (2 * int(size) + 1 for size in rng.integers((32, 16, 9), (48, 24, 20)))
    by, one_row = ("columns", "wide", "columns"), ("rows", "columns", "wide")
    bias = 80 + 3 * normal(rng, 5)  # some of 65 products are larger, some are not
    return [
        (*whole(rng), 3 * normal(rng, 32), "rows", "rows", "rows", BLOCKS),
        (normal(rng, m, k), normal(rng, k, n), 3 * normal(rng, n), *by, OTHER_BLOCKS),
        (positive(rng, 1, 65), -positive(rng, 65, 5), bias, *one_row, BLOCKS),
    ]


MATMUL_BIAS_RELU_KERNEL = Exercise(
    id="08.matmul_bias_relu_kernel",
    points=3,
    minutes=12,
    difficulty=2,
    teaches="what follows a product costs no bytes while the tile is still on chip",
    cases=_cases,
    expect=bias_relu,
    tolerance=1e-5,
    drive=drive_bias_relu,
    needs_triton=True,
    mistakes=[
        Mistake(
            wrong("bias_not_masked"),
            "The bias is read past its n elements by the last column of tiles. Mask that load "
            "with columns < n.",
        ),
        Mistake(
            wrong("bias_by_row"),
            "The bias is indexed with the row of c. It has one number a column: load it at "
            "columns and broadcast it with [None, :].",
        ),
        Mistake(
            wrong("relu_first"),
            "ReLU comes before the bias here. Add the bias to the finished sum, then cut off "
            "what is negative.",
        ),
        Mistake(
            wrong("relu_every_step"),
            "ReLU cuts the running sum at every step of the loop. A sum may be negative on its way "
            "to a positive end: cut it after the loop.",
        ),
        Mistake(
            wrong("bias_every_step"),
            "The bias is added at every step of the loop, so it counts as often as there are "
            "steps. Add it once.",
        ),
        Mistake(
            wrong("no_relu"),
            "Negative numbers are still in c: the ReLU is missing.",
        ),
        Mistake(
            wrong("through_memory"),
            "The product is stored, loaded again and stored again. Add and cut while the tile is "
            "still in registers, and store it once.",
        ),
    ],
    hints=[
        "Where is the tile of c between the last step of the loop and the store?",
        "Copy your matmul_kernel. Between the loop and the store, load BLOCK_N numbers of the "
        "bias at the tile's columns, add them to every row, and take the larger of that and 0.",
        "bias = tl.load(bias_ptr + columns, mask=columns < n, other=0.0); "
        "total = tl.maximum(total + bias[None, :], 0.0)",
    ],
)
