"""Timing that can be trusted: warm up, synchronise, repeat, take the median, show the spread."""

import statistics
import sys
import time
from collections.abc import Callable

BLOCK_SECONDS = 0.002
MOST_SAMPLES = 1000
FEWEST_REPEATS = 5


def median_time(
    function: Callable, *args, repeats: int | None = None, min_seconds: float = 0.2
) -> float:
    """Seconds that one call of function(*args) takes: the median of time_samples()."""
    samples = time_samples(function, *args, repeats=repeats, min_seconds=min_seconds)
    return statistics.median(samples)


def time_samples(
    function: Callable,
    *args,
    repeats: int | None = None,
    min_seconds: float = 0.2,
    max_seconds: float = 10.0,
) -> list[float]:
    """Seconds per call of function(*args), one number per sample.

    Two calls warm up: the first may compile, allocate and touch memory for the first time.
    Each sample ends with the GPU synchronised, else it would time the launch and not the work.
    A quick function is called several times a sample, so that a sample takes about 2 ms and
    neither the clock nor the synchronisation counts; each number is still for one call.

    Takes `repeats` samples if given. Else at least 5, and more until they add up to
    min_seconds, 1,000 at most. In both cases it stops after max_seconds with what it has.
    Raises ValueError for a wrong argument; an error inside function is passed on.
    """
    if not callable(function):
        raise ValueError(
            f"function={function!r}: expected something to call. Write median_time(f, x), not f(x)"
        )
    if repeats is not None and (not isinstance(repeats, int) or repeats < 1):
        raise ValueError(f"repeats={repeats!r}: expected a whole number of 1 or more, or None")
    if min_seconds < 0:
        raise ValueError(f"min_seconds={min_seconds!r}: expected 0 or more")
    if max_seconds <= 0:
        raise ValueError(f"max_seconds={max_seconds!r}: expected more than 0")

    _time_block(function, args, 1)
    estimate = _time_block(function, args, 1)
    calls = max(1, min(100_000, round(BLOCK_SECONDS / max(estimate, 1e-9))))
    samples: list[float] = []
    total = 0.0
    most = MOST_SAMPLES if repeats is None else repeats
    while total < max_seconds and len(samples) < most:
        if repeats is None and len(samples) >= FEWEST_REPEATS and total >= min_seconds:
            break
        seconds = _time_block(function, args, calls)
        samples.append(seconds / calls)
        total += seconds
    return samples


def synchronise() -> None:
    """Wait until the GPU has done what it was asked. Nothing to do on a CPU."""
    torch = sys.modules.get("torch")  # not imported: then nothing can be running on a GPU
    if torch is None:
        return
    if torch.cuda.is_initialized():
        torch.cuda.synchronize()
    if torch.backends.mps.is_available():
        torch.mps.synchronize()


def _time_block(function: Callable, args: tuple, calls: int) -> float:
    synchronise()
    start = time.perf_counter()
    for _ in range(calls):
        function(*args)
    synchronise()
    return time.perf_counter() - start
