"""Specifications of chapter 00: median_time, judged on a fake device, and launch_overhead."""

from __future__ import annotations

import statistics
from fractions import Fraction

import numpy as np

from .spec import Exercise, Mistake


class _FakeDevice:
    """A device and a clock made of plain numbers: no time passes, so a verdict is exact.

    run() costs the host `launch` seconds. The device then works for its own time, beside the host
    when `asynchronous`, else while the host waits. synchronize() waits until the device is done.
    The times repeat, so that it does not matter how often an answer warms up.
    """

    def __init__(self, work, first_extra, launch, asynchronous):
        self.work, self.first_extra = work, first_extra
        self.launch, self.asynchronous = launch, asynchronous
        self.now, self.device_done, self.calls = 100.0, 100.0, 0

    def run(self):
        seconds = self.work[self.calls % len(self.work)]
        seconds += self.first_extra if self.calls == 0 else 0
        self.calls += 1
        self.now += self.launch
        self.device_done = max(self.now, self.device_done) + seconds
        if not self.asynchronous:
            self.now = self.device_done

    def synchronize(self):
        self.now = max(self.now, self.device_done)

    def clock(self):
        return self.now


def _drive_median_time(answer, work, first_extra, launch, asynchronous, repeats):
    """The seconds an answer reports, the work it left unfinished, and how often it called run.

    Any warm-up will do, up to a few calls and as many again as are timed.
    """
    device = _FakeDevice(work, first_extra, launch, asynchronous)
    seconds = answer(device.run, device.synchronize, device.clock, repeats)
    asked = repeats < device.calls <= 2 * repeats + 5
    return {
        "seconds": seconds,
        "unfinished_seconds": max(0.0, device.device_done - device.now),
        "calls_of_run": "as asked" if asked else f"{device.calls} for {repeats} repeats",
    }


def _median_time(work, first_extra, launch, asynchronous, repeats):
    """What a right answer reports: each call costs its launch and its work; the middle one."""
    seconds = sorted(launch + w for w in work)[repeats // 2]
    return {"seconds": seconds, "unfinished_seconds": 0.0, "calls_of_run": "as asked"}


def _median_time_cases(rng):
    def one(repeats, asynchronous):
        work = rng.uniform(0.01, 0.03, repeats)
        if repeats > 1:
            work[rng.integers(repeats)] *= rng.uniform(20, 50)  # another program took the machine
        launch, first = rng.uniform(0.002, 0.005), rng.uniform(0.5, 2)
        rounded = [[round(float(w), 4) for w in work], round(first, 4), round(launch, 4)]
        return (*rounded, asynchronous, repeats)

    return [one(r, a) for r, a in [(1, True), (1, False), (3, True), (5, False), (7, True)]]


def _samples(run, synchronize, clock, repeats, *, warm_up=True, settle=True, wait=True):
    if warm_up:
        run()
        if settle:
            synchronize()
    samples = []
    for _ in range(repeats):
        start = clock()
        run()
        if wait:
            synchronize()
        samples.append(clock() - start)
    return samples


def _read_before_waiting(run, synchronize, clock, repeats):
    run()
    synchronize()
    samples = []
    for _ in range(repeats):
        start = clock()
        run()
        samples.append(clock() - start)
        synchronize()
    return statistics.median(samples)


def _naive(run, synchronize, clock, repeats):
    start = clock()
    run()
    return clock() - start


def _one_clock_around_all(run, synchronize, clock, repeats):
    run()
    synchronize()
    start = clock()
    for _ in range(repeats):
        run()
    synchronize()
    return (clock() - start) / repeats


MEDIAN_TIME = Exercise(
    id="00.median_time",
    points=3,
    minutes=15,
    difficulty=2,
    teaches="warm up, wait for the device before reading the clock, repeat, take the median",
    cases=_median_time_cases,
    expect=_median_time,
    drive=_drive_median_time,
    tolerance=1e-6,
    mistakes=[
        Mistake(
            _naive,
            "This is one reading of the first call, without waiting for the device: three of the "
            "four traps at once. Warm up, synchronize, repeat.",
        ),
        Mistake(
            lambda *a: statistics.median(_samples(*a, warm_up=False)),
            "The first call is among your samples. It also compiles, allocates and fills caches: "
            "call run once, and wait, before you read the clock.",
        ),
        Mistake(
            lambda *a: statistics.median(_samples(*a, wait=False)),
            "You never wait for the device after a call, so you timed the request and not the "
            "work. Call synchronize after run, before you read the clock again.",
        ),
        Mistake(
            _read_before_waiting,
            "You wait too late: the clock is read before synchronize. Wait first, then read.",
        ),
        Mistake(
            lambda *a: statistics.fmean(_samples(*a)),
            "This is the mean. One interrupted call moves it; the median does not notice.",
        ),
        Mistake(
            _one_clock_around_all,
            "One clock around all calls gives a mean, and on an asynchronous device the requests "
            "hide behind the work. Read the clock around each call, then take the median.",
        ),
        Mistake(
            lambda *a: min(_samples(*a)),
            "This is the fastest sample: what luck allows, not what you will get. "
            "Take the middle one.",
        ),
        Mistake(
            lambda *a: statistics.median(_samples(*a, settle=False)),
            "Your warm-up is still running when the first sample starts. "
            "Call synchronize after the warm-up too.",
        ),
        Mistake(
            lambda *a: sum(_samples(*a)),
            "This is the time of all calls together. One call's time is wanted.",
        ),
    ],
    hints=[
        "What must be finished before you read the clock the first time? And the second time?",
        "run() and synchronize() once. Then, `repeats` times: read the clock, run, synchronize, "
        "read the clock, keep the difference. Return the median of the differences.",
        "run(); synchronize(); then for each repeat: start = clock(); run(); synchronize(); "
        "samples.append(clock() - start). At the end: statistics.median(samples)",
    ],
)


def _launch_overhead(sizes, seconds):
    """Least squares from the normal equations, in exact fractions."""
    n = [Fraction(x) for x in sizes]
    t = [Fraction(y) for y in seconds]
    mean_n, mean_t = sum(n) / len(n), sum(t) / len(t)
    slope = sum((x - mean_n) * (y - mean_t) for x, y in zip(n, t, strict=True)) / sum(
        (x - mean_n) ** 2 for x in n
    )
    return [mean_t - slope * mean_n, 1 / slope]


def _launch_overhead_cases(rng):
    def one(count, noise):
        overhead, rate = 10 ** rng.uniform(-6, -4.5), 10 ** rng.uniform(8, 11)
        step = max(1, round(overhead * rate / 2))
        sizes = [step * i for i in range(1, count + 1)]
        scatter = 1 + noise * rng.uniform(-1, 1, count)
        seconds = (overhead + np.array(sizes) / rate) * scatter
        return sizes, [float(second) for second in seconds]

    exact = ([0, 1000, 4000], [2e-6, 3e-6, 6e-6])
    unsorted = ([4000, 1000, 3000, 1000, 2000], [6e-6, 3.2e-6, 4.1e-6, 2.9e-6, 4.4e-6])
    slow = ([1, 2, 3], [3.0, 5.0, 7.0])  # half a number a second
    below = ([1000, 2000, 4000], [0.8e-6, 2.1e-6, 4.3e-6])  # noise: the line starts below 0
    return [exact, unsorted, slow, below, one(3, 0), one(5, 0.02), one(8, 0.02), one(12, 0.03)]


def _slope(sizes, seconds):
    return float(1 / _launch_overhead(sizes, seconds)[1])


def _through_the_ends(sizes, seconds):
    rate = (sizes[-1] - sizes[0]) / (seconds[-1] - seconds[0])
    return [seconds[0] - sizes[0] / rate, rate]


LAUNCH_OVERHEAD = Exercise(
    id="00.launch_overhead",
    points=2,
    minutes=12,
    difficulty=2,
    teaches="a fixed cost and a rate hide in one set of timings; a straight line separates them",
    cases=_launch_overhead_cases,
    expect=_launch_overhead,
    tolerance=1e-6,
    mistakes=[
        Mistake(
            lambda sizes, seconds: [min(seconds), 1 / _slope(sizes, seconds)],
            "The smallest time is no overhead: it holds the work of that size too. "
            "Take the line's value at n = 0.",
        ),
        Mistake(
            lambda sizes, seconds: [0.0, sum(sizes) / sum(seconds)],
            "n divided by seconds gives the overhead to the rate, and leaves none. "
            "Fit both: seconds = overhead + n / rate.",
        ),
        Mistake(
            lambda sizes, seconds: [
                float(_launch_overhead(sizes, seconds)[0]),
                _slope(sizes, seconds),
            ],
            "The slope is seconds per element. The rate is its inverse, elements per second.",
        ),
        Mistake(
            lambda sizes, seconds: [float(x) for x in _launch_overhead(sizes, seconds)][::-1],
            "Both numbers are right, in the wrong order: the overhead first, then the rate.",
        ),
        Mistake(
            lambda sizes, seconds: [
                _slope(sizes, seconds),
                1 / float(_launch_overhead(sizes, seconds)[0]),
            ],
            "Slope and intercept are swapped: numpy.polyfit returns the slope first.",
        ),
        Mistake(
            _through_the_ends,
            "This line goes through the first and the last point only, so the noise of two "
            "samples decides. Let all points vote: least squares.",
        ),
        Mistake(
            lambda sizes, seconds: [statistics.fmean(seconds), 1 / _slope(sizes, seconds)],
            "The mean time holds the work of the mean size. Take the line's value at n = 0.",
        ),
    ],
    hints=[
        "Plot seconds by n. Where on that line is the overhead, and what is the slope's unit?",
        "Fit a straight line by least squares; numpy.polyfit(x, y, 1) returns slope and "
        "intercept. The intercept is the overhead; the rate is one over the slope.",
        "slope, intercept = np.polyfit(sizes, seconds, 1); return intercept, 1 / slope",
    ],
)
