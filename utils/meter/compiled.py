"""compile_for(): what Triton's compiler makes of a kernel for a named GPU. No GPU is needed.

Triton brings its own assembler, so a laptop can say how many registers a kernel takes on an H100.
"""

from __future__ import annotations

import re
import subprocess
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Compiled:
    """A kernel compiled for one compute capability.

    ptx: the assembly text. registers: of one thread. spill_bytes: what one thread has to store
    outside its registers for want of room. shared_bytes: of one block.
    """

    ptx: str
    registers: int
    spill_bytes: int
    shared_bytes: int


def compile_for(
    kernel: Any,
    signature: Mapping[str, str],
    constants: Mapping[str, Any],
    capability: str = "8.0",
    num_warps: int = 4,
) -> Compiled:
    """Compile a @triton.jit kernel for an NVIDIA GPU of this compute capability.

    signature: the type of each argument that is no constexpr: "*fp32" for a pointer, "i32",
        "fp32". Pointers are taken to be aligned to 16 bytes, as PyTorch's tensors are; "i32:16"
        is an integer that 16 divides. A launch would find out both by itself.
    constants: the value of each constexpr.
    num_warps: warps in a block, a power of two.

    Raises ValueError for a wrong argument and where Triton is missing. What Triton says of a
    kernel that does not compile is passed on.
    """
    from utils.meter.interpreter import load

    load()
    import triton
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    found = re.fullmatch(r"(\d+)\.(\d)", str(capability))
    if not found:
        raise ValueError(f"capability={capability!r}: expected a text such as '8.0'")
    if not isinstance(num_warps, int) or num_warps not in (1, 2, 4, 8, 16, 32):
        raise ValueError(f"num_warps={num_warps!r}: expected 1, 2, 4, 8, 16 or 32")
    if not isinstance(kernel, triton.JITFunction):
        raise ValueError(
            f"kernel={kernel!r:.80}: expected what @triton.jit makes without TRITON_INTERPRET"
        )
    names = list(kernel.arg_names)
    if {*signature, *constants} != set(names) or {*signature} & {*constants}:
        raise ValueError(
            f"signature names {', '.join(signature)} and constants {', '.join(constants)}: "
            f"expected each of {', '.join(names)} in one of them"
        )
    types = {n: signature[n].split(":")[0] if n in signature else "constexpr" for n in names}
    divisible = {
        (place,): [["tt.divisibility", 16]]
        for place, name in enumerate(names)
        if types[name].startswith("*") or signature.get(name, "").endswith(":16")
    }
    source = ASTSource(fn=kernel, signature=types, constexprs=dict(constants), attrs=divisible)
    target = GPUTarget("cuda", int(found[1] + found[2]), 32)  # such as 80 for "8.0"
    made = triton.compile(source, target=target, options={"num_warps": num_warps})
    registers, spilled = _assembled(made.asm["ptx"], target.arch)
    return Compiled(made.asm["ptx"], registers, spilled, made.metadata.shared)


def _assembled(ptx: str, capability: int) -> tuple[int, int]:
    """(registers a thread, bytes spilled) as the assembler reports them."""
    from triton.backends.nvidia.compiler import get_ptxas

    assembler = get_ptxas(capability).path
    with tempfile.TemporaryDirectory() as here:
        file = Path(here) / "kernel.ptx"
        file.write_text(ptx, encoding="utf-8")
        arch = re.search(r"^\.target (sm_\w+)", ptx, re.M)[1]
        done = subprocess.run(
            [assembler, "-v", f"-arch={arch}", file, "-o", file.with_suffix(".cubin")],
            capture_output=True, text=True, check=True,
        )  # fmt: skip
    said = done.stdout + done.stderr
    return (
        int(re.search(r"Used (\d+) registers", said)[1]),
        int(re.search(r"(\d+) bytes spill stores", said)[1]),
    )
