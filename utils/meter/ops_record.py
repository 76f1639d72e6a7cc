"""One operator call, the rows that sum them up, and what time they take on an accelerator."""

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import NamedTuple

from utils.arithmetic import checks
from utils.hardware import Accelerator, Machine, accelerator
from utils.meter.report import LAUNCH_SECONDS, VECTOR, Cost, Modelled

BOUNDS = ("memory", "matrix units", "vector units", "launch")


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


class Rates:
    """An accelerator that times are modelled on: a name, a row of the table, or this machine.

    launch_seconds: what one launch adds; default report.LAUNCH_SECONDS, or what was measured.
    Raises ValueError for an unknown name, a row without a bandwidth, or a wrong launch_seconds.
    """

    def __init__(self, chosen: str | Accelerator | Machine, launch_seconds: float | None = None):
        if not isinstance(chosen, Accelerator | Machine):
            chosen = accelerator(chosen)
        if chosen.bytes_per_s is None:
            raise ValueError(
                f"the table does not know the {chosen.name}'s memory bandwidth, so no time can be "
                "modelled on it: choose another, such as 'H100 SXM'"
            )
        measured = isinstance(chosen, Machine)
        if launch_seconds is None:
            launch_seconds = chosen.launch.median if measured else LAUNCH_SECONDS
        self.launch_seconds = checks.not_negative("launch_seconds", launch_seconds)
        self.name, self._chosen = chosen.name, chosen
        self._known = frozenset(chosen.matmul if measured else chosen.dtypes)

    def of(self, call: Call) -> tuple[str, float, float]:
        """What is slowest in the body of a call, the seconds of the body, those of its launches.

        The body is the longest of bytes over bandwidth, FLOPs over their dtype's peak, and vector
        FLOPs over the fp32 peak. Raises ValueError where the dtype of a product has no known peak.
        """
        dtype = "fp32" if call.dtype == "tf32" and "tf32" not in self._known else call.dtype
        flops = {dtype: call.flops}
        if "fp32" in self._known:
            flops[VECTOR] = call.vector_flops
        modelled = Cost(call.bytes_read, call.bytes_written, flops, 0).on(self._chosen)
        if modelled.seconds is None:
            raise ValueError(modelled.remark)
        slowest = max(BOUNDS[:-1], key=modelled.parts.get)
        return slowest, modelled.seconds, call.launches * self.launch_seconds

    def time(self, calls: Iterable[tuple[Call, int]]) -> Modelled:
        """All calls, each so many times, one after the other. parts: seconds by what was slowest
        in each; bound_by: the largest part, "" where there is none."""
        parts = dict.fromkeys(BOUNDS, 0.0)
        for call, times in calls:
            slowest, body, launch = self.of(call)
            parts[slowest] += times * body
            parts["launch"] += times * launch
        bound_by = max(parts, key=parts.get) if any(parts.values()) else ""
        return Modelled(self.name, sum(parts.values()), bound_by, parts)
