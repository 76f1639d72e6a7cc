"""Specifications of chapter 03, the roofline. More are in the _ch03 files beside it."""

from __future__ import annotations

import math
from fractions import Fraction

from ._ch03_decoding import DECODING
from ._ch03_upgrade import BIGGER_OR_BETTER_FED
from .spec import Exercise, Mistake, Question, Quiz


def _intensity(m, n, k, bytes_per_element):
    """FLOP per byte of a product that touches each of its three matrices once."""
    return Fraction(2 * m * n * k, (m * k + k * n + m * n) * bytes_per_element)


ARITHMETIC_INTENSITY = Exercise(
    id="03.arithmetic_intensity",
    points=2,
    minutes=6,
    difficulty=1,
    teaches="a product reads both inputs and writes its output, and a multiply-add is two FLOPs",
    cases=lambda rng: [
        (1, 4096, 4096, 2),
        (64, 4096, 4096, 2),
        (1, 1, 1, 4),
        (100_000, 16_384, 53_248, 1),
        *((*rng.integers(1, 5000, 3), rng.choice([1, 2, 4])) for _ in range(4)),
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
            lambda m, n, k, size: 2 * m * n * k / (k * n * size),
            "You counted the weights only. The rows that come in and go out move too.",
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


def _attainable(intensity, peak_flops_per_s, bytes_per_s):
    """The lower of two rates, from the times that one byte and its FLOPs take."""
    intensity, peak, slope = map(Fraction, (intensity, peak_flops_per_s, bytes_per_s))
    seconds_per_byte = max(1 / slope, intensity / peak)
    return intensity / seconds_per_byte


ATTAINABLE = Exercise(
    id="03.attainable",
    points=1,
    minutes=4,
    difficulty=1,
    teaches="the lower of the two limits holds, and they overlap",
    cases=lambda rng: [
        (62.0, 989.4e12, 3.35e12),
        (2000.0, 989.4e12, 3.35e12),
        (256.0, 2.0**48, 2.0**40),
        (0.0, 312e12, 2.039e12),
        (2.2, 2.5e12, 1e12),  # below a ridge that is no whole number
        (20.0, 1e12, 1e11),
        (700.0, 1e15, 5e11),
        (0.001, 100.0, 3.0),
        *(
            (float(ridge * factor), float(ridge * slope), float(slope))
            for ridge, slope, factor in zip(
                rng.uniform(5, 500, 4),
                rng.uniform(2e10, 8e12, 4),
                (0.01, 0.6, 1.7, 30),
                strict=True,
            )
        ),
    ],
    expect=_attainable,
    tolerance=1e-9,
    mistakes=[
        Mistake(
            lambda intensity, peak, slope: intensity * slope,
            "You forgot the flat part: no intensity lifts the rate above the peak.",
        ),
        Mistake(
            lambda intensity, peak, slope: peak,
            "You forgot the slope: below the ridge point bytes arrive too slowly for the peak.",
        ),
        Mistake(
            lambda intensity, peak, slope: peak * intensity * slope / (peak + intensity * slope),
            "You added the time of the bytes to the time of the FLOPs. They overlap: "
            "the longer of the two counts.",
        ),
        Mistake(
            lambda intensity, peak, slope: min(peak, slope / intensity if intensity else peak),
            "FLOP/byte times byte/s is FLOP/s: multiply intensity and bandwidth, don't divide.",
        ),
        Mistake(  # last: alone in some cases it looks like one of the others
            lambda intensity, peak, slope: max(peak, intensity * slope),
            "You took the higher limit. The lower one decides: use the smaller of the two.",
        ),
    ],
    hints=[
        "If each byte that arrives feeds `intensity` FLOPs, how many FLOPs a second can be fed?",
        "Fed: intensity · bytes_per_s. Done: at most the peak. Which of the two can be reached?",
        "min(peak_flops_per_s, intensity · bytes_per_s)",
    ],
)


def _elementwise(n_inputs, flops_per_element, bytes_per_element):
    moved = sum(bytes_per_element for _ in range(n_inputs)) + bytes_per_element
    return Fraction(flops_per_element, moved)


ELEMENTWISE_INTENSITY = Exercise(
    id="03.elementwise_intensity",
    points=1,
    minutes=4,
    difficulty=1,
    teaches="an elementwise op has an intensity below one whatever its size",
    cases=lambda rng: [
        (2, 1, 4),
        (1, 10, 2),
        (1, 1, 1),
        (3, 0, 2),
        *((rng.integers(1, 6), rng.integers(1, 30), rng.choice([1, 2, 4, 8])) for _ in range(5)),
        (4, 7, 8),
    ],
    expect=_elementwise,
    tolerance=1e-9,
    mistakes=[
        Mistake(
            lambda inputs, flops, size: flops / (inputs * size),
            "The result is written too: one element more to move.",
        ),
        Mistake(
            lambda inputs, flops, size: flops / (inputs + 1),
            "This is FLOPs per element moved. Multiply the elements by their size in bytes.",
        ),
        Mistake(
            lambda inputs, flops, size: flops / (2 * size),
            "You counted one input. The op reads n_inputs of them.",
        ),
        Mistake(
            lambda inputs, flops, size: 2 * flops / ((inputs + 1) * size),
            "flops_per_element counts FLOPs already: the two of a multiply-add are in it.",
        ),
        Mistake(
            lambda inputs, flops, size: (inputs + 1) * size / flops if flops else 0.5,
            "This is bytes per FLOP, the inverse.",
        ),
    ],
    hints=[
        "Take one element of the result. What was read for it, what is written?",
        "n_inputs elements are read, one is written. Each has bytes_per_element bytes.",
        "flops_per_element / ((n_inputs + 1) · bytes_per_element)",
    ],
)


def _softmax(rows, columns, bytes_per_element, fused):
    """Walk through the five steps: (elements read, elements written, FLOPs) of each."""
    many = rows * columns
    steps = [
        (many, rows, rows * (columns - 1)),
        (many + rows, many, many),
        (many, many, many),
        (many, rows, rows * (columns - 1)),
        (many + rows, many, many),
    ]
    moved = 2 * many if fused else sum(read + written for read, written, _ in steps)
    return Fraction(sum(flops for _, _, flops in steps), moved * bytes_per_element)


def _softmax_like(flops_per_row, elements):
    """An answer from FLOPs a row, f(columns), and elements moved, f(rows, columns, fused)."""

    def answer(rows, columns, size, fused):
        return rows * flops_per_row(columns) / (elements(rows, columns, fused) * size)

    return answer


SOFTMAX_INTENSITY = Exercise(
    id="03.softmax_intensity",
    points=2,
    minutes=8,
    difficulty=2,
    teaches="fusing changes the bytes and not the FLOPs",
    cases=lambda rng: [
        (4096, 4096, 2, True),
        (4096, 4096, 2, False),
        (1, 2, 4, False),
        (3, 1, 4, False),
        *(
            (*rng.integers(1, 300, 2), rng.choice([1, 2, 4]), fused)
            for fused in (True, True, False, False)
        ),
    ],
    expect=_softmax,
    tolerance=1e-9,
    mistakes=[
        Mistake(
            _softmax_like(lambda c: 5 * c - 2, lambda r, c, fused: 2 * r * c),
            "You counted the fused form both times. Unfused, each of the five steps reads its "
            "input from memory and writes its result there.",
        ),
        Mistake(
            _softmax_like(lambda c: 5 * c - 2, lambda r, c, fused: (2 if fused else 10) * r * c),
            "Five steps do not move 2·rows·columns each: the maximum and the sum write one number "
            "a row, and two steps read that number back.",
        ),
        Mistake(
            _softmax_like(lambda c: 5 * c - 2, lambda r, c, fused: (2 if fused else 8) * r * c),
            "Unfused, the maximum and the sum of each row go to memory and back: "
            "4·rows elements more.",
        ),
        Mistake(
            _softmax_like(
                lambda c: 3 * c, lambda r, c, fused: 2 * r * c if fused else 8 * r * c + 4 * r
            ),
            "The maximum and the sum are work too: columns - 1 operations each for every row.",
        ),
        Mistake(
            _softmax_like(
                lambda c: 5 * c, lambda r, c, fused: 2 * r * c if fused else 8 * r * c + 4 * r
            ),
            "A maximum or a sum over columns numbers takes columns - 1 operations: "
            "a row needs 5·columns - 2.",
        ),
    ],
    hints=[
        "Write the five steps under each other. What does each read, what does each write?",
        "FLOPs of a row: 5·columns - 2, fused or not. Fused, only the input and the result move. "
        "Unfused, two steps write one number a row and two steps read it back.",
        "elements = 2·rows·columns if fused else 8·rows·columns + 4·rows",
    ],
)


def _crossover(k, n, bytes_per_weight, bytes_per_activation, peak_flops_per_s, bytes_per_s):
    """Solve 2·B·k·n / peak = (k·n·w + B·(k + n)·a) / bandwidth for B, exactly."""
    flops_seconds = Fraction(2 * k * n) / Fraction(peak_flops_per_s)
    row_seconds = Fraction((k + n) * bytes_per_activation) / Fraction(bytes_per_s)
    weight_seconds = Fraction(k * n * bytes_per_weight) / Fraction(bytes_per_s)
    if flops_seconds <= row_seconds:
        return None
    return math.ceil(weight_seconds / (flops_seconds - row_seconds))


def _crossover_like(flops=2, row=lambda k, n, w, a: (k + n) * a, whole=math.ceil):
    def answer(k, n, w, a, peak, slope):
        gained = flops * k * n / peak - row(k, n, w, a) / slope
        return whole(k * n * w / slope / gained) if gained > 0 else None

    return answer


CROSSOVER_BATCH = Exercise(
    id="03.crossover_batch",
    points=3,
    minutes=10,
    difficulty=3,
    teaches="where reading the weights and multiplying by them take the same time",
    cases=lambda rng: [
        (4096, 4096, 2, 2, 989.4e12, 3.35e12),
        (4096, 4096, 1, 2, 989.4e12, 3.35e12),
        (8192, 28672, 1, 2, 312e12, 2.039e12),
        (1024, 1024, 2, 2, 2.0**48, 2.0**40),
        (1024, 1024, 2, 2, 2.0**49, 2.0**40),
        (256, 256, 2, 2, 989.4e12, 3.35e12),
        (4096, 4096, 4, 4, 178e9, 35e9),
        (4096, 8192, 0.5, 1, 1979e12, 3.35e12),
        *(
            (
                *rng.integers(1000, 20_000, 2),
                weight,
                4,
                float(slope * ridge),
                float(slope),
            )
            for weight, slope, ridge in zip(
                (1, 2, 4), rng.uniform(2e10, 8e12, 3), rng.uniform(20, 150, 3), strict=True
            )
        ),
    ],
    expect=_crossover,
    tolerance=0,
    mistakes=[
        Mistake(
            _crossover_like(row=lambda k, n, w, a: 0),
            "You counted the weights only. Each row also reads k activations and writes n.",
        ),
        Mistake(
            _crossover_like(row=lambda k, n, w, a: k * a),
            "Each row reads k activations and also writes n of them.",
        ),
        Mistake(
            _crossover_like(row=lambda k, n, w, a: (k + n) * w),
            "Activations have their own size: use bytes_per_activation for them.",
        ),
        Mistake(
            _crossover_like(flops=1),
            "A multiply-add is two FLOPs: one row costs 2·k·n.",
        ),
        Mistake(
            _crossover_like(whole=math.floor),
            "Round up: at the row below the crossover the bytes still take longer.",
        ),
        Mistake(
            lambda k, n, w, a, peak, slope: math.ceil(peak / slope),
            "This is the ridge point, in FLOP per byte. The batch is what reaches it: "
            "set the time of the bytes equal to the time of the FLOPs and solve for the rows.",
        ),
    ],
    hints=[
        "Write down two times for B rows: for the bytes, for the arithmetic. When are they equal?",
        "Bytes: k·n·bytes_per_weight once, and (k + n)·bytes_per_activation for each row. "
        "FLOPs: 2·k·n for each row. A row must add more arithmetic time than traffic time, "
        "else there is no crossover.",
        "gained = 2·k·n/peak - (k + n)·bytes_per_activation/bandwidth; None if gained <= 0, "
        "else ceil(k·n·bytes_per_weight/bandwidth / gained)",
    ],
)

EXERCISES = [
    ARITHMETIC_INTENSITY,
    ATTAINABLE,
    CROSSOVER_BATCH,
    ELEMENTWISE_INTENSITY,
    SOFTMAX_INTENSITY,
    *DECODING,
    BIGGER_OR_BETTER_FED,
]

QUIZ = Quiz(
    "03.recall",
    [
        Question(
            "Chapter 0: you time 200 equal calls, and other programs interrupt ten of them. Which "
            "summary do they move least?",
            [
                ("the mean", "Each long call adds to it. Ten of 20 times the length double it."),
                ("the median", "It does not notice until half of the calls are disturbed."),
                ("the largest", "That is one of the interrupted calls."),
            ],
            correct=1,
        ),
        Question(
            "Chapter 1: about how many FLOPs does one token cost in the forward pass of a dense "
            "model with N parameters?",
            [
                ("2N", "One multiply-add for each parameter, two FLOPs each."),
                ("N", "Each parameter takes part in a multiply-add, and that is two FLOPs."),
                ("6N", "That is training: the backward pass costs twice the forward pass."),
            ],
            correct=0,
        ),
        Question(
            "Chapter 2: how large are the weights of a model with 70 billion parameters in bf16?",
            [
                ("280 GB", "That is fp32, four bytes a parameter."),
                ("70 GB", "That is one byte a parameter. bf16 has two."),
                ("140 GB", "Two bytes a parameter. One 80 GB card does not hold them."),
            ],
            correct=2,
        ),
    ],
)
