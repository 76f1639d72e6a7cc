"""What work costs, and how long an accelerator would take over it. Both instruments report this.

Time is modelled as a roofline with a launch cost: everything overlaps perfectly, so the slowest of
memory, matrix units and vector units decides, and each launch adds its own time.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from utils.hardware import Accelerator

LAUNCH_SECONDS = 4e-6
"""Assumed: what one launch costs when kernels follow each other. Published measurements for CUDA
lie between 2 and 10 microseconds; chapter 00 measures this machine's."""

VECTOR = "vector"
"""The key of `flops` for arithmetic outside matrix products: it runs at the fp32 vector rate."""


PREFIXES = ("", "k", "M", "G", "T", "P", "E")


@dataclass(frozen=True)
class Modelled:
    """Modelled seconds on one accelerator. seconds is None where the table lacks a number, and
    then `remark` says which. bound_by: "memory", "matrix units", "vector units" or "launch"."""

    accelerator: str
    seconds: float | None
    bound_by: str
    parts: Mapping[str, float]
    remark: str = ""

    def __str__(self) -> str:
        if self.seconds is None:
            return f"no modelled time on {self.accelerator}: {self.remark}"
        return f"{_time(self.seconds)} modelled on {self.accelerator}, bound by {self.bound_by}"


@dataclass(frozen=True)
class Cost:
    """bytes_read, bytes_written: moved from and to memory. flops: count by precision ("bf16",
    "tf32", "fp32", ... for matrix products, "vector" for the rest)."""

    bytes_read: int
    bytes_written: int
    flops: Mapping[str, int] = field(default_factory=dict)
    launches: int = 1

    @property
    def bytes(self) -> int:
        return self.bytes_read + self.bytes_written

    @property
    def total_flops(self) -> int:
        return sum(self.flops.values())

    @property
    def intensity(self) -> float | None:
        """FLOPs per byte moved; None when no byte is."""
        return self.total_flops / self.bytes if self.bytes else None

    def on(self, accelerator: Accelerator) -> Modelled:
        """Modelled time there: max(bytes / bandwidth, FLOPs / peak) + launches."""
        name = accelerator.name
        if accelerator.bytes_per_s is None:
            return Modelled(name, None, "", {}, "the table does not know its memory bandwidth.")
        parts = {"memory": self.bytes / accelerator.bytes_per_s}
        try:
            matrix = sum(
                flops / accelerator.peak(precision)
                for precision, flops in self.flops.items()
                if precision != VECTOR and flops
            )
            vector = self.flops.get(VECTOR, 0)
            parts["matrix units"] = matrix
            parts["vector units"] = vector / accelerator.peak("fp32") if vector else 0.0
        except ValueError as error:
            return Modelled(name, None, "", parts, str(error))
        slowest = max(parts, key=parts.get)
        parts["launch"] = self.launches * LAUNCH_SECONDS
        bound_by = slowest if parts[slowest] >= parts["launch"] else "launch"
        return Modelled(name, parts[slowest] + parts["launch"], bound_by, parts)

    def to_dict(self) -> dict:
        """Plain numbers and texts."""
        return {
            "bytes_read": self.bytes_read,
            "bytes_written": self.bytes_written,
            "flops": dict(self.flops),
            "launches": self.launches,
            "intensity": self.intensity,
        }


def amount(value: float, unit: str) -> str:
    """ "12.6 MB", "3.1 GFLOP", "812 B": three digits and a power of 1000."""
    power = 0
    while abs(value) >= 999.5 and power < len(PREFIXES) - 1:
        value, power = value / 1000, power + 1
    return f"{value:.3g} {PREFIXES[power]}{unit}"


def _time(seconds: float) -> str:
    for factor, unit in ((1, "s"), (1e-3, "ms")):
        if seconds >= factor:
            return f"{seconds / factor:.3g} {unit}"
    return f"{seconds / 1e-6:.3g} µs"
