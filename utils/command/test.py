"""course.py test: every test of the course, step by step, and a total that can be trusted."""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from utils import ROOT
from utils.command import notebook
from utils.command.environment import find_browser, kernel_environment

# xdist: a notebook's cells stay on one worker, in order. A dead kernel shows after two minutes.
NBVAL = ["--nbval-lax", "--nbval-current-env", "--nbval-cell-timeout=120", "--dist", "loadscope"]
WORKERS = ["--color=no", "-n", "2"]


@dataclass(frozen=True)
class Result:
    """A step that ran: its seconds and counts. `note` says what the counts do not."""

    name: str
    seconds: float
    passed: int = 0
    failed: int = 0
    skipped: int = 0
    note: str = ""


def main(options: argparse.Namespace) -> int:
    """Run the steps, all of them even when one fails. Returns 0 when nothing failed."""
    os.chdir(ROOT)
    # Two notebooks at a time: each gets half the cores, or their threads fight over all of them.
    os.environ["OMP_NUM_THREADS"] = str(max(1, (os.cpu_count() or 2) // 2))
    python, results = sys.executable, []

    def step(name: str, *command: str, answers: Path | None = None) -> None:
        print(f"\n{name}", flush=True)
        results.append(run_step(name, [python, "-m", *command], kernel_environment(answers)))

    step("style", "ruff", "check", ".")
    step("notebooks are what their source says", "utils.command.build", "--check")
    marked = "not browser and not slow" if options.fast else "not browser"
    step("tests", "pytest", *WORKERS, "-m", marked, "tests")
    if not options.fast:
        with tempfile.TemporaryDirectory() as scratch:
            measured = Path(scratch, "measured")
            step("this machine, measured", "utils.command.profile", answers=measured)
            for folder, solved in (("chapters", False), ("solutions", True)):
                if not notebook.notebooks(solved):
                    results.append(Result(folder, 0, failed=1, note="there are no notebooks"))
                    continue
                answers = Path(scratch, folder)  # apart: what is solved in one is open in the other
                shutil.copytree(measured, answers)
                step(folder, "pytest", *WORKERS, *NBVAL, folder, answers=answers)
                results.append(found_as_expected(answers, solved))
        if find_browser():
            step("browser", "pytest", "--color=no", "-m", "browser", "tests")
        else:
            why = "no Chromium or Chrome on this machine; on Debian: sudo apt install chromium"
            results.append(Result("browser", 0, skipped=1, note=why))
    return summary(results)


def found_as_expected(answers: Path, solved: bool) -> Result:
    """What the run of the notebooks recorded: a fresh chapter holds stubs, a solved one passes."""
    from utils.exercises import all_exercises

    path = answers / "progress.json"
    records = json.loads(path.read_text(encoding="utf-8"))["exercises"] if path.exists() else {}
    wanted = "passed" if solved else "skipped"
    ids = [exercise.id for exercise in all_exercises()]
    right = 0
    for id in ids:
        record = records.get(id, {})
        found = {fact for fact in ("passed", "attempts", "skipped") if record.get(fact)}
        right += wanted in found and (solved or found == {"skipped"})
    name = "every solved exercise passes" if solved else "every fresh exercise is a stub"
    print(f"{name}: {right} of {len(ids)}")
    return Result(name, 0, passed=right, failed=len(ids) - right)


def run_step(name: str, command: list[str], environment: dict[str, str]) -> Result:
    """Run one command, showing what it prints as it comes, and count what it tested."""
    start, output = time.monotonic(), b""
    with subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    ) as process:
        while chunk := process.stdout.read1(65536):
            output += chunk
            sys.stdout.write(chunk.decode("utf-8", "replace"))
            sys.stdout.flush()
    text = output.decode("utf-8", "replace")
    return count(name, time.monotonic() - start, process.returncode, text, "pytest" in command)


def count(name: str, seconds: float, code: int, output: str, by_pytest: bool) -> Result:
    """What a step's exit code and its last line say. Other tools than pytest count as one test."""
    if not by_pytest:
        return Result(name, seconds, passed=int(code == 0), failed=int(code != 0))
    totals = re.findall(r"^.*\d+ \w+.* in [\d.]+s.*$", output, re.MULTILINE)
    numbers = {
        word: int(n) for n, word in re.findall(r"(\d+) ([a-z]+)", totals[-1] if totals else "")
    }
    passed = numbers.get("passed", 0) + numbers.get("xfailed", 0)
    failed = sum(numbers.get(word, 0) for word in ("failed", "error", "errors", "xpassed"))
    note = ""
    if code == 5:
        note = "pytest found no test"
    elif code and not failed:
        note = f"pytest stopped with exit code {code}"
    return Result(name, seconds, passed, failed or int(code != 0), numbers.get("skipped", 0), note)


def summary(results: list[Result]) -> int:
    """Print a line a step and the total. Returns the exit code."""
    print("\nstep                                     seconds  passed  failed  skipped")
    for r in results:
        counts = f"{r.seconds:8.1f}{r.passed:8}{r.failed:8}{r.skipped:9}"
        print(f"{r.name:40}{counts}" + (f"  {r.note}" if r.note else ""))
    passed, failed, skipped = (
        sum(getattr(r, name) for r in results) for name in ("passed", "failed", "skipped")
    )
    print(f"{passed} passed, {failed} failed, {skipped} skipped", flush=True)
    return int(failed > 0)
