"""One operator call, the rows that sum them up, and what time they take on an accelerator."""

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import NamedTuple

from utils.arithmetic import checks
from utils.hardware import Accelerator, Machine, accelerator

# What one launch costs where nothing measured says otherwise. Assumed: a few microseconds.
LAUNCH_SECONDS = 5e-6
BOUNDS = ("memory", "compute", "launch")


class Call(NamedTuple):
    """One call of one operator. FLOPs are those of products; the rest is vector_flops."""

    name: str
    dtype: str = ""
    flops: int = 0
    vector_flops: int = 0
    bytes_read: int = 0
    bytes_written: int = 0
    launches: int = 0
    view: bool = False
    in_place: bool = False
    matmul: bool = False


@dataclass
class Row:
    """All calls of one operator on one dtype, or of all of them.

    flops: of matrix products, convolutions and attention. vector_flops: of all else.
    view: moves nothing. in_place: writes into an argument. matmul: a library's product.
    """

    name: str
    dtype: str = ""
    calls: int = 0
    flops: int = 0
    vector_flops: int = 0
    bytes_read: int = 0
    bytes_written: int = 0
    launches: int = 0
    view: bool = False
    in_place: bool = False
    matmul: bool = False

    def add(self, call: Call, times: int) -> None:
        """Count a call some times."""
        self.calls += times
        self.flops += times * call.flops
        self.vector_flops += times * call.vector_flops
        self.bytes_read += times * call.bytes_read
        self.bytes_written += times * call.bytes_written
        self.launches += times * call.launches

    @property
    def bytes(self) -> int:
        """Bytes read and written."""
        return self.bytes_read + self.bytes_written

    @property
    def intensity(self) -> float:
        """FLOPs of both kinds per byte moved; 0 where nothing moves."""
        return (self.flops + self.vector_flops) / self.bytes if self.bytes else 0.0

    @property
    def kind(self) -> str:
        """One word on what it is: "matmul", "view", "in place" or nothing."""
        return "matmul" if self.matmul else "view" if self.view else "in place" * self.in_place

    def as_dict(self) -> dict:
        """Plain numbers and texts."""
        return asdict(self) | {"bytes": self.bytes, "intensity": self.intensity}


@dataclass(frozen=True)
class ModelledTime:
    """Modelled seconds, split by what binds: one operator after the other, nothing overlaps."""

    accelerator: str
    memory_seconds: float
    compute_seconds: float
    launch_seconds: float

    @property
    def seconds(self) -> float:
        """The whole time."""
        return self.memory_seconds + self.compute_seconds + self.launch_seconds

    @property
    def bound(self) -> str:
        """What takes most of the time: "memory", "compute" or "launch"; "" where none."""
        parts = (self.memory_seconds, self.compute_seconds, self.launch_seconds)
        return BOUNDS[parts.index(max(parts))] if max(parts) else ""

    def __str__(self) -> str:
        share = {name: getattr(self, f"{name}_seconds") / (self.seconds or 1) for name in BOUNDS}
        parts = ", ".join(f"{name} {part:.0%}" for name, part in share.items())
        return f"{si(self.seconds, 's')} modelled on {self.accelerator} ({parts})"


class Rates:
    """What the model needs of an accelerator.

    chosen: a name, a row of the table, or this machine as measured. launch_seconds: default
    LAUNCH_SECONDS, or what was measured on this machine.
    Raises ValueError for an unknown name, a row without a bandwidth, or a wrong launch_seconds.
    """

    def __init__(self, chosen: str | Accelerator | Machine, launch_seconds: float | None = None):
        if not isinstance(chosen, Accelerator | Machine):
            chosen = accelerator(chosen)
        if chosen.bytes_per_s is None:
            raise ValueError(f"the table does not know the {chosen.name}'s memory bandwidth")
        if launch_seconds is None:
            measured = isinstance(chosen, Machine)
            launch_seconds = chosen.launch.median if measured else LAUNCH_SECONDS
        self.name, self._bytes_per_s = chosen.name, chosen.bytes_per_s
        self.launch_seconds = checks.not_negative("launch_seconds", launch_seconds)
        known = chosen.matmul if isinstance(chosen, Machine) else chosen.dtypes
        self._peak = {dtype: chosen.peak(dtype) for dtype in known}
        self._refuse = chosen.peak

    def of(self, call: Call) -> tuple[str, float, float]:
        """What binds a call, the seconds of its body, the seconds of its launches.

        The body is the longer of bytes over bandwidth and FLOPs over the dtype's peak; vector
        arithmetic runs at the fp32 rate. Raises ValueError where that dtype's peak is unknown.
        """
        memory, compute, launch = self._parts(call)
        body = max(memory, compute)
        name = "launch" if launch > body else "compute" if compute > memory else "memory"
        return name, body, launch

    def time(self, calls: Iterable[tuple[Call, int]]) -> ModelledTime:
        """All calls, each so many times, one after the other."""
        total_memory = total_compute = total_launch = 0.0
        for call, times in calls:
            memory, compute, launch = self._parts(call)
            if compute > memory:
                total_compute += times * compute
            else:
                total_memory += times * memory
            total_launch += times * launch
        return ModelledTime(self.name, total_memory, total_compute, total_launch)

    def _parts(self, call: Call) -> tuple[float, float, float]:
        """Seconds of the bytes, of the FLOPs, and of the launches of one call."""
        memory = (call.bytes_read + call.bytes_written) / self._bytes_per_s
        compute = call.flops / self._rate(call.dtype) if call.flops else 0.0
        if "fp32" in self._peak:
            compute += call.vector_flops / self._peak["fp32"]
        return memory, compute, call.launches * self.launch_seconds

    def _rate(self, dtype: str) -> float:
        if dtype == "tf32" and dtype not in self._peak:
            dtype = "fp32"
        return self._peak.get(dtype) or self._refuse(dtype)


def si(value: float, unit: str) -> str:
    """Three digits with a prefix: 3.35 TB. Zero is "0"."""
    for exponent in (15, 12, 9, 6, 3, 0, -3, -6, -9):
        if value and value >= 0.9995 * 10.0**exponent:
            prefix = {15: "P", 12: "T", 9: "G", 6: "M", 3: "k", 0: "", -3: "m", -6: "µ", -9: "n"}
            return f"{value / 10.0**exponent:.3g} {prefix[exponent]}{unit}"
    return "0"
