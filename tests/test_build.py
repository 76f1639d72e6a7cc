"""From a source to two notebooks: stable bytes, the inserted cells, and what --check notices."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest

from tests.test_source import SAMPLE, write
from utils import ROOT
from utils.command import build, header
from utils.exercises.source import chapters

ADDRESS = "https://github.com/someone/the-course"
PYPROJECT = f"""
[project]
dependencies = ["numpy>=1.26", "torch>=2.6", "triton>=3; sys_platform == 'linux'", "jupyterlab>=4"]
[tool.course]
repository = "{ADDRESS}"
"""
README = "# Course\n\n<!-- chapters -->\nold\n<!-- /chapters -->\n\nThe end.\n"


@pytest.fixture
def course(tmp_path):
    """A course of one chapter, not yet built."""
    write(tmp_path)
    (tmp_path / "pyproject.toml").write_text(PYPROJECT, encoding="utf-8")
    (tmp_path / "README.md").write_text(README, encoding="utf-8")
    return tmp_path


def cells(course: Path, folder: str) -> list[dict]:
    text = (course / folder / "03_roofline.ipynb").read_text(encoding="utf-8")
    return json.loads(text)["cells"]


def source(cell: dict) -> str:
    return "".join(cell["source"])


def test_building_twice_writes_once(course, capsys):
    assert build.main([], course) == 0
    first = {path: path.read_bytes() for path in course.rglob("*") if path.is_file()}
    assert capsys.readouterr().out.splitlines() == [
        "wrote chapters/03_roofline.ipynb",
        "wrote solutions/03_roofline.ipynb",
        "wrote README.md",
    ]
    assert build.main([], course) == 0
    assert "nothing to write, 3 files" in capsys.readouterr().out
    assert {path: path.read_bytes() for path in course.rglob("*") if path.is_file()} == first
    assert not any(b"\r" in content for content in first.values())


@pytest.mark.parametrize("seed", ["1", "4242"])
def test_another_process_makes_the_same_bytes(course, seed):
    code = (
        "import sys; from pathlib import Path; from utils.command.build import expected_files\n"
        "for text in expected_files(Path(sys.argv[1])).values(): sys.stdout.write(text)"
    )
    environment = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(ROOT), "PYTHONUTF8": "1"}
    done = subprocess.run(
        [sys.executable, "-c", code, course], env=environment, capture_output=True, timeout=60
    )
    expected = "".join(build.expected_files(course).values())
    assert done.stdout.decode().replace("\r\n", "\n") == expected


@pytest.mark.parametrize("folder", ["chapters", "solutions"])
def test_notebooks_are_valid_and_minimal(course, folder):
    build.main([], course)
    path = course / folder / "03_roofline.ipynb"
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    assert (notebook.nbformat, notebook.nbformat_minor) == (4, 5)
    assert notebook.metadata == build.METADATA
    keys = ["title", "about", "bootstrap"] + [
        cell.key for cell in chapters(course)[0].cells if cell.key != "title"
    ]
    assert [cell.id for cell in notebook.cells] == keys
    assert len(set(keys)) == len(keys)
    for cell in notebook.cells:
        assert set(cell.metadata) <= {"tags", "jupyter"}
        if cell.cell_type == "code":
            assert cell.outputs == [] and cell.execution_count is None
    tagged = {cell.id: cell.metadata.tags for cell in notebook.cells if "tags" in cell.metadata}
    assert tagged == {"setup": ["setup"], "double": ["exercise"], "double-check": ["check"]}


def test_figures_and_the_bootstrap_are_folded(course):
    """A click opens them. Nothing else is folded: code is what the course teaches."""
    path = course / "source" / "03_roofline.py"
    text = path.read_text(encoding="utf-8")
    changed = text.replace('key="use"', 'key="use" tags=["figure"]')
    assert changed != text
    path.write_text(changed, encoding="utf-8")
    build.main([], course)
    notebook = nbformat.read(course / "chapters" / "03_roofline.ipynb", as_version=4)
    folded = [c.id for c in notebook.cells if c.metadata.get("jupyter") == {"source_hidden": True}]
    assert folded == ["bootstrap", "use"]


def test_the_two_notebooks_differ_in_exercises_and_the_top_only(course):
    build.main([], course)
    pairs = list(zip(cells(course, "chapters"), cells(course, "solutions"), strict=True))
    assert [a["id"] for a, b in pairs if a != b] == ["title", "about", "double"]
    stub, solved = next((source(a), source(b)) for a, b in pairs if a["id"] == "double")
    assert "return 2 * x" not in stub and "return 2 * x" in solved
    for text in (stub, solved):
        assert "SOLUTION" not in text
    space: dict = {}
    exec(compile(stub, "stub", "exec"), space)
    with pytest.raises(NotImplementedError, match="your turn"):
        space["double"](1)


def test_the_top_says_what_it_is_and_links_to_itself(course):
    build.main([], course)
    title, about, _ = cells(course, "chapters")[:3]
    assert source(title).startswith("# 3. Is it bytes or FLOPs?\n\nOne picture")
    link = (
        "https://colab.research.google.com/github/someone/the-course/blob/main/{}/03_roofline.ipynb"
    )
    assert source(about).split("\n") == [
        f"[Open in Colab]({link.format('chapters')})",
        "",
        "| you need | you leave with |",
        "|---|---|",
        r"| 70 minutes · chapter 0 · hardware: none; a GPU \| measured | the roof: yours |",
    ]
    title, about, _ = cells(course, "solutions")[:3]
    assert source(title).startswith("# 3. Is it bytes or FLOPs? (solved)\n\n> **Solved version.**")
    assert "(../chapters/03_roofline.ipynb)" in source(title) and "One picture" in source(title)
    assert f"({link.format('solutions')})" in source(about)


def test_the_readme_gets_its_table_between_the_markers(course, capsys):
    build.main([], course)
    text = (course / "README.md").read_text(encoding="utf-8")
    before, table, after = text.partition(header.readme_table(chapters(course), ADDRESS))
    assert before == "# Course\n\n<!-- chapters -->\n"
    assert after == "\n<!-- /chapters -->\n\nThe end.\n"
    row = table.splitlines()[2]
    assert row.startswith(
        "| 3 | [Is it bytes or FLOPs?](chapters/03_roofline.ipynb) | 70 | chapter 0 "
    )
    assert "blob/main/chapters/03_roofline.ipynb) |" in row
    (course / "README.md").write_text("# No markers\n", encoding="utf-8")
    assert build.main([], course) == 0 and build.main(["--check"], course) == 0
    (course / "README.md").unlink()
    assert build.main(["--check"], course) == 0


def test_check_writes_nothing_and_names_what_differs(course, capsys):
    assert build.main(["--check"], course) == 1
    assert not (course / "chapters").exists()
    build.main([], course)
    assert build.main(["--check"], course) == 0
    path = course / "solutions" / "03_roofline.ipynb"
    path.write_text(path.read_text(encoding="utf-8").replace("2 * x", "3 * x"), encoding="utf-8")
    capsys.readouterr()
    assert build.main(["--check"], course) == 1
    assert capsys.readouterr().out.splitlines() == [
        "differs from its source: solutions/03_roofline.ipynb",
        "Run `python3 course.py build` and commit what it writes.",
    ]
    assert "3 * x" in path.read_text(encoding="utf-8")
    assert build.main(["03"], course) == 0 and build.main(["--check"], course) == 0


def test_check_fails_on_a_notebook_without_a_source(course, capsys):
    build.main([], course)
    stray = course / "chapters" / "99_gone.ipynb"
    stray.write_text("{}", encoding="utf-8")
    assert build.main(["--check", "3"], course) == 0
    assert build.main(["--check"], course) == 1
    assert "has no source, remove it: chapters/99_gone.ipynb" in capsys.readouterr().out
    assert build.main([], course) == 0 and stray.exists()


def test_line_ends_that_git_changed_are_no_difference(course):
    build.main([], course)
    path = course / "chapters" / "03_roofline.ipynb"
    path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
    assert build.main(["--check"], course) == 0


@pytest.mark.parametrize(
    ("break_it", "arguments", "sentence"),
    [
        (lambda root: None, ["07"], "There is no chapter '07'. The chapters here: 03."),
        (
            lambda root: write(root, SAMPLE.replace(' key="use"', "")),
            [],
            "roofline.py:47: the cell",
        ),
        (
            lambda root: (root / "pyproject.toml").write_text("[tool.course]", encoding="utf-8"),
            [],
            "repository in pyproject.toml's [tool.course] is None",
        ),
    ],
)
def test_an_error_is_one_sentence_and_writes_nothing(course, capsys, break_it, arguments, sentence):
    break_it(course)
    assert build.main(arguments, course) == 1
    error = capsys.readouterr().err
    assert sentence in error and error.count("\n") == 1
    assert not (course / "chapters").exists()


# The course itself.


def test_the_committed_notebooks_are_what_the_sources_give(capsys):
    assert build.main(["--check"]) == 0, capsys.readouterr()


@pytest.mark.parametrize("folder", build.FOLDERS)
def test_links_between_chapters_lead_somewhere(folder):
    for chapter in chapters():
        for cell in chapter.cells:
            for target in re.findall(r"\]\(([^)#:]+\.ipynb)", cell.text):
                assert (ROOT / folder / target).exists(), f"{chapter.stem}, {cell.key}: {target}"
