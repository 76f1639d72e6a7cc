"""The reader's progress file: one JSON, written atomically under a lock.

Two notebooks may write at once: each change reads, changes and replaces the file while it holds
the lock. A file that cannot be read is set aside under another name and never overwritten.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from typing import Any

from utils import answers_folder
from utils.files import set_aside, write_whole

EMPTY: dict[str, Any] = {"exercises": {}, "predictions": {}, "quizzes": {}}


def read() -> dict[str, Any]:
    """What is stored now. A damaged file is set aside, said, and counts as empty."""
    try:
        return _load()
    except OSError as error:
        print(f"Your progress could not be read: {error.strerror or error}.")
        return _empty()


def _empty() -> dict[str, Any]:
    return {part: {} for part in EMPTY}


def _load() -> dict[str, Any]:
    """As `read`. Raises OSError where a file is there that can be neither read nor set aside."""
    path = answers_folder() / "progress.json"
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        if _whole(found):
            return _empty() | found
    except FileNotFoundError:
        return _empty()
    except (IsADirectoryError, RecursionError, ValueError):  # no UTF-8, no JSON
        pass
    aside = set_aside(path)
    print(f"Your progress file could not be read. It is kept as {aside.name}, a new one starts")
    return _empty()


def _whole(found: Any) -> bool:
    """Whether what was read has the shape that this file writes."""
    if not isinstance(found, dict) or not all(isinstance(found.get(p, {}), dict) for p in EMPTY):
        return False
    exercises, predictions, quizzes = (found.get(part, {}).values() for part in EMPTY)
    counts = ("attempts", "hints", "revealed", "skipped")
    return (
        all(isinstance(one, dict) for one in (*exercises, *predictions, *quizzes))
        and all(isinstance(one.get(name, 0), int) for one in exercises for name in counts)
        and all(isinstance(one.get("value"), int | float) for one in predictions)
    )


@contextlib.contextmanager
def change() -> Iterator[dict[str, Any]]:
    """Read, let the caller change, and replace the file, alone. If that can't be, it is said."""
    from filelock import FileLock

    path, problem, data = None, None, _empty()
    with contextlib.ExitStack() as alone:
        try:
            path = answers_folder() / "progress.json"
            alone.enter_context(FileLock(path.with_suffix(".lock")).acquire(timeout=10))
        except NotImplementedError:  # a file system without locks: go on without
            pass
        except OSError as error:  # a folder that cannot be written, or a lock that never opens
            problem = error
        try:
            data = _load()
        except OSError as error:  # what cannot be read is not overwritten either
            problem = problem or error
        yield data
        try:
            if not problem:
                write_whole(path, json.dumps(data, indent=1, sort_keys=True))
        except OSError as error:
            problem = error
    if problem:
        print(f"This could not be saved: {problem.strerror or problem}.")


def note(id: str, **facts: Any) -> dict[str, Any]:
    """Record facts about an exercise. A callable fact gets the old value (or None)."""
    with change() as data:
        record = data["exercises"].setdefault(id, {})
        for name, fact in facts.items():
            record[name] = fact(record.get(name)) if callable(fact) else fact
        return dict(record)


def once_more(count: int | None) -> int:
    """For `note`: add one to a count."""
    return (count or 0) + 1
