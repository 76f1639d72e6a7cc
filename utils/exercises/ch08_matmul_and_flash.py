"""Specifications of chapter 08. They are in the _ch08 files beside it."""

from __future__ import annotations

from ._ch08_epilogue import MATMUL_BIAS_RELU_KERNEL
from ._ch08_flash import FLASH
from ._ch08_gemv import INT8_GEMV_KERNEL
from ._ch08_matmul import MATMUL_KERNEL
from ._ch08_order import GROUPED_ORDER
from .spec import Question, Quiz

MATMUL = [MATMUL_KERNEL, GROUPED_ORDER, MATMUL_BIAS_RELU_KERNEL, INT8_GEMV_KERNEL]

EXERCISES = [*MATMUL, *FLASH]

QUIZ = Quiz(
    "08.recall",
    [
        Question(
            "Chapter 4: a row of scores arrives in pieces. What must be kept of the pieces that "
            "are gone, besides the mixed values?",
            [
                ("All their scores", "Then nothing would be saved: that is the plain softmax."),
                ("Their maximum and sum", "A new maximum rescales the old sum and values."),
                ("Only their sum", "It is relative to a maximum, which may rise later."),
            ],
            correct=1,
        ),
        Question(
            "Chapter 6: a GPU with 108 SMs runs one program on each. How much longer do 109 equal "
            "programs take than 108?",
            [
                ("About 1%", "That would be so if one program could be spread over all SMs."),
                ("Nothing", "Program 109 has to wait until an SM is free."),
                ("Twice as long", "The second wave takes as long as the first, for one program."),
            ],
            correct=2,
        ),
        Question(
            "Chapter 7: a masked load has no `other`. What do its masked lanes hold?",
            [
                ("Anything", "So they must not enter a sum. other=0.0 makes them zero."),
                ("Zero", "Often so by luck, and nothing promises it."),
                ("What lies at the address", "The mask exists so that it is not touched."),
            ],
            correct=0,
        ),
    ],
)
