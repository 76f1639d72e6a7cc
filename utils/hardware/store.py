"""The saved profile of this machine: read with suspicion, by one at a time."""

import contextlib
import json
from collections.abc import Callable
from pathlib import Path

from utils.files import set_aside
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
        aside = set_aside(file)
        progress(f"{file.name} could not be read. It is now {aside.name}, in the same folder.")
        return None
