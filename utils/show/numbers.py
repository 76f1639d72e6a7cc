"""Numbers as people read them: three digits, a prefix, a unit, and what kind of number it is."""

import math
from collections.abc import Iterable
from html import escape
from numbers import Integral, Real
from typing import Any

from utils.show.figure import Shown
from utils.show.marks import mark

# Units that take a prefix, and the symbol they are printed with. Other units are words: they take
# "million" or "billion" instead.
PREFIXED = {
    "s": "s", "seconds": "s", "B": "B", "bytes": "B", "B/s": "B/s", "bytes/s": "B/s",
    "FLOP": "FLOP", "FLOPs": "FLOP", "FLOP/s": "FLOP/s", "FLOPs/s": "FLOP/s", "W": "W", "Hz": "Hz",
}  # fmt: skip
_PREFIXES = {
    -12: "p", -9: "n", -6: "µ", -3: "m", 0: "", 3: "k", 6: "M", 9: "G", 12: "T", 15: "P",
    18: "E", 21: "Z", 24: "Y",
}  # fmt: skip
_WORDS = ((1e12, "trillion"), (1e9, "billion"), (1e6, "million"))
_TIMES = ((2 * 365.25 * 86400, 365.25 * 86400, "years"), (2 * 86400, 86400, "days"),
          (2 * 3600, 3600, "h"), (120, 60, "min"))  # fmt: skip


def finite(value: Any, name: str) -> float:
    """`value` as a float. Raises ValueError, naming the argument, when it is not a finite number.

    Anything with one number in it will do: int, float, a NumPy scalar, a tensor of one element.
    """
    try:
        number = float(value)
    except (TypeError, ValueError, RuntimeError, OverflowError):
        number = math.nan
    if isinstance(value, str | bytes | bool) or not math.isfinite(number):
        raise ValueError(f"{name} is {value!r}; it must be a finite number.")
    return number


def finites(values: Iterable[Any], name: str) -> tuple[float, ...]:
    """`values` as floats. Raises ValueError when there are none or one is not a finite number."""
    if not _is_list(values):
        raise ValueError(f"{name} is {values!r}; it must be a list of numbers.")
    numbers = tuple(finite(value, f"{name}[{i}]") for i, value in enumerate(values))
    if not numbers:
        raise ValueError(f"{name} is empty; it must hold at least one number.")
    return numbers


def text(value: Any, name: str) -> str:
    """`value`, a text. Raises ValueError, naming the argument, when it is not one."""
    if not isinstance(value, str):
        raise ValueError(f"{name} is {value!r:.80}; it must be a text.")
    return value


def several(values: Any, name: str) -> list:
    """`values` as a list. Raises ValueError when it is no list, tuple or the like."""
    if not _is_list(values):
        raise ValueError(f"{name} is {values!r:.80}; it must be a list.")
    return list(values)


def _is_list(values: Any) -> bool:
    scalar = getattr(values, "ndim", 1) == 0  # an array of one number says that it is iterable
    return isinstance(values, Iterable) and not scalar and not isinstance(values, str | bytes)


def plain(value: Any, digits: int = 4) -> str:
    """A number without a unit: whole numbers exactly, others to `digits` significant digits.

    >>> plain(124439808), plain(0.61234567), plain(9e20)
    ('124,439,808', '0.6123', '9e20')
    """
    if isinstance(value, Integral):
        return f"{int(value):,}"
    number = float(value)
    if number == 0:
        return "0"
    if not 1e-4 <= abs(number) < 1e15:
        mantissa, exponent = f"{number:.{digits - 1}e}".split("e")
        return f"{_strip(mantissa)}e{int(exponent)}"
    if abs(number) >= 1000 and number == int(number):
        return f"{int(number):,}"
    decimals = max(0, digits - 1 - math.floor(math.log10(abs(number))))
    return _strip(f"{number:,.{decimals}f}")


def si(value: float, unit: str) -> str:
    """A number to three digits with its unit, as "3.35 TB/s".

    FLOP, FLOP/s, bytes, bytes/s, seconds, W and Hz take decimal prefixes (k = 1000). Times of two
    minutes and more are given in min, h, days or years; budgets of 1e18 FLOP and more as 9e20
    FLOP. Other units are words, and large numbers of them are given in million, billion or
    trillion. Raises ValueError when value is not finite.

    >>> si(3.35e12, "bytes/s"), si(0.0042, "s"), si(1557611200, "parameters")
    ('3.35 TB/s', '4.2 ms', '1.56 billion parameters')
    """
    number = finite(value, "value")
    symbol = PREFIXED.get(text(unit, "unit"))
    if symbol == "s":
        for least, size, name in _TIMES:
            if abs(number) >= least:
                return f"{_three(number / size)} {name}"
    if symbol:
        return prefixed(number, symbol)
    for size, name in _WORDS:
        if size <= abs(number) < 1e15:
            return f"{_three(number / size)} {name} {unit}".rstrip()
    return joined(_three(number), unit)


def prefixed(number: float, symbol: str) -> str:
    """`number` to three digits, with the prefix that leaves 1 to 999 before the symbol."""
    rounded = float(f"{number:.3g}")
    if symbol == "FLOP" and abs(rounded) >= 1e18:  # budgets are quoted as 9e20, not as 900 EFLOP
        return f"{_three(rounded)} {symbol}"
    power = 0 if rounded == 0 else 3 * math.floor(math.log10(abs(rounded)) / 3 + 1e-9)
    power = min(max(power, min(_PREFIXES)), max(_PREFIXES))
    return f"{_three(rounded / 10.0**power)} {_PREFIXES[power]}{symbol}"


def joined(number: str, unit: str) -> str:
    """A printed number and its unit: a space between them, except before a percent sign."""
    return f"{number}{'' if unit.startswith('%') else ' '}{unit}".rstrip()


def make_number(value: float, unit: str, kind: str, source: str = "") -> Shown:
    """One number that says what it is. See `show.number`."""
    look = mark(kind)
    finite(value, "value")
    text(unit, "unit")
    text(source, "source")
    whole = isinstance(value, Integral) and unit not in PREFIXED
    said = joined(plain(value), unit) if whole else si(value, unit)
    origin = f": {source}" if source else ""
    html = (
        f'<p class="shown-number"><strong style="font-size:1.25em">{escape(said)}</strong>&ensp;'
        f'<span aria-hidden="true" style="color:{look.colour}">{look.symbol}</span> '
        f"{look.word}{escape(origin)}</p>"
    )
    return Shown(text=f"{said} ({look.word}{origin})", html=html, title=said)


def is_number(value: Any) -> bool:
    """Whether a value is a number to print (True and False are not)."""
    return isinstance(value, Real) and not isinstance(value, bool)


def _three(number: float) -> str:
    return plain(float(f"{number:.3g}"), digits=3)


def _strip(digits: str) -> str:
    return digits.rstrip("0").rstrip(".") if "." in digits else digits
