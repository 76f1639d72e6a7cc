"""Chapter 09's formats: decoding a code, rounding to the nearest number."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from .plain import plain
from .spec import Exercise, Mistake

FP16 = (5, 10, 15, True)
BF16 = (8, 7, 127, True)
E4M3 = (4, 3, 7, False)
E5M2 = (5, 2, 15, True)
E2M1 = (2, 1, 1, False)


def _drive_decode(answer, *case):
    value = plain(answer(*case))
    return "nan" if isinstance(value, float) and math.isnan(value) else value


def _decode(code, exp_bits, man_bits, bias, ieee):
    """From the digits as text, in Fractions."""
    digits = f"{code:0{1 + exp_bits + man_bits}b}"
    sign, exponent, mantissa = digits[0], digits[1 : 1 + exp_bits], digits[1 + exp_bits :]
    if ieee and "0" not in exponent:
        return "nan" if "1" in mantissa else math.inf * (-1) ** int(sign)
    hidden, power = ("1", int(exponent, 2)) if "1" in exponent else ("0", 1)
    size = Fraction(int(hidden + mantissa, 2), 2**man_bits) * Fraction(2) ** (power - bias)
    return float(size * (-1) ** int(sign))


def _decode_like(normal=1, subnormal=0, low=1, negative=-1, ieee=None, biased=True):
    """A decoder with one thing changed. low: the exponent that subnormals use."""

    def answer(code, exp_bits, man_bits, bias, is_ieee):
        mantissa = code % 2**man_bits
        exponent = (code >> man_bits) % 2**exp_bits
        sign = negative if code >> (exp_bits + man_bits) else 1
        special = is_ieee if ieee is None else ieee
        if special and exponent == 2**exp_bits - 1:
            return math.nan if mantissa else sign * math.inf
        hidden = normal if exponent else subnormal
        power = (exponent or low) - (bias if biased else 0)
        return sign * (hidden + mantissa / 2**man_bits) * 2.0**power

    return answer


DECODE_FLOAT = Exercise(
    id="09.decode_float",
    points=2,
    minutes=10,
    difficulty=2,
    teaches="sign, biased exponent, hidden bit, subnormals, and what the last codes mean",
    drive=_drive_decode,
    cases=lambda rng: [
        (0b0_01101_0101010101, *FP16),
        (0b1_10000_1000000000, *FP16),
        (1, *FP16),
        (int(rng.integers(2, 2**9)), *FP16),  # subnormal
        (0b0_11111_0000000000, *FP16),
        (0b1_11111_0000000000, *FP16),
        (0b0_11111_1000000000, *FP16),
        (0b0_1111_110, *E4M3),
        (0b1_0000_011, *E4M3),
        (0b1_11_1, *E2M1),
        (0, *E2M1),
        (int(rng.integers(2**7, 2**14)), *BF16),
        (int(rng.integers(2**15 + 2**7, 2**15 + 2**14)), *BF16),
        (0b0_11111_00, *E5M2),
        (int(rng.integers(2**23, 2**30)), 8, 23, 127, True),
    ],
    expect=_decode,
    tolerance=0,
    mistakes=[
        Mistake(
            _decode_like(normal=0),
            "A normal number has a hidden 1 before its mantissa: 1 + mantissa / 2**man_bits.",
        ),
        Mistake(
            _decode_like(subnormal=1),
            "Exponent field 0 has no hidden 1. That is what lets the numbers reach 0.",
        ),
        Mistake(
            _decode_like(low=0),
            "Subnormal numbers use the exponent 1 - bias, not 0 - bias: else there would be a gap "
            "below the smallest normal number.",
        ),
        Mistake(
            _decode_like(biased=False),
            "The stored exponent is too large by the bias: subtract it.",
        ),
        Mistake(
            _decode_like(negative=1),
            "The first bit is the sign: 1 means negative.",
        ),
        Mistake(
            _decode_like(ieee=False),
            "In an IEEE format the top exponent holds no numbers: infinity when the mantissa is 0, "
            "else NaN.",
        ),
        Mistake(
            _decode_like(ieee=True),
            "Where ieee is False the top exponent is an ordinary one. E4M3 reaches 448 that way.",
        ),
    ],
    hints=[
        "Which bits are the mantissa? And what is left when you shift them away?",
        "mantissa = code % 2**man_bits, exponent = (code >> man_bits) % 2**exp_bits, the sign is "
        "what is left above. Then three cases: top exponent (ieee only), exponent 0, all others.",
        "exponent 0: m / 2**man_bits * 2.0**(1 - bias); "
        "else (1 + m / 2**man_bits) * 2.0**(exponent - bias)",
    ],
)

HALF = (10, -14, 65504.0)
BRAIN = (7, -126, 3.3895313892515355e38)
EIGHT = (3, -6, 448.0)
FOUR = (1, 0, 6.0)


def _round_to(value, man_bits, min_exponent, max_finite, saturate):
    """The nearer of two multiples of the spacing, in Fractions."""
    exact, power = abs(Fraction(value)), Fraction(2) ** min_exponent
    while power * 2 <= exact:
        power *= 2
    spacing = power / 2**man_bits
    below = exact // spacing
    rest = exact - below * spacing
    up = rest * 2 > spacing or (rest * 2 == spacing and below % 2 == 1)
    size = (below + up) * spacing
    if size > Fraction(max_finite):
        size = max_finite if saturate else math.inf
    return math.copysign(float(size), value)


def _round_like(whole=round, flush=False, floor=True, extra=0, early=False, end=None):
    """A rounding with one thing changed. end: what becomes of an overflow, None: as asked."""

    def answer(value, man_bits, min_exponent, max_finite, saturate):
        if value == 0:
            return value
        if early and abs(value) > max_finite:
            return math.copysign(max_finite if saturate else math.inf, value)
        exponent = math.frexp(value)[1] - 1
        if flush and exponent < min_exponent:
            return 0.0
        if floor:
            exponent = max(exponent, min_exponent)
        spacing = 2.0 ** (exponent + extra - man_bits)
        rounded = whole(value / spacing) * spacing
        if abs(rounded) > max_finite:
            if end == "none":
                return rounded
            stay = saturate if end is None else end == "stay"
            return math.copysign(max_finite if stay else math.inf, value)
        return rounded

    return answer


def _half_away(x):
    return math.copysign(math.floor(abs(x) + 0.5), x)


ROUND_TO = Exercise(
    id="09.round_to",
    points=3,
    minutes=15,
    difficulty=3,
    teaches="spacing grows with the exponent, ties go to even, subnormals, where overflow begins",
    cases=lambda rng: [
        (0.3952, *EIGHT, False),
        (2049.0, *HALF, False),
        (2051.0, *HALF, False),
        (2049.0 + 2.0**-30, *HALF, False),  # no tie, though float32 makes it one
        (-2049.0, *HALF, False),
        (2.5, *FOUR, True),
        (-5.0, *FOUR, True),
        (3e-8, *HALF, False),
        (2.0**-25, *HALF, False),
        (float(rng.uniform(2e-6, 5e-5)), *HALF, False),
        (0.0, *EIGHT, True),
        (65519.0, *HALF, False),
        (-65520.0, *HALF, False),
        (1e6, *HALF, True),
        (1e6, *HALF, False),
        (-463.0, *EIGHT, True),
        (500.0, *EIGHT, True),
        (257.0, *BRAIN, False),
        *((float(x), *EIGHT, True) for x in rng.normal(0, 30, 3)),
        *((float(x), *BRAIN, False) for x in rng.normal(0, 1e-3, 3)),
    ],
    expect=_round_to,
    tolerance=0,
    mistakes=[
        Mistake(
            lambda value, *rest: _round_like()(float(np.float32(value)), *rest),
            "You went through float32 first. Rounding twice is not rounding once: 2049 and a "
            "little more becomes a tie.",
        ),
        Mistake(
            _round_like(whole=math.trunc),
            "This drops the bits that do not fit. Round to the nearest number instead: truncation "
            "makes every sum too small.",
        ),
        Mistake(
            _round_like(whole=_half_away),
            "A tie goes to the even neighbour, the one whose last bit is 0. Always away from zero "
            "would drift.",
        ),
        Mistake(
            _round_like(flush=True),
            "Below the smallest normal number there are subnormal ones: the spacing stays as it is "
            "at min_exponent, down to 0.",
        ),
        Mistake(
            _round_like(floor=False),
            "Below 2**min_exponent the spacing stops shrinking. Your exponent goes on falling, as "
            "if the exponent bits never ran out.",
        ),
        Mistake(
            _round_like(early=True),
            "Round first, then look whether the result is too large: 65519 rounds to 65504 in "
            "fp16, which is no overflow.",
        ),
        Mistake(
            _round_like(extra=1),
            "Your spacing is twice too wide. math.frexp gives a mantissa from 0.5 to 1: the "
            "exponent of 2**e <= |value| is one less than its second result.",
        ),
        Mistake(
            _round_like(end="none"),
            "A result above max_finite is not a number of the format.",
        ),
        Mistake(
            _round_like(end="inf"),
            "With saturate=True an overflow becomes max_finite, not infinity.",
        ),
        Mistake(
            _round_like(end="stay"),
            "With saturate=False an overflow becomes infinity, so that somebody notices.",
        ),
    ],
    hints=[
        "Between 2**e and 2**(e + 1), how far apart are two numbers with man_bits mantissa bits?",
        "e = max(floor(log2(|value|)), min_exponent); the spacing is 2**(e - man_bits). Count how "
        "many spacings the value is, round that to a whole number, scale back.",
        "Python's round() takes ties to even: rounded = round(value / spacing) * spacing. "
        "Then compare abs(rounded) with max_finite.",
    ],
)
