"""Chapter 04: softmax of whole rows, and of a row that arrives in chunks."""

from __future__ import annotations

import math

import numpy as np

from ._ch04_drive import drive_chunks
from ._ch04_reference import normal, softmax64
from .spec import Exercise, Mistake
from .tensors import drive_tensors

INFINITE = float("inf")


def _rows(x):
    rows = [softmax64(row) for row in x.reshape(-1, x.shape[-1])]
    return np.array(rows).reshape(x.shape)


def _softmax_cases(rng):
    huge = normal(rng, 3, 6)
    huge[0] += 300
    huge[1, 2] = 90_000
    huge[2] -= 300
    masked = normal(rng, 4, 5)
    masked[1, 3:] = -INFINITE
    masked[2, :4] = -INFINITE
    return [
        (normal(rng, 4, 7),),
        (normal(rng, 1, 1),),
        (normal(rng, 6, 6),),
        (normal(rng, 2, 3, 5, 8),),
        (normal(rng, int(rng.integers(2, 40)), int(rng.integers(2, 40))) * 3,),
        (huge,),
        (masked,),
        (normal(rng, 5, 9, dtype=np.float64),),
        (normal(rng, 0, 5),),
    ]


def _softmax_like(shift, axis=-1):
    def answer(x):
        raised = (x - shift(x)).exp()
        return raised / raised.sum(axis, keepdim=True)

    return answer


def _row_max(x):
    return x.amax(-1, keepdim=True)


SOFTMAX = Exercise(
    id="04.softmax",
    points=2,
    minutes=5,
    difficulty=1,
    teaches="a shift of the whole row changes nothing but whether exp overflows",
    cases=_softmax_cases,
    expect=_rows,
    drive=drive_tensors,
    tolerance=5e-5,
    mistakes=[
        Mistake(
            _softmax_like(lambda x: 0),
            "exp of a large score overflows. Subtract the row's maximum first: the shift cancels "
            "in the quotient.",
        ),
        Mistake(
            _softmax_like(_row_max, axis=0),
            "You summed along axis 0: the columns sum to one, the rows do not.",
        ),
        Mistake(
            _softmax_like(lambda x: x.max() if x.numel() else 0),
            "You subtracted the maximum of the whole tensor. In a row far below it every exp "
            "becomes zero, and 0 / 0 is left.",
        ),
        Mistake(
            lambda x: (x - _row_max(x)).exp(),
            "The division is missing: each row must sum to one.",
        ),
        Mistake(
            lambda x: (x - _row_max(x)) - (x - _row_max(x)).exp().sum(-1, keepdim=True).log(),
            "This is the logarithm of the softmax.",
        ),
    ],
    hints=[
        "What does a number added to the whole row do to exp(x) / sum(exp(x))?",
        "Take each row's maximum along the last axis with keepdim=True, subtract, exp, divide by "
        "the sum along the same axis.",
        "e = (x - x.amax(-1, keepdim=True)).exp(); e / e.sum(-1, keepdim=True)",
    ],
)


def _online(row, sizes):
    """Maximum and total of the whole row at once, in float64."""
    numbers = row.astype(np.float64)
    total = math.fsum(np.exp(numbers - numbers.max()))
    return {
        "maximum": float(numbers.max()),
        "total": total,
        "chunks kept": "a few at a time",
    }


def _online_cases(rng):
    rising = np.sort(normal(rng, 30) * 4)
    falling = np.sort(normal(rng, 30) * 4)[::-1].copy()
    hidden = normal(rng, 12)
    hidden[:4] = -INFINITE
    hidden[9] = -INFINITE
    return [
        (normal(rng, 12), [4, 4, 4]),
        (normal(rng, 1), [1]),
        (rising, [10, 10, 10]),
        (falling, [10, 10, 10]),
        (normal(rng, 23) - 200, [5, 5, 5, 5, 3]),
        (normal(rng, 20, dtype=np.float64) * 2 + 1000, [7, 6, 7]),
        (hidden, [4, 4, 4]),
        (np.array([-INFINITE, -5000, -INFINITE], np.float32), [1, 1, 1]),
        (normal(rng, 256 * 60) * 3, [256] * 60),
        (normal(rng, 9, dtype=np.float64), [1] * 9),
    ]


def _online_like(factor=lambda old, new: math.exp(old - new), start=-INFINITE, own=False):
    """A running maximum and total. own: each chunk's exponentials are of its own maximum."""

    def answer(chunks):
        maximum, total = start, 0.0
        for chunk in chunks:
            new = max(maximum, float(chunk.max()))
            if new > -INFINITE:
                shift = float(chunk.max()) if own else new
                added = float((chunk - shift).exp().sum()) if shift > -INFINITE else 0.0
                total = total * factor(maximum, new) + added
            maximum = new
        return maximum, total

    return answer


def _all_at_once(chunks):
    kept = list(chunks)
    maximum = max(float(chunk.max()) for chunk in kept)
    return maximum, sum(float((chunk - maximum).exp().sum()) for chunk in kept)


def _clipped(old, new):
    return math.exp(min(new - old, 700.0)) if old > -INFINITE else 0.0


def _no_shift(chunks):
    maximum, total = -INFINITE, 0.0
    for chunk in chunks:
        maximum, total = max(maximum, float(chunk.max())), total + float(chunk.exp().sum())
    return maximum, total


def _skips_nothing(chunks):
    maximum, total = -INFINITE, 0.0
    for chunk in chunks:
        new = max(maximum, float(chunk.max()))
        total = total * math.exp(maximum - new if maximum != new else 0.0)
        total += float((chunk - new).exp().sum())
        maximum = new
    return maximum, total


ONLINE_SOFTMAX = Exercise(
    id="04.online_softmax",
    points=3,
    minutes=8,
    difficulty=3,
    teaches="a sum over exponentials can be corrected when a larger maximum turns up",
    cases=_online_cases,
    expect=_online,
    drive=drive_chunks,
    tolerance=5e-5,
    mistakes=[
        Mistake(
            _online_like(factor=lambda old, new: 1.0),
            "The old total was summed with the old maximum. When the maximum rises, multiply the "
            "total by exp(old - new) first.",
        ),
        Mistake(
            _online_like(factor=_clipped),
            "You multiplied by exp(new - old), which makes the total grow. A larger maximum makes "
            "old terms smaller: exp(old - new).",
        ),
        Mistake(
            _online_like(own=True),
            "You subtracted each chunk's own maximum from it. The running maximum, this chunk "
            "included, is what all terms must share.",
        ),
        Mistake(
            _online_like(start=0.0),
            "The running maximum started at 0, which is too high for a row of negative scores. "
            "Start at -infinity.",
        ),
        Mistake(
            _no_shift,
            "You summed exp of the bare scores. The total is of exp(score - maximum), and a bare "
            "exp overflows.",
        ),
        Mistake(
            _skips_nothing,
            "A chunk may be all -infinity. Then -infinity minus -infinity is NaN: skip it.",
        ),
        Mistake(
            _all_at_once,
            "The numbers are right, but you kept every chunk until the end. Use each as it comes "
            "and let it go.",
        ),
    ],
    hints=[
        "After three chunks you know a maximum and a total. What is wrong with that total once "
        "the fourth chunk has a larger maximum, and by which factor?",
        "total = total · exp(old - new) + sum of exp(chunk - new). Before the first chunk: "
        "maximum -infinity, total 0. While the maximum is still -infinity, go on.",
        "new = max(m, chunk.max().item()); skip if it is -inf; "
        "total = total * math.exp(m - new) + (chunk - new).exp().sum().item(); m = new",
    ],
)
