"""check: judge the reader's answer, say what is wrong with it, hand back what to go on with."""

from __future__ import annotations

import contextlib
import secrets
import time
from typing import Any

from utils import answers_folder
from utils.exercises import get
from utils.exercises.answer import NotFound, written
from utils.exercises.grade import Verdict, grade
from utils.exercises.namespace import fresh, given_names, imports, run_text, solution
from utils.exercises.runner import caller
from utils.exercises.source import chapter
from utils.exercises.spec import Exercise
from utils.files import set_aside, write_whole
from utils.meter.without_triton import WHERE, has_triton

from . import cells, store
from .output import Message, show


def check(id: str, answer: Any, seed: int | None = None) -> Any:
    """Judge `answer` and return what to go on with: it, when it passes, else the course's.

    Never raises. The answer runs in a process of its own, with five seconds for all its cases.
    `seed` repeats the random cases of an earlier verdict.
    """
    try:
        exercise = get(id)
    except ValueError as error:
        show(Message("fail", [str(error)]))
        return answer
    if exercise.needs_triton and not has_triton():
        _show_problem(exercise, WHERE)
        return solution(id)
    try:
        text = _text_of(exercise, answer)
        verdict = grade(exercise, caller(exercise, text), _chosen(seed))
        show(_message(verdict))
        _record(verdict, text)
        return _own(exercise, answer, text) if verdict.passed else solution(id)
    except NotFound as error:
        _show_problem(exercise, str(error))
    except KeyboardInterrupt:
        _show_problem(exercise, "You stopped the check. Nothing is recorded; run it again.")
    except Exception as error:
        why = f"The check itself failed, which is not your fault: {type(error).__name__}: {error}"
        _show_problem(exercise, why)
    return solution(id)


def _chosen(seed: int | None) -> int:
    if seed is None:
        return secrets.randbelow(10**6)
    if isinstance(seed, bool) or not isinstance(seed, int) or seed < 0:
        raise NotFound(f"seed is {seed!r:.60}; it must be the whole number that a verdict gave.")
    return seed


def _text_of(exercise: Exercise, answer: Any) -> str:
    """The text of what was passed, under the exercise's name whatever its own."""
    name = exercise.name
    if not callable(answer):
        raise NotFound(f"check was given {_short(answer)}, not the function {name}.")
    ran, given = cells.ran(), given_names(exercise.chapter, name)
    before = imports(chapter(exercise.chapter))
    own = cells.name_of(answer, name)
    if own is None and not _is_courses(exercise, answer):
        inline = cells.passed_inline(exercise.id)
        own, ran = name, [*ran, f"{name} = {inline}"] if inline else ran
    if own in (None, name):
        return written(name, ran, given, before)
    return written(own, ran, given - {own}, before) + f"\n{name} = {own}\n"


def _short(value: Any) -> str:
    try:
        return f"{value!r:.60}".replace("\n", " ")
    except Exception:
        return f"a {type(value).__name__}"


def _is_courses(exercise: Exercise, answer: Any) -> bool:
    return getattr(answer, "__module__", None) == f"answers_{exercise.chapter}"


def _own(exercise: Exercise, answer: Any, text: str) -> Any:
    """The answer that passed. Should the variable hold the course's by now, its text counts."""
    if not _is_courses(exercise, answer):
        return answer
    names = fresh(exercise.chapter, without=exercise.name)
    run_text(text, f"<your {exercise.name}>", names)
    return names[exercise.name]


def _message(verdict: Verdict) -> Message:
    id = verdict.exercise.id
    if verdict.status == "not attempted":
        lines = [
            f"{id}   not attempted. The chapter goes on with the course's version.",
            f'Write your own in the cell above and run both cells. hint("{id}") helps.',
        ]
        return Message("open", lines)
    counts = f"{verdict.right} of {verdict.total} cases"
    printed = _printed(verdict.printed)
    if verdict.passed:
        points = verdict.exercise.points
        title = f"{id}   passed, {counts}, {points} point{'s' if points > 1 else ''}"
        return Message("pass", [title, *printed])
    lines = [f"{id}   not yet, {counts}", *verdict.lines, *printed]
    lines.append(
        f"The rest of the chapter goes on with the course's version. "
        f'hint("{id}") has three hints. The same cases again: seed={verdict.seed}.'
    )
    return Message("fail", lines)


def _printed(text: str) -> list[str]:
    lines = text.splitlines()
    more = ["..."] if len(lines) > 8 else []
    return ["It printed:", *(f"  {line[:100]}" for line in lines[:8]), *more] if lines else []


def _show_problem(exercise: Exercise, why: str) -> None:
    line = "The rest of the chapter goes on with the course's version."
    show(Message("fail", [f"{exercise.id}   not checked", why, line]))


def _record(verdict: Verdict, text: str) -> None:
    exercise = verdict.exercise
    try:
        if verdict.passed:
            path = answers_folder() / exercise.chapter / f"{exercise.name}.py"
            write_whole(path, text)
        if verdict.status == "not attempted":
            store.note(exercise.id, skipped=store.once_more)
        else:
            facts: dict[str, Any] = {"attempts": store.once_more}
            if verdict.passed:
                now = time.strftime("%Y-%m-%d %H:%M:%S")
                facts["passed"] = lambda first: first or now
            store.note(exercise.id, **facts)
    except OSError as error:
        show(Message("note", [f"This result could not be saved: {error.strerror or error}."]))


def mine(id: str) -> Any:
    """The reader's own answer to an exercise if it passed, else the course's, said in one line.

    Raises ValueError when there is no such exercise: nothing could be returned.
    """
    exercise = get(id)
    try:
        path = answers_folder() / exercise.chapter / f"{exercise.name}.py"
        text = path.read_bytes()
    except FileNotFoundError:
        show(Message("note", [f"{id}: the course's version (yours is used once it passes)"]))
        return solution(id)
    except OSError as error:
        why = f"your saved answer could not be read ({error.strerror or error})"
        show(Message("note", [f"{id}: {why}. The course's version is used"]))
        return solution(id)
    names = fresh(exercise.chapter, without=exercise.name)
    try:
        run_text(text.decode("utf-8"), str(path), names)
        answer = names[exercise.name]
    except (Exception, SystemExit) as error:
        why = f"your saved answer does not run ({type(error).__name__})"
        with contextlib.suppress(OSError):
            why += f"; kept as {set_aside(path).name}"
        show(Message("note", [f"{id}: {why}. The course's version is used"]))
        return solution(id)
    show(Message("note", [f"{id}: your own answer"]))
    return answer
