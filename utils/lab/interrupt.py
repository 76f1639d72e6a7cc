"""Stop a long loop between two steps, never inside one."""

import contextlib
import signal
import threading
from collections.abc import Callable, Iterator


@contextlib.contextmanager
def deferred_interrupt() -> Iterator[Callable[[], bool]]:
    """Inside, the first interrupt (Ctrl-C, or Jupyter's stop button) is noted instead of raised.

    Gives a function that says whether one was noted. A step that is interrupted halfway would
    leave the optimizer ahead of the weights. A second interrupt raises at once. Only the main
    thread receives interrupts; in another one this does nothing.
    """
    noted = False

    def note(number, frame):
        nonlocal noted
        if noted:
            raise KeyboardInterrupt
        noted = True

    if threading.current_thread() is not threading.main_thread():
        yield lambda: False
        return
    before = signal.signal(signal.SIGINT, note)
    try:
        yield lambda: noted
    finally:
        signal.signal(signal.SIGINT, before)
