"""Make the notebooks from `source/`: `python -m utils.command.build [--check] [NN ...]`.

Each source/NN_name.py gives chapters/NN_name.ipynb with the exercises blank and
solutions/NN_name.ipynb with them solved, and a row of the README's table. The same source gives the
same bytes. `--check` writes nothing and fails when a file differs from what the source gives.
"""

import argparse
import re
import sys
from pathlib import Path

import nbformat
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from utils import ROOT
from utils.command import header
from utils.exercises.source import Chapter, chapter, chapters, read
from utils.files import write_whole

FOLDERS = {"chapters": False, "solutions": True}  # folder -> solved
METADATA = {
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}
FOLDED = {"jupyter": {"source_hidden": True}}  # a click opens the code of such a cell
_README_TABLE = re.compile(r"(<!-- chapters -->\n).*?(<!-- /chapters -->)", re.DOTALL)


def notebook(chapter: Chapter, address: str, folder: str) -> str:
    """The text of a chapter's notebook in `folder`, "chapters" or "solutions"."""
    solved = FOLDERS[folder]
    first, *rest = chapter.cells
    cells = [
        new_markdown_cell(header.title(first.text, chapter.stem, solved), id=first.key),
        new_markdown_cell(header.about(chapter, address, folder), id="about"),
        new_code_cell(header.bootstrap(address), id="bootstrap", metadata=FOLDED),
    ]
    for cell in rest:
        new = new_code_cell if cell.kind == "code" else new_markdown_cell
        metadata = {"tags": list(cell.tags)} if cell.tags else {}
        metadata |= FOLDED if "figure" in cell.tags else {}
        text = cell.solved if solved else cell.stub
        cells.append(new(text, id=cell.key, metadata=metadata))
    result = new_notebook(cells=cells, metadata=METADATA, nbformat_minor=5)
    nbformat.validate(result)
    return nbformat.writes(result, version=4).rstrip("\n") + "\n"


def expected_files(root: Path = ROOT, numbers: list[str] | None = None) -> dict[Path, str]:
    """What the build writes: path -> text, for these chapters; for all, with the README.

    Raises ValueError for a chapter that does not exist, SourceError for one that breaks a rule.
    """
    address = header.repository(root)
    chosen = [read(chapter(n, root).path) for n in numbers] if numbers else chapters(root)
    files = {
        root / folder / f"{one.stem}.ipynb": notebook(one, address, folder)
        for folder in FOLDERS
        for one in chosen
    }
    readme = root / "README.md"
    if not numbers and readme.exists():
        text = readme.read_text(encoding="utf-8")
        table = header.readme_table(chosen, address)
        files[readme] = _README_TABLE.sub(lambda m: f"{m[1]}{table}\n{m[2]}", text)
    return files


def strays(root: Path = ROOT) -> list[Path]:
    """Notebooks that no source makes."""
    there = [path for folder in FOLDERS for path in sorted((root / folder).glob("*.ipynb"))]
    return [path for path in there if not (root / "source" / f"{path.stem}.py").exists()]


def main(argv: list[str], root: Path = ROOT) -> int:
    """Build or check. Returns 0, or 1 after saying what is wrong."""
    parser = argparse.ArgumentParser(prog="build", description="make the notebooks from source/")
    parser.add_argument("--check", action="store_true", help="write nothing; fail on a difference")
    parser.add_argument("chapters", nargs="*", metavar="NN", help="only these chapters")
    arguments = parser.parse_args(argv)
    try:
        files = expected_files(root, arguments.chapters)
    except ValueError as error:
        print(error, file=sys.stderr)
        return 1
    changed = [path for path, text in files.items() if _read(path) != text]
    without_source = [] if arguments.chapters else strays(root)
    for path in changed:
        if not arguments.check:
            write_whole(path, files[path])
        print("differs from its source:" if arguments.check else "wrote", _short(path, root))
    for path in without_source:
        print("has no source, remove it:", _short(path, root))
    if not arguments.check:
        if not changed:
            print(f"nothing to write, {len(files)} files are as their source says")
        return 0
    if changed:
        print("Run `python3 course.py build` and commit what it writes.")
    return 1 if changed or without_source else 0


def _short(path: Path, root: Path) -> str:
    return path.relative_to(root).as_posix()


def _read(path: Path) -> str | None:
    return path.read_text(encoding="utf-8") if path.exists() else None


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
