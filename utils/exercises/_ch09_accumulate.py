"""Chapter 09: sums in a narrow accumulator."""

from __future__ import annotations

import numpy as np

from utils.arithmetic.formats import round_nearest

from .spec import Exercise, Mistake


def _accumulate(values, chunk):
    """Every addition rounded by the pure-Python format, chunk totals in float32."""
    total = 0.0
    for start in range(0, len(values), chunk):
        running = 0.0
        for value in values[start : start + chunk].tolist():
            running = round_nearest(running + value, "FP16")
        total = round_nearest(total + running, "FP32")
    return total


def _accumulate_like(inner=np.float16, outer=np.float32, restart=True, last=True, chunked=True):
    def answer(values, chunk):
        chunk = chunk if chunked else len(values)
        total, running = outer(0), inner(0)
        for start in range(0, len(values), chunk):
            part = values[start : start + chunk]
            if len(part) < chunk and not last:
                break
            running = inner(0) if restart else running
            for value in part:
                running = inner(running + inner(value))
            total = outer(total + outer(running))
        return float(total)

    return answer


def _sums(rng):
    def case(n, chunk, low=0.0, high=1.0):
        return rng.uniform(low, high, n).astype(np.float16), chunk

    return [
        (np.full(3000, 1.0, np.float16), 3000),
        (np.full(3000, 1.0, np.float16), 128),
        case(3000, 3000, 0.2, 1.4),
        case(3000, 100, 0.5, 2.5),
        case(1000, 1, 1.0, 4.0),
        case(777, 64, -1.0, 1.0),
        case(5, 8),
        case(1, 1),
        (np.repeat(np.array([1000, 2.5e-5], np.float16), [1, 600]), 1),
    ]


ACCUMULATE = Exercise(
    id="09.accumulate",
    points=2,
    minutes=10,
    difficulty=2,
    teaches="a narrow sum stalls; short narrow sums in a wide total do not",
    cases=_sums,
    expect=_accumulate,
    tolerance=1e-6,
    mistakes=[
        Mistake(
            _accumulate_like(inner=np.float32),
            "The running sum is float16: round it after every addition. You added in a wider "
            "format, which never stalls.",
        ),
        Mistake(
            lambda values, chunk: float(np.float16(values.astype(np.float64).sum())),
            "You rounded once, at the end. An accumulator in float16 is rounded after every "
            "addition.",
        ),
        Mistake(
            _accumulate_like(chunked=False),
            "All values went into one float16 accumulator. After each chunk, move it to the "
            "float32 total and start again at 0.",
        ),
        Mistake(
            _accumulate_like(outer=np.float16),
            "The total of the chunks is float32. In float16 it stalls like before.",
        ),
        Mistake(
            _accumulate_like(outer=np.float64),
            "The total of the chunks is float32, rounded after every addition. You kept it wider.",
        ),
        Mistake(
            _accumulate_like(restart=False),
            "After a chunk the float16 accumulator starts again at 0, else its content is counted "
            "twice.",
        ),
        Mistake(
            _accumulate_like(last=False),
            "The last chunk may be shorter than the others. It counts too.",
        ),
    ],
    hints=[
        "Two sums live side by side. Which is rounded to float16, and when does it start again?",
        "For each chunk: running = np.float16(0), then running = np.float16(running + value) for "
        "every value. After the chunk add it to a np.float32 total.",
        "for start in range(0, len(values), chunk): running = np.float16(0); "
        "for v in values[start:start + chunk]: running = np.float16(running + v); "
        "total = np.float32(total + running)",
    ],
)
