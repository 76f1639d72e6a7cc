"""tl.extra.libdevice, as far as numpy has the function too.

Its functions are empty in Python: the compiler puts CUDA's in their place, and the interpreter has
none. Those of one argument that numpy has under the same name, tanh or log1p, compute here; the
others are refused with a sentence.
"""

from __future__ import annotations

import types
from collections.abc import Callable
from typing import Any

import numpy as np

MODULE = "triton.language.extra.libdevice"


def replacements(interpreter: Any, tl: Any) -> dict[Callable, Callable]:
    """libdevice's empty function -> what to call instead."""
    try:
        from triton.language.extra import libdevice
    except ImportError:
        return {}
    return {
        function: _replacement(interpreter, tl, name)
        for name, function in vars(libdevice).items()
        if isinstance(function, types.FunctionType) and function.__module__ == MODULE
    }


def _replacement(interpreter: Any, tl: Any, name: str) -> Callable:
    ufunc = getattr(np, name, None)
    one_argument = isinstance(ufunc, np.ufunc) and (ufunc.nin, ufunc.nout) == (1, 1)

    def compute(*arguments, **named):
        if not one_argument:
            raise NotImplementedError(
                f"libdevice.{name} exists only in compiled kernels; write it with functions of tl"
            )
        (value,) = arguments
        return tl.tensor(interpreter.interpreter_builder.unary_op(value.handle, ufunc), value.type)

    return compute
