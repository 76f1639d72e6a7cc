"""The meter for PyTorch: FLOPs, bytes and launches of any code, on real tensors or fake ones.

    with meter("H100 SXM") as m:
        model(tokens).sum().backward()
    print(m)

On fake tensors (torch._subclasses.FakeTensorMode) nothing is computed and no memory is held, so a
model of any size is metered by its shapes alone. Leave fake tensors on the CPU: without a GPU, fake
CUDA and meta tensors take attention apart into products, and its traffic grows.

Meter the plain function, not what torch.compile made of it: under the meter PyTorch 2.13 runs the
plain one, and one that it has not compiled by then may stay uncompiled.
"""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from utils.hardware import Accelerator, Machine
from utils.meter.ops_record import Call, Rates, Row
from utils.meter.report import Modelled, amount

NOT_MODELLED = (
    "Caches: each operator reads its inputs from memory and writes its outputs to memory.",
    "Overlap: operators run one after the other, and each launch adds its whole cost.",
    "Efficiency: each operator reaches the full bandwidth or the full dense peak.",
    "Values: an index or a mask counts as many different elements as it could reach.",
    "Masks in attention: all pairs of query and key count, as in PyTorch's counter.",
    "torch.compile: counted as the program before compiling, or not at all in older PyTorch.",
    "Your own Triton or CUDA kernels and sparse tensors: not counted.",
    "FLOPs inside one-operator layers (an LSTM, the encoder layer's fast path): not counted.",
    "Scratch memory inside an operator: not part of the peak.",
)


@contextmanager
def meter(
    accelerator: str | Accelerator | Machine | None = None, *, launch_seconds: float | None = None
) -> Iterator["Meter"]:
    """Meter the PyTorch code inside the `with`, forward and backward. Meters may be nested.

    accelerator: a name such as "H100 SXM", a row of the table, or this machine as measured; what
        times are modelled on. It can also be named later, or not at all.
    launch_seconds: what one launch adds; default report.LAUNCH_SECONDS, or what was measured.
    Raises ValueError for an accelerator that the table does not have.
    """
    from utils.meter.ops_dispatch import Recorder
    from utils.meter.ops_memory import LiveBytes

    if accelerator is not None:
        Rates(accelerator, launch_seconds)
    memory = LiveBytes()
    metered = Meter(memory, accelerator, launch_seconds)
    try:
        with Recorder(metered._record, memory):
            yield metered
    finally:
        memory.stop()


class Meter:
    """What was metered. Modelled times need an accelerator, here or in meter().

    peak_bytes: most bytes of tensors alive at once; existing_bytes: those that were there before
    and were used; peak_at: the operator that reached the peak. All devices count together.
    """

    def __init__(self, memory, accelerator, launch_seconds):
        self._memory = memory
        self._accelerator, self._launch_seconds = accelerator, launch_seconds
        self._same: dict[Call, Call] = {}  # equal calls share one object: a long run stays small
        self._times: Counter[Call] = Counter()
        self._calls: list[Call] = []
        self.peak_at = ""

    def _record(self, call: Call, new_peak: bool) -> None:
        self._calls.append(self._same.setdefault(call, call))
        self._times[call] += 1
        if new_peak:
            self.peak_at = call.name

    # --- counted ---------------------------------------------------------------------------------

    def rows(self) -> list[Row]:
        """A row for each operator and dtype, the one that moves most bytes first, views last."""
        found: dict[tuple, Row] = {}
        for call, times in self._times.items():
            made = Row(
                call.name, call.dtype, view=call.view, in_place=call.in_place, matmul=call.matmul
            )
            found.setdefault(_key(call), made).add(call, times)
        return sorted(found.values(), key=lambda row: (-row.bytes, -row.calls))

    @property
    def total(self) -> Row:
        """All operators together."""
        row = Row("total")
        for call, times in self._times.items():
            row.add(call, times)
        return row

    @property
    def flops(self) -> int:
        """FLOPs of matrix products, convolutions and attention."""
        return self.total.flops

    @property
    def bytes(self) -> int:
        """Bytes read and written."""
        return self.total.bytes

    @property
    def launches(self) -> int:
        """Kernels launched."""
        return self.total.launches

    @property
    def intensity(self) -> float:
        """FLOPs per byte moved."""
        return self.total.intensity

    @property
    def peak_bytes(self) -> int:
        """Most bytes of tensors alive at once, existing ones included."""
        return self._memory.peak

    @property
    def existing_bytes(self) -> int:
        """Bytes of the tensors that were there before, as far as an operator used them."""
        return self._memory.existing

    # --- modelled --------------------------------------------------------------------------------

    def time(
        self,
        accelerator: str | Accelerator | Machine | None = None,
        *,
        launch_seconds: float | None = None,
    ) -> Modelled:
        """Modelled time and what binds: per call the longer of bytes and FLOPs, plus launches.

        Raises ValueError where no accelerator was named, or it has no peak for a dtype used.
        """
        return self._rates(accelerator, launch_seconds).time(self._times.items())

    def timeline(
        self,
        accelerator: str | Accelerator | Machine | None = None,
        *,
        launch_seconds: float | None = None,
    ) -> list[dict]:
        """One dict a call that launches, in order: start and seconds, name, bound_by."""
        rates = self._rates(accelerator, launch_seconds)
        start, rows = 0.0, []
        for call in self._calls:
            if call.launches:
                slowest, body, launch = rates.of(call)
                rows.append(
                    {
                        "start": start,
                        "seconds": body + launch,
                        "name": call.name,
                        "bound_by": slowest if body >= launch else "launch",
                    }
                )
                start += body + launch
        return rows

    # --- reported --------------------------------------------------------------------------------

    def table(self, accelerator: str | Accelerator | Machine | None = None) -> list[dict]:
        """The rows and the total, as texts with units. With an accelerator, its modelled time."""
        rows = [*self.rows(), self.total]
        times = self._row_times(rows, accelerator)
        lines = []
        for row, time in zip(rows, times, strict=True):
            line = {
                "op": row.name,
                "dtype": row.dtype,
                "kind": row.kind,
                "calls": row.calls,
                "FLOPs": amount(row.flops, "FLOP"),
                "vector FLOPs": amount(row.vector_flops, "FLOP"),
                "read": amount(row.bytes_read, "B"),
                "written": amount(row.bytes_written, "B"),
                "launches": row.launches,
                "FLOP/byte": f"{row.intensity:.3g}",
            }
            if time is not None:
                line |= {"modelled": f"{time.seconds * 1e3:.3g} ms", "bound by": time.bound_by}
            lines.append(line)
        return lines

    def as_dict(self, accelerator: str | Accelerator | Machine | None = None) -> dict:
        """Everything as plain numbers, texts and lists, ready for JSON."""
        rows = [*self.rows(), self.total]
        lines = [row.as_dict() for row in rows]
        times = self._row_times(rows, accelerator)
        for line, time in zip(lines, times, strict=True):
            if time is not None:
                line |= {"seconds": time.seconds, "bound_by": time.bound_by}
        return {
            "accelerator": None if times[-1] is None else times[-1].accelerator,
            "total": lines.pop(),
            "rows": lines,
            "peak_bytes": self.peak_bytes,
            "existing_bytes": self.existing_bytes,
            "peak_at": self.peak_at,
            "not_modelled": list(NOT_MODELLED),
        }

    def __str__(self) -> str:
        table = self.table()
        lines = [list(table[0]), *([str(cell) for cell in line.values()] for line in table)]
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        text = ["  ".join(map(str.ljust, line, widths)).rstrip() for line in lines]
        text.append(
            f"At most {amount(self.peak_bytes, 'B')} of tensors alive at once; "
            f"{amount(self.existing_bytes, 'B')} of them were there before."
        )
        if self._accelerator is not None:
            text.append(str(self.time()))
        return "\n".join([*text, "Not modelled:", *(f"- {line}" for line in NOT_MODELLED)])

    __repr__ = __str__

    def _row_times(self, rows: list[Row], accelerator) -> list[Modelled | None]:
        """The modelled time of each row, the total last; Nones without an accelerator."""
        if accelerator is None and self._accelerator is None:
            return [None] * len(rows)
        rates, calls = self._rates(accelerator, None), {}
        for call, times in self._times.items():
            calls.setdefault(_key(call), []).append((call, times))
        return [rates.time(calls[_key(row)]) for row in rows[:-1]] + [
            rates.time(self._times.items())
        ]

    def _rates(self, accelerator, launch_seconds) -> Rates:
        chosen = self._accelerator if accelerator is None else accelerator
        if chosen is None:
            raise ValueError(
                "accelerator is None; allowed: a name such as 'H100 SXM', here or in meter()"
            )
        return Rates(chosen, self._launch_seconds if launch_seconds is None else launch_seconds)


def _key(made: Call | Row) -> tuple:
    """What calls of one row have in common."""
    return made.name, made.dtype, made.view, made.in_place
