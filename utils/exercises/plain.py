"""Plain data: what may pass between the notebook and the process in which an answer runs.

None, True and False, whole numbers, floats, text, lists, dictionaries and numpy arrays. Nothing
that travels can execute: it is JSON, with arrays as their bytes.
"""

from __future__ import annotations

import base64
import json
import numbers
from decimal import Decimal
from typing import Any

import numpy as np


class NotPlain(TypeError):
    """A value that is no plain data; the message says what it is, for a reader."""


def plain(value: Any) -> Any:
    """The value as plain data. numpy and torch scalars become numbers, tensors become arrays,
    tuples and ranges become lists. Raises NotPlain for anything else."""
    if value is None or isinstance(value, bool | str):
        return value if not isinstance(value, str) else str(value)
    if isinstance(value, np.generic):
        return _from_numpy(value)
    if isinstance(value, int):
        return int(value)
    if isinstance(value, numbers.Real | Decimal):
        return _from_exact(value) if isinstance(value, numbers.Rational | Decimal) else float(value)
    if isinstance(value, np.ndarray):
        if value.dtype.kind not in "biuf":
            raise NotPlain(f"an array of dtype {value.dtype}")
        return value.item() if value.ndim == 0 else np.array(value)
    if hasattr(value, "detach") and hasattr(value, "cpu"):
        return plain(_from_torch(value))
    if isinstance(value, list | tuple | range):
        return [plain(item) for item in value]
    if isinstance(value, dict):
        return {_key(key): plain(item) for key, item in value.items()}
    if callable(value):
        raise NotPlain(f"the function {getattr(value, '__name__', '')} itself, not what it returns")
    raise NotPlain(_a(type(value).__name__))


def _a(kind: str) -> str:
    return f"{'an' if kind[:1].lower() in 'aeiou' else 'a'} {kind}"


def _from_numpy(value: np.generic) -> Any:
    item = value.item()
    if isinstance(item, np.floating):  # a longdouble stays one
        return float(item)
    if isinstance(item, np.generic):
        raise NotPlain(f"a number of dtype {value.dtype}")
    return plain(item)


def _from_exact(value: numbers.Rational | Decimal) -> int | float:
    """A whole Fraction or Decimal stays exact."""
    huge = isinstance(value, Decimal) and (not value.is_finite() or value.adjusted() > 400)
    return int(value) if not huge and value == int(value) else float(value)


def _key(key: Any) -> Any:
    if isinstance(key, tuple | frozenset):
        raise NotPlain(f"a dictionary with {_a(type(key).__name__)} as a key")
    return plain(key)


def _from_torch(tensor: Any) -> np.ndarray:
    tensor = tensor.detach().cpu()
    try:
        return tensor.numpy()
    except TypeError:  # numpy has no bfloat16 and no float8
        return tensor.float().numpy()


def encode(value: Any) -> str:
    """Plain data as one line of text."""
    return json.dumps(_pack(plain(value)))


def decode(text: str) -> Any:
    """The plain data that `encode` made into text."""
    return _unpack(json.loads(text))


def _pack(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        data = base64.b64encode(np.ascontiguousarray(value).tobytes()).decode()
        return {"array": data, "dtype": value.dtype.str, "shape": list(value.shape)}
    if isinstance(value, list):
        return [_pack(item) for item in value]
    if isinstance(value, dict):
        return {"pairs": [[_pack(key), _pack(item)] for key, item in value.items()]}
    return value


def _unpack(value: Any) -> Any:
    if isinstance(value, list):
        return [_unpack(item) for item in value]
    if isinstance(value, dict) and "pairs" in value:
        return {_unpack(key): _unpack(item) for key, item in value["pairs"]}
    if isinstance(value, dict):
        flat = np.frombuffer(base64.b64decode(value["array"]), dtype=np.dtype(value["dtype"]))
        return flat.reshape(value["shape"]).copy()
    return value
