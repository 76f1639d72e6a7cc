"""course.py run NN: execute one chapter without a browser, with the time of each cell."""

import argparse
import shutil
import sys
import tempfile
from pathlib import Path

from utils import answers_folder
from utils.command.notebook import CellTime, find_notebook, run_notebook

SLOWEST = 5


def main(options: argparse.Namespace) -> int:
    """Exit code 0 when every cell ran, 1 when one failed."""
    try:
        path = find_notebook(options.chapter, options.solved)
    except ValueError as problem:
        sys.exit(str(problem))
    print(f"{path.parent.name}/{path.name}", flush=True)
    with tempfile.TemporaryDirectory() as scratch:
        answers = Path(scratch) / "answers"
        shutil.copytree(answers_folder(), answers)  # yours stay as they are
        times = run_notebook(path, answers, show)
    return summary(times)


def show(cell: CellTime) -> None:
    mark = "  failed" if cell.error else ""
    print(f"  {cell.seconds:7.2f} s  {cell.key}{mark}", flush=True)


def summary(times: list[CellTime]) -> int:
    """Print the slowest cells, and the cell that failed. Returns the exit code."""
    total = sum(cell.seconds for cell in times)
    print(f"{len(times)} cells in {total:.1f} s. The slowest:")
    for cell in sorted(times, key=lambda cell: -cell.seconds)[:SLOWEST]:
        print(f"  {cell.seconds:7.2f} s  {cell.seconds / total:4.0%}  {cell.key}")
    for cell in times:
        if cell.error:
            print(f"The cell {cell.key} failed. {cell.error.splitlines()[-1]}", file=sys.stderr)
            return 1
    return 0
