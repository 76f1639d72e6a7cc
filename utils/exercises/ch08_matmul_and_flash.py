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
        Question(f"To be written {i}?", [("a", "why a"), ("b", "why b"), ("c", "why c")], 0)
        for i in range(3)
    ],
)
