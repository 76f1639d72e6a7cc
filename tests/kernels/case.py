"""A kernel with a launch, and what the meter must say of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any


@dataclass
class Launch:
    """Arguments of measure(): grid, positional ones, the kernel's constants, outputs."""

    grid: Any
    args: tuple
    named: dict[str, Any] = field(default_factory=dict)


@dataclass
class Case:
    """make() gives a fresh launch. kind: the problem's; None for a correct kernel.
    argument: the one it must name. says: words that the message must hold.
    right: for a correct kernel, whether memory ends as it should."""

    kernel: Any
    make: Callable[[], Launch]
    kind: str | None = None
    argument: str | None = None
    says: tuple[str, ...] = ()
    right: Callable[[Launch], bool] | None = None

    @property
    def name(self) -> str:
        return self.kernel.fn.__name__


def launch(grid: Any, *args: Any, **named: Any) -> Launch:
    return Launch(grid, args, named)
