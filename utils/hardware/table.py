"""Published figures of accelerators, from `accelerators.csv`, with the source of every row.

What the table means:
- A peak is the dense rate the vendor publishes. Sparse rates, twice as high, are not in it.
- fp32 is the ordinary vector rate. The other dtypes are the rate of the matrix units where the
  chip has them, with fp32 accumulation.
- GB, MB and KiB are as printed: memory and on-chip sizes count a GB as 10^9 bytes and an MB as
  10^6, shared memory counts a KiB as 1024.
- An empty field is unknown. Nothing is guessed.
- `status` is "verified" (sources agree, or the vendor says so), "mixed" (some fields rest on one
  source) or "unverified". `less_certain` names the fields to trust least.
"""

import csv
import difflib
import re
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from utils.arithmetic import ridge_point

TABLE = Path(__file__).with_name("accelerators.csv")
DTYPES = ("fp32", "tf32", "fp16", "bf16", "fp8", "fp4", "int8")
STATUSES = ("verified", "mixed", "unverified")

# The first compute capability whose tensor cores take the dtype (CUDA C++ Programming Guide).
# A T4 (7.5) also runs bf16, by emulation, so torch.cuda.is_bf16_supported() is True there.
FIRST_CAPABILITY = {"fp16": (7, 0), "bf16": (8, 0), "tf32": (8, 0), "fp8": (8, 9), "fp4": (10, 0)}

# Column of the file, and what one unit of it is.
_PEAKS = {dtype: f"{dtype}_{'tops' if dtype == 'int8' else 'tflops'}" for dtype in DTYPES}
_NUMBERS = {
    "bytes_per_s": ("memory_gb_per_s", 10**9),
    "memory_bytes": ("memory_gb", 10**9),
    "onchip_bytes": ("onchip_mb", 10**6),
    "cores": ("cores", 1),
    "shared_bytes_per_core": ("shared_kib_per_core", 1024),
    "boost_hz": ("boost_mhz", 10**6),
    "link_bytes_per_s": ("link_gb_per_s_per_direction", 10**9),
    "tdp_w": ("tdp_w", 1),
}
_TEXTS = ("core_kind", "link", "capability", "source", "notes")
_COLUMNS = {
    *_PEAKS.values(), *(column for column, _ in _NUMBERS.values()), *_TEXTS,
    "name", "vendor", "year", "native_bf16", "native_fp8", "status", "less_certain",
}  # fmt: skip

# Words that PyTorch or a shop puts before the name, and that nobody types.
_MAKERS = {
    "nvidia", "tesla", "geforce", "rtx", "amd", "instinct", "intel", "google", "tpu",
    "apple", "cerebras", "graphcore", "sambanova", "groq",
}  # fmt: skip
# What torch.cuda.get_device_name() says, where it does not contain the name in this table.
_ALSO_CALLED = {
    "NVIDIA H100 80GB HBM3": "H100 SXM",
    "NVIDIA H200": "H200 SXM",
    "NVIDIA B200": "B200 SXM (HGX)",
    "NVIDIA GB200": "GB200 (per GPU)",
}


@dataclass(frozen=True)
class Accelerator:
    """One row of the table. Unknown numbers are None, unknown texts are empty.

    bytes_per_s is the memory's bandwidth; link_bytes_per_s the interconnect's, one direction;
    onchip_bytes the last cache or the on-chip memory; cores counts what `core_kind` says.
    """

    name: str
    vendor: str
    year: int | None
    peaks: dict[str, float] = field(hash=False)
    bytes_per_s: float | None
    memory_bytes: int | None
    onchip_bytes: int | None
    cores: int | None
    core_kind: str
    shared_bytes_per_core: int | None
    boost_hz: float | None
    link_bytes_per_s: float | None
    link: str
    tdp_w: int | None
    capability: str
    native_bf16: bool | None
    native_fp8: bool | None
    status: str
    less_certain: tuple[str, ...]
    source: str
    notes: str

    @property
    def dtypes(self) -> tuple[str, ...]:
        """The dtypes whose peak is known."""
        return tuple(dtype for dtype in DTYPES if dtype in self.peaks)

    def peak(self, dtype: str) -> float:
        """Published dense peak in FLOP/s (operations/s for int8).

        Raises ValueError where the chip has none, or the table does not know it.
        """
        _check_dtype(dtype)
        if dtype in self.peaks:
            return self.peaks[dtype]
        known = f"Known here: {', '.join(self.dtypes) or 'none'}."
        if self.native(dtype) is False:
            raise ValueError(
                f"dtype={dtype!r}: the {self.name} has no native {dtype}, so no peak. {known}"
            )
        raise ValueError(
            f"dtype={dtype!r}: the table does not know the {self.name}'s {dtype} peak. {known}"
        )

    def native(self, dtype: str) -> bool | None:
        """Does the hardware compute in this dtype, not by emulation? None: the table can't say.

        On NVIDIA bf16 and tf32 need compute capability 8.0, fp8 8.9.
        """
        _check_dtype(dtype)
        if dtype == "bf16":
            return self.native_bf16
        if dtype == "fp8":
            return self.native_fp8
        if dtype == "fp32" or dtype in self.peaks:
            return True
        return native_on_nvidia(dtype, self.capability) if self.vendor == "NVIDIA" else None

    def ridge_point(self, dtype: str) -> float:
        """FLOP per byte above which the peak limits, below which the memory does.

        Raises ValueError where the peak or the bandwidth is unknown.
        """
        if self.bytes_per_s is None:
            raise ValueError(f"the table does not know the {self.name}'s memory bandwidth")
        return ridge_point(self.peak(dtype), self.bytes_per_s)


def native_on_nvidia(dtype: str, capability: str | tuple[int, int]) -> bool | None:
    """Do the tensor cores of this compute capability take the dtype? fp32 always counts.

    capability: "8.0" or (8, 0), as torch.cuda.get_device_capability() returns it.
    None where the table has no rule (int8). Raises ValueError for a wrong dtype or capability.
    Source: CUDA C++ Programming Guide, compute capabilities.
    """
    _check_dtype(dtype)
    if isinstance(capability, str):
        if not re.fullmatch(r"\d+\.\d", capability):
            raise ValueError(f"capability={capability!r}: expected a text such as '8.0'")
        major, minor = capability.split(".")
        capability = (int(major), int(minor))
    if dtype == "fp32":
        return True
    first = FIRST_CAPABILITY.get(dtype)
    return None if first is None else tuple(capability) >= first


def accelerators() -> list[Accelerator]:
    """Every accelerator of the table, in its order."""
    return list(_table())


def accelerator(name: str) -> Accelerator:
    """The accelerator of that name: "A100 80GB SXM", "t4", "4090", "NVIDIA A100-SXM4-80GB".

    Capitals, punctuation and maker's words don't matter. A short form works when it fits one row
    only: "H200" is one card, "H100" is two. Raises ValueError naming the candidates, or near names.
    """
    if not isinstance(name, str) or not name.strip():
        raise ValueError(f"name={name!r}: expected a text such as 'A100 80GB SXM'")
    wanted = _words(name)
    also = {_words(alias): row for alias, row in _ALSO_CALLED.items()}
    rows = {row.name: row for row in _table()}
    for row in rows.values():
        if _words(row.name) == wanted:
            return row
    if wanted in also:
        return rows[also[wanted]]
    fits = [row for row in rows.values() if _fits(wanted, _words(row.name))]
    fits = fits or [row for row in rows.values() if row.name.lower().startswith(name.lower())]
    if len(fits) == 1:
        return fits[0]
    if fits:
        names = ", ".join(repr(row.name) for row in fits)
        raise ValueError(f"name={name!r} fits {len(fits)} accelerators. Say which: {names}")
    plain = {" ".join(_words(row)): row for row in rows}
    near = difflib.get_close_matches(" ".join(wanted), plain, n=3, cutoff=0.4)
    hint = ", ".join(repr(plain[match]) for match in near)
    hint = f"Near names: {hint}." if hint else f"It has: {', '.join(rows)}."
    raise ValueError(f"name={name!r}: the table has no such accelerator. {hint}")


def _words(name: str) -> tuple[str, ...]:
    """Lower-case words, makers dropped, "SXM4" as "sxm": what two spellings have in common."""
    words = re.findall(r"[a-z0-9.]+", name.lower())
    return tuple(re.sub(r"^sxm\d$", "sxm", word) for word in words if word not in _MAKERS)


def _fits(short: tuple[str, ...], full: tuple[str, ...]) -> bool:
    """Is each short word the beginning of some full word, and the first of the first?"""
    if not short or not full or not full[0].startswith(short[0]):
        return False
    return all(any(word.startswith(part) for word in full) for part in short)


def _check_dtype(dtype: str) -> None:
    if not isinstance(dtype, str) or dtype not in DTYPES:
        raise ValueError(f"dtype={dtype!r}: expected one of {', '.join(DTYPES)}")


@cache
def _table() -> tuple[Accelerator, ...]:
    return read_table(TABLE)


def read_table(path: Path) -> tuple[Accelerator, ...]:
    """Read and validate a table. Raises ValueError naming the file, the row and the column."""
    with path.open(encoding="utf-8", newline="") as file:
        reader = csv.DictReader(file)
        if set(reader.fieldnames or ()) != _COLUMNS:
            odd = sorted(_COLUMNS ^ set(reader.fieldnames or ()))
            raise ValueError(f"{path.name}: columns missing or unknown: {', '.join(odd)}")
        rows = tuple(_read_row(_Row(path.name, row)) for row in reader)
    names = [row.name.lower() for row in rows]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ValueError(f"{path.name}: these names appear twice: {', '.join(twice)}")
    return rows


class _Row:
    """One row being read: gives typed fields, and errors that say where they are."""

    def __init__(self, file: str, fields: dict[str, str]):
        self.file, self.fields = file, fields

    def wrong(self, column: str, allowed: str) -> ValueError:
        where = f"{self.file}, row {self.fields.get('name')!r}, column {column}"
        return ValueError(f"{where}: {self.fields.get(column)!r} is not {allowed}")

    def text(self, column: str, required: bool = False) -> str:
        text = self.fields.get(column)
        if text is None or text != text.strip() or (required and not text):
            raise self.wrong(column, "a text without spaces around it")
        return text

    def number(self, column: str, unit: int = 1) -> float | None:
        text = self.text(column)
        if not text:
            return None
        if not re.fullmatch(r"\d+(\.\d+)?", text) or float(text) == 0:
            raise self.wrong(column, "a positive number, or empty where unknown")
        value = float(text) * unit
        return int(value) if value == int(value) else value

    def choice(self, column: str, allowed: dict):
        text = self.text(column)
        if text not in allowed:
            raise self.wrong(column, f"one of {', '.join(map(repr, allowed))}")
        return allowed[text]


def _read_row(row: _Row) -> Accelerator:
    peaks = {dtype: row.number(column, 10**12) for dtype, column in _PEAKS.items()}
    less_certain = tuple(row.text("less_certain").split())
    if not set(less_certain) <= _COLUMNS | {"all"}:
        raise row.wrong("less_certain", "a list of columns separated by spaces, or 'all'")
    year = row.number("year")
    if year is not None and not (isinstance(year, int) and 2000 < year < 2100):
        raise row.wrong("year", "a year")
    yes_no = {"yes": True, "no": False, "": None}
    native = {dtype: row.choice(f"native_{dtype}", yes_no) for dtype in ("bf16", "fp8")}
    if row.text("vendor", required=True) == "NVIDIA":
        for dtype, said in native.items():
            try:
                rule = native_on_nvidia(dtype, row.text("capability"))
            except ValueError:
                raise row.wrong("capability", "a compute capability such as '8.0'") from None
            if said is not rule:
                raise row.wrong(f"native_{dtype}", "what the compute capability says")
    for dtype, said in native.items():
        if peaks[dtype] is not None and said is False:
            raise row.wrong(f"native_{dtype}", f"'yes' or empty, for a row with a {dtype} peak")
    return Accelerator(
        name=row.text("name", required=True),
        vendor=row.text("vendor", required=True),
        year=year,
        peaks={dtype: float(peak) for dtype, peak in peaks.items() if peak is not None},
        native_bf16=native["bf16"],
        native_fp8=native["fp8"],
        status=row.choice("status", {status: status for status in STATUSES}),
        less_certain=less_certain,
        **{name: row.number(column, unit) for name, (column, unit) in _NUMBERS.items()},
        **{name: row.text(name, required=name == "source") for name in _TEXTS},
    )
