"""Find a chapter's notebook and run it cell by cell, without a browser."""

import os
import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from utils import ROOT
from utils.command.environment import kernel_environment

CELL_SECONDS = 600  # a cell that takes longer is stopped


@dataclass(frozen=True)
class CellTime:
    """A code cell that ran: its key, its seconds, and what went wrong ("" when nothing)."""

    key: str
    seconds: float
    error: str = ""


def folder(solved: bool, root: Path = ROOT) -> Path:
    return root / ("solutions" if solved else "chapters")


def notebooks(solved: bool, root: Path = ROOT) -> list[Path]:
    return sorted(folder(solved, root).glob("[0-9][0-9]_*.ipynb"))


def find_notebook(number: str, solved: bool, root: Path = ROOT) -> Path:
    """The notebook of the chapter with this number: "3", "03" or its file name.

    Raises ValueError that names the chapters there are.
    """
    wanted = re.match(r"\d{1,2}(?=_|\.|$)", number)
    there = notebooks(solved, root)
    for path in there:
        if wanted and path.name[:2] == wanted[0].zfill(2):
            return path
    if not there:
        raise ValueError(
            f"{folder(solved, root).name}/ holds no notebooks. Make them: python3 course.py build"
        )
    numbers = ", ".join(path.name[:2] for path in there)
    raise ValueError(f"There is no chapter {number!r}. There are {numbers}.")


def run_notebook(path: Path, answers: Path, each: Callable[[CellTime], None]) -> list[CellTime]:
    """Run a notebook's code cells in order, in its folder; stop at the first that fails.

    The file is only read. answers is the folder the kernel uses as the reader's; each is called
    after every cell. Returns one CellTime a code cell that ran.
    """
    import nbformat
    from nbclient import NotebookClient
    from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError

    book = nbformat.read(path, as_version=4)
    client = NotebookClient(
        book,
        timeout=CELL_SECONDS,
        kernel_name="python3",
        extra_arguments=["--IPKernelApp.log_level=ERROR"],  # else it warns of loopback sockets
        resources={"metadata": {"path": str(path.parent)}},
    )
    os.environ["JUPYTER_PREFER_ENV_PATH"] = "1"
    times: list[CellTime] = []
    with client.setup_kernel(env=kernel_environment(answers)):
        for index, cell in enumerate(book.cells):
            if cell.cell_type != "code":
                continue
            start, error = time.perf_counter(), ""
            try:
                client.execute_cell(cell, index)
            except CellExecutionError as problem:
                error = f"{problem.ename}: {problem.evalue}".strip()
            except CellTimeoutError:
                error = f"stopped after {CELL_SECONDS} s"
            except DeadKernelError:
                error = "the kernel died, which is what running out of memory looks like"
            key = cell.get("id", f"cell {index}")
            times.append(CellTime(key, time.perf_counter() - start, error))
            each(times[-1])
            if error:
                break
    return times
