"""Chapter 08: the tiled matrix product."""

from __future__ import annotations

import numpy as np

from .kernels import WrongKernel, right, run
from .spec import Exercise, Mistake

ROWS, COLUMNS = 64, 32
BLOCKS = [ROWS, COLUMNS, 16]  # BLOCK_M, BLOCK_N, BLOCK_K
OTHER_BLOCKS = [128, 32, 32]
SLACK = 1.1  # times the tile formula


def wrong(name: str) -> WrongKernel:
    return WrongKernel("_ch08_wrong_products", f"matmul_{name}")


def tiles(size: int, block: int) -> int:
    return -(-size // block)


def tile_bytes(m: int, n: int, k: int, itemsize: int, blocks: list[int]) -> int:
    """The tile formula: every tile of c reads a strip of a and of b; c is float32.

    Where a tile sticks out its strips count whole: a kernel may read other rows there instead.
    """
    rows, columns, _ = blocks
    return itemsize * n_tiles(m, n, blocks) * (rows + columns) * k + 4 * m * n


def n_tiles(m: int, n: int, blocks: list[int]) -> int:
    return tiles(m, blocks[0]) * tiles(n, blocks[1])


def constants(blocks: list[int]) -> dict[str, int]:
    return dict(zip(("BLOCK_M", "BLOCK_N", "BLOCK_K"), blocks, strict=True))


def stored(x: np.ndarray, by: str) -> np.ndarray:
    """The same matrix, its elements in another order in memory. by: "rows", "columns", "wide"."""
    if by == "wide":  # rows with a gap between them
        wide = np.zeros((x.shape[0], x.shape[1] + 24), x.dtype)
        wide[:, : x.shape[1]] = x
        return wide[:, : x.shape[1]]
    return np.asfortranarray(x) if by == "columns" else np.ascontiguousarray(x)


def strides(*matrices: np.ndarray) -> list[int]:
    return [stride // x.itemsize for x in matrices for stride in x.strides]


def limits(a: np.ndarray, b: np.ndarray, blocks: list[int]) -> dict[str, float]:
    """Coalescing is demanded where all sizes are whole sectors."""
    (m, k), n = a.shape, b.shape[1]
    sectors = min(m, n, k) > 1 and not (m % 16 or n % 16 or k % 16)
    bytes_ = SLACK * tile_bytes(m, n, k, a.itemsize, blocks)
    return {"at_most_bytes": bytes_, "coalescing": 0.9 if sectors else 0.0}


def drive_matmul(kernel, a, b, a_by, b_by, c_by, blocks):
    """Launch on matrices that are stored as the case says."""
    (m, k), n = a.shape, b.shape[1]
    a, b = stored(a, a_by), stored(b, b_by)
    c = stored(np.zeros((m, n), np.float32), c_by)
    args = [a, b, c, m, n, k, *strides(a, b, c)]
    grid = (n_tiles(m, n, blocks),)
    return run(kernel, grid, args, {"c": 2}, constants(blocks), **limits(a, b, blocks))


def product(a, b, a_by, b_by, c_by, blocks):
    return right({"c": a.astype(np.float64) @ b.astype(np.float64)}, **limits(a, b, blocks))


def normal(rng, *shape, dtype=np.float32):
    return rng.standard_normal(shape).astype(dtype)


def positive(rng, *shape):
    """float16 numbers whose sums outgrow the digits of float16."""
    return (rng.random(shape) + 0.5).astype(np.float16)


def whole(rng):
    """A product of which every tile is whole."""
    return normal(rng, 2 * ROWS, 32), normal(rng, 32, COLUMNS)


def _cases(rng):
    m, n, k = (2 * int(size) + 1 for size in rng.integers((32, 16, 8), (48, 24, 20)))
    return [
        (*whole(rng), "rows", "rows", "rows", BLOCKS),
        (normal(rng, m, k), normal(rng, k, n), "columns", "wide", "columns", BLOCKS),
        (normal(rng, 65, 32), normal(rng, 32, 20), "rows", "columns", "wide", OTHER_BLOCKS),
        (positive(rng, 64, 96), positive(rng, 96, 32), "rows", "rows", "rows", BLOCKS),
        (normal(rng, 1, 1), normal(rng, 1, 1), "rows", "rows", "rows", BLOCKS),
    ]


MATMUL_KERNEL = Exercise(
    id="08.matmul_kernel",
    points=5,
    minutes=25,
    difficulty=3,
    teaches="a tile of the output is summed on chip while strips of both inputs stream past",
    cases=_cases,
    expect=product,
    tolerance=1e-5,
    drive=drive_matmul,
    needs_triton=True,
    mistakes=[
        Mistake(
            wrong("inner_not_masked"),
            "Rows and columns are masked, the inner index is not: where BLOCK_K does not divide k, "
            "the last step reads past the end of a row.",
        ),
        Mistake(
            wrong("no_mask"),
            "Nothing is masked: tiles on the edge read and write past the matrices. Compare rows "
            "with m, columns with n and the inner index with k.",
        ),
        Mistake(
            wrong("no_other"),
            "Masked lanes of the last inner step have no value, and they enter every sum. Give "
            "both loads other=0.0.",
        ),
        Mistake(
            wrong("tail_dropped"),
            "The loop makes k // BLOCK_K steps and drops the rest of k. It needs "
            "tl.cdiv(k, BLOCK_K), with a mask.",
        ),
        Mistake(
            wrong("assumes_rows"),
            "The addresses take every matrix to be stored row after row without gaps. Use the "
            "strides: element (i, j) lies at i * stride of rows + j * stride of columns.",
        ),
        Mistake(
            wrong("b_steps_along_columns"),
            "Each step moves b by BLOCK_K columns. The inner index runs down b's rows: move by "
            "BLOCK_K * stride_bk.",
        ),
        Mistake(
            wrong("tiles_swapped"),
            "The tile's row and column come from dividing by the number of tile rows. A row of "
            "tiles has cdiv(n, BLOCK_N) of them: divide by that.",
        ),
        Mistake(
            wrong("sums_in_half"),
            "The sum is kept in float16, which rounds it at every step. Keep it in tl.float32.",
        ),
        Mistake(
            wrong("rounds_to_half"),
            "The sum is rounded to the inputs' dtype before it is stored. c is float32: store "
            "the sum as it is.",
        ),
        Mistake(
            wrong("last_step_only"),
            "Each step replaces the sum by its own product. Add them up: "
            "total = tl.dot(x, y, total).",
        ),
        Mistake(
            wrong("two_halves"),
            "The tile is made in two halves, and a's strip is read for each of them. Load it once "
            "and use it for the whole tile.",
        ),
    ],
    hints=[
        "Which rows of a and which columns of b does one tile of c need? How much of those strips "
        "must be on the chip at one moment?",
        "Make rows, columns and inner indices with tl.arange. In a loop over k, load a BLOCK_M x "
        "BLOCK_K piece of a and a BLOCK_K x BLOCK_N piece of b, masked with other=0.0, and add "
        "their product to a float32 tile. Store it after the loop.",
        "for step in range(0, tl.cdiv(k, BLOCK_K)): at = step * BLOCK_K + inner; "
        "x = tl.load(a_ptr + rows[:, None] * stride_am + at[None, :] * stride_ak, "
        "mask=(rows[:, None] < m) & (at[None, :] < k), other=0.0); y the same from b; "
        "total = tl.dot(x, y, total)",
    ],
)
