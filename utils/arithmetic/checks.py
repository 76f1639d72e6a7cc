"""Refuse a wrong argument in one sentence: its name, its value, what is allowed.

Each function returns the value as a plain Python number, so that numpy's integers and
small floats do not leak their overflow and rounding into the arithmetic.
"""

import math
import operator
import reprlib
from collections.abc import Iterable
from numbers import Integral, Real


def refuse(name: str, value: object, allowed: str) -> ValueError:
    """The error to raise. It names the argument, its value and what is allowed."""
    return ValueError(f"{name} is {reprlib.repr(value)}; allowed: {allowed}")


def whole(name: str, value: object, low: int = 1, high: int | None = None) -> int:
    """An integer from low to high. Not a bool, not a float, not a string.

    >>> whole("n_layer", 12)
    12
    >>> whole("n_layer", 0)
    Traceback (most recent call last):
    ValueError: n_layer is 0; allowed: a whole number, at least 1
    """
    allowed = f"a whole number, at least {low}"
    if high is not None:
        allowed = f"a whole number from {low} to {high}"
    if isinstance(value, bool):
        raise refuse(name, value, allowed)
    try:
        result = operator.index(value)
        float(result)  # larger ones would overflow further on
    except (OverflowError, TypeError):
        raise refuse(name, value, allowed) from None
    if result < low or (high is not None and result > high):
        raise refuse(name, value, allowed)
    return result


def _real(name: str, value: object, allowed: str) -> int | float:
    if isinstance(value, bool) or not isinstance(value, Real):
        raise refuse(name, value, allowed)
    try:
        finite = math.isfinite(float(value))
    except OverflowError:
        finite = False
    if not finite:
        raise refuse(name, value, allowed)
    return int(value) if isinstance(value, Integral) else float(value)


def positive(name: str, value: object) -> int | float:
    """A finite number above 0. Integers stay integers, so exact stays exact."""
    result = _real(name, value, "a finite number above 0")
    if result <= 0:
        raise refuse(name, value, "a finite number above 0")
    return result


def not_negative(name: str, value: object) -> int | float:
    """A finite number, 0 or more."""
    result = _real(name, value, "a finite number, 0 or more")
    if result < 0:
        raise refuse(name, value, "a finite number, 0 or more")
    return result


def share(name: str, value: object) -> int | float:
    """A share of a whole: above 0, at most 1. A per cent sign is not understood: 40% is 0.4."""
    allowed = "a number above 0 and at most 1 (40% is 0.4)"
    result = _real(name, value, allowed)
    if not 0 < result <= 1:
        raise refuse(name, value, allowed)
    return result


def flag(name: str, value: object) -> bool:
    """True or False, nothing that merely counts as true."""
    if not isinstance(value, bool):
        raise refuse(name, value, "True or False")
    return value


def choice(name: str, value: object, options: Iterable[str]) -> str:
    """One of the named options."""
    options = list(options)
    if not isinstance(value, str) or value not in options:
        raise refuse(name, value, " or ".join(f'"{option}"' for option in options))
    return value
