"""The rules that a chapter's source keeps, beside its format. Standard library only.

Each function yields (line in the file, sentence) for what is wrong with a chapter or one of its
cells; `source.read` raises the first.
"""

import ast
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from utils.exercises import prose

if TYPE_CHECKING:
    from utils.exercises.source import Cell, Chapter

BEGIN, END = "### BEGIN SOLUTION", "### END SOLUTION"
GENERATED_KEYS = ("about", "bootstrap")  # the build inserts cells with these keys
MOST_COLUMNS = 79

Problems = Iterator[tuple[int, str]]

_NEARLY_A_MARKER = re.compile(r"\s*#+\s*(BEGIN|END)[\s_]+SOLUTION\b", re.IGNORECASE)
_MAGIC = re.compile(r"(# )?[%!][\w%]")


def problems(chapter: "Chapter") -> Problems:
    """Everything that is wrong with a chapter, keys first."""
    yield from _keys(chapter)
    for cell in chapter.cells:
        yield from _markers(cell)
        if cell.kind == "code":
            yield from _code(cell)
        if "exercise" in cell.tags:
            yield from _exercise(cell)
        if "check" in cell.tags:
            yield from _check(chapter, cell)
    yield from _title(chapter)
    yield from _prose(chapter)


def _keys(chapter: "Chapter") -> Problems:
    seen = set()
    for cell in chapter.cells:
        if cell.key in GENERATED_KEYS:
            yield cell.line, f"the key {cell.key!r} is kept for a cell that the build inserts."
        if cell.key in seen:
            yield cell.line, f"the key {cell.key!r} is used twice."
        seen.add(cell.key)


def _markers(cell: "Cell") -> Problems:
    """Solution regions: exact, paired, never nested, not empty, and only in exercise cells."""
    opened = content = regions = 0
    for number, line in enumerate(cell.text.split("\n"), start=cell.line):
        marker = line.strip()
        if marker == BEGIN:
            if opened:
                yield number, f"{BEGIN} inside the region of line {opened}."
            opened, content, regions = number, 0, regions + 1
        elif marker == END:
            if not opened:
                yield number, f"{END} without {BEGIN} before it."
            if not content:
                yield number, "the solution region is empty."
            opened = 0
        elif _NEARLY_A_MARKER.match(line):
            yield number, f"a marker is exactly {BEGIN} or {END}."
        elif marker and not marker.startswith("#"):
            content += 1
    if opened:
        yield opened, f"{BEGIN} without {END} after it."
    if regions and "exercise" not in cell.tags:
        yield cell.line, f"the cell {cell.key!r} has a solution region but no exercise tag."
    if "exercise" in cell.tags and not regions:
        yield cell.line, f"the exercise {cell.key!r} has no solution region."


def _code(cell: "Cell") -> Problems:
    """Plain Python in both versions, and no line too long for a notebook."""
    for number, line in enumerate(cell.text.split("\n"), start=cell.line):
        if _MAGIC.match(line):
            yield number, "IPython's magics do not run in a plain script."
        if len(line) > MOST_COLUMNS:
            yield number, f"the line has {len(line)} columns, at most {MOST_COLUMNS} are allowed."
    for version, text in (("solved", cell.text), ("stub", cell.stub)):
        try:
            ast.parse(text)
        except SyntaxError as error:
            line = cell.line + (error.lineno or 1) - 1
            yield line, f"the {version} cell {cell.key!r} is not Python: {error.msg}."


def _exercise(cell: "Cell") -> Problems:
    body = ast.parse(cell.text).body if cell.kind == "code" else []
    one = len(body) == 1 and isinstance(body[0], ast.FunctionDef | ast.ClassDef)
    if not one or body[0].name != cell.key:
        yield cell.line, f"an exercise cell is one function or class named {cell.key}, only that."


def _check(chapter: "Chapter", cell: "Cell") -> Problems:
    found = re.search(r'check\(\s*"[^".]*\.(\w+)"', cell.text)
    name = found[1] if found else "name"
    expected = f'{name} = check("{chapter.number}.{name}", {name})'
    if cell.kind != "code" or ast.dump(ast.parse(cell.text)) != ast.dump(ast.parse(expected)):
        yield cell.line, f"a check cell is `{expected}`."
    elif not any(x.key == name and x.line < cell.line for x in chapter.exercises):
        yield cell.line, f"no exercise named {name} comes before this check."


def _title(chapter: "Chapter") -> Problems:
    first = chapter.cells[0]
    if not str(chapter.meta["title"]).startswith(f"{int(chapter.number)}. "):
        yield 1, f'the title in the header begins with "{int(chapter.number)}. ".'
    expected = f"# {chapter.meta['title']}"
    if first.kind != "markdown" or first.key != "title" or first.text.split("\n")[0] != expected:
        yield first.line, f'the first cell is prose with key="title" and begins with "{expected}".'


def _prose(chapter: "Chapter") -> Problems:
    """The rules of prose.py, and headings that go down one level at a time."""
    level = 0
    for cell in chapter.cells:
        if cell.kind != "markdown":
            continue
        problem = prose.first_problem(cell.text)
        if problem:
            yield cell.line + problem[0], problem[1]
        for line, below in prose.headings(cell.text):
            if below > level + 1:
                message = f"a heading of level {below} follows one of level {level}."
                yield cell.line + line, message
            level = below
