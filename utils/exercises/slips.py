"""Mistakes made from the course's own solution, by replacing some of its text."""

from __future__ import annotations

import functools
from typing import Any

from .namespace import fresh, run_text, solution_text

_fresh = functools.cache(fresh)


def made(id: str, slip: str, edits: dict[str, str]) -> Any:
    """The solution of exercise `id` after `edits`, each a text to replace and what with, in order.

    Raises ValueError where the solution does not hold a text to replace.
    """
    text = solution_text(id)
    for right, wrong in edits.items():
        if right not in text:
            raise ValueError(f"{slip}: the solution of {id} does not say {right!r}")
        text = text.replace(right, wrong)
    number, name = id.split(".")
    names = dict(_fresh(number))
    run_text(text, f"<{name} with {slip}>", names)
    return names[name]
