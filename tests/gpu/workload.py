"""One kernel at one size: how it is launched, what PyTorch does instead, what it must move."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch


@dataclass(frozen=True)
class Launch:
    """A launch, ready: kernel[grid](*args, **constants) writes `out`. least_bytes and flops are
    of the formula, each input read once and each output written once."""

    kernel: Any
    grid: tuple[int, ...]
    args: tuple
    constants: dict[str, Any]
    out: torch.Tensor
    least_bytes: int
    flops: int

    def __call__(self) -> torch.Tensor:
        self.kernel[self.grid](*self.args, **self.constants)
        return self.out


@dataclass(frozen=True)
class Workload:
    """make(size, device) -> (Launch, PyTorch's function without arguments for the same inputs).

    small: a size the meter runs in seconds; large: one that fills a data-centre GPU
    """

    name: str
    make: Callable[[int, str], tuple[Launch, Callable[[], torch.Tensor]]]
    small: int
    large: int
    tolerance: float = 1e-5
