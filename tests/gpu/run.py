"""The run: every kernel checked, timed beside PyTorch, and its counted bytes beside the GPU's."""

from __future__ import annotations

import statistics
from collections.abc import Callable

import torch

from tests.gpu.workload import Workload
from utils.hardware import time_samples
from utils.meter import measure
from utils.meter.accepts import type_name
from utils.meter.compiled import compile_for


def check(workload: Workload, device: str) -> dict:
    """The kernel against PyTorch at the small size, metered there, and at the large one."""
    launch, reference = workload.make(workload.small, device)
    report = measure(launch.kernel, launch.grid, *launch.args, **launch.constants)
    found = {
        "problems": [str(problem) for problem in report.problems],
        "metered_error": error(launch.out, reference()),
        "metered": {
            "size": workload.small,
            "least_bytes": launch.least_bytes,
            "requested_bytes": report.requested_bytes,
            "bytes_past_l2": report.cost.bytes,
            "load_sectors": sum(a.read_sectors for a in report.arguments),
            "store_sectors": sum(a.written_sectors for a in report.arguments),
        },
    }
    if device != "cpu":
        for which, size in (("small", workload.small), ("large", workload.large)):
            launch, reference = workload.make(size, device)
            found[f"compiled_error_{which}"] = error(launch(), reference())
    errors = [value for name, value in found.items() if name.endswith(("error", "small", "large"))]
    found["right"] = not found["problems"] and all(e <= workload.tolerance for e in errors)
    return found


def compiled(workload: Workload, capability: str) -> dict:
    """Registers, spills and shared memory, of the launch at a middling size. Needs no GPU."""
    launch, _ = workload.make(1024 if "matmul" in workload.name else workload.small, "cpu")
    constants = dict(launch.constants)
    num_warps = constants.pop("num_warps", 4)
    types = {}
    for name, value in zip(launch.kernel.arg_names, launch.args, strict=False):
        divisible = ":16" if isinstance(value, int) and value % 16 == 0 else ""
        types[name] = type_name(value) + divisible
    made = compile_for(launch.kernel, types, constants, capability, num_warps)
    return {
        "registers": made.registers,
        "spill_bytes": made.spill_bytes,
        "shared_bytes": made.shared_bytes,
        "tensor_cores": "mma" in made.ptx,
    }


def error(out: torch.Tensor, reference: torch.Tensor) -> float:
    """The norm of the difference over the norm of the reference."""
    out, reference = out.double(), reference.double()
    return float((out - reference).norm() / reference.norm())


def times(workload: Workload, device: str, seconds: float) -> dict:
    """Seconds of the kernel, PyTorch and torch.compile at the large size: median and quartiles.

    seconds: of measuring, for each of the three
    """
    launch, reference = workload.make(workload.large, device)
    found = {
        "size": workload.large,
        "least_bytes": launch.least_bytes,
        "flops": launch.flops,
        "kernel": spread(launch, seconds),
        "pytorch": spread(reference, seconds),
    }
    try:
        found["torch_compile"] = spread(torch.compile(reference), seconds)
    except Exception as problem:  # a compiler may be missing; the other figures stand
        found["torch_compile"] = {"why_not": f"{type(problem).__name__}: {problem}"[:300]}
    middle = found["kernel"]["median_s"]
    found["bytes_per_s"] = launch.least_bytes / middle
    found["flops_per_s"] = launch.flops / middle
    return found


def spread(function: Callable, seconds: float) -> dict:
    """Median and quartiles of the seconds of one call."""
    low, middle, high = statistics.quantiles(time_samples(function, min_seconds=seconds), n=4)
    return {"median_s": middle, "low_s": low, "high_s": high}
