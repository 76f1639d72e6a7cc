"""Run an answer that is a Triton kernel: on paper, checked and counted, and compiled on a GPU.

A driver of kernel exercises returns what `run` returns. `right(...)` is what a good one gives.
"""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from .grade import YOUR_TURN
from .tensors import to_tensors

if TYPE_CHECKING:
    from utils.meter import KernelReport

PAPER_SECONDS = 2.0  # for one launch; an endless loop then has a sentence of the meter's
COMPILED_TOLERANCE = 2e-2  # of the norm: tf32 and bf16 products round, on paper fp32 does not


@dataclass(frozen=True)
class WrongKernel:
    """A mistake that is a kernel. It is imported when it is run, as that needs Triton.

    module: of utils.exercises, such as "_ch07_wrong"
    """

    module: str
    name: str

    def __call__(self, *args: Any) -> None:  # a Mistake's answer is callable
        raise TypeError("a kernel is launched, not called")


def kernel_of(answer: Any) -> Any:
    """The kernel behind an answer: itself, unless it is a WrongKernel."""
    if not isinstance(answer, WrongKernel):
        return answer
    return getattr(importlib.import_module(f"utils.exercises.{answer.module}"), answer.name)


def limits(
    *, at_most_bytes: float | None = None, coalescing: float | None = None
) -> dict[str, str]:
    """The limits of a case, in words.

    at_most_bytes: that loads and stores may ask for, repeats counted
    coalescing: the least share of the fetched 32-byte sectors that lanes must need, 0 to 1
    """
    words = {}
    if at_most_bytes is not None:
        words["traffic"] = f"asks for at most {int(at_most_bytes):,} bytes"
    if coalescing is not None:
        words["coalescing"] = f"at least {coalescing:.0%} of what is fetched is needed"
    return words


def right(outputs: dict[str, np.ndarray], **limit: float) -> dict[str, Any]:
    """What `run` returns for a kernel that is right: these outputs, within these limits.

    outputs: name -> array. limit: those of `limits`, the same ones that `run` is given
    """
    return {"says": "", **outputs, "wrong": "nothing", **limits(**limit)}


def run(
    answer: Any,
    grid: tuple[int, ...],
    args: list[Any],
    outputs: dict[str, int],
    constants: dict[str, Any],
    *,
    updated: dict[str, int] | None = None,
    at_most_bytes: float | None = None,
    coalescing: float | None = None,
) -> dict[str, Any]:
    """Launch the answer and report on it as plain data.

    args: the kernel's positional arguments; numpy arrays and tensors become pointers
    outputs: name -> position in `args` of what the kernel must write whole
    constants: the constexpr arguments, by name
    updated: as outputs, of what it adds to or changes in place; start it with zeros or values
    at_most_bytes, coalescing: see `limits`
    Returns {"says": the sentence on what is wrong or "", each output, "wrong": "nothing", each
    limit}; of a kernel that was stopped, "says" and "wrong" alone.
    Raises NotImplementedError for a stub, ValueError for something that is no kernel.
    """
    from utils.meter import measure

    kernel = kernel_of(answer)
    if not hasattr(kernel, "fn"):
        raise ValueError("your answer is not a kernel: keep the line @triton.jit above it")
    tensors = to_tensors(args)
    before = [_copy(value, "cpu") for value in tensors]
    names = list(kernel.arg_names)
    written = [names[place] for place in outputs.values()]
    report = measure(kernel, grid, *tensors, outputs=written, seconds=PAPER_SECONDS, **constants)
    if report.problems:
        return _stopped(report)
    results = outputs | (updated or {})
    return {
        "says": _compiled(kernel, grid, before, tensors, results, constants),
        **{name: tensors[place] for name, place in results.items()},
        "wrong": "nothing",
        **_within(report, at_most_bytes, coalescing),
    }


def _stopped(report: KernelReport) -> dict[str, Any]:
    """The sentence of the first problem, and what two kernels with the same slip share of it."""
    problem = report.problems[0]
    if problem.kind in ("error", "unsupported") and f": {YOUR_TURN}" in problem.message:
        raise NotImplementedError(YOUR_TURN)
    names = [argument.name for argument in report.arguments]
    place = names.index(problem.argument) if problem.argument in names else None
    return {
        "says": str(problem),
        "wrong": f"{problem.kind}, argument {place}, index {problem.index}, "
        f"program {problem.program}",
    }


def _within(
    report: KernelReport, at_most_bytes: float | None, coalescing: float | None
) -> dict[str, str]:
    words = limits(at_most_bytes=at_most_bytes, coalescing=coalescing)
    if at_most_bytes is not None and report.requested_bytes > at_most_bytes:
        words["traffic"] = f"asks for {report.requested_bytes:,} bytes"
    if coalescing is not None:
        share = min(_coalescing(report), default=1.0)
        if share < coalescing:
            words["coalescing"] = f"only {share:.0%} of what is fetched is needed"
    return words


def _coalescing(report: KernelReport) -> list[float]:
    """The share of each argument, reading and writing."""
    shares = [
        share for a in report.arguments for share in (a.read_coalescing, a.written_coalescing)
    ]
    return [share for share in shares if share is not None]


def _copy(value: Any, device: str) -> Any:
    """A tensor on another device with the same strides, which clone() and cuda() lose where a
    tensor is part of a wider one. The kernel is told its strides. Anything else as it is."""
    import torch

    if not isinstance(value, torch.Tensor):
        return value
    copy = torch.empty_strided(value.shape, value.stride(), dtype=value.dtype, device=device)
    return copy.copy_(value)


def _compiled(
    kernel: Any, grid: tuple, before: list, after: list, outputs: dict, constants: dict
) -> str:
    """On a machine with a GPU, what differs once the kernel is compiled; "" when nothing does."""
    import torch

    if not torch.cuda.is_available():
        return ""
    args = [_copy(value, "cuda") for value in before]
    try:
        kernel[grid](*args, **constants)
        torch.cuda.synchronize()
    except Exception as error:
        lines = str(error).strip().splitlines() or [type(error).__name__]
        return f"On paper it is right, but for this GPU it does not compile or run: {lines[-1]}"
    for name, place in outputs.items():
        paper, gpu = after[place].double(), args[place].cpu().double()
        if not (paper - gpu).norm() <= COMPILED_TOLERANCE * paper.norm() + 1e-6:
            return f"On paper it is right, but compiled for this GPU {name} comes out different."
    return ""
