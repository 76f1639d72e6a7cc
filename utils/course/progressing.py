"""progress: what the reader has done, chapter by chapter."""

from __future__ import annotations

from utils import show as shown
from utils.exercises import all_exercises

from . import store


def rows() -> list[dict[str, str | int]]:
    """One row an exercise: its state, attempts, hints, points reached and possible."""
    records = store.read()["exercises"]
    table = []
    for exercise in all_exercises():
        record = records.get(exercise.id, {})
        passed = bool(record.get("passed"))
        state = "passed" if passed else "tried" if record.get("attempts") else "open"
        table.append(
            {
                "exercise": exercise.id,
                "state": state + (", revealed" if record.get("revealed") else ""),
                "attempts": record.get("attempts", 0),
                "hints": record.get("hints", 0),
                "points": exercise.points if passed else 0,
                "of": exercise.points,
            }
        )
    return table


def progress() -> None:
    """Show every exercise with its state, and the points so far."""
    table = rows()
    done, of = sum(int(r["points"]) for r in table), sum(int(r["of"]) for r in table)
    passed = sum(str(r["state"]).startswith("passed") for r in table)
    caption = f"{passed} of {len(table)} exercises passed, {done} of {of} points"
    shown.table(table, caption=caption)
