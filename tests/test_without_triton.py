"""The kernel chapters where Triton is not installed: they run to their end, skipping kernels."""

import pytest

from utils.command.notebook import find_notebook, run_notebook

HIDE = "import sys\nsys.modules['triton'] = None\n"


@pytest.fixture(scope="module")
def answers(tmp_path_factory):
    """One folder for all, so that the machine is measured once."""
    return tmp_path_factory.mktemp("answers")


@pytest.mark.parametrize("number", ["06", "07", "08"])
@pytest.mark.parametrize("solved", [False, True], ids=["chapter", "solution"])
def test_the_chapter_runs_without_triton(number, solved, answers, tmp_path, monkeypatch):
    (tmp_path / "sitecustomize.py").write_text(HIDE, encoding="utf-8")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    times = run_notebook(find_notebook(number, solved), answers, each=lambda cell: None)
    assert len(times) > 10
    assert [cell for cell in times if cell.error] == []
