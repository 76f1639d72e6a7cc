"""Specifications of chapter 03, the roofline."""

from __future__ import annotations

from fractions import Fraction

from .spec import Exercise, Mistake, Question, Quiz


def _intensity(m, n, k, bytes_per_element):
    """FLOP per byte of a product that touches each of its three matrices once."""
    return Fraction(2 * m * n * k, (m * k + k * n + m * n) * bytes_per_element)


ARITHMETIC_INTENSITY = Exercise(
    id="03.arithmetic_intensity",
    points=2,
    minutes=8,
    difficulty=1,
    teaches="a product reads both inputs and writes its output, and a multiply-add is two FLOPs",
    cases=lambda rng: [
        (1, 4096, 4096, 2),
        (64, 4096, 4096, 2),
        (1, 1, 1, 4),
        *((*rng.integers(1, 5000, 3), rng.choice([1, 2, 4])) for _ in range(5)),
    ],
    expect=_intensity,
    tolerance=1e-9,
    mistakes=[
        Mistake(
            lambda m, n, k, size: m * n * k / ((m * k + k * n + m * n) * size),
            "A multiply-add is two FLOPs: the product does 2·m·n·k.",
        ),
        Mistake(
            lambda m, n, k, size: 2 * m * n * k / ((m * k + k * n) * size),
            "The output is written too: add m·n elements to the bytes.",
        ),
        Mistake(
            lambda m, n, k, size: 2 * m * n * k / (m * k + k * n + m * n),
            "This is FLOPs per element. Multiply the elements by their size in bytes.",
        ),
        Mistake(
            lambda m, n, k, size: (m * k + k * n + m * n) * size / (2 * m * n * k),
            "This is bytes per FLOP, the inverse.",
        ),
    ],
    hints=[
        "Which three matrices does the memory system see, and how often?",
        "FLOPs: each of the m·n outputs sums k products, two FLOPs each. "
        "Bytes: count the elements of all three matrices, times their size.",
        "(2·m·n·k) / ((m·k + k·n + m·n) · bytes_per_element)",
    ],
)

EXERCISES = [ARITHMETIC_INTENSITY]

QUIZ = Quiz(
    "03.recall",
    [
        Question(
            "How many FLOPs does one multiply-add count?",
            [
                ("One", "A multiplication and an addition are two operations."),
                ("Two", "One multiplication, one addition. Every count in this course does so."),
            ],
            correct=1,
        ),
    ],
)
