"""python3 -m tests.gpu: check and time the course's kernels on this machine's GPU, in one JSON.

    python3 -m tests.gpu                      on a GPU; writes measurements/<GPU>.json
    python3 -m tests.gpu --paper              without one: everything that needs none
    python3 -m tests.gpu --out result.json    writes there

It needs no Jupyter. It stops starting new work after --seconds (480), and what it has found by
then is in the file: it is written anew after each step.
"""

from __future__ import annotations

import argparse
import datetime
import functools
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import torch

from tests.gpu import counters, run
from tests.gpu.workloads import WORKLOADS
from utils import ROOT
from utils.exercises import all_exercises
from utils.exercises.grade import call_here, grade
from utils.exercises.namespace import solution
from utils.files import write_whole
from utils.hardware import features, probe
from utils.meter.without_triton import has_triton

SECONDS = 480
TIMING_SECONDS = 0.3
CHAPTERS = ("06", "07", "08", "00", "03", "04")


class Results:
    """What was found so far, in a file that is whole at any moment."""

    def __init__(self, path: Path, seconds: float) -> None:
        self.path, self.end = path, time.monotonic() + seconds
        self.found: dict = {"command": "python3 -m tests.gpu"}
        self.failed: list[str] = []

    @property
    def left(self) -> float:
        """Seconds before no new work is started."""
        return self.end - time.monotonic()

    def add(self, part: str, name: str, value: dict) -> None:
        """Keep a result, and write all of them."""
        self.found.setdefault(part, {})[name] = value
        write_whole(self.path, json.dumps(self.found, indent=1) + "\n")

    def step(self, part: str, name: str, work: Callable[[], dict]) -> None:
        """Do one piece of work unless the time is up; an error is a result."""
        if self.left <= 0:
            print(f"{part:12}{name:31}not started: the time is up", flush=True)
            return
        start = time.monotonic()
        try:
            value = work()
        except Exception as error:
            value = {"right": False, "error": f"{type(error).__name__}: {error}"[:1000]}
        right = value.get("right", True)
        if not right:
            self.failed.append(f"{part} {name}")
        self.add(part, name, value)
        word = "ok" if right else "WRONG"
        print(f"{part:12}{name:31}{word:8}{time.monotonic() - start:6.1f} s", flush=True)


def main() -> int:
    """Run it. Returns 0 when every kernel is right."""
    options = arguments()
    if not has_triton():
        sys.exit("Triton is not installed here: there is no kernel to run.")
    device = "cpu" if options.paper else "cuda"
    if device == "cuda" and not torch.cuda.is_available():
        sys.exit("PyTorch sees no GPU here. Without one: python3 -m tests.gpu --paper")
    if options.one:
        return one(options.one, device)
    results = Results(options.out or default_path(options.paper), options.seconds)
    results.found |= {"date": str(datetime.date.today()), "machine": features()}
    for exercise in all_exercises():
        if exercise.needs_triton:
            results.step("exercises", exercise.id, functools.partial(graded, exercise))
    for workload in WORKLOADS:
        results.step("kernels", workload.name, functools.partial(run.check, workload, device))
    for workload in WORKLOADS:
        compiled = functools.partial(run.compiled, workload, capability(device))
        results.step("compiled", workload.name, compiled)
    if device == "cuda":
        on_gpu(results)
    print("\n  ".join([f"{results.path}: {len(results.failed)} wrong", *results.failed]))
    return int(bool(results.failed))


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python3 -m tests.gpu", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--paper", action="store_true", help="without a GPU")
    parser.add_argument("--out", type=Path, help="the JSON file to write")
    parser.add_argument("--seconds", type=float, default=SECONDS, help="start nothing after these")
    parser.add_argument("--one", help=argparse.SUPPRESS)  # for ncu: launch one workload once
    return parser.parse_args()


def default_path(paper: bool) -> Path:
    name = "paper" if paper else torch.cuda.get_device_name().replace(" ", "-")
    return ROOT / "measurements" / f"{name}.json"


def capability(device: str) -> str:
    """Of the GPU here, an A100's on paper."""
    return "{}.{}".format(*torch.cuda.get_device_capability()) if device == "cuda" else "8.0"


def one(name: str, device: str) -> int:
    """Launch one workload once, at its small size."""
    workload = next(w for w in WORKLOADS if w.name == name)
    launch, _ = workload.make(workload.small, device)
    launch()
    torch.cuda.synchronize()
    return 0


def graded(exercise) -> dict:
    """The course's solution through its own check: on paper, and compiled where there is a GPU."""
    verdict = grade(exercise, call_here(exercise, solution(exercise.id)), seed=1)
    return {"right": verdict.passed, "cases": verdict.total, "lines": verdict.lines}


def on_gpu(results: Results) -> None:
    """What only a GPU can say: times, counters, the machine's profile, the chapters as scripts."""
    for workload in WORKLOADS:
        timed = functools.partial(run.times, workload, "cuda", TIMING_SECONDS)
        results.step("times", workload.name, timed)
        results.step("counters", workload.name, lambda w=workload: counted(w, results.left))
    results.step("profile", "machine", lambda: probe(force=True).to_json())
    for number in CHAPTERS:
        results.step("chapters", number, lambda n=number: chapter(n, results.left))


def counted(workload, seconds: float) -> dict:
    """What the hardware counted for one launch at the small size."""
    launch, _ = workload.make(workload.small, "cuda")
    return counters.count(workload.name, launch.kernel.fn.__name__, min(seconds, 60))


def chapter(number: str, seconds: float) -> dict:
    """A chapter's source, solved, as a plain script, on the GPU."""
    [path] = (ROOT / "source").glob(f"{number}_*.py")
    command = [sys.executable, str(path)]
    start = time.monotonic()
    try:
        done = subprocess.run(
            command, cwd=ROOT, capture_output=True, text=True, timeout=seconds,
            env=os.environ | {"PYTHONPATH": str(ROOT), "MPLBACKEND": "Agg"},
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return {"stopped_after_s": seconds}
    said = (done.stdout if done.returncode == 0 else done.stderr).splitlines()[-30:]
    return {"right": done.returncode == 0, "seconds": time.monotonic() - start, "said": said}


if __name__ == "__main__":
    sys.exit(main())
