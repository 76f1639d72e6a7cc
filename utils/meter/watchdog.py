"""A time limit that also stops a loop which never touches memory or calls anything.

A second thread waits; when time is up it makes Python raise TimeUp in the kernel's thread, between
two bytecodes. TimeUp derives from BaseException, so that no `except Exception` swallows it.
Seconds are those this process computed, so that a busy machine fails no kernel that is right.
"""

from __future__ import annotations

import ctypes
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

MOST_WAITING = 10  # times the limit, by the clock on the wall, for a process that computes nothing


class TimeUp(BaseException):
    """Raised inside the kernel when its time is up."""


@contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Raise TimeUp in this thread once the block has computed for `seconds`."""
    thread, over = ctypes.c_ulong(threading.get_ident()), threading.Event()
    lock = threading.Lock()
    computed, begun = time.process_time(), time.monotonic()

    def watch() -> None:
        left = seconds
        while left > 0 and time.monotonic() - begun < MOST_WAITING * seconds:
            if over.wait(min(max(left, 0.02), threading.TIMEOUT_MAX)):
                return
            left = seconds - (time.process_time() - computed)
        with lock:
            if not over.is_set():
                ctypes.pythonapi.PyThreadState_SetAsyncExc(thread, ctypes.py_object(TimeUp))

    threading.Thread(target=watch, daemon=True).start()
    try:
        yield
    finally:
        # A TimeUp that was set but not yet raised comes here, at the latest with the lock. Setting
        # None in its place would keep CPython 3.11 looking for it at every bytecode, for ever.
        with lock:
            over.set()
