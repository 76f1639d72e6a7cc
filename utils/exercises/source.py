"""Read a chapter's source, `source/NN_name.py` in percent format. Standard library only.

A file is a comment header and cells::

    # ---
    # jupyter:
    #   course:
    #     title: "3. Is it bytes or FLOPs?"
    #     minutes: 70
    #     hardware: "none; a GPU makes the modelled figures measured"
    #     needs: "chapter 0's profile of your machine"
    #     leaves_with: "the roof of your own machine"
    # ---

    # %% [markdown] key="title"
    # # 3. Is it bytes or FLOPs?

    # %% key="mbu" tags=["exercise"]
    def mbu(...):
        ### BEGIN SOLUTION
        ...
        ### END SOLUTION

    # %% key="mbu-check" tags=["check"]
    mbu = check("03.mbu", mbu)

It is plain Python, so it also runs as a script, with the repository's root on the path:
`PYTHONPATH=. python source/03_roofline.py`. IPython's magics are therefore not allowed in it.

`read` refuses a file that breaks a rule, with the file and the line. The rules beside the format
are in `rules.py` and, for prose, `prose.py`.
"""

import json
import re
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

from utils import ROOT
from utils.exercises import rules
from utils.exercises.rules import BEGIN, END

STUB = 'raise NotImplementedError("your turn")'
META = ("title", "minutes", "hardware", "needs", "leaves_with")

_FILE_NAME = re.compile(r"(\d\d)_([a-z0-9_]+)\.py")
_CELL_LINE = re.compile(r"# %%(?P<markdown> \[markdown\])?(?P<options>(?: .*)?)")
_OPTION = re.compile(r' (\w+)=("[^"]*"|\[[^\]]*\])')
_KEY = re.compile(r"[a-z0-9_-]{1,64}")  # also what a notebook's cell id may be


class SourceError(ValueError):
    """A source file breaks a rule. The message begins with file:line."""

    def __init__(self, path: Path, line: int, message: str):
        super().__init__(f"{path.parent.name}/{path.name}:{line}: {message}")
        self.line = line


@dataclass(frozen=True)
class Cell:
    """One cell. `text` is the source as it stands, prose uncommented, from line `line` on."""

    key: str
    kind: str  # "markdown" or "code"
    tags: tuple[str, ...]
    text: str
    line: int

    @property
    def stub(self) -> str:
        """What a reader starts from: each solution region raises NotImplementedError."""
        lines, inside = [], False
        for line in self.text.split("\n"):
            if line.strip() == BEGIN:
                inside = True
                lines.append(line[: line.index("#")] + STUB)
            elif line.strip() == END:
                inside = False
            elif not inside:
                lines.append(line)
        return "\n".join(lines)

    @property
    def solved(self) -> str:
        """The cell with its solution, without the markers."""
        return "\n".join(x for x in self.text.split("\n") if x.strip() not in (BEGIN, END))


@dataclass(frozen=True)
class Chapter:
    """A chapter as its author wrote it. For 03_roofline, `number` is "03", `name` "roofline"."""

    number: str
    name: str
    path: Path
    meta: dict[str, str | int]
    cells: list[Cell] = field(repr=False)

    @property
    def stem(self) -> str:
        """The file name that source and notebooks share, such as "03_roofline"."""
        return f"{self.number}_{self.name}"

    def cell(self, key: str) -> Cell:
        """The cell with this key. Raises ValueError when there is none."""
        for cell in self.cells:
            if cell.key == key:
                return cell
        raise ValueError(f"key is {key!r}, but {self.path.name} has no such cell.")

    @property
    def exercises(self) -> list[Cell]:
        """The cells tagged "exercise", in order. The key of each is the exercise's name."""
        return [cell for cell in self.cells if "exercise" in cell.tags]


def chapters(root: Path = ROOT) -> list[Chapter]:
    """Every chapter under `root/source`, in order. Raises SourceError."""
    paths = sorted((root / "source").glob("[0-9][0-9]_*.py"))
    for one, other in pairwise(paths):
        if one.name[:2] == other.name[:2]:
            raise SourceError(other, 1, f"{one.name} has the number {one.name[:2]} already.")
    return [read(path) for path in paths]


def chapter(number: str | int, root: Path = ROOT) -> Chapter:
    """The chapter with this number, "03", "3" or 3, as a reader's check needs it: the rules of
    style are not looked at, which a teacher's own edit may break.

    Raises ValueError naming the chapters that exist, SourceError when its cells cannot be told.
    """
    wanted = str(number).zfill(2)
    paths = sorted((root / "source").glob("[0-9][0-9]_*.py"))
    for path in paths:
        if path.name[:2] == wanted:
            return _parse(path)
    there = ", ".join(path.name[:2] for path in paths) or "none"
    raise ValueError(f"There is no chapter {str(number)!r}. The chapters here: {there}.")


def read(path: Path) -> Chapter:
    """Read one source file and check every rule. Raises SourceError with file and line."""
    result = _parse(Path(path))
    for line, message in rules.problems(result):
        raise SourceError(result.path, line, message)
    return result


def _parse(path: Path) -> Chapter:
    match = _FILE_NAME.fullmatch(path.name)
    if not match:
        raise SourceError(path, 1, "a source file is named NN_name.py, in small letters.")
    lines = path.read_text(encoding="utf-8").split("\n")
    meta, start = _header(path, lines)
    cells = _cells(path, lines, start)
    return Chapter(match[1], match[2], path, meta, cells)


def _header(path: Path, lines: list[str]) -> tuple[dict[str, str | int], int]:
    """The `course:` block of the header, and the index of the first line after the header."""
    if not lines or lines[0].rstrip() != "# ---":
        raise SourceError(path, 1, "the file does not begin with a header, between two lines # ---")
    meta: dict[str, str | int] = {}
    in_course = False
    for index, line in enumerate(lines[1:], start=1):
        if line.rstrip() == "# ---":
            missing = [name for name in META if name not in meta]
            if missing:
                message = f"the header's course block has no {', '.join(missing)}."
                raise SourceError(path, index + 1, message)
            if not isinstance(meta["minutes"], int):
                raise SourceError(path, index + 1, "minutes in the header is not a whole number.")
            return meta, index + 1
        body = line[2:].rstrip()
        indent = len(body) - len(body.lstrip())
        if in_course and indent == 4:
            name, colon, value = body.strip().partition(":")
            if not colon or not name.isidentifier() or name in meta:
                raise SourceError(path, index + 1, "expected one new `name: value` a line.")
            meta[name] = _scalar(path, index + 1, value.strip())
        elif in_course and indent > 4:
            raise SourceError(path, index + 1, "a value in the header is one line, not nested.")
        else:
            in_course = body == "  course:"
    raise SourceError(path, 1, "the header has no closing line '# ---'.")


def _scalar(path: Path, line: int, value: str) -> str | int:
    if re.fullmatch(r"\d+", value):
        return int(value)
    if value.startswith('"'):
        try:
            return json.loads(value)
        except ValueError:
            raise SourceError(path, line, f"{value} is not one quoted string.") from None
    if not value or value[0] in "'[{&*|>!%@`" or ": " in value or " #" in value:
        raise SourceError(path, line, 'a header value is a number, plain words or a "string".')
    return value


def _cells(path: Path, lines: list[str], start: int) -> list[Cell]:
    """Split the lines after the header into cells."""
    marks = [i for i in range(start, len(lines)) if re.match(r"#\s*%%", lines[i])]
    for index in range(start, marks[0] if marks else len(lines)):
        if lines[index].strip():
            raise SourceError(path, index + 1, "text before the first cell.")
    if not marks:
        raise SourceError(path, start, "the file has no cell.")
    return [
        _cell(path, lines, mark, end)
        for mark, end in zip(marks, [*marks[1:], len(lines)], strict=True)
    ]


def _cell(path: Path, lines: list[str], mark: int, end: int) -> Cell:
    match = _CELL_LINE.fullmatch(lines[mark].rstrip())
    options = match["options"] if match else ""
    if not match or _OPTION.sub("", options):
        message = 'a cell begins with `# %%` or `# %% [markdown]`, key="...", perhaps tags=["..."].'
        raise SourceError(path, mark + 1, message)
    try:
        values = {name: json.loads(value) for name, value in _OPTION.findall(options)}
    except ValueError:
        raise SourceError(path, mark + 1, 'key is "a string", tags is ["a", "list"].') from None
    key, tags = values.pop("key", None), values.pop("tags", [])
    if values:
        raise SourceError(path, mark + 1, f"a cell has no {', '.join(values)}, only key and tags.")
    if key is None:
        raise SourceError(path, mark + 1, "the cell has no key.")
    if not isinstance(key, str) or not _KEY.fullmatch(key):
        message = f"the key {key!r} is not 1 to 64 small letters, digits, - or _."
        raise SourceError(path, mark + 1, message)
    if not isinstance(tags, list) or not all(isinstance(tag, str) for tag in tags):
        raise SourceError(path, mark + 1, 'tags is ["a", "list"].')
    first, last = mark + 1, end
    while first < last and not lines[first].strip():
        first += 1
    while last > first and not lines[last - 1].strip():
        last -= 1
    if first == last:
        raise SourceError(path, mark + 1, f"the cell {key!r} is empty.")
    body = [line.rstrip() for line in lines[first:last]]
    kind = "code"
    if match["markdown"]:
        kind = "markdown"
        for index, line in enumerate(body):
            if line != "#" and not line.startswith("# "):
                raise SourceError(path, first + index + 1, "a line of prose begins with '# '.")
        body = [line[2:] for line in body]
    return Cell(key, kind, tuple(tags), "\n".join(body), first + 1)
