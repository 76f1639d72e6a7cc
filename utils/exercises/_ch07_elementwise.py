"""Chapter 07: two-dimensional tiles. A bias with GELU, and a transpose."""

from __future__ import annotations

import math

import numpy as np

from .kernels import WrongKernel, right, run
from .spec import Exercise, Mistake

SECTOR = 8  # fp32 numbers in 32 bytes: rows of whole sectors can be coalesced


def wrong(name: str) -> WrongKernel:
    return WrongKernel("_ch07_wrong", name)


def normal(rng, *shape, scale=1.0):
    return (scale * rng.standard_normal(shape)).astype(np.float32)


def gelu_limits(rows: int, columns: int, block_rows: int) -> dict[str, float]:
    tiles_down = -(-rows // block_rows)
    moved = 4 * (2 * rows * columns + tiles_down * columns)
    return {"at_most_bytes": moved, "coalescing": 0.9 if columns % SECTOR == 0 else 0.0}


def drive_gelu(kernel, x, bias, block_rows, block_columns):
    rows, columns = x.shape
    grid = (-(-rows // block_rows), -(-columns // block_columns))
    constants = {"BLOCK_ROWS": block_rows, "BLOCK_COLUMNS": block_columns}
    args = [x, bias, np.empty_like(x), rows, columns]
    limits = gelu_limits(rows, columns, block_rows)
    return run(kernel, grid, args, {"out": 2}, constants, **limits)


def gelu(x, bias, block_rows, block_columns):
    z = x.astype(np.float64) + bias
    phi = 0.5 * (1 + np.vectorize(math.erf)(z / math.sqrt(2)))
    return right({"out": z * phi}, **gelu_limits(*x.shape, block_rows))


def gelu_cases(rng):
    sizes = [(9, 40, 4, 32), (1, 1, 4, 32), (3, int(rng.integers(33, 39)), 8, 64)]
    return [(normal(rng, r, c), normal(rng, c), *block) for r, c, *block in sizes]


BIAS_GELU = Exercise(
    id="07.bias_gelu_kernel",
    points=3,
    minutes=12,
    difficulty=2,
    teaches="two-dimensional tiles, and intermediate results that never leave the chip",
    cases=gelu_cases,
    expect=gelu,
    tolerance=1e-6,
    drive=drive_gelu,
    needs_triton=True,
    mistakes=[
        Mistake(
            wrong("gelu_rows_only"),
            "The mask knows the rows and not the columns: the last tile of a row runs past its "
            "end. Use (r < rows) & (c < columns).",
        ),
        Mistake(
            wrong("gelu_columns_only"),
            "The mask knows the columns and not the rows: the last tiles run past the last row. "
            "Use (r < rows) & (c < columns).",
        ),
        Mistake(
            wrong("gelu_stride"),
            "From one row to the next are `columns` elements, not BLOCK_COLUMNS: the stride "
            "belongs to the tensor, not to the tile.",
        ),
        Mistake(
            wrong("gelu_swapped"),
            "Axis 0 of the grid counts tiles of rows, axis 1 tiles of columns. Here they are "
            "swapped.",
        ),
        Mistake(
            wrong("gelu_bias_by_row"),
            "The bias belongs to columns: load it at bias_ptr + c, once for all rows of the tile.",
        ),
        Mistake(
            wrong("gelu_each_row"),
            "The bias is loaded again for every row of the tile. Load one row of it and let it "
            "broadcast.",
        ),
        Mistake(wrong("gelu_no_bias"), "The bias is never added: this is gelu(x)."),
        Mistake(wrong("gelu_bias_after"), "This is gelu(x) + bias: the bias is added before."),
        Mistake(wrong("gelu_no_root"), "erf takes z / sqrt(2), not z."),
        Mistake(
            wrong("gelu_tanh"),
            "This is GELU's approximation with tanh, which differs in the fourth digit. Here it is "
            "z / 2 * (1 + erf(z / sqrt(2))).",
        ),
    ],
    hints=[
        "A tile has BLOCK_ROWS rows. Which addresses does its second row start at, and when do "
        "rows or columns of the tile not exist?",
        "Make r with shape (BLOCK_ROWS, 1) and c with shape (1, BLOCK_COLUMNS), by [:, None] and "
        "[None, :]. Then r * columns + c is the whole tile, and bias_ptr + c one row.",
        "inside = (r < rows) & (c < columns); z = tl.load(x_ptr + r * columns + c, mask=inside) + "
        "tl.load(bias_ptr + c, mask=c < columns); store 0.5 * z * (1 + tl.erf(z * 0.70710678)) "
        "at out_ptr + r * columns + c, mask=inside",
    ],
)


def transpose_limits(rows: int, columns: int) -> dict[str, float]:
    whole = rows % SECTOR == 0 and columns % SECTOR == 0
    return {"at_most_bytes": 8 * rows * columns, "coalescing": 0.9 if whole else 0.0}


def drive_transpose(kernel, x, block):
    rows, columns = x.shape
    grid = (-(-rows // block), -(-columns // block))
    args = [x, np.empty((columns, rows), dtype=x.dtype), rows, columns]
    limits = transpose_limits(rows, columns)
    return run(kernel, grid, args, {"out": 1}, {"BLOCK": block}, **limits)


def transpose(x, block):
    return right({"out": x.T.copy()}, **transpose_limits(*x.shape))


def transpose_cases(rng):
    sizes = [(40, 72, 32), (33, 1, 32), (int(rng.integers(4, 30)), 35, 64)]
    return [(normal(rng, r, c), block) for r, c, block in sizes]


TRANSPOSE = Exercise(
    id="07.transpose_kernel",
    points=3,
    minutes=12,
    difficulty=3,
    teaches="reading along rows and writing along columns, both in whole sectors",
    cases=transpose_cases,
    expect=transpose,
    tolerance=0,
    drive=drive_transpose,
    needs_triton=True,
    mistakes=[
        Mistake(
            wrong("transpose_by_rows"),
            "Each store writes one row of x down a column of out: its lanes lie `rows` elements "
            "apart, and every one needs a sector of its own. Load and store a whole tile.",
        ),
        Mistake(
            wrong("transpose_by_columns"),
            "Each load reads down a column of x: its lanes lie `columns` elements apart, and every "
            "one fetches a sector of its own. Load and store a whole tile.",
        ),
        Mistake(
            wrong("transpose_no_mask"),
            "Nothing is masked: tiles at the right and lower edge run out of the tensors.",
        ),
        Mistake(
            wrong("transpose_same_mask"),
            "The turned tile needs a turned mask: compare its own rows with columns, and its "
            "columns with rows.",
        ),
        Mistake(
            wrong("transpose_stride"),
            "out has rows of length `rows`, so its stride is rows and not columns.",
        ),
        Mistake(
            wrong("transpose_copy"),
            "This copies: element (r, c) lands where it was. It belongs at row c, column r of out.",
        ),
        Mistake(
            wrong("transpose_tile_stays"),
            "Each tile is turned and put where it came from. Its place must be turned too: "
            "tile (i, j) goes to (j, i).",
        ),
        Mistake(
            wrong("transpose_not_turned"),
            "The tile goes to the right place and is not turned itself. Use tl.trans, or compute "
            "the address of every element from its own row and column.",
        ),
    ],
    hints=[
        "Element (r, c) of x lies at r * columns + c. Where does it lie in out?",
        "In out it is at c * rows + r. Load a tile of x with addresses and mask made from r and c, "
        "and store the same tile to addresses made from the same r and c.",
        "r = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)[:, None]; c likewise with "
        "program_id(1) and [None, :]; tile = tl.load(x_ptr + r * columns + c, mask=inside); "
        "tl.store(out_ptr + c * rows + r, tile, mask=inside)",
    ],
)
