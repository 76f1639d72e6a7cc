"""Would Triton's compiler take this kernel? Asked of its front end, which needs no GPU.

The interpreter runs a kernel as Python, so a list, a try or a product of 8 by 8 blocks works there
and fails on a GPU. Only the front end is asked: it knows the language's rules and takes
milliseconds. Registers and shared memory are compiled.py's.
"""

from __future__ import annotations

import functools
import warnings
from typing import Any

CAPABILITY = 80  # an A100: what all later ones take, it takes too, but for the newest dtypes
TYPES = {
    "torch.float64": "fp64", "torch.float32": "fp32", "torch.float16": "fp16",
    "torch.bfloat16": "bf16", "torch.int64": "i64", "torch.int32": "i32", "torch.int16": "i16",
    "torch.int8": "i8", "torch.uint8": "u8", "torch.bool": "i1",
}  # fmt: skip


def refused(kernel: Any, arguments: dict[str, Any]) -> str:
    """What Triton's compiler says against a kernel with these arguments, "" when it is nothing.

    kernel: made by @triton.jit. arguments: by name; what has a dtype is a pointer
    Also "" where it cannot be asked: for arguments of kinds that TYPES does not name, for a kernel
    made to be interpreted only, and for a Triton whose insides are arranged in another way.
    """
    if not hasattr(kernel, "params"):
        return ""
    constant = {p.name for p in kernel.params if p.is_constexpr}
    types = {
        name: "constexpr" if name in constant else type_name(value)
        for name, value in arguments.items()
    }
    if None in types.values():
        return ""
    fixed = {name: arguments[name] for name, kind in types.items() if kind == "constexpr"}
    try:
        return _ask(kernel, tuple(types.items()), tuple(fixed.items()))
    except TypeError:  # a constant that cannot be hashed
        return ""


def type_name(value: Any) -> str | None:
    """The compiler's name for an argument's type, "*fp32" or "i32"; None when unknown here."""
    if value is None or isinstance(value, str):
        return "constexpr"
    if isinstance(value, bool):
        return "i1"
    if isinstance(value, int):
        return "i32" if -(2**31) <= value < 2**31 else "i64"
    if isinstance(value, float):
        return "fp32"
    kind = TYPES.get(str(getattr(value, "dtype", "")))
    return f"*{kind}" if kind else None


@functools.lru_cache(maxsize=64)
def _ask(kernel: Any, types: tuple, fixed: tuple) -> str:
    try:
        from triton._C.libtriton import ir
        from triton.backends.compiler import GPUTarget
        from triton.compiler import ASTSource
        from triton.compiler.compiler import make_backend
        from triton.compiler.errors import CompilationError

        target = GPUTarget("cuda", CAPABILITY, 32)
        source = ASTSource(fn=kernel, signature=dict(types), constexprs=dict(fixed))
        backend = make_backend(target)
        options = backend.parse_options({"num_warps": 4})
        context = ir.context()
        ir.load_dialects(context)
        backend.load_dialects(context)
        codegen = backend.get_codegen_implementation(options)
    except (ImportError, AttributeError, TypeError):
        return ""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            source.make_ir(target, options, codegen, backend.get_module_map(), context)
    except CompilationError as error:
        return _said(error)
    except Exception:  # not a verdict on the kernel
        return ""
    return ""


def _said(error: Exception) -> str:
    """The innermost reason, and the line of the kernel it points at."""
    while isinstance(error.__cause__, type(error)):
        error = error.__cause__
    reason = error.__cause__ or getattr(error, "error_message", None) or error
    text = str(reason).strip().split("\n")[-1] or type(reason).__name__
    line = _line(error)
    return text + (f" Line: {line}" if line else "")


def _line(error: Exception) -> str:
    source, node = getattr(error, "src", None), getattr(error, "node", None)
    lines = (source or "").split("\n")
    number = getattr(node, "lineno", 0)
    return lines[number - 1].strip() if 0 < number <= len(lines) else ""
