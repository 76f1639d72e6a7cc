"""The saved profile of this machine: read with suspicion, written whole, by one at a time."""

import contextlib
import json
import os
import tempfile
from collections.abc import Callable
from pathlib import Path

from utils.hardware.machine import FORMAT, Machine


@contextlib.contextmanager
def alone(file: Path, progress: Callable):
    """A second notebook waits here: two probes at once would measure each other."""
    from filelock import FileLock, Timeout

    lock = FileLock(file)
    try:
        try:
            lock.acquire(timeout=0.1)
        except Timeout:
            progress("Another notebook is measuring this machine. Waiting for its result.")
            lock.acquire()
    except (OSError, NotImplementedError):  # a folder that can't be written, or can't lock
        yield
        return
    try:
        yield
    finally:
        lock.release()


def read(file: Path, progress: Callable) -> dict | None:
    """The saved dict, or None without a file. One that is no machine is set aside and named."""
    try:
        saved = json.loads(file.read_text(encoding="utf-8"))
        if saved["format"] == FORMAT:
            Machine.from_json(saved)
        return saved
    except FileNotFoundError:
        return None
    except (ValueError, KeyError, TypeError, AttributeError):
        aside = _free_name(file)
        os.replace(file, aside)
        progress(f"{file.name} could not be read. It is now {aside.name}, in the same folder.")
        return None


def _free_name(file: Path) -> Path:
    number = 1
    while (aside := file.with_name(f"{file.stem}.corrupt-{number}{file.suffix}")).exists():
        number += 1
    return aside


def write(file: Path, saved: dict) -> None:
    """All of it or nothing: written beside, then renamed."""
    handle, name = tempfile.mkstemp(dir=file.parent, prefix="machine-", suffix=".tmp")
    try:
        with open(handle, "w", encoding="utf-8") as out:
            json.dump(saved, out, indent=1)
        os.replace(name, file)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
