"""Specifications of chapter 08. They are in the _ch08 files beside it."""

from __future__ import annotations

from ._ch08_flash import FLASH
from ._ch08_matmul import MATMUL
from .spec import Question, Quiz

EXERCISES = [*MATMUL, *FLASH]

QUIZ = Quiz(
    "08.recall",
    [
        Question(f"To be written {i}?", [("a", "why a"), ("b", "why b"), ("c", "why c")], 0)
        for i in range(3)
    ],
)
