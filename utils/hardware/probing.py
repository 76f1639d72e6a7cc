"""Measure this machine once, and remember the result for as long as it is the same machine."""

import contextlib
import datetime
import json
import time
from collections.abc import Callable, Iterator

from utils import answers_folder
from utils.files import write_whole
from utils.hardware import measures, store, system
from utils.hardware.machine import (
    BUSY,
    FORMAT,
    QUIET,
    Machine,
    Measured,
    binary_size,
    summarise,
)
from utils.hardware.table import native_on_nvidia
from utils.hardware.timing import time_samples

DTYPES = {
    "cpu": ("fp32", "bf16", "fp16"),
    "cuda": ("fp32", "tf32", "bf16", "fp16", "fp8", "int8"),
    "mps": ("fp32", "bf16", "fp16"),
}
# Rounds, so that a busy moment falls on a part of every number and not on the whole of one.
ROUNDS = 3
PART_SECONDS = 12  # a part that took this long starts no further round
MATMUL_SECONDS = 0.25
COPY_SECONDS = 0.06
LAUNCH_SECONDS = 0.1
SLOW = 1 / 4  # of the fp32 rate: then the dtype has no fast hardware here


def probe(force: bool = False, progress: Callable[[str], object] = print) -> Machine:
    """This machine, measured: matmul rates, copy bandwidths, the cost of a tiny op.

    Takes about 12 s on two cores the first time, and says what it does through `progress`. The
    result is kept in answers/machine.json and used until the device, the number of cores or
    threads, Python, torch or triton change, or force=True. One taken on a busy machine is taken
    again when the machine is quiet. A file that can't be read is renamed, never overwritten.
    Raises RuntimeError with one sentence where PyTorch is missing or can't multiply.
    """
    file = answers_folder() / "machine.json"
    with store.alone(file.with_suffix(".lock"), progress):
        device = pick_device(progress)
        if not force:
            saved = store.read(file, progress)
            changes = _changes(saved, device) if saved else []
            if saved and not changes:
                return Machine.from_json(saved)
            if saved:
                progress(f"Measuring this machine again, because {'; '.join(changes)}.")
        machine = measure(device, progress)
        try:
            write_whole(file, json.dumps(machine.to_json(), indent=1))
        except OSError as error:
            progress(f"The result could not be saved to {file}: {error.strerror}.")
    return machine


def load_machine(progress: Callable[[str], object] = print) -> Machine | None:
    """The saved result if it is of this machine as it is now, else None. Measures nothing."""
    file = answers_folder() / "machine.json"
    saved = store.read(file, progress)
    if not saved or _changes(saved, pick_device(progress)):
        return None
    return Machine.from_json(saved)


def pick_device(progress: Callable[[str], object] = print) -> str:
    """ "cuda" if a GPU is there and can add, else "mps", else "cpu"."""
    torch = _torch()
    for device, there in (("cuda", torch.cuda), ("mps", torch.backends.mps)):
        if there.is_available():
            try:
                torch.ones(2, device=device).sum().item()
                return device
            except RuntimeError as error:
                reason = str(error).splitlines()[0]
                progress(f"A GPU is there, but PyTorch can't use it: {reason} Using the CPU.")
    return "cpu"


def identity(device: str) -> dict[str, object]:
    """What makes this the same machine tomorrow."""
    torch = _torch()
    known = {
        "device": device,
        "name": system.cpu_name(),
        "cpu": system.cpu_name(),
        "cores": system.cores(),
        "threads": torch.get_num_threads(),
        "system": system.system_name(),
    }
    if device == "cuda":
        known["name"] = torch.cuda.get_device_name()
        known["capability"] = capability()
    return known


def versions() -> dict[str, str]:
    """Versions the measured rates depend on. "" is absent."""
    torch = _torch()
    return {
        "python": system.python_version(),
        "torch": str(torch.__version__),
        "triton": system.version("triton"),
        "cuda": str(torch.version.cuda or torch.version.hip or ""),
    }


def capability() -> str:
    """Of the GPU in use: "8.0" on NVIDIA, "gfx942" on AMD."""
    torch = _torch()
    if torch.version.hip:
        return torch.cuda.get_device_properties().gcnArchName.split(":")[0]
    return "{}.{}".format(*torch.cuda.get_device_capability())


def measure(device: str, progress: Callable[[str], object] = print) -> Machine:
    """Measure now, on this device, and save nothing."""
    start, load = time.perf_counter(), system.load()
    known = identity(device)
    progress(f"Measuring {known['name']}. It takes about 12 s, once.")
    if _above(load, BUSY):
        progress("  Other programs are using this machine. Expect low and scattered numbers.")
    matmul, sizes, remarks = _measure_matmul(device, progress)
    copy = _measure_copy(device, progress)
    progress("  3/3 one tiny operation ...")
    seconds = time_samples(measures.tiny_op(device), min_seconds=LAUNCH_SECONDS)
    launch = summarise(seconds, "s")
    progress(f"      {launch}")
    machine = Machine(
        device=device,
        name=str(known["name"]),
        matmul=matmul,
        matmul_size=sizes,
        copy=copy,
        launch=launch,
        caches=measures.caches(device),
        remarks=remarks,
        identity=known,
        versions=versions(),
        date=datetime.date.today().isoformat(),
        load=load,
        seconds=round(time.perf_counter() - start, 1),
    )
    if machine.noise:
        progress(machine.noise)
    return machine


def _measure_matmul(device: str, progress: Callable) -> tuple[dict, dict, dict]:
    start = time.perf_counter()
    sizes: dict[str, int] = {}
    remarks: dict[str, str] = {}
    rates: dict[str, list[float]] = {}
    progress(f"  1/3 matrix products in {', '.join(DTYPES[device])} ...")
    for dtype in DTYPES[device]:
        missing = _cannot(dtype, device)
        if missing:
            remarks[dtype] = missing
            continue
        try:
            with _precision(dtype):
                sizes[dtype] = measures.best_matmul_size(dtype, device)
            rates[dtype] = []
        except (RuntimeError, AttributeError, TypeError, NotImplementedError) as error:
            remarks[dtype] = f"Not measured: {(str(error) or 'no reason given').splitlines()[0]}"
    if not {"fp32", "bf16", "fp16"} & set(rates):
        raise RuntimeError(f"PyTorch could not multiply on {device}. {remarks.get('fp32', '')}")
    for _ in _rounds(start):
        for dtype, n in sizes.items():
            with _precision(dtype):
                call = measures.matmul(dtype, device, n)
                seconds = time_samples(call, min_seconds=MATMUL_SECONDS)
            rates[dtype] += [measures.matmul_flops(n) / each for each in seconds]
    measured = {}
    for dtype, samples in rates.items():
        unit = "OP/s" if dtype == "int8" else "FLOP/s"
        measured[dtype] = summarise(samples, unit)
        progress(f"      {dtype}, {sizes[dtype]} x {sizes[dtype]}: {measured[dtype]}")
        if "fp32" in measured and measured[dtype].median < SLOW * measured["fp32"].median:
            remarks[dtype] = "Slow here: no fast hardware for it, or none that PyTorch uses."
    return measured, sizes, remarks


def _measure_copy(device: str, progress: Callable) -> list[tuple[int, Measured]]:
    start = time.perf_counter()
    samples: dict[int, list[float]] = {}
    smallest, largest = (binary_size(size) for size in measures.copy_range(device))
    progress(f"  2/3 copies, from {smallest} to {largest} ...")
    copies = list(measures.copies(device))
    for _ in _rounds(start):
        for size, call in copies:
            seconds = time_samples(call, min_seconds=COPY_SECONDS)
            samples.setdefault(size, []).extend(size / each for each in seconds)
    measured = [(size, summarise(rates, "B/s")) for size, rates in samples.items()]
    for size, rate in (max(measured, key=lambda point: point[1].median), measured[-1]):
        progress(f"      {binary_size(size)}: {rate}")
    return measured


def _rounds(start: float) -> Iterator[int]:
    """Count the rounds: at least one, fewer than planned on a machine too busy for them."""
    for number in range(ROUNDS):
        if number == 0 or time.perf_counter() - start < PART_SECONDS:
            yield number


def _cannot(dtype: str, device: str) -> str:
    """Why this dtype can't run natively on this GPU, or ""."""
    if device != "cuda" or dtype not in ("tf32", "fp8"):
        return ""
    if _torch().version.hip:
        return "Not measured on AMD." if dtype == "tf32" else ""
    found = capability()
    if native_on_nvidia(dtype, found):
        return ""
    return f"Not measured: compute capability {found} has no {dtype}."


@contextlib.contextmanager
def _precision(dtype: str):
    """fp32 products in full fp32, tf32 products in TF32; afterwards as the reader had it."""
    torch = _torch()
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("high" if dtype == "tf32" else "highest")
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)


def _torch():
    try:
        import torch
    except (ImportError, OSError) as error:
        reason = str(error).splitlines()[0]
        raise RuntimeError(
            f"PyTorch is not there ({reason}). `python3 course.py lab` installs it."
        ) from None
    return torch


def _changes(saved: dict, device: str) -> list[str]:
    """What differs between the saved machine and this one, in words."""
    if saved["format"] != FORMAT:
        return ["the saved file has an older format"]
    if _above(saved["load"], BUSY) and not _above(system.load(), QUIET):
        return ["it was busy the last time and is quiet now"]
    now = {**identity(device), **versions()}
    then = {**saved["identity"], **saved["versions"]}
    return [
        f"{key} was {then.get(key) or 'absent'} and is {now.get(key) or 'absent'}"
        for key in dict.fromkeys([*now, *then])
        if now.get(key) != then.get(key)
    ]


def _above(load: float | None, limit: float) -> bool:
    return load is not None and load > limit
