"""A driver for answers that take and return torch tensors: cases travel as numpy arrays."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np


def to_tensors(value: Any) -> Any:
    """Plain data with every array as a torch tensor that shares its memory, so that a change in
    place is seen in the array."""
    import torch

    if isinstance(value, np.ndarray):
        return torch.from_numpy(value)
    if isinstance(value, list):
        return [to_tensors(item) for item in value]
    if isinstance(value, dict):
        return {key: to_tensors(item) for key, item in value.items()}
    return value


@contextlib.contextmanager
def refused(owner: Any, names: str, why: str) -> Iterator[None]:
    """While it lasts, each of the named attributes of `owner` raises a RuntimeError."""

    def refuse(*args, **kwargs):
        raise RuntimeError(why)

    kept = {name: getattr(owner, name) for name in names.split()}
    for name in kept:
        setattr(owner, name, refuse)
    try:
        yield
    finally:
        for name, value in kept.items():
            setattr(owner, name, value)


def of_dtype(given: np.ndarray, out: Any) -> Any:
    """`out` as it is. Raises ValueError when it is a tensor of another dtype than `given`."""
    found = str(getattr(out, "dtype", given.dtype)).removeprefix("torch.")
    if found != str(given.dtype):
        raise ValueError(f"you returned {found} for {given.dtype}: come back to it with .to()")
    return out


def drive_tensors(answer: Callable[..., Any], *case: Any) -> Any:
    """`drive` of an exercise whose answer is a function of tensors."""
    return answer(*to_tensors(list(case)))
