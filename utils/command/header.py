"""What the build adds to an author's cells: the top of each notebook, and the README's table."""

import re
import tomllib
from pathlib import Path

from utils.exercises.source import Chapter

_ADDRESS = re.compile(r"https://github\.com/([\w.-]+/[\w.-]+)")


def repository(root: Path) -> str:
    """The course's address, https://github.com/OWNER/NAME, from `[tool.course]` in pyproject.toml.

    Raises ValueError when it is missing or has another form.
    """
    settings = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))
    address = settings.get("tool", {}).get("course", {}).get("repository")
    if not isinstance(address, str) or not _ADDRESS.fullmatch(address):
        raise ValueError(
            f"repository in pyproject.toml's [tool.course] is {address!r}, "
            "but a Colab link needs https://github.com/OWNER/NAME."
        )
    return address


def colab_link(address: str, path: str) -> str:
    """Markdown that opens the notebook at `path`, on the branch main, in Colab."""
    owner_and_name = _ADDRESS.fullmatch(address)[1]
    where = f"https://colab.research.google.com/github/{owner_and_name}/blob/main/{path}"
    return f"[Open in Colab]({where})"


def title(text: str, stem: str, solved: bool) -> str:
    """The title cell's text; the solved notebook says that it is one."""
    if not solved:
        return text
    heading, _, rest = text.partition("\n")
    note = (
        "> **Solved version.** Every exercise is filled in. "
        f"The one to work in is [chapters/{stem}.ipynb](../chapters/{stem}.ipynb)."
    )
    return f"{heading} (solved)\n\n{note}\n\n{rest.strip()}".rstrip()


def about(chapter: Chapter, address: str, folder: str) -> str:
    """The cell after the title: a link to Colab, what the reader needs and leaves with."""
    meta = {name: _in_a_table(value) for name, value in chapter.meta.items()}
    needs = f"{meta['minutes']} minutes · {meta['needs']} · hardware: {meta['hardware']}"
    return "\n".join(
        [
            colab_link(address, f"{folder}/{chapter.stem}.ipynb"),
            "",
            "| you need | you leave with |",
            "|---|---|",
            f"| {needs} | {meta['leaves_with']} |",
        ]
    )


def bootstrap(address: str) -> str:
    """The first code cell: puts the course on the path; on Colab, fetches it first."""
    return f'''\
# Finds the course's files. On Colab, fetches them first.
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

home = "{address}"
here = Path.cwd() / home.rsplit("/", 1)[1]
if find_spec("google") and find_spec("google.colab") and not here.exists():
    subprocess.run(["git", "clone", "--quiet", "--depth=1", home, here])
    subprocess.run([sys.executable, here / "utils" / "command" / "colab.py"])
places = [here, *here.parents, *map(Path, sys.path)]
roots = [str(x) for x in places if (x / "utils" / "course").is_dir()]
if not roots:
    sys.exit(f"Not inside the course. Clone {{home}} and open chapters/.")
sys.path.insert(0, roots[0])'''


def readme_table(chapters: list[Chapter], address: str) -> str:
    """The README's table of chapters, one row each."""
    rows = ["| | chapter | minutes | you need | hardware | |", "|--:|---|--:|---|---|---|"]
    for chapter in chapters:
        meta = {name: _in_a_table(value) for name, value in chapter.meta.items()}
        number, question = meta["title"].split(". ", 1)
        path = f"chapters/{chapter.stem}.ipynb"
        rows.append(
            f"| {number} | [{question}]({path}) | {meta['minutes']} | {meta['needs']} "
            f"| {meta['hardware']} | {colab_link(address, path)} |"
        )
    return "\n".join(rows)


def _in_a_table(value: str | int) -> str:
    return str(value).replace("|", "\\|")
