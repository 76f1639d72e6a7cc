"""course.py bench: how fast the course itself is. Prints figures; nothing here passes or fails."""

import argparse
import json
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from utils import ROOT
from utils.command.environment import kernel_environment
from utils.command.notebook import notebooks, run_notebook

IMPORTS = 7
TRAINING = ("05", "09")  # the chapters that train models
IMPORT = """
import sys, time
start = time.perf_counter()
import utils
print(time.perf_counter() - start, *({"torch", "numpy", "matplotlib"} & set(sys.modules)))
"""


def main(options: argparse.Namespace) -> int:
    show("", "measured", "budget")
    bench_import()
    bench_checks()
    with tempfile.TemporaryDirectory() as scratch:
        measured = Path(scratch, "measured")
        bench_probe(measured)
        bench_chapters(measured, Path(scratch))
    bench_training()
    bench_meter()
    return 0


def show(what: str, measured: str, budget: str = "") -> None:
    print(f"{what:36}{measured:28}{budget}", flush=True)


def bench_import() -> None:
    seconds, loaded = [], set()
    for _ in range(IMPORTS):
        command = [sys.executable, "-c", IMPORT]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
        first, *heavy = done.stdout.split()
        seconds.append(float(first))
        loaded |= set(heavy)
    spread = f"{statistics.median(seconds):.3f} s ({min(seconds):.3f} to {max(seconds):.3f})"
    show("import utils", spread, "0.2 s")
    show("  loads", ", ".join(sorted(loaded)) or "no torch, numpy, matplotlib", "no torch")


def bench_checks() -> None:
    """Each exercise's solution through its check, as a reader's answer goes."""
    from utils.exercises import all_exercises
    from utils.exercises.grade import grade
    from utils.exercises.namespace import solution_text
    from utils.exercises.runner import caller, worker

    start = time.perf_counter()
    worker()
    seconds = {}
    for exercise in all_exercises():
        grade(exercise, caller(exercise, solution_text(exercise.id)), seed=1)
        seconds[exercise.id] = time.perf_counter() - start
        start = time.perf_counter()
    if not seconds:
        show("one check", "there are no exercises yet")
        return
    first, *others = seconds
    slowest = max(others or [first], key=seconds.get)
    show("first check, starts its process", f"{seconds[first]:.2f} s")
    show(f"slowest of {len(others)} others", f"{seconds[slowest]:.2f} s ({slowest})", "5 s")


def bench_probe(answers: Path) -> None:
    start = time.perf_counter()
    command = [sys.executable, "-m", "utils.command.profile"]
    environment = kernel_environment(answers)
    failed = subprocess.run(command, env=environment, capture_output=True).returncode
    seconds = time.perf_counter() - start
    show("measuring this machine", f"{seconds:.1f} s{' failed' if failed else ''}", "30 s")


def bench_chapters(measured: Path, scratch: Path) -> None:
    """Every notebook, one after the other, each with fresh answers and this machine's profile."""
    for solved in (False, True):
        for path in notebooks(solved):
            answers = scratch / path.parent.name / path.stem
            shutil.copytree(measured, answers, dirs_exist_ok=True)
            times = run_notebook(path, answers, each=lambda cell: None)
            failed = " failed" if times and times[-1].error else ""
            total = sum(cell.seconds for cell in times)
            budget = "300 s" if path.stem[:2] in TRAINING else "90 s"
            show(f"{path.parent.name}/{path.stem}", f"{total:.1f} s{failed}", budget)


def bench_training() -> None:
    """The lab's trainer beside a plain loop of the same model, in turn: medians and quartiles."""
    from tests.compare_plain_loop import compare

    for row in compare():
        ratio = "{:.2f} times ({:.2f} to {:.2f})".format(*row["ratio"])
        show(f"training {row['dtype']}, over a plain loop", ratio, "1.1 times")
        for who in ("plain", "lab"):
            show(
                f"  {who}", "{:,.0f} tokens/s ({:,.0f} to {:,.0f})".format(*row[f"{who} tokens/s"])
            )


def bench_meter() -> None:
    """Metered kernels over the plain interpreter, and a 70B model metered on fake tensors."""
    from tests.test_meter_ops_llama import ALONE

    run = [sys.executable, "-m", "tests.kernels.overhead"]
    print(subprocess.run(run, cwd=ROOT, capture_output=True, text=True).stdout, end="")
    show("", "", "1.5 times")
    alone = subprocess.run([sys.executable, "-c", ALONE], cwd=ROOT, capture_output=True, text=True)
    report = json.loads(alone.stdout)
    show("meter a 70B model, fake tensors", f"{report['build_and_forward_s']:.1f} s", "10 s")
    if "rss" in report:
        show("  memory of that process", f"{report['rss'] / 2**30:.2f} GiB", "2 GiB")
