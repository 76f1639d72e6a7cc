"""A time limit that also stops a loop which never touches memory or calls anything.

A second thread waits; when time is up it makes Python raise TimeUp in the kernel's thread, between
two bytecodes. TimeUp derives from BaseException, so that no `except Exception` swallows it.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Iterator
from contextlib import contextmanager


class TimeUp(BaseException):
    """Raised inside the kernel when its time is up."""


@contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Raise TimeUp in this thread if the block takes longer than `seconds`."""
    thread, lock, over = ctypes.c_ulong(threading.get_ident()), threading.Lock(), False
    raise_in = ctypes.pythonapi.PyThreadState_SetAsyncExc

    def ring() -> None:
        with lock:
            if not over:
                raise_in(thread, ctypes.py_object(TimeUp))

    timer = threading.Timer(min(seconds, threading.TIMEOUT_MAX), ring)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        # One that was set but not yet raised comes here, at the latest when the lock is taken.
        # Setting None instead would keep CPython 3.11 looking for it at every bytecode, for ever.
        timer.cancel()
        with lock:
            over = True
