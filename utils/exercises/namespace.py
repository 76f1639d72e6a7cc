"""The names an answer may use, and the course's own solutions.

A chapter's cells tagged `setup` hold its imports. An answer sees those imports and the course's
solutions of the chapter's other exercises, and nothing else: a name that a reader has shadowed in
the notebook, or a cell run out of order, changes no verdict.
"""

from __future__ import annotations

import ast
import functools
import linecache
import sys
import types
from typing import Any

from .answer import bound_names
from .source import Chapter, chapter


def run_text(text: str, file: str, names: dict[str, Any]) -> None:
    """Execute text under a file name that tracebacks and triton.jit can read the lines of."""
    linecache.cache[file] = (len(text), None, [line + "\n" for line in text.split("\n")], file)
    exec(compile(text, file, "exec", dont_inherit=True), names)


def imports(chapter: Chapter) -> str:
    """The import statements of the chapter's setup cells, as text."""
    statements = [
        ast.unparse(node)
        for cell in chapter.cells
        if "setup" in cell.tags
        for node in ast.parse(cell.text).body
        if isinstance(node, ast.Import | ast.ImportFrom)
    ]
    return "\n".join(statements)


def fresh(number: str, without: str = "") -> dict[str, Any]:
    """A new namespace for the chapter: imports and the solutions of all exercises but `without`."""
    this = chapter(number)
    module = types.ModuleType(f"answers_{number}")
    sys.modules[module.__name__] = module  # dataclasses and pickle look there
    names = vars(module)
    run_text(imports(this), f"<imports of chapter {number}>", names)
    for cell in this.cells:
        if "exercise" in cell.tags and cell.key != without:
            run_text(cell.solved, f"<solution {number}.{cell.key}>", names)
    return names


def given_names(number: str, name: str) -> set[str]:
    """What an answer to exercise `name` need not bring along: imports and other exercises."""
    this = chapter(number)
    imported = bound_names(ast.parse(imports(this)))
    others = {cell.key for cell in this.cells if "exercise" in cell.tags}
    return (imported | others) - {name}


def solution_text(id: str) -> str:
    """The course's solution of an exercise, as its cell reads when solved."""
    number, name = id.split(".")
    for cell in chapter(number).cells:
        if "exercise" in cell.tags and cell.key == name:
            return cell.solved
    raise ValueError(f"source/{number}_*.py has no exercise cell with the key {name!r}")


@functools.cache
def _solved(number: str) -> dict[str, Any]:
    return fresh(number)


def solution(id: str) -> Any:
    """The course's own answer to an exercise, ready to call."""
    number, name = id.split(".")
    return _solved(number)[name]
