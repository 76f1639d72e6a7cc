"""Chapter 04: rotary positions."""

from __future__ import annotations

import numpy as np

from ._ch04_drive import drive_rope
from ._ch04_reference import normal
from .spec import Exercise, Mistake


def _rope(x, start, base):
    """One pair after the other, as a product of complex numbers."""
    half = x.shape[3] // 2
    out = np.zeros(x.shape)
    for position in range(x.shape[2]):
        for i in range(half):
            turn = np.exp(1j * (start + position) * base ** (-2 * i / x.shape[3]))
            pair = (x[:, :, position, i] + 1j * x[:, :, position, i + half]) * turn
            out[:, :, position, i], out[:, :, position, i + half] = pair.real, pair.imag
    return out


def _rope_like(step=2, sign=1, first=0, axis=2, pairs="halves", across=False):
    def answer(x, start, base):
        half = x.shape[-1] // 2
        index = x.new_ones(half).cumsum(0).double() - 1
        frequency = base ** (-step * index / x.shape[-1])
        if across:
            frequency = frequency.flip(0)
        positions = x.new_ones(x.shape[axis]).cumsum(0).double() - 1 + start + first
        angle = sign * positions[:, None] * frequency
        if axis == 1:
            angle = angle[:, None]
        cos, sin = angle.cos().to(x.dtype), angle.sin().to(x.dtype)
        if pairs == "halves":
            a, b = x[..., :half], x[..., half:]
        else:
            a, b = x[..., ::2], x[..., 1::2]
        out = x.clone()
        if pairs == "halves":
            out[..., :half], out[..., half:] = a * cos - b * sin, b * cos + a * sin
        else:
            out[..., ::2], out[..., 1::2] = a * cos - b * sin, b * cos + a * sin
        return out

    return answer


ROPE = Exercise(
    id="04.rope",
    points=3,
    minutes=8,
    difficulty=3,
    teaches="turning queries and keys by their position makes scores depend on the distance",
    cases=lambda rng: [
        (normal(rng, 2, 3, 5, 8), 0, 10_000.0),
        (normal(rng, 1, 2, 4, 6), 7, 10_000.0),
        (normal(rng, 1, 1, 1, 2), int(rng.integers(1, 50)), 10_000.0),
        (normal(rng, 2, 5, 3, 4, dtype=np.float64), 0, 500_000.0),
        (normal(rng, 1, 2, int(rng.integers(4, 20)), 12), int(rng.integers(0, 40)), 100.0),
    ],
    expect=_rope,
    drive=drive_rope,
    tolerance=5e-5,
    mistakes=[
        Mistake(
            _rope_like(pairs="neighbours"),
            "You paired neighbours, x[2i] with x[2i + 1], as the paper does. Here x[i] goes with "
            "x[i + head_dim / 2].",
        ),
        Mistake(
            _rope_like(step=1),
            "The exponent is -2i / head_dim. Yours is half of that, so the slow pairs turn too "
            "fast.",
        ),
        Mistake(
            _rope_like(sign=-1),
            "You turn the wrong way: (a, b) becomes (a·cos - b·sin, b·cos + a·sin).",
        ),
        Mistake(
            _rope_like(first=1),
            "The first row has position start, not start + 1.",
        ),
        Mistake(
            lambda x, start, base: _rope_like()(x, 0, base),
            "You forgot start: row t has position start + t.",
        ),
        Mistake(
            lambda x, start, base: _rope_like()(x, start, 10_000.0),
            "You used 10,000 whatever base was given.",
        ),
        Mistake(
            _rope_like(axis=1),
            "You counted positions along axis 1, the heads. Axis 2 is the positions.",
        ),
    ],
    hints=[
        "Which two numbers form pair i, and by which angle does the pair at row t turn?",
        "angle[t, i] = (start + t) · base^(-2i / head_dim): shape (seq_len, head_dim / 2). It "
        "broadcasts over batch and heads. Compute it in float64 or float32.",
        "a, b = x.chunk(2, -1); torch.cat([a * cos - b * sin, b * cos + a * sin], -1).to(x.dtype)",
    ],
)
