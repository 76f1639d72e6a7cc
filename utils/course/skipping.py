"""Without Triton, cells that launch a kernel are skipped, and say so, so that a chapter runs on."""

from __future__ import annotations

import sys

from utils.exercises.source import Chapter

FIRST_LINE = "# Needs Triton."
SAYS = 'print("Skipped: this cell needs Triton.")\n'


def skip_kernel_cells() -> None:
    """From now on this notebook skips every cell whose first line is FIRST_LINE."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython else None
    if shell is not None and skip not in shell.input_transformers_cleanup:
        shell.input_transformers_cleanup.append(skip)


def launches_kernels(chapter: Chapter) -> bool:
    """Whether the chapter has cells that are skipped without Triton."""
    return any(cell.text.startswith(FIRST_LINE) for cell in chapter.cells)


def skip(lines: list[str]) -> list[str]:
    """The lines of a cell, or one that prints SAYS in place of a cell that needs Triton."""
    return [SAYS] if lines and lines[0].strip() == FIRST_LINE else lines
