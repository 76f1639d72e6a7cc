"""Make .venv hold what a verb needs. Standard library only: nothing is installed yet.

.venv/installed.json is written last, so a .venv without it is half-made and gets repaired.
"""

import hashlib
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import time
import tomllib
from pathlib import Path

from utils import ROOT
from utils.command import pip

VENV = ROOT / ".venv"
PYTHON = VENV / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
STAMP = VENV / "installed.json"
CPU_GB, CUDA_GB = 3, 8  # what the course takes on disk with PyTorch's CPU wheels, with CUDA's
CPU_WHEELS = "https://download.pytorch.org/whl/cpu"
PROBE = """
import importlib.metadata, sys
print("%d.%d" % sys.version_info[:2], flush=True)
for name in sys.argv[1:]:
    importlib.metadata.version(name)
"""


def in_venv() -> bool:
    """Whether the Python that runs is .venv's."""
    return Path(sys.prefix).resolve() == VENV.resolve()


def requirements(groups: list[str]) -> list[str]:
    """What these groups of pyproject.toml list. The group "runtime" is the project's own."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    lists = {"runtime": project["dependencies"], **project["optional-dependencies"]}
    return [requirement for group in groups for requirement in lists[group]]


def fingerprint(group: str, python: str) -> str:
    """Changes when what the group would install changes."""
    constraints = (ROOT / "constraints.txt").read_text(encoding="utf-8")
    text = "\n".join([python, constraints, *requirements([group])])
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def inspect_venv() -> tuple[str, dict]:
    """(version of .venv's Python, what is installed there by group).

    The version is "" when that Python does not run or is not one of the course's. The second is
    empty when the last install did not finish or a package has gone since.
    """
    names = [re.match(r"[\w.-]+", r)[0] for r in requirements(["runtime"]) if ";" not in r]
    command = [str(PYTHON), "-c", PROBE, "pip", *names]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=60)
        stamp = json.loads(STAMP.read_text(encoding="utf-8")) if STAMP.exists() else {}
    except (OSError, subprocess.TimeoutExpired):
        return "", {}
    except ValueError:
        stamp = {}
    python = done.stdout.strip()
    if python not in ("3.11", "3.12", "3.13"):
        return "", {}
    return python, stamp if done.returncode == 0 else {}


def is_complete(groups: list[str]) -> bool:
    """Whether .venv holds these groups."""
    python, stamp = inspect_venv()
    return bool(python) and all(stamp.get(group) == fingerprint(group, python) for group in groups)


def ensure(groups: list[str], torch_index: str | None = None) -> None:
    """Install what is missing of these groups; return at once when nothing is.

    torch_index is the address to take PyTorch from. Exits with a sentence when it cannot be done.
    """
    python, stamp = inspect_venv()
    missing = [group for group in groups if stamp.get(group) != fingerprint(group, python)]
    other_torch = torch_index is not None and torch_index != stamp.get("torch_index")
    if python and not missing and not other_torch:
        return
    started = time.monotonic()
    if "runtime" not in stamp:
        print("Installing the course into .venv, once. This takes minutes.", flush=True)
        check_disk(with_cuda=sys.platform == "linux" and not torch_index)
    if not python:
        make_venv()
        python, stamp = inspect_venv()
    STAMP.unlink(missing_ok=True)
    forget_unfinished_packages()
    if subprocess.run([str(PYTHON), "-c", "import pip"], capture_output=True).returncode:
        run_or_exit([str(PYTHON), "-m", "ensurepip", "--upgrade"], ".venv has no pip")
    if torch_index:
        torch = next(r for r in requirements(["runtime"]) if re.match(r"torch\b", r))
        print(f"PyTorch, from {torch_index}", flush=True)
        pip_install(["--index-url", torch_index, "--force-reinstall", "--no-deps", torch])
    kept = [group for group in stamp if group != "torch_index"]
    groups = list(dict.fromkeys(kept + groups))
    pip_install(requirements(groups))
    stamp = {"torch_index": torch_index or stamp.get("torch_index")}
    stamp |= {group: fingerprint(group, python) for group in groups}
    STAMP.write_text(json.dumps(stamp, indent=1) + "\n", encoding="utf-8")
    print(f"Installed in {time.monotonic() - started:.0f} s. Later starts skip this.", flush=True)


def forget_unfinished_packages() -> None:
    """Have pip install again what an interrupt left half copied: it writes INSTALLER last."""
    for folder in ("lib/python*/site-packages", "Lib/site-packages"):
        for package in VENV.glob(f"{folder}/*.dist-info"):
            if not (package / "INSTALLER").exists():
                shutil.rmtree(package)


def make_venv() -> None:
    """A fresh .venv, in place of what is there."""
    if not all(importlib.util.find_spec(name) for name in ("venv", "ensurepip")):
        version = f"{sys.version_info.major}.{sys.version_info.minor}"
        sys.exit(
            "This Python came without its venv module. On Debian and Ubuntu run: "
            f"sudo apt install python{version}-venv"
        )
    if VENV.is_symlink() or VENV.is_file():
        VENV.unlink()
    elif VENV.exists():
        print("The .venv here does not work. Making it anew.", flush=True)
        shutil.rmtree(VENV)
    base = getattr(sys, "_base_executable", None) or sys.executable
    made = False
    try:
        run_or_exit([base, "-m", "venv", str(VENV)], "Python could not make .venv")
        made = True
    finally:
        if not made:
            shutil.rmtree(VENV, ignore_errors=True)


def run_or_exit(command: list[str], problem: str) -> None:
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode == 0:
        return
    if pip.disk_is_full(done.stdout):
        sys.exit(full_disk())
    sys.exit(f"{problem}: {(done.stdout.strip().splitlines() or ['it gave no reason'])[-1]}")


def pip_install(arguments: list[str]) -> None:
    """pip install at the tested versions; exits with a sentence when it fails."""
    constraints = ["-c", str(ROOT / "constraints.txt")]
    code, output = pip.install(str(PYTHON), [*constraints, *arguments])
    if code == 0:
        return
    if pip.disk_is_full(output):
        sys.exit(full_disk())
    (VENV / "pip.log").write_text(output, encoding="utf-8")
    sys.exit(pip.why_it_failed(output) + " All that pip said is in .venv/pip.log.")


def check_disk(with_cuda: bool) -> None:
    """Exit when the course cannot fit; say so when PyTorch with CUDA may not, or is not needed."""
    half_made = sum(path.lstat().st_size for path in VENV.rglob("*")) if VENV.is_dir() else 0
    room_gb = (shutil.disk_usage(ROOT).free + half_made) / 1e9
    if room_gb < CPU_GB:
        sys.exit(full_disk())
    if with_cuda and room_gb < CUDA_GB + 1:
        print(f"There is room for {room_gb:.0f} GB. With CUDA the course takes about {CUDA_GB}.")
    if with_cuda and not shutil.which("nvidia-smi"):
        print(
            "No NVIDIA card seen. PyTorch's CPU wheels are about 3 GB less to download. To take "
            f"them, press Ctrl-C and run: python3 course.py lab --torch-index {CPU_WHEELS}",
            flush=True,
        )


def full_disk() -> str:
    free_gb = shutil.disk_usage(ROOT).free / 1e9
    return (
        f"The disk is full: {free_gb:.1f} GB are free. The course takes {CPU_GB} GB with PyTorch's "
        f"CPU wheels and about {CUDA_GB} with CUDA. Make room and run this again."
    )
