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
    path = answers_folder() / "progress.json"
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        if not all(isinstance(found.get(part, {}), dict) for part in EMPTY):
            raise ValueError("not a progress file")
        return {part: found.get(part, {}) for part in EMPTY}
    except FileNotFoundError:
        pass
    except (ValueError, AttributeError):
        aside = set_aside(path)
        print(f"Your progress file could not be read. It is kept as {aside.name}, a new one starts")
    return {part: {} for part in EMPTY}


@contextlib.contextmanager
def change() -> Iterator[dict[str, Any]]:
    """Read, let the caller change, and replace the file, alone. If that can't be, it is said."""
    from filelock import FileLock

    path = answers_folder() / "progress.json"
    lock = FileLock(path.with_suffix(".lock"))
    problem = None
    with contextlib.ExitStack() as alone:
        try:
            alone.enter_context(lock.acquire(timeout=10))
        except OSError as error:  # a folder that cannot be written, or a lock that never opens
            problem = error
        data = read()
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
