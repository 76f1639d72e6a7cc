"""course.py doctor: what this machine can do, what each chapter does here, and what to fix.

Runs before anything is installed too, so it imports nothing that needs installing.
"""

import argparse
import json

from utils.command.environment import find_browser
from utils.command.install import CPU_GB
from utils.exercises.source import SourceError, chapters
from utils.hardware import features

MEMORY_GB = 4
INSTALL = "python3 course.py lab"


def main(options: argparse.Namespace) -> int:
    """Returns 0 when the chapters run here, 1 when something must be fixed first."""
    facts = gather()
    print(json.dumps(facts, indent=1) if options.json else text(facts))
    return 0 if facts["ready"] else 1


def gather() -> dict:
    """Everything doctor knows: the keys of features(), browser, chapters, fix, ready."""
    facts = features()
    facts["browser"] = find_browser() or ""
    facts["ready"] = bool(facts["device"])
    facts["fix"] = what_to_fix(facts)
    try:
        facts["chapters"] = [
            {"number": one.number, **one.meta, "here": what_happens_here(facts)}
            for one in chapters()
        ]
    except SourceError as problem:
        facts["chapters"] = []
        facts["fix"].append(f"A chapter's source breaks a rule: {problem}")
    return facts


def what_happens_here(facts: dict) -> str:
    """What a chapter measures on this machine and what it models."""
    if not facts["device"]:
        return f"does not run yet; {INSTALL} installs what it needs"
    if facts["device"] == "cpu":
        return "measured on this CPU; what needs a GPU is modelled"
    return f"measured on {facts['gpu']}; other accelerators are modelled"


def what_to_fix(facts: dict) -> list[str]:
    """One sentence each, with the way out; the first ones stop the course."""
    fix = []
    if facts["torch_error"]:
        fix.append(
            f"PyTorch does not start: {facts['torch_error']}. Remove .venv and run: {INSTALL}"
        )
    elif not facts["torch"]:
        fix.append(f"Nothing is installed yet. Run: {INSTALL}")
    if facts["device"] == "cpu" and facts["gpu"]:
        fix.append(
            f"This PyTorch cannot use your {facts['gpu']}. Choose a CUDA build's address on "
            f"pytorch.org and run: {INSTALL} --torch-index URL"
        )
    if facts["torch"] and not facts["triton"] and facts["system"] == "Linux x86_64":
        fix.append(f"Triton is missing. Remove .venv and run: {INSTALL}")
    if facts["free_disk_gb"] is not None and facts["free_disk_gb"] < CPU_GB:
        fix.append(f"The disk has {facts['free_disk_gb']} GB free. Make room for {CPU_GB}.")
    if facts["memory_gb"] is not None and facts["memory_gb"] < MEMORY_GB:
        fix.append(f"{facts['memory_gb']} GB of memory is little. Close other programs.")
    if not facts["browser"]:
        fix.append(
            "Only for the tests in a browser: there is no Chromium or Chrome. "
            "On Debian and Ubuntu run: sudo apt install chromium"
        )
    return fix


def text(facts: dict) -> str:
    """The report as a person reads it."""
    triton = facts["triton"] or "none" + ("" if "Linux" in facts["system"] else ", Linux has it")
    rows = {
        "system": facts["system"],
        "python": facts["python"],
        "torch": facts["torch"] or "none",
        "triton": triton,
        "CPU": f"{facts['cpu']}, {facts['cores']} cores",
        "GPU": gpu(facts),
        "native bf16": known(facts["native_bf16"]),
        "native fp8": known(facts["native_fp8"]),
        "memory": gigabytes(facts["memory_gb"]),
        "free disk": gigabytes(facts["free_disk_gb"]),
        "browser": facts["browser"] or "none (only the browser tests need one)",
    }
    lines = [f"{name:12}  {value}" for name, value in rows.items()]
    lines += ["", "Chapters"]
    for one in facts["chapters"]:
        lines += [f"  {one['title']}  ({one['minutes']} minutes)", f"      here: {one['here']}"]
        lines += [f"      hardware: {one['hardware']}"]
    lines += ["" if facts["chapters"] else "  none found", "To fix"]
    lines += [f"  - {sentence}" for sentence in facts["fix"]] or ["  nothing"]
    return "\n".join(lines)


def gpu(facts: dict) -> str:
    if not facts["gpu"]:
        return "none"
    capability = f", capability {facts['capability']}" if facts["capability"] else ""
    memory = f", {facts['gpu_memory_gb']} GB" if facts["gpu_memory_gb"] else ""
    return f"{facts['gpu']}{capability}{memory}"


def known(value: bool | None) -> str:
    return {True: "yes", False: "no", None: "not known"}[value]


def gigabytes(value: float | None) -> str:
    return "not known" if value is None else f"{value} GB"
