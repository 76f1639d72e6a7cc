"""Compare what an answer returned with what was expected, in words a reader can use."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

SAYS = "says"
"""The key of a driver's dictionary that holds its own sentence on what is wrong, "" for nothing.
The verdict shows that sentence; two answers with different sentences may share a mistake."""


def difference(got: Any, expected: Any, tolerance: float, where: str = "") -> str | None:
    """None when `got` equals `expected` within `tolerance`, else a sentence that says how not.

    Both are plain data. The tolerance is relative: to the expected number, or to the norm of the
    expected array. NaN equals only NaN, which no specification expects, but a mistake may give.
    `where` names the part of a nested result.
    """
    at = f" at {where}" if where else ""
    if isinstance(expected, dict):
        return _dict(got, expected, tolerance, where)
    if isinstance(expected, np.ndarray):
        return _array(got, expected, tolerance, at)
    if isinstance(expected, list):
        return _list(got, expected, tolerance, where)
    if got is None and expected is not None:
        return f"you returned None{at}, expected {show(expected)}. Is a return missing?"
    if isinstance(expected, bool) or expected is None:
        same = got is expected
    elif isinstance(expected, str):
        same = isinstance(got, str) and got.strip().casefold() == expected.strip().casefold()
    elif isinstance(got, bool) or not isinstance(got, int | float):
        return f"you returned {show(got)}{at}, {kind(got)}; expected a number, {show(expected)}"
    else:
        same = _close(got, expected, tolerance)
    if same:
        return None
    if isinstance(got, int | float) and isinstance(expected, int | float):
        got_here, expected_here = _apart(got, expected)
        return f"you returned {got_here}{at}, expected {expected_here}{_rounded(got, expected)}"
    return f"you returned {show(got)}{at}, expected {show(expected)}"


def _close(got: float, expected: float, tolerance: float) -> bool:
    if isinstance(got, float) and not math.isfinite(got):
        return got == expected or (math.isnan(got) and math.isnan(expected))
    if abs(expected) == math.inf:  # else any number would be near it
        return got == expected
    return got == expected or _error(got, expected) <= tolerance * (abs(expected) or 1)


def _error(got: float, expected: float) -> float:
    """The distance, infinite where a whole number is past what floats reach."""
    try:
        return float(abs(got - expected)) or math.ulp(0.0)
    except OverflowError:
        return math.inf


def _rounded(got: float, expected: float) -> str:
    """What to say to an answer that is right but for its number of digits."""
    error = _error(got, expected) / (abs(expected) or 1)
    if isinstance(got, float) and error < 1e-12 and isinstance(expected, int):
        return ". A float holds 16 digits: stay with whole numbers, // and not /"
    if isinstance(got, float) and error < 1e-6:
        return ". Nearly: do you compute in 32 bits? Python's own floats have 64"
    return ""


def _dict(got: Any, expected: dict, tolerance: float, where: str) -> str | None:
    if not isinstance(got, dict):
        keys = ", ".join(map(str, expected))
        return f"you returned {kind(got)}, expected a dictionary with {keys}"
    if got.get(SAYS) and not expected.get(SAYS, True):
        return str(got[SAYS])
    missing = [str(key) for key in expected if key not in got]
    extra = [str(key) for key in got if key not in expected]
    if missing:
        return f"{', '.join(missing)} is missing from the dictionary"
    if extra:
        return f"{', '.join(extra)} should not be in the dictionary"
    parts = (
        difference(got[key], expected[key], tolerance, f"{where}[{key!r}]")
        for key in expected
        if key != SAYS
    )
    return next((part for part in parts if part), None)


def _list(got: Any, expected: list, tolerance: float, where: str) -> str | None:
    if isinstance(got, np.ndarray):
        got = got.tolist()
    if not isinstance(got, list):
        at = f" at {where}" if where else ""
        return f"you returned {show(got)}{at}, {kind(got)}; expected {len(expected)} values"
    if len(got) != len(expected):
        place = f" in {where}" if where else ""
        return f"you returned {len(got)} values{place}, expected {len(expected)}: {show(expected)}"
    pairs = enumerate(zip(got, expected, strict=True))
    parts = (difference(g, e, tolerance, f"{where}[{i}]") for i, (g, e) in pairs)
    return next((part for part in parts if part), None)


def _array(got: Any, expected: np.ndarray, tolerance: float, at: str) -> str | None:
    if isinstance(got, list):
        try:
            got = np.array(got, dtype=float)
        except (OverflowError, TypeError, ValueError):
            return f"you returned a list{at} whose rows differ in length or hold no numbers"
    if not isinstance(got, np.ndarray):
        return f"you returned {kind(got)}{at}, expected an array of shape {expected.shape}"
    if got.shape != expected.shape:
        return f"you returned shape {got.shape}{at}, expected {expected.shape}"
    if expected.size == 0:
        return None
    same = (got == expected) | ((got != got) & (expected != expected))
    with np.errstate(invalid="ignore"):
        error = np.where(same, 0, np.abs(got.astype(np.float64) - expected.astype(np.float64)))
    if np.isnan(error).any():
        first = tuple(int(i) for i in np.argwhere(np.isnan(error))[0])
        return f"NaN or infinity{at}, first at {first}, {int(np.isnan(error).sum())} in all"
    norm = float(np.linalg.norm(expected[np.isfinite(expected)].astype(np.float64)))
    if float(np.linalg.norm(error)) <= tolerance * (norm or 1):
        return None
    worst = tuple(int(i) for i in np.unravel_index(int(error.argmax()), error.shape))
    got_here, expected_here = _apart(float(got[worst]), float(expected[worst]))
    return f"largest error at {worst}{at}: you returned {got_here}, expected {expected_here}"


def _apart(got: float, expected: float) -> tuple[str, str]:
    """Both numbers, with as many digits as it takes to tell them apart."""
    digits = 4
    while digits < 17 and show(got, digits) == show(expected, digits):
        digits += 1
    return show(got, digits), show(expected, digits)


def _long(value: int, digits: int) -> str:
    try:
        return f"{float(value):.{digits}g}"
    except OverflowError:
        return f"a whole number of {math.floor(math.log10(abs(value))) + 1} digits"


def kind(value: Any) -> str:
    """What a plain value is, in a reader's words."""
    if value is None:
        return "None"
    names = {bool: "True or False", str: "text", list: "a list", dict: "a dictionary"}
    names |= {int: "a whole number", float: "a number", np.ndarray: "an array"}
    return names.get(type(value), type(value).__name__)


def show(value: Any, digits: int = 4) -> str:
    """A plain value, short: whole numbers with commas, floats to `digits`, arrays by shape."""
    if isinstance(value, bool) or value is None:
        return str(value)
    if isinstance(value, int):
        return f"{value:,}" if abs(value) < 10**21 else _long(value, digits)
    if isinstance(value, float):
        return f"{value:.{digits}g}"
    if isinstance(value, np.ndarray):
        return f"array {value.shape} {value.dtype}"
    if isinstance(value, list):
        if len(value) > 4 and all(isinstance(item, list) for item in value):
            return f"{len(value)} lists, the first {show(value[0], digits)}"
        inner = ", ".join(show(item, digits) for item in value[:8])
        return f"[{inner}{', ...' if len(value) > 8 else ''}]"
    if isinstance(value, dict):
        items = list(value.items())
        inner = ", ".join(f"{key!r}: {show(item, digits)}" for key, item in items[:8])
        return "{" + inner + (", ..." if len(items) > 8 else "") + "}"
    text = repr(value)
    return text if len(text) <= 80 else text[:77] + "..."
