"""Triton's interpreter, switched on for one kernel at a time. All that is known of it is here.

How a metered kernel comes to be interpreted: TRITON_INTERPRET is read when `@triton.jit` runs, so
a kernel that was decorated without it is made to be compiled, and so are tl.sum and its like. The
meter does not depend on that variable. It takes the plain function out of whatever `@triton.jit`
made, rewrites it as the interpreter does, and for the time of the launch lets calls of other jitted
functions do the same. So a GPU machine meters the very kernel it compiles, and a CPU machine needs
no setting.

Everything that is changed in triton is put back when the launch ends.
"""

from __future__ import annotations

import functools
import inspect
import sys
import threading
import types
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from utils.meter import bf16, libdevice, seams
from utils.meter.recorder import Recorder
from utils.meter.without_triton import WHERE, has_triton

KNOWN = ((3, 6), (3, 9))
_ONE_AT_A_TIME = threading.Lock()
_REWRITTEN: dict[Callable, Callable] = {}  # triton's own functions; a reader's may change
_NEEDED = ("InterpreterBuilder", "interpreter_builder", "TensorHandle", "FunctionRewriter",
           "InterpretedFunction", "ReduceOps", "ScanOps", "_patch_lang", "_implicit_cvt",
           "_get_np_dtype", "_validate_np_data_size", "_convert_float")  # fmt: skip


def load() -> tuple[Any, Any, str]:
    """(triton's interpreter module, triton.language, a remark on the version or "").

    Raises ValueError where triton is missing or its interpreter lacks what the meter opens.
    """
    if not has_triton():
        raise ValueError(WHERE)
    import triton
    import triton.compiler.code_generator  # it keeps tl's functions, so before they are changed
    import triton.language as tl
    from triton.runtime import interpreter

    missing = [name for name in _NEEDED if not hasattr(interpreter, name)]
    missing += [] if hasattr(triton, "knobs") else ["knobs"]
    if missing:
        raise ValueError(
            f"triton {triton.__version__}: its interpreter has no {missing[0]}. The meter knows "
            f"triton {_range()}."
        )
    version = tuple(int(part) for part in triton.__version__.split(".")[:2])
    known = KNOWN[0] <= version <= KNOWN[1]
    remark = "" if known else (
        f"triton {triton.__version__} is new to the meter, which was tested with {_range()}."
    )  # fmt: skip
    return interpreter, tl, remark


def _range() -> str:
    return " to ".join(".".join(map(str, version)) for version in KNOWN)


@contextmanager
def interpreting(recorder: Recorder, warn: Callable[[str], None]) -> Iterator[Callable]:
    """Open the interpreter for one launch. Yields `rewrite`: function -> what to call.

    Raises ValueError when a metered launch is already running.
    """
    interpreter, tl, _ = load()
    import triton

    if not _ONE_AT_A_TIME.acquire(blocking=False):
        raise ValueError("measure() is running already: one launch is metered at a time.")
    instead = libdevice.replacements(interpreter, tl)
    changed: list[tuple[Any, str, Any]] = []
    rewritten: dict[Callable, Callable] = {}

    def change(patches: list[tuple[Any, str, Any]]) -> None:
        for owner, name, value in patches:
            changed.append((owner, name, vars(owner).get(name, changed)))
            setattr(owner, name, value)

    def rewrite(function: Callable) -> Callable:
        own = (function.__module__ or "").startswith("triton.")
        cache = _REWRITTEN if own else rewritten
        if function not in cache:
            cache[function] = _rewrite(interpreter, function, instead)
        return cache[function]

    def call(self, *arguments, **named):
        return rewrite(self.fn)(*arguments, **named)

    def bind(self, value, owner=None):  # x.sum(0): a method of tl.tensor that is jitted
        return self if value is None else functools.partial(call, self, value)

    scope = None
    try:
        with triton.knobs.runtime.scope(), np.errstate(all="ignore"):
            triton.knobs.runtime.interpret = True
            change(bf16.patches(interpreter, tl))
            change(seams.patches(interpreter, tl, recorder, warn))
            change([(triton.JITFunction, "__call__", call), (triton.JITFunction, "__get__", bind),
                    (interpreter.InterpretedFunction, "__call__", call)])  # fmt: skip
            scope = interpreter._patch_lang(_sees(tl))
            change([(sys.modules[empty.__module__], empty.__name__, full)
                    for empty, full in instead.items()])  # fmt: skip
            # numpy 2.4 no longer turns an array of one element into a number (triton 3.6).
            change([(tl.tensor, "__index__", lambda self: int(self.handle.data.item()))])
            yield rewrite
    finally:
        for owner, name, value in reversed(changed):
            if value is changed:
                delattr(owner, name)
            else:
                setattr(owner, name, value)
        if scope is not None:
            scope.restore()
        _ONE_AT_A_TIME.release()


def _sees(tl: Any) -> Callable:
    """A function whose globals name both modules that hold tl's functions: patched in one go."""
    return types.FunctionType((lambda: None).__code__, {"tl": tl, "core": tl.core})


def _rewrite(interpreter: Any, function: Callable, instead: dict[Callable, Callable]) -> Callable:
    """The function with its assignments made tensors, as the interpreter does it, but without
    adding the interpreter's names to the reader's module. Without source: the function itself.

    instead: functions the reader may have imported by name -> what to call in their place.
    """
    code = _transformed(interpreter, function)
    if code is None:
        return function
    names = {
        **function.__globals__,
        **inspect.getclosurevars(function).nonlocals,
        **{name: value for name, value in vars(interpreter).items()
           if name in ("interpreter_semantic", "_InterpreterComparison")},
    }  # fmt: skip
    for name, value in names.items():
        if isinstance(value, types.FunctionType) and value in instead:
            names[name] = instead[value]
    exec(code, names)
    return names[function.__name__]


@functools.lru_cache(maxsize=64)  # the text of a function stays; its globals are read each launch
def _transformed(interpreter: Any, function: Callable) -> types.CodeType | None:
    """What the interpreter makes of the function's source, None where there is no source."""
    try:
        lines, _ = inspect.getsourcelines(function)
    except (OSError, TypeError):
        return None
    rewriter = interpreter.FunctionRewriter(function)
    rewriter.filename, rewriter.def_file_lineno = rewriter._get_jit_fn_file_line()
    rewriter.def_lineno = rewriter._find_def(lines)
    tree = rewriter._transform_ast(rewriter._prepare_source(lines))
    return compile(tree, rewriter.filename, "exec")


def prepare(interpreter: Any, function: Callable, arguments: dict[str, Any]) -> dict[str, Any]:
    """Arguments as an interpreted kernel takes them: constexpr as they are, others as tensors."""
    kinds = inspect.get_annotations(function)
    return {
        name: value if "constexpr" in str(kinds.get(name, "")) else interpreter._implicit_cvt(value)
        for name, value in arguments.items()
    }
