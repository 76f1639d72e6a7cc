"""Chapter 09's scales: one for a tensor, one for each block."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from utils.arithmetic.formats import round_nearest

from .spec import Exercise, Mistake
from .tensors import drive_tensors

E4M3_MAX = 448.0


def _power_that_fits(amax, end):
    """Largest power of two that times amax stays within end, by search in Fractions."""
    if amax == 0 or not math.isfinite(amax):
        return 1.0
    scale = Fraction(1)
    while scale * Fraction(amax) > end:
        scale /= 2
    while scale * 2 * Fraction(amax) <= end:
        scale *= 2
    return float(scale)


def _amax_scale(x, max_finite):
    if not np.isfinite(x).all():
        return 1.0
    return _power_that_fits(float(np.abs(x).max()), Fraction(max_finite))


def _scale_like(amax=lambda x: x.abs().max(), whole=math.floor, inverse=False):
    def answer(x, max_finite):
        size = float(amax(x))
        if size == 0 or not math.isfinite(size):
            return 1.0
        ratio = max_finite / abs(size)
        scale = 2.0 ** whole(math.log2(ratio)) if whole else ratio
        return 1 / scale if inverse else scale

    return answer


def _amax_cases(rng):
    def tensor(size, shape=(4, 5)):
        return (rng.standard_normal(shape) * size).astype(np.float32)

    exact = rng.uniform(-1, 1, (3, 4)).astype(np.float32)
    exact[1, 2] = -1.75  # 448 = 1.75 * 256: fits to the last bit
    negative = tensor(1.0)
    negative[0, 3] = rng.uniform(-80, -30)
    broken = tensor(1.0)
    broken[2, 1] = np.inf
    nan = tensor(1.0)
    nan[2, 1] = np.nan
    over = exact.copy()
    over[1, 2] = np.nextafter(np.float32(-1.75), np.float32(-2))  # one bit too large for 256
    return [
        (tensor(1.0), 448.0),
        (tensor(1e-7), 57344.0),
        (tensor(3000.0), 448.0),
        (negative, 448.0),
        (exact, 448.0),
        (np.zeros((2, 2), np.float32), 448.0),
        (broken, 448.0),
        (nan, 448.0),
        (np.array([1.0, -3.0], np.float32), 448.0),  # 448 / 3 is nearer to 128 than to 256
        (over, 448.0),
        (tensor(0.02, (7,)), 6.0),
        (-np.abs(tensor(50.0, (1, 1))), 57344.0),
    ]


AMAX_SCALE = Exercise(
    id="09.amax_scale",
    points=2,
    minutes=8,
    difficulty=2,
    teaches="one power of two moves a tensor into a format's range without rounding anything",
    drive=drive_tensors,
    cases=_amax_cases,
    expect=_amax_scale,
    tolerance=0,
    mistakes=[
        Mistake(
            _scale_like(whole=None),
            "Take a power of two: multiplying by it is exact, by any other number it rounds.",
        ),
        Mistake(
            _scale_like(whole=round),
            "To the nearest power of two is too far half of the time: the largest value must "
            "still fit.",
        ),
        Mistake(
            _scale_like(whole=math.ceil),
            "Round the power down: rounded up, the largest value overflows.",
        ),
        Mistake(
            _scale_like(amax=lambda x: x.max()),
            "The largest magnitude counts: take the absolute value before the maximum.",
        ),
        Mistake(
            _scale_like(inverse=True),
            "This is what to multiply by afterwards, to scale back. Asked is its inverse.",
        ),
        Mistake(
            _scale_like(amax=lambda x: x.square().mean().sqrt()),
            "A typical size is not enough: the largest value must fit.",
        ),
    ],
    hints=[
        "How many times larger could the largest magnitude be and still fit?",
        "ratio = max_finite / amax. Take the largest power of two that is not above it. "
        "Zeros and infinities have no ratio: return 1.",
        "2.0 ** math.floor(math.log2(max_finite / amax))",
    ],
)


def _drive_block(answer, *case):
    result = drive_tensors(answer, *case)
    if not isinstance(result, tuple | list) or len(result) != 2:
        raise ValueError("return two tensors: the values and the scales")
    return {"values": result[0], "scales": result[1]}


def _quantize_block(x, block):
    """Element by element in pure Python."""
    values, scales = np.zeros(x.shape), np.zeros((x.shape[0], x.shape[1] // block))
    for row in range(x.shape[0]):
        for b in range(scales.shape[1]):
            part = x[row, b * block : (b + 1) * block].tolist()
            scale = _power_that_fits(max(map(abs, part)), Fraction(E4M3_MAX))
            scales[row, b] = scale
            values[row, b * block : (b + 1) * block] = [
                round_nearest(v * scale, "E4M3") / scale for v in part
            ]
    return {"values": values, "scales": scales}


def _to_e4m3(x):
    import torch

    return x.clamp(-E4M3_MAX, E4M3_MAX).to(torch.float8_e4m3fn).float()


def _powers(amax):
    import torch

    power = torch.floor(torch.log2((E4M3_MAX / amax).double())).exp2().float()
    return torch.where(amax > 0, power, 1.0)


def _block_like(amax=None, power=True, back=True, scaled=True):
    """Blocks with one thing changed. amax: of (rows, n / block, block), to broadcast."""

    def answer(x, block):
        import torch

        blocks = x.unflatten(1, (-1, block))
        size = blocks.abs().amax(2, keepdim=True) if amax is None else amax(blocks)
        scales = _powers(size) if power else torch.where(size > 0, E4M3_MAX / size, 1.0)
        if not scaled:
            scales = torch.ones_like(scales)
        scales = scales.expand(*blocks.shape[:2], 1)
        values = _to_e4m3(blocks * scales)
        return (values / scales if back else values).flatten(1), scales.squeeze(2)

    return answer


def _inverse_scales(x, block):
    values, scales = _block_like()(x, block)
    return values, 1 / scales


def _block_cases(rng):
    def tensor(rows, n, size=1.0):
        """Every block has a size of its own, over six orders of magnitude."""
        sizes = 10 ** rng.uniform(-4, 2, (rows, n // 8))
        return (rng.standard_normal((rows, n)) * np.repeat(sizes, 8, axis=1) * size).astype(
            np.float32
        )

    zeros = tensor(2, 32)
    zeros[1, 16:] = 0
    exact = tensor(1, 16)
    exact[0, 5] = 3.5 * 2.0**12
    return [
        (tensor(4, 32), 8),
        (tensor(3, 64), 32),
        (tensor(1, 16, 1e4), 8),
        (zeros, 16),
        (exact, 16),
        (tensor(int(rng.integers(2, 6)), 48), 16),
    ]


QUANTIZE_BLOCK = Exercise(
    id="09.quantize_block",
    points=3,
    minutes=15,
    difficulty=3,
    teaches="a scale for each block keeps one outlier from costing all the others their bits",
    drive=_drive_block,
    cases=_block_cases,
    expect=_quantize_block,
    tolerance=1e-6,
    mistakes=[
        Mistake(
            _block_like(amax=lambda blocks: blocks.abs().max().reshape(1, 1, 1)),
            "One scale served the whole tensor. Each block gets its own.",
        ),
        Mistake(
            _block_like(amax=lambda blocks: blocks.abs().amax((1, 2), keepdim=True)),
            "One scale served a whole row. Each block of a row gets its own.",
        ),
        Mistake(
            _block_like(power=False),
            "The scale is a power of two, as amax_scale gives it.",
        ),
        Mistake(
            _block_like(back=False),
            "The values are still scaled. Divide by the scale after the cast.",
        ),
        Mistake(
            _block_like(scaled=False),
            "You cast without a scale. Multiply each block by its scale first.",
        ),
        Mistake(
            _inverse_scales,
            "Return the scales that the blocks were multiplied by, not their inverses.",
        ),
    ],
    hints=[
        "How do you see a (rows, n) tensor as (rows, n / block, block)?",
        "For each block: scale = amax_scale(block, 448.0); multiply, cast to torch.float8_e4m3fn, "
        "back to float, divide by the scale.",
        "blocks = x.unflatten(1, (-1, block)); scales[i, j] = amax_scale(blocks[i, j], 448.0); "
        "values = (blocks * s).to(torch.float8_e4m3fn).float() / s with s = scales.unsqueeze(-1)",
    ],
)
