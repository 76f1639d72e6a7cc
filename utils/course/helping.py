"""hint and reveal: help in four steps. Each is noted in the progress file."""

from __future__ import annotations

from utils.exercises import get
from utils.exercises.namespace import solution_text

from . import store
from .output import Message, show

_shown: dict[str, int] = {}  # by this process, should nothing be kept on the disk


def hint(id: str) -> None:
    """Show the next of the exercise's three hints: a question, an approach, almost the code.

    Hints already seen are shown again above the new one.
    """
    try:
        exercise = get(id)
    except ValueError as error:
        show(Message("fail", [str(error)]))
        return

    def next_one(noted: int | None) -> int:
        return min(3, max(noted or 0, _shown.get(id, 0)) + 1)

    seen = _shown[id] = store.note(id, hints=next_one)["hints"]
    lines = [f"{id}   hint {seen} of 3"]
    lines += [f"{number}. {text}" for number, text in enumerate(exercise.hints[:seen], 1)]
    if seen == 3:
        lines.append(f'That was the last one. reveal("{id}") shows the solution.')
    show(Message("note", lines))


def reveal(id: str) -> None:
    """Show the course's solution. Try the three hints first: you remember what you found."""
    try:
        get(id)
    except ValueError as error:
        show(Message("fail", [str(error)]))
        return
    store.note(id, revealed=store.once_more)
    show(Message("note", [f"{id}   the course's solution"], code=solution_text(id)))
