"""The verbs: what they refuse in a sentence, how they run notebooks and count tests."""

import json
import socket
import subprocess
import sys

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from utils import ROOT
from utils.command import lab, notebook, run, test


def course(*arguments: str) -> subprocess.CompletedProcess:
    command = [sys.executable, str(ROOT / "course.py"), *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=60)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["lub"], "Did you mean lab?"),
        (["tests"], "Did you mean test?"),
        (["frobnicate"], "There are lab, test, doctor"),
        (["lab", "--port", "many"], "'many' is not a number from 1 to 65535"),
        (["lab", "--port", "65536"], "'65536' is not a number from 1 to 65535"),
        (["run"], "required: NN"),
        (["doctor", "--jsn"], "--jsn"),
    ],
)
def test_a_wrong_call_gets_one_sentence(arguments, says):
    done = course(*arguments)
    assert done.returncode == 1 and says in done.stderr
    assert len(done.stderr.splitlines()) == 1 and not done.stdout


def test_without_a_verb_it_lists_them():
    done = course()
    assert done.returncode == 0
    assert all(verb in done.stdout for verb in ("lab", "test", "doctor", "progress"))


# --- lab -------------------------------------------------------------------------------------


def test_a_busy_port_is_refused_when_asked_for_and_passed_over_when_not(monkeypatch):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(SystemExit, match=rf"Port {port} is taken.*--port \d+"):
            lab.choose_port(port)
        monkeypatch.setattr(lab, "FIRST_PORT", port)
        assert lab.choose_port(None) > port


def test_markdown_opens_rendered(monkeypatch, tmp_path):
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    lab.write_settings()
    text = (tmp_path / "share/jupyter/lab/settings/overrides.json").read_text(encoding="utf-8")
    assert '"markdown": "Markdown Preview"' in text and '"fetchNews": "false"' in text


# --- run -------------------------------------------------------------------------------------


@pytest.fixture
def root(tmp_path):
    """A course of one chapter, whose solved notebook works and whose other one fails."""
    cells = [
        new_markdown_cell("# 7. Fake", id="title"),
        new_code_cell("import os; from utils import answers_folder", id="setup"),
        new_code_cell("(answers_folder() / 'x').touch(); open('seen', 'w').close()", id="write"),
    ]
    broken = new_code_cell("def f():\n    raise KeyError('deep')\nf()", id="broken")
    for folder, extra in (("solutions", []), ("chapters", [broken, new_code_cell("1", id="z")])):
        (tmp_path / folder).mkdir()
        nbformat.write(new_notebook(cells=cells + extra), tmp_path / folder / "07_fake.ipynb")
    return tmp_path


@pytest.mark.parametrize("number", ["7", "07", "07_fake", "07_fake.ipynb"])
def test_a_chapter_is_found_by_its_number(root, number):
    assert notebook.find_notebook(number, True, root) == root / "solutions" / "07_fake.ipynb"


@pytest.mark.parametrize("number", ["8", "x", "", "007"])
def test_a_missing_chapter_names_those_there_are(root, number):
    with pytest.raises(ValueError, match=r"There is no chapter .*\. There are 07\."):
        notebook.find_notebook(number, False, root)


def test_no_notebooks_at_all(tmp_path):
    with pytest.raises(ValueError, match=r"course\.py build"):
        notebook.find_notebook("3", False, tmp_path)


@pytest.mark.slow
def test_a_notebook_runs_in_its_folder_with_the_answers_it_is_given(root, tmp_path):
    path = root / "solutions" / "07_fake.ipynb"
    before, seen = path.read_bytes(), []
    times = notebook.run_notebook(path, tmp_path / "answers", seen.append)
    assert [cell.key for cell in times] == ["setup", "write"] and seen == times
    assert not any(cell.error for cell in times)
    assert (tmp_path / "answers/x").exists() and (root / "solutions/seen").exists()
    assert path.read_bytes() == before


@pytest.mark.slow
def test_the_first_cell_that_fails_is_named(root, tmp_path, capsys):
    path = root / "chapters" / "07_fake.ipynb"
    times = notebook.run_notebook(path, tmp_path / "answers", run.show)
    assert [cell.key for cell in times] == ["setup", "write", "broken"]
    assert run.summary(times) == 1
    shown = capsys.readouterr()
    assert shown.err == "The cell broken failed. KeyError: 'deep'\n"
    assert "3 cells in" in shown.out and "Traceback" not in shown.out


# --- test ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("code", "last_line", "expected"),
    [
        (0, "12 passed in 3.21s", (12, 0, 0)),
        (0, "12 passed, 2 skipped, 5 deselected in 75.21s (0:01:15)", (12, 0, 2)),
        (1, "1 failed, 2 passed, 1 error in 3.00s", (2, 2, 0)),
        (1, "=== 3 failed, 40 passed, 7 warnings, 2 errors in 3.00s ===", (40, 5, 0)),
        (2, "no tests ran in 0.01s", (0, 1, 0)),
        (3, "INTERNALERROR> something", (0, 1, 0)),
        (1, "40 passed in 3.00s", (40, 1, 0)),
    ],
)
def test_pytests_totals_are_read(code, last_line, expected):
    output = f"...... [100%]\nread 3 files in 2.0s here\n{last_line}\n"
    result = test.count("step", 1.0, code, output, by_pytest=True)
    assert (result.passed, result.failed, result.skipped) == expected


def test_a_step_that_found_no_test_fails():
    result = test.count("step", 1.0, 5, "no tests ran in 0.01s\n", by_pytest=True)
    assert result.failed == 1 and "found no test" in result.note


def test_another_tool_counts_as_one_test():
    assert test.count("style", 1.0, 0, "All checks passed!", by_pytest=False).passed == 1
    assert test.count("style", 1.0, 1, "Found 5 errors.", by_pytest=False).failed == 1


def test_the_total_decides_the_exit_code(capsys):
    good, bad = test.Result("a", 1.0, passed=3), test.Result("b", 1.0, failed=1, skipped=2)
    assert test.summary([good]) == 0 and test.summary([good, bad]) == 1
    assert capsys.readouterr().out.splitlines()[-1] == "3 passed, 1 failed, 2 skipped"


def test_a_step_shows_and_counts_what_it_ran(capfd):
    command = [sys.executable, "-c", "print('3 passed in 0.1s')", "pytest"]
    result = test.run_step("step", command, {})
    assert (result.passed, result.failed) == (3, 0)
    assert "3 passed in 0.1s" in capfd.readouterr().out


def test_a_fresh_clone_that_looks_solved_fails(tmp_path):
    from utils.exercises import all_exercises

    ids = [exercise.id for exercise in all_exercises()]

    def result(solved, **facts):
        records = {id: {"skipped": 1} for id in ids} | facts
        (tmp_path / "progress.json").write_text(json.dumps({"exercises": records}))
        return test.found_as_expected(tmp_path, solved)

    assert result(solved=False).failed == 0
    assert result(solved=False, **{ids[0]: {"attempts": 1, "passed": "now"}}).failed == 1
    assert result(solved=False, **{ids[0]: {}}).failed == 1
    assert result(solved=True, **{ids[0]: {"attempts": 1, "passed": "now"}}).passed == 1
    assert result(solved=True, **{ids[0]: {"attempts": 1, "passed": None}}).passed == 0
