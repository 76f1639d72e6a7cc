"""What the operating system says about this machine. No torch."""

import ctypes
import os
import platform
import shutil
import subprocess
from importlib import metadata
from pathlib import Path


def cpu_name() -> str:
    """The CPU's model name, e.g. "Apple M2", or its architecture where the system won't tell."""
    try:
        name = {"Linux": _cpu_linux, "Darwin": _cpu_macos, "Windows": _cpu_windows}[
            platform.system()
        ]()
    except (KeyError, OSError, subprocess.SubprocessError):
        name = ""
    return " ".join(name.split()) or platform.processor() or platform.machine() or "unknown CPU"


def system_name() -> str:
    """ "Linux x86_64", "Darwin arm64", "Windows AMD64"."""
    return f"{platform.system()} {platform.machine()}"


def python_version() -> str:
    """ "3.13.1"."""
    return platform.python_version()


def cores() -> int:
    """Logical cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def load() -> float | None:
    """Programs that want to run, per core, over the last minute. None on Windows."""
    return os.getloadavg()[0] / (os.cpu_count() or 1) if hasattr(os, "getloadavg") else None


def memory_bytes() -> int | None:
    """Memory this process can have: the machine's, or its container's if that is less."""
    sizes = [_physical_memory(), *_container_limits()]
    return min((size for size in sizes if size), default=None)


def free_disk_bytes(folder: Path) -> int:
    """Bytes free on the disk that holds this folder."""
    return shutil.disk_usage(folder).free


def caches() -> dict[str, int]:
    """Size in bytes of each data cache as one core sees it, {"L1": 49152, "L2": ...}.

    Linux only; empty where the system doesn't say. A virtual machine may report a cache
    that it shares with others, so measure before you believe the last one.
    """
    found = {}
    for index in sorted(Path("/sys/devices/system/cpu/cpu0/cache").glob("index*")):
        try:
            kind, level, size = (
                (index / part).read_text(encoding="utf-8").strip()
                for part in ("type", "level", "size")
            )
            if kind in ("Data", "Unified"):
                unit = {"K": 2**10, "M": 2**20}[size[-1]]
                found[f"L{level}"] = int(size[:-1]) * unit
        except (OSError, KeyError, ValueError, IndexError):
            continue
    return found


def cpu_flags() -> set[str]:
    """Instruction sets that Linux on x86 lists, e.g. "avx512_bf16". Empty elsewhere."""
    return set(_cpuinfo("flags").split())


def version(package: str) -> str:
    """The installed version, or "" without one. Does not import the package."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return ""


def _cpuinfo(key: str) -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return ""
    for line in lines:
        name, _, value = line.partition(":")
        if name.strip() == key:
            return value.strip()
    return ""


def _cpu_linux() -> str:
    return _cpuinfo("model name") or _cpuinfo("Model") or _cpuinfo("Hardware")


def _cpu_macos() -> str:
    command = ["sysctl", "-n", "machdep.cpu.brand_string"]
    return subprocess.run(command, capture_output=True, text=True, timeout=5).stdout


def _cpu_windows() -> str:
    import winreg

    path = r"HARDWARE\DESCRIPTION\System\CentralProcessor\0"
    with winreg.OpenKey(winreg.HKEY_LOCAL_MACHINE, path) as key:
        return str(winreg.QueryValueEx(key, "ProcessorNameString")[0])


def _physical_memory() -> int | None:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return _windows_memory() if platform.system() == "Windows" else None


def _windows_memory() -> int | None:
    class Status(ctypes.Structure):
        """MEMORYSTATUSEX of the Windows API: two 32-bit fields, then seven 64-bit ones."""

        _fields_ = [
            ("length", ctypes.c_uint32),
            ("load_percent", ctypes.c_uint32),
            ("total", ctypes.c_uint64),
            ("rest", ctypes.c_uint64 * 6),
        ]

    status = Status(length=ctypes.sizeof(Status))
    done = ctypes.windll.kernel32.GlobalMemoryStatusEx(ctypes.byref(status))
    return status.total if done else None


def _container_limits() -> list[int]:
    files = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")
    limits = []
    for file in files:
        try:
            text = Path(file).read_text(encoding="utf-8").strip()
        except OSError:
            continue
        if text.isdigit():
            limits.append(int(text))
    return limits


def has_gpu_driver() -> bool:
    """Whether a GPU's driver is there, on Linux: NVIDIA's, WSL's or AMD's. PyTorch is not asked."""
    return any(map(os.path.exists, ("/dev/nvidiactl", "/dev/dxg", "/dev/kfd")))
