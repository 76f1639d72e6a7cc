"""What measure() gives back: problems first, then the counts, then what they leave out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass

from utils.meter.report import VECTOR, Cost, Modelled, amount

KINDS = {
    "out of bounds": "an address outside the tensor it was made from",
    "race": "two programs, or two lanes, whose order decides the result",
    "unwritten": "elements of an output that no program writes",
    "uninitialised read": "an output element is read before anything wrote it",
    "undefined lanes": "the result depends on lanes that a mask without `other` leaves undefined",
    "time limit": "the kernel did not finish",
    "grid": "more programs than can be launched, or metered",
    "unsupported": "something this interpreter can't do, or can't do right",
    "error": "Triton rejects the kernel",
}

NOT_MODELLED = (
    "registers, spilling and occupancy: one program on each core at a time",
    "shared memory and its bank conflicts",
    "latency: loads are assumed to be issued early enough",
    "L1 and its bandwidth, L2's bandwidth: only traffic past L2 costs time",
    "the compiler's layouts: 32 lanes run along the dimension whose addresses are contiguous",
    "merging and removal of loads by the compiler; instruction and constant caches",
    "tf32 rounding in tl.dot: fp32 operands are multiplied in fp32",
    "programs that wait for a later program: here they run one after another",
)


@dataclass(frozen=True)
class Problem:
    """One thing that is wrong. kind: a key of KINDS. index: element of the argument, or None."""

    kind: str
    message: str
    argument: str | None = None
    program: tuple[int, int, int] | None = None
    index: int | None = None
    line: int | None = None

    def __str__(self) -> str:
        return f"{self.kind}: {self.message}"


@dataclass(frozen=True)
class ArgumentReport:
    """One pointer argument. requested: bytes its accesses asked for, repeats counted. distinct:
    different bytes among them. sectors: 32-byte pieces fetched by warps; coalescing: share of
    those that were needed, None without an access."""

    name: str
    shape: tuple[int, ...]
    dtype: str
    read_bytes: int
    read_distinct_bytes: int
    read_sectors: int
    read_coalescing: float | None
    written_bytes: int
    written_distinct_bytes: int
    written_sectors: int
    written_coalescing: float | None


@dataclass(frozen=True, repr=False)
class KernelReport:
    """A metered launch. `ok`: nothing is wrong. Where the kernel was stopped, counts are of what
    ran until then. `wave`: programs that run at a time, one a core. `warnings`: legal, but worth
    knowing. `cost`: bytes past L2, FLOPs, 1 launch.
    """

    kernel: str
    grid: tuple[int, ...]
    accelerator: str
    programs: int
    programs_run: int
    waves: int
    wave: int
    arguments: tuple[ArgumentReport, ...]
    cost: Cost
    modelled: Modelled
    l2_hit_rate: float | None
    l2_capacity_bytes: int | None
    atomics: int
    problems: tuple[Problem, ...]
    warnings: tuple[str, ...]
    seconds_metered: float
    not_modelled: tuple[str, ...] = NOT_MODELLED

    @property
    def ok(self) -> bool:
        return not self.problems

    @property
    def flops(self) -> Mapping[str, int]:
        """FLOPs by precision; "vector" is everything outside tl.dot."""
        return self.cost.flops

    @property
    def dot_flops(self) -> int:
        return sum(n for precision, n in self.flops.items() if precision != VECTOR)

    @property
    def requested_bytes(self) -> int:
        """Bytes that loads, stores and atomics asked for, repeats counted."""
        return sum(a.read_bytes + a.written_bytes for a in self.arguments)

    @property
    def fewest_bytes(self) -> int:
        """Bytes if each one touched moved once: distinct bytes read and distinct bytes written."""
        return sum(a.read_distinct_bytes + a.written_distinct_bytes for a in self.arguments)

    @property
    def sectors(self) -> int:
        return sum(a.read_sectors + a.written_sectors for a in self.arguments)

    def argument(self, name: str) -> ArgumentReport:
        """The row of one argument. Raises ValueError naming those there are."""
        for row in self.arguments:
            if row.name == name:
                return row
        names = ", ".join(a.name for a in self.arguments)
        raise ValueError(f"name={name!r}: {self.kernel} has the pointer arguments {names}")

    def rows(self) -> list[dict]:
        """One dictionary an argument, for a table."""
        return [
            {
                "argument": a.name,
                "shape": " x ".join(map(str, a.shape)),
                "dtype": a.dtype,
                "read": amount(a.read_bytes, "B"),
                "written": amount(a.written_bytes, "B"),
                "distinct": amount(a.read_distinct_bytes + a.written_distinct_bytes, "B"),
                "sectors": a.read_sectors + a.written_sectors,
                "coalescing": _share(a),
            }
            for a in self.arguments
        ]

    def to_dict(self) -> dict:
        """Plain numbers, texts, lists and dictionaries."""
        plain = {
            name: getattr(self, name)
            for name in (
                "kernel", "accelerator", "programs", "programs_run", "waves", "l2_hit_rate",
                "l2_capacity_bytes", "atomics", "seconds_metered", "ok", "requested_bytes",
                "fewest_bytes", "sectors",
            )
        }  # fmt: skip
        return {
            **plain,
            "grid": list(self.grid),
            "arguments": [{**asdict(a), "shape": list(a.shape)} for a in self.arguments],
            "cost": self.cost.to_dict(),
            "modelled_seconds": self.modelled.seconds,
            "bound_by": self.modelled.bound_by,
            "problems": [
                {**asdict(p), "program": p.program and list(p.program)} for p in self.problems
            ],
            "warnings": list(self.warnings),
            "not_modelled": list(self.not_modelled),
        }

    def __str__(self) -> str:
        grid = " x ".join(map(str, self.grid))
        lines = [f"{self.kernel}, grid {grid}: {'nothing wrong' if self.ok else 'WRONG'}"]
        lines += [f"  {problem}" for problem in self.problems]
        lines += [f"  note: {warning}" for warning in self.warnings]
        if self.programs_run < self.programs:
            lines.append(f"  counts are of {self.programs_run:,} of {self.programs:,} programs")
        lines += _table(self.rows())
        hits = "" if self.l2_hit_rate is None else f", {self.l2_hit_rate:.0%} of loads hit L2"
        flops = " + ".join(f"{amount(n, 'FLOP')} {p}" for p, n in self.flops.items() if n) or "none"
        lines += [
            f"  requested {amount(self.requested_bytes, 'B')}, past L2 "
            f"{amount(self.cost.bytes_read, 'B')} read and "
            f"{amount(self.cost.bytes_written, 'B')} written{hits}",
            f"  arithmetic: {flops}",
            f"  {self.programs:,} programs in {self.waves:,} waves; {self.modelled}",
            "  not modelled: " + "; ".join(self.not_modelled),
        ]
        return "\n".join(lines)

    __repr__ = __str__


def _share(row: ArgumentReport) -> str:
    shares = [s for s in (row.read_coalescing, row.written_coalescing) if s is not None]
    return " and ".join(f"{share:.0%}" for share in shares) or "-"


def _table(rows: list[dict]) -> list[str]:
    if not rows:
        return []
    head = list(rows[0])
    cells = [head] + [[str(row[column]) for column in head] for row in rows]
    widths = [max(len(line[i]) for line in cells) for i in range(len(head))]
    return ["  " + "  ".join(c.ljust(w) for c, w in zip(line, widths, strict=True)).rstrip()
            for line in cells]  # fmt: skip
