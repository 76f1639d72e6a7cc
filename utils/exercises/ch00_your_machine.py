"""Specifications of chapter 00, your machine: rates from sizes and seconds, and the quiz."""

from __future__ import annotations

from fractions import Fraction

from ._ch00_peaks import NATIVE_BF16, UTILISATION
from ._ch00_timing import LAUNCH_OVERHEAD, MEDIAN_TIME
from .spec import Exercise, Mistake, Question, Quiz


def _matmul_rate(m, n, k, seconds):
    """Two FLOPs for each of m * n * k multiply-adds, over the seconds."""
    return Fraction(2 * m * n * k) / Fraction(seconds)


MATMUL_RATE = Exercise(
    id="00.matmul_rate",
    points=1,
    minutes=5,
    difficulty=1,
    teaches="FLOP/s of a matrix product: two operations for each multiply-add",
    cases=lambda rng: [
        (1024, 1024, 1024, 0.5),
        (1, 4096, 1000, 0.001),
        (131072, 53248, 16384, 1.0),
        (1, 3, 2, 7.0),  # less than two operations a second: rounding shows
        (64, 32, 128, 3e-6),
        *((*rng.integers(2, 5000, 3), float(rng.uniform(1e-5, 0.4))) for _ in range(5)),
    ],
    expect=_matmul_rate,
    tolerance=1e-9,
    mistakes=[
        Mistake(
            lambda m, n, k, seconds: m * n * k / seconds,
            "A multiply-add is two operations, one multiplication and one addition: 2·m·n·k.",
        ),
        Mistake(
            lambda m, n, k, seconds: 2 * m**3 / seconds,
            "2·m³ holds for a square product only. In general it is 2·m·n·k.",
        ),
        Mistake(
            lambda m, n, k, seconds: 2 * m * n / seconds,
            "This counts one multiply-add for each output. Each output sums k products.",
        ),
        Mistake(
            lambda m, n, k, seconds: m * n * (2 * k - 1) / seconds,
            "You count k - 1 additions for k products, which is exact on paper. Everyone counts "
            "2·k, because a multiply-add is one instruction that also adds the first product to 0.",
        ),
        Mistake(
            lambda m, n, k, seconds: 2 * m * n * k / seconds / 1e9,
            "This is in GFLOP/s. Return FLOP/s; prefixes are for printing.",
        ),
        Mistake(
            lambda m, n, k, seconds: 2 * m * n * k * seconds,
            "A rate is work divided by time. You multiplied.",
        ),
    ],
    hints=[
        "How many products does one number of the output sum, and how many numbers are there?",
        "m·n outputs, k multiply-adds each, two operations a multiply-add. Divide by the seconds.",
        "2 * m * n * k / seconds",
    ],
)


def _copy_bandwidth(n_elements, bytes_per_element, seconds):
    """Each element is read once and written once; a GB is 10^9 bytes."""
    return Fraction(2 * n_elements * bytes_per_element) / Fraction(seconds) / 10**9


COPY_BANDWIDTH = Exercise(
    id="00.copy_bandwidth",
    points=1,
    minutes=6,
    difficulty=1,
    teaches="a copy moves every byte twice, and a GB is 10^9 bytes",
    cases=lambda rng: [
        (10**9, 4, 2.0),
        (1, 8, 1e-6),
        (3 * 10**10, 2, 0.05),
        (2**20, 1, 0.25),
        *(
            (rng.integers(1000, 10**8), rng.choice([1, 2, 4, 8]), float(rng.uniform(1e-4, 0.4)))
            for _ in range(4)
        ),
    ],
    expect=_copy_bandwidth,
    tolerance=1e-9,
    mistakes=[
        Mistake(
            lambda n_elements, bytes_per_element, seconds: (
                n_elements * bytes_per_element / seconds / 1e9
            ),
            "Only one direction is counted. A copy reads every byte and writes it too.",
        ),
        Mistake(
            lambda n_elements, bytes_per_element, seconds: (
                16 * n_elements * bytes_per_element / seconds / 1e9
            ),
            "These are gigabits per second. `bytes_per_element` counts bytes already.",
        ),
        Mistake(
            lambda n_elements, bytes_per_element, seconds: (
                2 * n_elements * bytes_per_element / seconds / 2**30
            ),
            "This is GiB/s, with 2^30 bytes. A GB is 10^9 bytes, 7% less.",
        ),
        Mistake(
            lambda n_elements, bytes_per_element, seconds: 2 * n_elements / seconds / 1e9,
            "These are elements per second. Each has `bytes_per_element` bytes.",
        ),
        Mistake(
            lambda n_elements, bytes_per_element, seconds: (
                2 * n_elements * bytes_per_element / seconds
            ),
            "This is in bytes per second. Return GB per second, 10^9 bytes.",
        ),
        Mistake(
            lambda n_elements, bytes_per_element, seconds: (
                3 * n_elements * bytes_per_element / seconds / 1e9
            ),
            "A CPU may read the target before it writes it, but a copy asks for two transfers: "
            "one read, one write. Count what is asked for.",
        ),
    ],
    hints=[
        "How often does one byte cross the memory bus when it is copied?",
        "Bytes: elements times their size, times 2. Divide by the seconds, then by 10^9.",
        "2 * n_elements * bytes_per_element / seconds / 1e9",
    ],
)

EXERCISES = [
    MATMUL_RATE,
    MEDIAN_TIME,
    COPY_BANDWIDTH,
    LAUNCH_OVERHEAD,
    UTILISATION,
    NATIVE_BF16,
]

QUIZ = Quiz(
    "00.recall",
    [
        Question(
            "A (2, 3) matrix times a (3, 4) matrix. What shape is the result?",
            [
                ("(2, 4)", "The inner 3 is summed over; the outer sizes stay."),
                ("(3, 3)", "That is what stands inside, and it is summed away. The outer stay."),
                ("(4, 2)", "The order stays: rows of the first, columns of the second."),
                ("(2, 3, 4)", "There are 2 · 3 · 4 products, but the 3 add up to one number."),
            ],
            correct=0,
        ),
        Question(
            "A chip does 50 teraFLOP/s. How long do 10^12 operations take at that rate?",
            [
                ("50 seconds", "Divide the work by the rate, not the reverse."),
                ("20 milliseconds", "Tera is 10^12: 10^12 / (50 · 10^12) = 0.02 s."),
                ("20 microseconds", "That would be 10^9 operations. Tera is 10^12."),
            ],
            correct=1,
        ),
        Question(
            "A thousand million numbers of 2 bytes each: how many GB?",
            [
                ("0.25 GB", "You divided by 8, as if they were 2 bits each."),
                ("1.86 GB", "That is GiB, of 2^30 bytes. Here a GB is 10^9 bytes."),
                ("2 GB", "10^9 numbers times 2 bytes, and a GB is 10^9 bytes."),
            ],
            correct=2,
        ),
    ],
)
