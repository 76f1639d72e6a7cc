"""What stands for triton and triton.language where they are not installed.

A kernel can be defined with them, so that a chapter's cells and solutions load everywhere. It
cannot run: launching it raises NoTriton, which says where it could.
"""

from __future__ import annotations

import importlib.util
import inspect
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

WHERE = (
    "Triton is not installed here; it exists for Linux. On Windows use WSL, on a Mac use Colab, "
    "or read on: everything that needs no kernel works."
)


def has_triton() -> bool:
    """Whether Triton is installed. It is not imported to find out."""
    return importlib.util.find_spec("triton") is not None


class NoTriton(RuntimeError):
    """A kernel was launched where there is no Triton. A notebook shows the sentence alone."""

    def __init__(self) -> None:
        super().__init__(WHERE)

    def _render_traceback_(self) -> list[str]:
        return [str(self)]


class Kernel:
    """A kernel that can be read and not run. `fn` is the function under @triton.jit."""

    def __init__(self, function: Callable) -> None:
        self.fn, self.__name__, self.__doc__ = function, function.__name__, function.__doc__
        self.__module__ = function.__module__
        self.arg_names = list(inspect.signature(function).parameters)

    def __getitem__(self, grid: Any) -> Callable:
        """kernel[grid]. Any grid will do: nothing is launched."""
        return self

    def __call__(self, *args: Any, **kwargs: Any) -> None:
        raise NoTriton


def jit(function: Callable | None = None, **options: Any) -> Any:
    """@triton.jit, with and without options."""
    return Kernel if function is None else Kernel(function)


def autotune(**options: Any) -> Callable:
    """@triton.autotune(configs=..., key=...): the kernel below it."""
    return lambda kernel: kernel


def cdiv(a: int, b: int) -> int:
    """a / b, rounded up."""
    return -(-a // b)


def next_power_of_2(n: int) -> int:
    """The smallest power of two that is at least n."""
    return 1 << max(0, n - 1).bit_length()


class Language:
    """triton.language, for the annotations of a kernel's arguments: any name is there."""

    def __getattr__(self, name: str) -> object:
        if name.startswith("__"):
            raise AttributeError(name)
        return lambda *args, **kwargs: None


tl = Language()
triton = SimpleNamespace(
    jit=jit,
    autotune=autotune,
    Config=lambda kwargs, **options: kwargs,
    cdiv=cdiv,
    next_power_of_2=next_power_of_2,
    language=tl,
)
