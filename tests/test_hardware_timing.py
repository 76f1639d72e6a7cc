"""Timing: what is called, how often, and what is counted. A fake clock, so no real seconds."""

import pytest

from utils.hardware import median_time, time_samples, timing


class Clock:
    """Stands in for the time module. Work moves it."""

    def __init__(self):
        self.now, self.calls = 0.0, 0

    def perf_counter(self):
        return self.now

    def work(self, seconds):
        def function(*args):
            self.calls += 1
            self.now += seconds(self.calls) if callable(seconds) else seconds

        return function


@pytest.fixture
def clock(monkeypatch):
    clock = Clock()
    monkeypatch.setattr(timing, "time", clock)
    return clock


def test_the_first_calls_are_not_counted(clock):
    slow_start = clock.work(lambda call: 5.0 if call <= 2 else 0.01)
    assert time_samples(slow_start, repeats=3) == pytest.approx([0.01] * 3)
    assert clock.calls == 2 + 3


def test_a_quick_function_is_timed_in_blocks_and_reported_per_call(clock):
    samples = time_samples(clock.work(1e-6), repeats=4)
    assert samples == pytest.approx([1e-6] * 4)
    assert clock.calls == 2 + 4 * 2000


def test_at_least_five_samples_and_at_least_the_time_asked_for(clock):
    assert len(time_samples(clock.work(0.5), min_seconds=0.1)) == 5
    assert len(time_samples(clock.work(0.05), min_seconds=1.0)) in (20, 21)


def test_a_slow_function_is_stopped(clock):
    assert len(time_samples(clock.work(6.0), min_seconds=0.1)) == 2
    assert len(time_samples(clock.work(60.0), repeats=7)) == 1


def test_samples_are_capped(clock):
    assert len(time_samples(clock.work(0.003), min_seconds=9.9)) == timing.MOST_SAMPLES


def test_the_median_ignores_an_outlier(clock):
    assert median_time(clock.work(lambda call: 3.0 if call == 5 else 0.1), repeats=5) == (
        pytest.approx(0.1)
    )


def test_arguments_are_passed_on(clock):
    seen = []
    median_time(lambda *args: (seen.append(args), clock.work(1)()), 2, "b", repeats=1)
    assert set(seen) == {(2, "b")}


def test_every_sample_is_synchronised(clock, monkeypatch):
    """On a GPU a call returns at once and the work is done later: the clock must wait for it."""
    queue = []
    monkeypatch.setattr(timing, "synchronise", lambda: clock.work(sum(queue))() or queue.clear())
    assert median_time(lambda: queue.append(0.25), repeats=5) == pytest.approx(0.25)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"function": 3.0}, "function=3.0: expected something to call"),
        ({"repeats": 0}, "repeats=0"),
        ({"repeats": 2.5}, "repeats=2.5"),
        ({"min_seconds": -1}, "min_seconds=-1"),
        ({"max_seconds": 0}, "max_seconds=0"),
    ],
)
def test_wrong_arguments(arguments, sentence):
    with pytest.raises(ValueError, match=sentence):
        time_samples(**{"function": print, **arguments})


def test_an_error_inside_is_passed_on(clock):
    with pytest.raises(ZeroDivisionError):
        median_time(lambda: 1 / 0)
