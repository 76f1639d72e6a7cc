"""Number formats bit by bit: decode, encode, round to nearest even. Pure Python.

A float of E exponent bits e, M mantissa bits m and a sign is, with its bias,
    normal     (-1)^sign * 2^(e - bias) * (1 + m / 2^M)     for e > 0
    subnormal  (-1)^sign * 2^(1 - bias) * (m / 2^M)         for e = 0
and what its last codes mean differs from format to format: see Format.specials. Sources: IEEE 754;
OCP 8-bit floating point (OFP8) 1.0; OCP Microscaling formats (MX) 1.0.
"""

import math
from dataclasses import dataclass

from utils.arithmetic import checks
from utils.arithmetic.models import named

SPECIALS = ("ieee", "nan", "nan at -0", "none", "scale")
OVERFLOWS = ("special", "saturate")
INT8_MAX = 127  # symmetric: -128 is not used, so that -x always exists


@dataclass(frozen=True)
class Format:
    """One floating-point format.

    specials: which codes are no ordinary numbers.
      "ieee"       the top exponent holds infinity (mantissa 0) and NaN
      "nan"        only the code with every bit set but the sign is NaN; no infinity
      "nan at -0"  only the code of -0 is NaN; no infinity, no -0
      "none"       all codes are numbers
      "scale"      E8M0: no sign, no zero, powers of two only; all bits set is NaN
    torch_dtype: the name of PyTorch's dtype, empty where it has none
    Raises ValueError naming a wrong field.
    """

    name: str
    exp_bits: int
    man_bits: int
    bias: int
    specials: str = "ieee"
    torch_dtype: str = ""

    def __post_init__(self) -> None:
        checks.whole("exp_bits", self.exp_bits)
        checks.whole("man_bits", self.man_bits, 0)
        checks.whole("bias", self.bias, 0)
        checks.choice("specials", self.specials, SPECIALS)

    @property
    def signed(self) -> bool:
        """Whether there is a sign bit."""
        return self.specials != "scale"

    @property
    def bits(self) -> int:
        """All bits together."""
        return self.signed + self.exp_bits + self.man_bits

    @property
    def has_infinity(self) -> bool:
        return self.specials == "ieee"

    @property
    def has_nan(self) -> bool:
        return self.specials != "none"

    @property
    def min_exponent(self) -> int:
        """Power of two of the smallest normal number; subnormals share its spacing."""
        return (0 if self.specials == "scale" else 1) - self.bias

    @property
    def min_normal(self) -> float:
        return math.ldexp(1.0, self.min_exponent)

    @property
    def min_subnormal(self) -> float:
        """The smallest number above 0. E8M0 has no subnormals: it is its smallest number."""
        return math.ldexp(1.0, self.min_exponent - self.man_bits)

    @property
    def eps(self) -> float:
        """The step from 1 to the next number above it."""
        return math.ldexp(1.0, -self.man_bits)

    @property
    def max_code(self) -> int:
        """The code of the largest finite number."""
        taken = {"ieee": 2**self.man_bits, "nan": 1, "scale": 1}.get(self.specials, 0)
        return 2 ** (self.exp_bits + self.man_bits) - 1 - taken

    @property
    def max_finite(self) -> float:
        return decode(self.max_code, self)


FORMATS: dict[str, Format] = {
    one.name: one
    for one in [
        Format("FP32", 8, 23, 127, "ieee", "float32"),
        Format("TF32", 8, 10, 127),
        Format("FP16", 5, 10, 15, "ieee", "float16"),
        Format("BF16", 8, 7, 127, "ieee", "bfloat16"),
        Format("E4M3", 4, 3, 7, "nan", "float8_e4m3fn"),
        Format("E5M2", 5, 2, 15, "ieee", "float8_e5m2"),
        Format("E4M3 IEEE", 4, 3, 7),
        Format("E4M3 FNUZ", 4, 3, 8, "nan at -0", "float8_e4m3fnuz"),
        Format("E2M1", 2, 1, 1, "none"),
        Format("E2M3", 2, 3, 1, "none"),
        Format("E3M2", 3, 2, 3, "none"),
        Format("E8M0", 8, 0, 127, "scale", "float8_e8m0fnu"),
    ]
}


def number_format(name: str | Format) -> Format:
    """The format itself, or the one of that name. ValueError with near names otherwise.

    >>> number_format("E4M3").max_finite
    448.0
    """
    return name if isinstance(name, Format) else named("name", name, FORMATS, "FORMATS")


def decode(code: int, name: str | Format) -> float:
    """The number that a code stands for: a float, an infinity or NaN, exactly.

    code: the bits as a whole number, sign first. Raises ValueError when it has too many bits.

    >>> decode(0b0_0110_101, "E4M3")
    0.8125
    """
    form = number_format(name)
    code = checks.whole("code", code, 0, 2**form.bits - 1)
    mantissa = code % 2**form.man_bits
    exponent = code >> form.man_bits & 2**form.exp_bits - 1
    negative = form.signed and code >> (form.bits - 1)
    if form.specials == "scale":
        top = exponent == 2**form.exp_bits - 1
        return math.nan if top else math.ldexp(1.0, exponent - form.bias)
    if form.specials == "nan at -0" and code == 2 ** (form.bits - 1):
        return math.nan
    sign = -1.0 if negative else 1.0
    top = exponent == 2**form.exp_bits - 1
    if form.specials == "ieee" and top:
        return math.nan if mantissa else sign * math.inf
    if form.specials == "nan" and top and mantissa == 2**form.man_bits - 1:
        return math.nan
    implicit = 2**form.man_bits if exponent else 0
    steps = implicit + mantissa
    return sign * math.ldexp(steps, max(exponent, 1) - form.bias - form.man_bits)


def round_nearest(value: float, name: str | Format, overflow: str = "special") -> float:
    """The format's number nearest to value; of two equally near, the one with an even code.

    overflow: what becomes of a value that rounds past the largest number, and of infinity.
      "special": infinity where the format has one, else NaN; "saturate": the largest number.
      A format with neither infinity nor NaN always saturates.
    NaN stays NaN. Raises ValueError for NaN where the format has none, for a negative value in
    E8M0 (whose nearest number to 0 is 2^-127), and for an unknown format or overflow.

    >>> round_nearest(0.3952, "E4M3"), round_nearest(2049, "FP16")
    (0.40625, 2048.0)
    """
    form = number_format(name)
    checks.choice("overflow", overflow, OVERFLOWS)
    value = float(value)
    if math.isnan(value):
        if form.has_nan:
            return value
        raise checks.refuse("value", value, f"a number: {form.name} has no code for NaN")
    if not form.signed and math.copysign(1.0, value) < 0 and value != 0:
        raise checks.refuse("value", value, f"0 or more: {form.name} has no sign")
    if math.isinf(value):
        return _overflowed(value, form, overflow)
    exponent = _exponent(value, form)
    step = exponent - form.man_bits
    # scaling by a power of two is exact, and round() of a float takes ties to even
    rounded = math.ldexp(round(math.ldexp(value, -step)), step)
    if abs(rounded) > form.max_finite:
        return _overflowed(value, form, overflow)
    if not form.signed:
        return max(rounded, form.min_normal)
    if form.specials == "nan at -0" and rounded == 0:
        return 0.0
    return math.copysign(rounded, value)


def _exponent(value: float, form: Format) -> int:
    """Power of two at or below |value|, but never below the one that subnormals share."""
    return max(math.frexp(value)[1] - 1, form.min_exponent) if value else form.min_exponent


def _overflowed(value: float, form: Format, overflow: str) -> float:
    if overflow == "saturate" or form.specials == "none":
        return math.copysign(form.max_finite, value)
    return math.copysign(math.inf, value) if form.has_infinity else math.nan


def encode(value: float, name: str | Format, overflow: str = "special") -> int:
    """The code of the format's number nearest to value. See round_nearest.

    >>> f"{encode(1.0, 'BF16'):016b}"
    '0011111110000000'
    """
    form = number_format(name)
    rounded = round_nearest(value, form, overflow)
    sign = int(form.signed and math.copysign(1.0, rounded) < 0) << (form.bits - 1)
    top = 2**form.exp_bits - 1 << form.man_bits
    if math.isnan(rounded):
        if form.specials == "nan at -0":
            return 2 ** (form.bits - 1)
        quiet = 2 ** (form.man_bits - 1) if form.specials == "ieee" else 2**form.man_bits - 1
        return top | quiet
    if math.isinf(rounded):
        return sign | top
    size = abs(rounded)
    if form.specials == "scale":
        return math.frexp(size)[1] - 1 + form.bias
    exponent = _exponent(size, form)
    steps = int(math.ldexp(size, form.man_bits - exponent))
    field = exponent + form.bias  # 1 for subnormals too: they lack the implicit bit, so add less
    return sign | (field - 1 << form.man_bits) + steps


def neighbours(code: int, name: str | Format) -> tuple[float | None, float | None]:
    """The next number below and above that of a code; None past the ends, and for NaN.

    >>> neighbours(encode(1.0, "E4M3"), "E4M3")
    (0.9375, 1.125)
    """
    form = number_format(name)
    value = decode(code, form)
    if math.isnan(value) or math.isinf(value):
        return None, None
    return _next(value, form, -1), _next(value, form, +1)


def _next(value: float, form: Format, direction: int) -> float | None:
    if value * direction >= form.max_finite:
        return None
    if form.specials == "scale":
        other = value * 2.0**direction
        return other if other >= form.min_normal else None
    exponent = _exponent(value, form)
    step = math.ldexp(1.0, exponent - form.man_bits)
    towards_zero = value * direction < 0
    if towards_zero and abs(value) == math.ldexp(1.0, exponent) and exponent > form.min_exponent:
        step /= 2  # below a power of two numbers are twice as dense
    return value + direction * step


@dataclass(frozen=True)
class BlockFormat:
    """Narrow elements that share a scale.

    element: a name in FORMATS, or two of the same width where the format allows either
    block: how many elements share a scale; None: a whole tensor
    scale: a name in FORMATS
    per_tensor: a further scale for the whole tensor, empty where there is none
    """

    name: str
    element: tuple[str, ...]
    block: int | None
    scale: str
    per_tensor: str = ""

    @property
    def bits_per_value(self) -> float:
        """Bits of an element and its share of the block's scale. A scale of a whole tensor is
        shared by so many that it counts as nothing."""
        element = number_format(self.element[0]).bits
        return element + (number_format(self.scale).bits / self.block if self.block else 0)


BLOCK_FORMATS: dict[str, BlockFormat] = {
    one.name: one
    for one in [
        BlockFormat("MXFP8", ("E4M3", "E5M2"), 32, "E8M0"),
        BlockFormat("MXFP6", ("E2M3", "E3M2"), 32, "E8M0"),
        BlockFormat("MXFP4", ("E2M1",), 32, "E8M0"),
        BlockFormat("NVFP4", ("E2M1",), 16, "E4M3", "FP32"),
        BlockFormat("FP8 per tensor", ("E4M3", "E5M2"), None, "FP32"),
        # arXiv 2412.19437, section 3.3.2: tiles of 128 x 128 weights, 1 x 128 activations
        BlockFormat("DeepSeek-V3 FP8 weights", ("E4M3",), 128 * 128, "FP32"),
        BlockFormat("DeepSeek-V3 FP8 activations", ("E4M3",), 128, "FP32"),
    ]
}


def block_format(name: str | BlockFormat) -> BlockFormat:
    """The block format itself, or the one of that name. ValueError with near names otherwise.

    >>> block_format("MXFP4").bits_per_value
    4.25
    """
    if isinstance(name, BlockFormat):
        return name
    return named("name", name, BLOCK_FORMATS, "BLOCK_FORMATS")
