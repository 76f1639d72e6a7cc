"""What was measured of one machine: numbers with their spread, and how they are saved."""

import math
import statistics
from dataclasses import asdict, dataclass

from utils.arithmetic import ridge_point

FORMAT = 1
NOISY = 1.3  # high over low
BUSY, QUIET = 0.75, 0.4  # programs per core that want to run
PLAIN_DTYPES = ("bf16", "fp16", "fp32")  # what an ordinary torch matmul takes


@dataclass(frozen=True)
class Measured:
    """A measured number: the median of its samples, and the 10th and 90th percentile."""

    median: float
    low: float
    high: float
    unit: str

    @property
    def noisy(self) -> bool:
        """Do the samples differ by more than 1.3 times?"""
        return self.high > NOISY * self.low

    def __str__(self) -> str:
        factor, prefix = _scale(self.median)
        spread = f"{_three(self.low / factor)} to {_three(self.high / factor)}"
        return f"{_three(self.median / factor)} {prefix}{self.unit} measured ({spread})"


def summarise(samples: list[float], unit: str) -> Measured:
    """The Measured of these samples. Raises ValueError without any."""
    if not samples:
        raise ValueError("samples=[]: expected at least one number")
    ordered = sorted(samples)
    cut = len(ordered) // 10
    return Measured(statistics.median(ordered), ordered[cut], ordered[-1 - cut], unit)


@dataclass(frozen=True)
class Machine:
    """One machine as measured on a date.

    device: "cpu", "cuda" or "mps". name: the CPU's or the GPU's.
    matmul: FLOP/s by dtype. matmul_size: the n of its (n, n) @ (n, n) product.
    copy: (working set in bytes, bytes/s counting read and write), smallest first.
    launch: seconds for one tiny operation. caches: bytes as the system reports them, may be {}.
    remarks: what to know about a dtype, e.g. why it was not measured.
    load: programs per core that wanted to run before the probe began, None where unknown.
    """

    device: str
    name: str
    matmul: dict[str, Measured]
    matmul_size: dict[str, int]
    copy: list[tuple[int, Measured]]
    launch: Measured
    caches: dict[str, int]
    remarks: dict[str, str]
    identity: dict[str, object]
    versions: dict[str, str]
    date: str
    load: float | None
    seconds: float

    def peak(self, dtype: str) -> float:
        """Measured matmul rate in FLOP/s. Raises ValueError where it was not measured."""
        if dtype not in self.matmul:
            why = self.remarks.get(dtype, "")
            raise ValueError(
                f"dtype={dtype!r} was not measured on this machine."
                f"{' ' + why if why else ''} Measured: {', '.join(self.matmul)}."
            )
        return self.matmul[dtype].median

    @property
    def bytes_per_s(self) -> float:
        """Copy bandwidth past the caches: that of the largest working set."""
        return self.copy[-1][1].median

    def ridge_point(self, dtype: str) -> float:
        """FLOP per byte above which arithmetic limits this machine, below which memory does."""
        return ridge_point(self.peak(dtype), self.bytes_per_s)

    @property
    def best_dtype(self) -> str:
        """The fastest of bf16, fp16 and fp32; bf16 also when it is within 10% of the fastest."""
        rates = {dtype: self.peak(dtype) for dtype in PLAIN_DTYPES if dtype in self.matmul}
        fastest = max(rates, key=rates.get)
        return "bf16" if rates.get("bf16", 0) >= 0.9 * rates[fastest] else fastest

    @property
    def noise(self) -> str:
        """What disturbed the measurement and what to do, or "" on a quiet machine.

        Two threads that share a core with another program wait for each other at every step,
        the same in each sample, so the rates can be low without being scattered.
        """
        said = []
        if self.load is not None and self.load > BUSY:
            said.append(
                f"Other programs were running ({self.load:.1f} per core), so rates may be too low."
            )
        # Small working sets always vary: only the one that later chapters use is named.
        numbers = {f"{dtype} matmul": rate for dtype, rate in self.matmul.items()}
        numbers |= {"copy past the caches": self.copy[-1][1], "one tiny op": self.launch}
        noisy = [name for name, measured in numbers.items() if measured.noisy]
        if noisy:
            said.append(f"Varied by more than {NOISY} times between samples: {', '.join(noisy)}.")
        if said:
            said.append("Close other programs and measure again with probe(force=True).")
        return " ".join(said)

    def __str__(self) -> str:
        cores, threads = self.identity.get("cores"), self.identity.get("threads")
        on = f"{cores} cores, {threads} threads" if self.device == "cpu" else self.device
        lines = [f"{self.name} ({on}), measured {self.date}"]
        lines += [_line(f"{dtype} matmul", rate) for dtype, rate in self.matmul.items()]
        fastest = max(self.copy, key=lambda point: point[1].median)
        lines.append(_line(f"copy, {binary_size(fastest[0])} at once", fastest[1]))
        lines.append(_line("copy past the caches", self.copy[-1][1]))
        lines.append(_line("one tiny op", self.launch))
        dtype = self.best_dtype
        ridge = f"{self.ridge_point(dtype):.3g} FLOP/byte"
        lines.append(f"  {dtype + ' ridge point':24}{ridge:>16}  measured (peak over copy)")
        lines += [f"  {dtype}: {remark}" for dtype, remark in self.remarks.items()]
        return "\n".join([*lines, self.noise] if self.noise else lines)

    def to_json(self) -> dict:
        """Plain dicts, lists and numbers."""
        return {"format": FORMAT, **asdict(self)}

    @classmethod
    def from_json(cls, saved: dict) -> "Machine":
        """The inverse of to_json(). Raises KeyError, TypeError or ValueError if it isn't one."""
        fields = {key: value for key, value in saved.items() if key != "format"}
        fields["matmul"] = {key: _measured(value) for key, value in fields["matmul"].items()}
        fields["copy"] = [(int(size), _measured(value)) for size, value in fields["copy"]]
        fields["launch"] = _measured(fields["launch"])
        machine = cls(**fields)
        if not machine.copy or not any(dtype in machine.matmul for dtype in PLAIN_DTYPES):
            raise ValueError("no copies or no matmul rates")
        return machine


def _measured(saved: dict) -> Measured:
    measured = Measured(**saved)
    for value in (measured.median, measured.low, measured.high):
        if not isinstance(value, int | float) or not math.isfinite(value) or value <= 0:
            raise ValueError(f"{value!r} is not a measured number")
    return measured


def _line(what: str, measured: Measured) -> str:
    factor, prefix = _scale(measured.median)
    number = f"{_three(measured.median / factor)} {prefix}{measured.unit}"
    spread = f"{_three(measured.low / factor)} to {_three(measured.high / factor)}"
    return f"  {what:24}{number:>16}  measured ({spread})"


def _three(value: float) -> str:
    """Three significant digits, never as 1.14e+03."""
    return f"{value:.0f}" if value >= 1000 else f"{value:.3g}"


def _scale(value: float) -> tuple[float, str]:
    """The power of 1000 to divide by, and its prefix."""
    prefixes = {-9: "n", -6: "µ", -3: "m", 0: "", 3: "k", 6: "M", 9: "G", 12: "T", 15: "P"}
    power = 3 * math.floor(math.log10(value) / 3)
    power = min(max(power, -9), 15)
    return 10.0**power, prefixes[power]


def binary_size(size: int) -> str:
    """ "32 KiB", "1 GiB"."""
    for unit, name in ((2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB")):
        if size >= unit:
            return f"{size / unit:.3g} {name}"
    return f"{size} bytes"
