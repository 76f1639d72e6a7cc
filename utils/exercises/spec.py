"""What an exercise is: a specification that a check, a test and a grader all read."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Mistake:
    """A wrong answer people really give, as code, and the sentence that explains it.

    `answer` takes what the exercise's answer takes. The check compares the reader's output with
    its output; the tests prove that it is rejected with its own sentence.
    """

    answer: Callable[..., Any]
    says: str


@dataclass(frozen=True)
class Exercise:
    """One exercise of one chapter.

    cases      takes a numpy Generator, returns a list of argument tuples: plain numbers, strings,
               lists, dictionaries, numpy arrays. Random ones and the edge cases that matter.
    expect     the independent reference: takes a case's arguments, returns plain data. Its
               argument names are those of the stub; the verdict shows them.
    tolerance  largest error relative to the expected value (for arrays: to its norm). 0 is exact.
    drive      only where an answer is a class, a kernel, or takes functions: `drive(answer, *case)`
               builds it, feeds it plain data and returns plain data. It runs beside the answer, in
               a process that never sees an expected value.
    needs_triton  whether it can only be judged where Triton is installed.
    """

    id: str
    points: int
    minutes: int
    difficulty: int
    teaches: str
    cases: Callable[..., list[tuple]]
    expect: Callable[..., Any]
    tolerance: float
    mistakes: list[Mistake]
    hints: list[str]
    drive: Callable[..., Any] | None = None
    needs_triton: bool = False

    def __post_init__(self) -> None:
        if not re.fullmatch(r"\d\d\.[a-z0-9_]+", self.id):
            raise ValueError(f"id is {self.id!r}; it must look like '03.arithmetic_intensity'")
        if self.difficulty not in (1, 2, 3, 4):
            raise ValueError(f"{self.id}: difficulty is {self.difficulty}; it must be 1 to 4")
        if len(self.hints) != 3:
            raise ValueError(f"{self.id}: {len(self.hints)} hints; there must be three")

    @property
    def chapter(self) -> str:
        """The chapter's two digits, '03'."""
        return self.id.split(".")[0]

    @property
    def name(self) -> str:
        """The name of the function, class or kernel, 'arithmetic_intensity'."""
        return self.id.split(".")[1]

    def run(self, answer: Callable[..., Any], case: list) -> Any:
        """What an answer gives for one case, through the driver where there is one."""
        return self.drive(answer, *case) if self.drive else answer(*case)


@dataclass(frozen=True)
class Question:
    """A recall question. `options` pairs each text with what to say to whoever picks it."""

    text: str
    options: list[tuple[str, str]]
    correct: int

    def __post_init__(self) -> None:
        if not 0 <= self.correct < len(self.options):
            raise ValueError(f"correct is {self.correct}; options are 0 to {len(self.options) - 1}")


@dataclass(frozen=True)
class Quiz:
    """Three recall questions on earlier chapters. id is 'NN.recall'."""

    id: str
    questions: list[Question]
