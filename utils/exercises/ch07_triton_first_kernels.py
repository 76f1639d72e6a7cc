"""Specifications of chapter 07's exercises: first Triton kernels."""

from __future__ import annotations

import numpy as np

from ._ch07_elementwise import BIAS_GELU, TRANSPOSE, wrong
from ._ch07_gradients import CROSS_ENTROPY, LAYERNORM_BACKWARD
from ._ch07_rows import RMSNORM, SOFTMAX
from .kernels import right, run
from .spec import Exercise, Mistake, Question, Quiz

BLOCK = 128


def add_limits(n: int, block: int) -> dict[str, float]:
    return {"at_most_bytes": 3 * 4 * n, "coalescing": 0.9 if n >= block else 0.0}


def drive_add(kernel, x, y, block):
    n = x.size
    args = [x, y, np.empty_like(x), n]
    grid = (-(-n // block),)
    return run(kernel, grid, args, {"out": 2}, {"BLOCK": block}, **add_limits(n, block))


def add(x, y, block):
    return right({"out": x.astype(np.float64) + y}, **add_limits(x.size, block))


def add_cases(rng):
    odd = int(rng.integers(3, 8)) * BLOCK + int(rng.integers(1, 100))
    sizes = (300, BLOCK), (1, BLOCK), (BLOCK, BLOCK // 2), (5 * BLOCK, BLOCK), (odd, 2 * BLOCK)
    return [(*rng.standard_normal((2, n)).astype(np.float32), block) for n, block in sizes]


ADD = Exercise(
    id="07.add_kernel",
    points=2,
    minutes=10,
    difficulty=1,
    teaches="a program owns a block, and a mask keeps its last lanes inside",
    cases=add_cases,
    expect=add,
    tolerance=1e-6,
    drive=drive_add,
    needs_triton=True,
    mistakes=[
        Mistake(
            wrong("add_no_mask"),
            "No load is masked: the last program reads past the end. Pass mask=i < n to load "
            "and store.",
        ),
        Mistake(
            wrong("add_store_not_masked"),
            "The loads are masked, the store is not: the last program writes past the end.",
        ),
        Mistake(
            wrong("add_no_program"),
            "Every program works on the same first block. Add tl.program_id(0) * BLOCK.",
        ),
        Mistake(
            wrong("add_overlapping"),
            "Programs start one element apart, so they do each other's work. Program p starts "
            "at p * BLOCK.",
        ),
        Mistake(
            wrong("add_interleaved"),
            "Neighbouring lanes touch elements that lie far apart, so a warp fetches a sector for "
            "each lane. Give a program neighbouring elements.",
        ),
        Mistake(
            wrong("add_everything"),
            "Every program adds the whole vector, so the work is done once for each program.",
        ),
    ],
    hints=[
        "Which elements does program 3 own when BLOCK is 128? Which of them exist when n is 400?",
        "Make the indices with tl.program_id(0), BLOCK and tl.arange. Compare them with n. Use the "
        "comparison as the mask of both loads and of the store.",
        "i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK); x = tl.load(x_ptr + i, mask=i < n); "
        "the same for y; tl.store(out_ptr + i, x + y, mask=i < n)",
    ],
)

EXERCISES = [
    ADD,
    BIAS_GELU,
    SOFTMAX,
    RMSNORM,
    LAYERNORM_BACKWARD,
    CROSS_ENTROPY,
    TRANSPOSE,
]

QUIZ = Quiz(
    "07.recall",
    [
        Question(
            "Chapter 3: adding two fp32 vectors takes one FLOP for how many bytes?",
            [
                ("4", "That is one number. Two are read and one is written."),
                ("12", "Two numbers in, one out, 4 bytes each: memory decides the time."),
                ("8", "The result is written too."),
            ],
            correct=1,
        ),
        Question(
            "Chapter 6: the 32 lanes of a warp each read 4 bytes, and the addresses lie 4,096 "
            "bytes apart. How many bytes are fetched?",
            [
                ("128", "Memory is fetched in sectors of 32 bytes, and no two lanes share one."),
                ("1,024", "32 sectors of 32 bytes, of which an eighth is used."),
                ("131,072", "The gaps are not fetched, only the sectors that hold an address."),
            ],
            correct=1,
        ),
        Question(
            "Chapter 4: an online softmax has the maximum m and the sum l. A new chunk raises the "
            "maximum to m'. What becomes of l?",
            [
                ("It is multiplied by exp(m - m')", "Then the new chunk's exponentials are added."),
                ("It stays", "Its terms were made with the old maximum: they would be too large."),
                ("It is computed again", "Then the row would have to be read again."),
            ],
            correct=0,
        ),
    ],
)
