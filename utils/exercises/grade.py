"""Judge an answer: run the cases, compare, recognise the mistake. Knows nothing of processes."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .compare import difference, show
from .plain import plain
from .spec import Exercise

YOUR_TURN = "your turn"


@dataclass(frozen=True)
class Outcome:
    """What one case gave: a value, or `trouble`, a sentence that says why there is none.

    `stop` marks trouble that would only repeat (an endless loop, a dead process, a stub).
    """

    value: Any = None
    trouble: str = ""
    untouched: bool = False
    stop: bool = False
    changed_input: bool = False
    printed: str = ""


@dataclass(frozen=True)
class Verdict:
    """The result of a check. `status` is 'passed', 'not yet' or 'not attempted'."""

    exercise: Exercise
    status: str
    right: int = 0
    total: int = 0
    lines: list[str] = field(default_factory=list)
    mistake: str = ""
    seed: int = 0
    printed: str = ""

    @property
    def passed(self) -> bool:
        return self.status == "passed"


def make_cases(exercise: Exercise, seed: int) -> list[list]:
    """The cases of this seed, as plain data: numpy integers would overflow in a reader's code."""
    return [plain(case) for case in exercise.cases(np.random.default_rng(seed))]


def grade(exercise: Exercise, call: Callable[[list], Outcome], seed: int) -> Verdict:
    """Run every case through `call` and judge what comes back.

    `call` takes one case, a list of plain arguments, and returns an Outcome.
    """
    cases = make_cases(exercise, seed)
    right, wrong, printed = 0, [], ""
    for case in cases:
        expected = plain(exercise.expect(*plain(case)))
        outcome = call(case)
        printed = printed or outcome.printed
        if outcome.untouched and not (right or wrong):
            return Verdict(exercise, "not attempted", 0, len(cases), seed=seed)
        why = outcome.trouble or difference(outcome.value, expected, exercise.tolerance)
        if outcome.untouched:
            why = f'here your code comes to the line raise NotImplementedError("{YOUR_TURN}")'
        if not why and outcome.changed_input:
            why = "the result is right, but your code changed its input. Work on a copy"
        if why:
            wrong.append((case, why, outcome))
        right += not why
        if outcome.stop:
            break
    if not wrong:
        return Verdict(exercise, "passed", right, len(cases), seed=seed, printed=printed)
    case, why, _ = wrong[0]
    mistake = _recognise(exercise, [(case, outcome) for case, _, outcome in wrong])
    lines = [_arguments(exercise, case), why] + ([mistake] if mistake else [])
    return Verdict(exercise, "not yet", right, len(cases), lines, mistake, seed, printed)


def call_here(exercise: Exercise, answer: Callable[..., Any]) -> Callable[[list], Outcome]:
    """A `call` for `grade` that runs a trusted answer in this process: for tests and mistakes."""

    def call(case: list) -> Outcome:
        try:
            return Outcome(value=plain(exercise.run(answer, plain(case))))
        except Exception as error:
            return Outcome(trouble=f"{type(error).__name__}: {error}")

    return call


def _recognise(exercise: Exercise, wrong: list[tuple[list, Outcome]]) -> str:
    """The sentence of the mistake that explains every wrong case, or nothing."""
    wrong = [(case, outcome.value) for case, outcome in wrong if not outcome.trouble]
    near = max(exercise.tolerance, 1e-9)
    for mistake in exercise.mistakes if wrong else []:
        try:
            outputs = (plain(exercise.run(mistake.answer, plain(case))) for case, _ in wrong)
            pairs = zip(wrong, outputs, strict=True)
            if not any(difference(value, output, near) for (_, value), output in pairs):
                return mistake.says
        except Exception:  # a mistake may not even run on this case
            continue
    return ""


def _arguments(exercise: Exercise, case: list) -> str:
    names = list(inspect.signature(exercise.expect).parameters)
    return ", ".join(f"{name}={show(value)}" for name, value in zip(names, case, strict=False))
