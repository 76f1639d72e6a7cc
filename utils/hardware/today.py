"""What this machine can do today: the facts that `python3 course.py doctor` reports."""

import shutil
import subprocess

from utils import ROOT
from utils.hardware import system
from utils.hardware.table import native_on_nvidia


def features() -> dict[str, object]:
    """Facts about Python, torch, triton, GPU, memory and disk. Never raises, measures nothing.

    python, torch, triton   versions, "" where absent
    torch_error             why an installed torch does not import, or ""
    system, cpu, cores, memory_gb, free_disk_gb (of the course's disk; a GB is 10^9 bytes)
    device                  what PyTorch will use: "cuda", "mps", "cpu", or "" without PyTorch
    gpu, capability         name and compute capability, "" where there is none; also of an NVIDIA
                            GPU that this PyTorch can't use
    gpu_memory_gb           of the GPU in use, else None
    native_bf16, native_fp8 of the GPU if there is one, else of the CPU; by hardware, not by
                            emulation. None: not known
    """
    torch, torch_error = _import_torch()
    facts: dict[str, object] = {
        "python": system.python_version(),
        "torch": str(torch.__version__) if torch else system.version("torch"),
        "torch_error": torch_error,
        "triton": system.version("triton") or system.version("triton-windows"),
        "system": system.system_name(),
        "cpu": system.cpu_name(),
        "cores": system.cores(),
        "memory_gb": _gb(system.memory_bytes()),
        "free_disk_gb": _gb(system.free_disk_bytes(ROOT)),
        "device": "cpu" if torch else "",
        "gpu": "",
        "capability": "",
        "gpu_memory_gb": None,
    }
    if torch and torch.cuda.is_available():
        gpu = torch.cuda.get_device_properties(0)
        facts.update(device="cuda", gpu=gpu.name, gpu_memory_gb=_gb(gpu.total_memory))
        nvidia = not torch.version.hip
        facts["capability"] = f"{gpu.major}.{gpu.minor}" if nvidia else gpu.gcnArchName
    elif torch and torch.backends.mps.is_available():
        facts.update(device="mps", gpu=f"{facts['cpu']} (Metal)")
    else:
        facts["gpu"], facts["capability"] = _ask_nvidia_smi()
    facts["native_bf16"], facts["native_fp8"] = _native(facts)
    return facts


def _native(facts: dict[str, object]) -> tuple[bool | None, bool | None]:
    if not facts["gpu"]:
        return _cpu_native_bf16(), False
    try:
        capability = str(facts["capability"])
        return native_on_nvidia("bf16", capability), native_on_nvidia("fp8", capability)
    except ValueError:  # AMD's "gfx942", Apple's ""
        return None, None


def _cpu_native_bf16() -> bool | None:
    flags = system.cpu_flags()
    return bool(flags & {"avx512_bf16", "amx_bf16"}) if flags else None


def _import_torch():
    try:
        import torch
    except (ImportError, OSError, RuntimeError) as error:
        installed = system.version("torch")
        return None, (str(error).splitlines() or ["no reason given"])[0] if installed else ""
    return torch, ""


def _ask_nvidia_smi() -> tuple[str, str]:
    """Name and capability of an NVIDIA GPU that PyTorch does not see, or two empty texts."""
    command = shutil.which("nvidia-smi")
    if not command:
        return "", ""
    query = [command, "--query-gpu=name,compute_cap", "--format=csv,noheader"]
    try:
        answer = subprocess.run(query, capture_output=True, text=True, timeout=5)
    except (OSError, subprocess.SubprocessError):
        return "", ""
    first = answer.stdout.splitlines()[0] if answer.returncode == 0 and answer.stdout else ""
    name, _, capability = first.partition(",")
    return name.strip(), capability.strip()


def _gb(size: int | None) -> float | None:
    return None if size is None else round(size / 10**9, 1)
