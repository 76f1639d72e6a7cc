"""`kernel[grid](...)` without a GPU: import triton and tl from here, and it runs on paper.

A launch whose tensors are on the CPU goes through measure(): program by program, every address
checked. What is wrong raises KernelError with one sentence. A launch with tensors on a GPU is
compiled and run as always. So the same cell works on a laptop and on an H100.

Where Triton is not installed, `triton` and `tl` are stand-ins: see without_triton.py.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from utils.meter.kernel_report import KernelReport
from utils.meter.measure import measure
from utils.meter.without_triton import has_triton

if has_triton():
    import triton
    import triton.language as tl
    from triton.runtime.autotuner import Autotuner
    from triton.runtime.interpreter import InterpretedFunction
else:
    from utils.meter.without_triton import tl, triton

__all__ = ["KernelError", "launches", "tl", "triton", "with_tail"]

_listening: list[list[KernelReport]] = []


class KernelError(RuntimeError):
    """A launch on paper was stopped. A notebook shows the sentence, without a traceback."""

    def _render_traceback_(self) -> list[str]:
        return [str(self)]


@contextmanager
def launches() -> Iterator[list[KernelReport]]:
    """Gathers the report of every launch on paper inside the `with`, the failed ones too.

    >>> with launches() as reports:
    ...     softmax(x)
    >>> sum(report.requested_bytes for report in reports)
    """
    reports: list[KernelReport] = []
    _listening.append(reports)
    try:
        yield reports
    finally:
        # Not remove(): the list of a `with` around this one may be equal, and comes first.
        _listening[:] = [other for other in _listening if other is not reports]


def _run_kernel(on_gpu: Any) -> Any:
    """What takes the place of a kernel's `run`, for launches with no tensor on a GPU."""

    def run(self, *args, grid, warmup, **kwargs):
        if warmup or _needs_gpu(args, kwargs):
            return on_gpu(self, *args, grid=grid, warmup=warmup, **kwargs)
        try:
            report = measure(self, grid, *args, **kwargs)
        except ValueError as error:
            raise KernelError(str(error)) from None
        for reports in _listening:
            reports.append(report)
        if not report.ok:
            raise KernelError(str(report.problems[0]))

    return run


def _no_grid(self: Any, *args: Any, **kwargs: Any) -> None:
    raise KernelError(f"A launch needs a grid: {self.__name__}[(n_programs,)](...)")


def _bench(on_gpu: Any) -> Any:
    """On paper the meter's model ranks the configurations, as on a GPU their times do."""

    def bench(self, *args, config, grid, warmup, **kwargs):
        if warmup or _needs_gpu(args, kwargs):
            return on_gpu(self, *args, config=config, grid=grid, warmup=warmup, **kwargs)
        seconds = _modelled(self.fn, grid, args, kwargs | config.all_kwargs())
        return [1000 * seconds] * 3  # as on a GPU: milliseconds, the median, low and high

    return bench


def _modelled(kernel: Any, grid: Any, args: tuple, kwargs: dict) -> float:
    """Modelled seconds of a launch, infinite when it fails. What it wrote is undone."""
    tensors = [x for x in (*args, *kwargs.values()) if hasattr(x, "data_ptr")]
    before = [tensor.clone() for tensor in tensors]
    report = measure(kernel, grid, *args, **kwargs)
    for tensor, was in zip(tensors, before, strict=True):
        tensor.copy_(was)
    return with_tail(report) if report.ok else float("inf")


def with_tail(report: KernelReport) -> float:
    """Modelled seconds when a last, part-filled wave takes as long as a full one (chapter 06).

    Infinite where the accelerator's modelled time is unknown.
    """
    if report.modelled.seconds is None:
        return float("inf")
    launch = report.modelled.parts["launch"]
    filled = report.programs / (report.waves * report.wave) if report.programs else 1.0
    return launch + (report.modelled.seconds - launch) / filled


def _needs_gpu(args: tuple, kwargs: dict) -> bool:
    """Whether a tensor among the arguments is on a GPU."""
    values = [getattr(value, "base", value) for value in (*args, *kwargs.values())]
    kinds = {value.device.type for value in values if hasattr(value, "data_ptr")}
    return bool(kinds - {"cpu"})


# Changed for good: kernel[grid](...) is triton's own syntax, and ends in these. The mark
# keeps a reload of this module from wrapping what is wrapped already.
if has_triton() and not hasattr(triton.JITFunction, "on_paper"):
    triton.JITFunction.on_paper = True
    triton.JITFunction.run = _run_kernel(triton.JITFunction.run)
    triton.JITFunction.__call__ = _no_grid
    InterpretedFunction.run = _run_kernel(InterpretedFunction.run)
    Autotuner._bench = _bench(Autotuner._bench)
