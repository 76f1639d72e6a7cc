"""Chapter 09's linear layer in whole numbers, with a scale for each row."""

from __future__ import annotations

import numpy as np

from .spec import Exercise, Mistake
from .tensors import drive_tensors


def _int8_linear(x, w):
    """Row by row with whole numbers of Python's size."""

    def whole(rows):
        scales = [max(map(abs, row)) / 127 or 1.0 for row in rows]
        return [[round(v / s) for v in row] for row, s in zip(rows, scales, strict=True)], scales

    x_whole, x_scale = whole(x.astype(np.float64).tolist())
    w_whole, w_scale = whole(w.astype(np.float64).tolist())
    product = np.array(x_whole, dtype=np.int64) @ np.array(w_whole, dtype=np.int64).T
    return product * np.outer(x_scale, w_scale)


def _int8_like(x_dim=1, w_dim=1, whole=None, product=None, x_back=True, w_back=True, end=127):
    """The product with one thing changed. A dim of None: one scale for the tensor."""

    def answer(x, w):
        import torch

        def scale(t, dim):
            amax = t.abs().max().reshape(1, 1) if dim is None else t.abs().amax(dim, keepdim=True)
            return torch.where(amax > 0, amax / end, 1.0)

        x_scale, w_scale = scale(x, x_dim), scale(w, w_dim)
        rounding = whole or torch.round
        x8, w8 = rounding(x / x_scale).to(torch.int8), rounding(w / w_scale).to(torch.int8)
        y = (product or (lambda a, b: a.int() @ b.int().T))(x8, w8).float()
        y = y * x_scale if x_back else y
        return y * w_scale.T if w_back else y

    return answer


def _unrounded(x, w):
    return x @ w.T


def _int8_cases(rng):
    def tensor(rows, n):
        """Whole numbers of steps and up to 0.4 more, so that nobody meets a tie."""
        steps = rng.integers(-126, 127, (rows, n)) + rng.uniform(-0.4, 0.4, (rows, n))
        steps[np.arange(rows), rng.integers(0, n, rows)] = 127 * rng.choice([-1, 1], rows)
        return (steps * 10 ** rng.uniform(-4, 1, (rows, 1))).astype(np.float32)

    zeros = tensor(3, 16)
    zeros[1] = 0
    positive = np.abs(tensor(2, 600))
    return [
        (tensor(4, 32), tensor(5, 32)),
        (tensor(1, 8), tensor(3, 8)),
        (zeros, tensor(4, 16)),
        (tensor(2, 16), zeros),
        (positive, np.abs(tensor(3, 600))),
        (tensor(int(rng.integers(2, 8)), 64), tensor(int(rng.integers(2, 8)), 64)),
    ]


INT8_LINEAR = Exercise(
    id="09.int8_linear",
    points=3,
    minutes=12,
    difficulty=3,
    teaches="scales for rows of both sides factor out of the sum, which is exact in int32",
    drive=drive_tensors,
    cases=_int8_cases,
    expect=_int8_linear,
    tolerance=1e-5,
    mistakes=[
        Mistake(
            _int8_like(x_dim=None),
            "Each row of x gets a scale of its own. With one for all, a token with large values "
            "costs the others their bits.",
        ),
        Mistake(
            _int8_like(w_dim=None),
            "Each row of w, one output, gets a scale of its own.",
        ),
        Mistake(
            _int8_like(whole=lambda t: t.trunc()),
            "A cast to int8 drops the fraction. Round first.",
        ),
        Mistake(
            _int8_like(product=lambda a, b: a @ b.T),
            "The products were added up in int8 and wrapped around. Add in int32.",
        ),
        Mistake(
            _int8_like(x_back=False),
            "Scale back with both scales: the one of the row of x is missing.",
        ),
        Mistake(
            _int8_like(w_back=False),
            "Scale back with both scales: the one of the row of w is missing.",
        ),
        Mistake(
            _unrounded,
            "This is the product in fp32. Quantise both sides to int8 first.",
        ),
    ],
    hints=[
        "Why may a scale for each row of x, and one for each row of w, be pulled out of the sum "
        "over k? Why not one for each column?",
        "x8 = round(x / sx) with sx = amax of the row / 127 (1 for a row of zeros); the same for "
        "w. Multiply as int32, then multiply output (i, j) by sx[i] and sw[j].",
        "y = (x8.to(torch.int32) @ w8.to(torch.int32).T).float() * sx * sw.T, "
        "with sx of shape (m, 1) and sw of shape (n, 1)",
    ],
)
