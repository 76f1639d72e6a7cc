"""Chapter 07: one program a row. Softmax and RMSNorm."""

from __future__ import annotations

import numpy as np

from ._ch07_elementwise import SECTOR, normal
from .kernels import WrongKernel, right, run
from .spec import Exercise, Mistake


def wrong(name: str) -> WrongKernel:
    return WrongKernel("_ch07_wrong_rows", name)


def block_for(columns: int) -> int:
    """The smallest power of two that holds a row."""
    return 1 << max(0, columns - 1).bit_length()


PADDING = 16  # between the rows of softmax's output


def softmax_limits(rows: int, columns: int, stride: int) -> dict[str, float]:
    whole = columns % SECTOR == 0 and stride % SECTOR == 0
    return {"at_most_bytes": 8 * rows * columns, "coalescing": 0.9 if whole else 0.0}


def drive_softmax(kernel, x, columns):
    rows, stride = x.shape
    out = np.empty((rows, columns + PADDING), dtype=x.dtype)
    args = [x[:, :columns], out[:, :columns], stride, out.shape[1], columns]
    limits = softmax_limits(rows, columns, stride)
    return run(kernel, (rows,), args, {"out": 1}, {"BLOCK": block_for(columns)}, **limits)


def softmax(x, columns):
    rows, stride = x.shape
    seen = x[:, :columns].astype(np.float64)
    raised = np.exp(seen - seen.max(axis=1, keepdims=True))
    out = raised / raised.sum(axis=1, keepdims=True)
    return right({"out": out}, **softmax_limits(rows, columns, stride))


def softmax_cases(rng):
    high = normal(rng, 3, 48, scale=3) + np.array([[200.0], [-200.0], [0.0]], dtype=np.float32)
    return [
        (normal(rng, 4, 48, scale=2), 40),
        (high, 40),
        (normal(rng, 2, 64), 64),
        (normal(rng, 3, int(rng.integers(34, 40))), 33),
        (normal(rng, 2, 3), 1),
    ]


SOFTMAX = Exercise(
    id="07.softmax_kernel",
    points=3,
    minutes=15,
    difficulty=2,
    teaches="a row is loaded once, reduced on the chip, and written once",
    cases=softmax_cases,
    expect=softmax,
    tolerance=5e-5,  # exp2 of logits times log2(e) rounds as much as that
    drive=drive_softmax,
    needs_triton=True,
    mistakes=[
        Mistake(
            wrong("softmax_no_mask"),
            "Lanes past the row read what comes after it. Pass mask=c < columns to the load.",
        ),
        Mistake(
            wrong("softmax_no_other"),
            "The mask has no `other`: lanes past the row hold anything, and they take part in the "
            "maximum and in the sum. Give them -infinity, whose exponential is 0.",
        ),
        Mistake(
            wrong("softmax_zero"),
            "Lanes past the row hold 0, and exp(0 - max) is not 0: they add to the sum. Use "
            'other=-float("inf").',
        ),
        Mistake(
            wrong("softmax_stride"),
            "Row p of x starts at p * x_stride. Its rows are part of a wider tensor, so the stride "
            "is more than columns.",
        ),
        Mistake(
            wrong("softmax_out_stride"),
            "out has a stride of its own: its row p starts at p * out_stride.",
        ),
        Mistake(
            wrong("softmax_axis"),
            "This goes down a column: lanes lie x_stride apart. A program takes one row, whose "
            "elements lie side by side.",
        ),
        Mistake(
            wrong("softmax_no_program"),
            "Every program takes row 0. Which row it is, tl.program_id(0) says.",
        ),
        Mistake(
            wrong("softmax_no_max"),
            "exp overflows past 88 and is 0 for a row of very negative numbers. Subtract the row's "
            "maximum first.",
        ),
        Mistake(
            wrong("softmax_again"),
            "x is loaded twice. The row is on the chip already: use the block that you have.",
        ),
        Mistake(wrong("softmax_not_divided"), "The sum is missing: rows do not add up to 1."),
        Mistake(
            wrong("softmax_mean"),
            "Divided by the mean, a row adds up to `columns`. Divide by the sum.",
        ),
        Mistake(wrong("softmax_log"), "This is the logarithm of softmax: take the exponential."),
    ],
    hints=[
        "Where does row p start in x, and where in out? What must lanes past the row hold so that "
        "neither the maximum nor the sum notices them?",
        'Load the row once with other=-float("inf"). Then tl.max, tl.exp, tl.sum on the block, '
        "and one masked store.",
        "x = tl.load(x_ptr + tl.program_id(0) * x_stride + c, mask=c < columns, "
        'other=-float("inf")); raised = tl.exp(x - tl.max(x, axis=0)); store '
        "raised / tl.sum(raised, axis=0) at out_ptr + tl.program_id(0) * out_stride + c",
    ],
)


def rmsnorm_limits(rows: int, columns: int, size: int) -> dict[str, float]:
    whole = columns * size % 32 == 0
    return {"at_most_bytes": 3 * rows * columns * size, "coalescing": 0.9 if whole else 0.0}


def drive_rmsnorm(kernel, x, weight, eps):
    rows, columns = x.shape
    args = [x, weight, np.empty_like(x), columns, eps]
    limits = rmsnorm_limits(rows, columns, x.itemsize)
    return run(kernel, (rows,), args, {"out": 2}, {"BLOCK": block_for(columns)}, **limits)


def rmsnorm(x, weight, eps):
    """Rounded once, to the dtype of x."""
    wide = x.astype(np.float64)
    root = np.sqrt((wide**2).mean(axis=1, keepdims=True) + eps)
    out = (wide / root * weight).astype(x.dtype)
    return right({"out": out}, **rmsnorm_limits(*x.shape, x.itemsize))


def rmsnorm_cases(rng):
    def case(rows, columns, scale, dtype=np.float32, eps=1e-5):
        weight = (1 + 0.5 * rng.standard_normal(columns)).astype(dtype)
        shift = 0.5 * scale
        return (normal(rng, rows, columns, scale=scale) + shift).astype(dtype), weight, eps

    return [
        case(4, 40, 1.0),
        case(2, 64, 0.003, eps=4e-6),
        case(3, 48, 400.0, np.float16),
        case(2, int(rng.integers(33, 60)), 1.0, np.float16),
        case(2, 1, 1.0),
    ]


RMSNORM = Exercise(
    id="07.rmsnorm_kernel",
    points=3,
    minutes=12,
    difficulty=2,
    teaches="narrow numbers in memory, wide ones in the sum",
    cases=rmsnorm_cases,
    expect=rmsnorm,
    tolerance=2e-4,
    drive=drive_rmsnorm,
    needs_triton=True,
    mistakes=[
        Mistake(
            wrong("rmsnorm_narrow"),
            "Squares and their sum are computed in fp16, where 256 squared is infinite and a sum "
            "loses digits. Convert with .to(tl.float32) right after the load.",
        ),
        Mistake(
            wrong("rmsnorm_no_other"),
            "The mask has no `other`, so lanes past the row add anything to the sum. Use other=0.",
        ),
        Mistake(
            wrong("rmsnorm_block"),
            "The mean is over the row's `columns` numbers. BLOCK also counts lanes past its end.",
        ),
        Mistake(wrong("rmsnorm_sum"), "This is the root of the sum. Divide it by columns first."),
        Mistake(
            wrong("rmsnorm_mean"),
            "This subtracts the mean, as LayerNorm does. RMSNorm only divides.",
        ),
        Mistake(
            wrong("rmsnorm_eps_outside"),
            "eps is added to the mean square, inside the root. Outside it weighs much more.",
        ),
        Mistake(
            wrong("rmsnorm_no_eps"),
            "eps is missing. It shows where the numbers of a row are small.",
        ),
        Mistake(
            wrong("rmsnorm_no_root"),
            "This divides by the mean square. Its square root is missing.",
        ),
        Mistake(wrong("rmsnorm_no_weight"), "The weight of each column is missing."),
        Mistake(
            wrong("rmsnorm_again"),
            "x is loaded twice, for the sum and for the result. The block is still there.",
        ),
    ],
    hints=[
        "x may be fp16. In which dtype do squares of 400 fit?",
        "Load, convert to fp32, sum the squares with lanes past the row at 0, divide by columns, "
        "add eps, take the root. tl.store converts back by itself.",
        "x = tl.load(x_ptr + row * columns + c, mask=inside, other=0.0).to(tl.float32); "
        "scale = 1 / tl.sqrt(tl.sum(x * x, axis=0) / columns + eps); store "
        "x * scale * tl.load(weight_ptr + c, mask=inside)",
    ],
)
