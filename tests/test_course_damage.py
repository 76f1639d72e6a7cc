"""Nothing a reader types, and nothing that befalls the answers folder, costs more than a sentence.

What needs a kernel is in test_course.py; here the same functions run in a plain process.
"""

import json
import os
import subprocess
import sys
import textwrap

import pytest

from utils import ROOT
from utils.course import against_prediction, hint, mine, predict, progress, quiz, reveal, store
from utils.course.predicting import number

ID = "03.mbu"


class Broken:
    def __repr__(self):
        return "Broken()"

    def __float__(self):
        raise RuntimeError("no")

    def __eq__(self, other):
        raise RuntimeError("no")

    __hash__ = None


STRANGE = [None, "", " ", "é", "\ud800", 0, -1, 2.5, float("nan"), float("inf"), 10**400, True]
STRANGE += [[], {}, (1, 2), {1}, b"03.mbu", "03", "03.", ".mbu", "99.none", 3.0, "x" * 10**5]


@pytest.fixture(autouse=True)
def answers(tmp_path, monkeypatch):
    monkeypatch.setenv("FEED_THE_GPU_ANSWERS", str(tmp_path / "answers"))
    monkeypatch.setattr("utils.course.helping._shown", {})
    (tmp_path / "answers").mkdir()
    return tmp_path / "answers"


@pytest.mark.parametrize("value", STRANGE, ids=lambda value: ascii(value)[:20])
def test_whatever_is_typed_is_answered_in_a_sentence(value, capsys):
    hint(ID)
    hint(value)
    reveal(value)
    quiz(value)
    quiz("03.recall", answers=value)
    predict(value, "How many?")
    predict("03.x", value, unit=value)
    predict("03.x", "How many?", answer=value)
    against_prediction(value, 1.0)
    against_prediction("03.x", value, unit=value)
    progress()
    assert store.read()["exercises"][ID]["hints"] >= 1
    assert "Traceback" not in capsys.readouterr().out


def test_objects_that_break_when_asked_are_no_numbers(capsys):
    predict("03.x", "How many?", answer=Broken())
    against_prediction("03.x", Broken())
    assert capsys.readouterr().out.count("Broken()") == 2


@pytest.mark.parametrize(
    "text", ["1,5", "0,125", "12,34", "1/0", "1/2/3", "nan", "1e999", "~7", ","]
)
def test_what_could_be_misheard_is_no_number(text):
    assert number(text) is None


DAMAGE = {
    "cut off": b'{"exercises": {"03.',
    "empty": b"",
    "no utf-8": b"\xff\xfe{}",
    "another shape": b"[1, 2]",
    "a part of another shape": b'{"exercises": []}',
    "an exercise of another shape": b'{"exercises": {"03.mbu": 7}}',
    "a count of another shape": b'{"exercises": {"03.mbu": {"hints": "two"}}}',
    "a prediction of another shape": b'{"predictions": {"03.rows": 64}}',
    "a prediction without a value": b'{"predictions": {"03.rows": {"unit": "times"}}}',
    "a quiz of another shape": b'{"quizzes": {"03.recall": true}}',
    "nested without end": b"[" * 100_000,
    "a long number": b'{"exercises": ' + b"1" * 5000 + b"}",
}


@pytest.mark.parametrize("name", DAMAGE)
def test_a_damaged_progress_file_is_kept_and_a_new_one_starts(name, answers, capsys):
    (answers / "progress.json").write_bytes(DAMAGE[name])
    progress()
    against_prediction("03.rows", 3.0)
    hint(ID)
    quiz("03.recall", answers="aaa")
    aside = list(answers.glob("progress.damaged-*.json"))
    assert [one.read_bytes() for one in aside] == [DAMAGE[name]]
    assert aside[0].name in capsys.readouterr().out
    assert store.read()["exercises"][ID]["hints"] == 1


def test_a_folder_in_the_files_place_is_set_aside_too(answers):
    (answers / "progress.json").mkdir()
    (answers / "progress.json" / "kept.txt").write_text("kept")
    hint(ID)
    assert (answers / "progress.damaged-1.json" / "kept.txt").read_text() == "kept"
    assert store.read()["exercises"][ID]["hints"] == 1


def test_what_a_later_version_adds_is_not_lost(answers):
    (answers / "progress.json").write_text('{"exercises": {}, "notes": {"a": 1}}')
    hint(ID)
    assert json.loads((answers / "progress.json").read_text())["notes"] == {"a": 1}


def test_what_cannot_be_read_is_not_overwritten(answers, monkeypatch, capsys):
    (answers / "progress.json").write_text('{"exercises": {"03.mbu": {"attempts": 9}}}')

    def refuse(*_args, **_more):
        raise PermissionError(13, "Permission denied")

    with monkeypatch.context() as patched:
        patched.setattr("pathlib.Path.read_text", refuse)
        hint(ID)
        progress()
    assert "Permission denied" in capsys.readouterr().out
    assert store.read()["exercises"]["03.mbu"] == {"attempts": 9}


def test_an_answers_folder_that_cannot_be_made_costs_the_record_only(tmp_path, monkeypatch, capsys):
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("FEED_THE_GPU_ANSWERS", str(tmp_path / "file"))
    hint(ID)
    hint(ID)
    progress()
    predict("03.x", "How many?", answer=3)
    quiz("03.recall", answers="aaa")
    assert mine(ID)(14e9, 0, 0.014, 2e12, 1) == 0.5
    said = capsys.readouterr().out
    assert "hint 1 of 3" in said and "hint 2 of 3" in said


@pytest.mark.parametrize("text", [b"def (", b"mbu = 1 / 0", b"\xff\xff", b"", b"raise SystemExit"])
def test_a_saved_answer_that_does_not_run_is_kept(text, answers, capsys):
    (answers / "03").mkdir()
    (answers / "03" / "mbu.py").write_bytes(text)
    assert mine(ID)(14e9, 0, 0.014, 2e12, 1) == 0.5
    assert (answers / "03" / "mbu.damaged-1.py").read_bytes() == text
    assert "mbu.damaged-1.py" in capsys.readouterr().out


def run_script(tmp_path, text):
    """What a script prints that runs beside the course, as `python source/03_roofline.py` does."""
    (tmp_path / "script.py").write_text(textwrap.dedent(text), encoding="utf-8")
    ran = subprocess.run(
        [sys.executable, str(tmp_path / "script.py")],
        capture_output=True, text=True, timeout=120, check=False, encoding="utf-8",
        env={**os.environ, "PYTHONPATH": str(ROOT), "PYTHONIOENCODING": "utf-8"},
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    assert "Traceback" not in ran.stdout + ran.stderr
    return ran.stdout


RIGHT = "    return (w + kv) / s / (peak * n)\n"


def test_a_script_is_checked_as_a_notebook_is(tmp_path):
    said = run_script(
        tmp_path,
        f"""
        from utils.course import check
        def mbu(w, kv, s, peak, n):
        {RIGHT}
        for _ in range(2):
            mbu = check("03.mbu", mbu)
        for f in [mbu, lambda w, kv, s, peak, n: 1]:
            check("03.mbu", f)
        """,
    )
    assert said.count("passed, ") >= 3


def test_check_answers_whatever_it_is_given(tmp_path):
    said = run_script(
        tmp_path,
        f"""
        from utils.course import check
        class Broken:
            def __repr__(self): raise RuntimeError
            def __getattr__(self, name): raise RuntimeError
        class Callable(Broken):
            def __call__(self, *a): return 1
        def mbu(w, kv, s, peak, n):
        {RIGHT}
        broken, called = Broken(), Callable()
        for strange in [None, 3, "mbu", [mbu], broken, float("nan"), max, print, called]:
            assert check("03.mbu", strange)(14e9, 0, 0.014, 2e12, 1) == 0.5
        for seed in [-1, "x", 2.5, [], True, 10**30, 0]:
            check("03.mbu", mbu, seed=seed)
        for strange in {[s for s in STRANGE if s != "x" * 10**5 and s == s]!r}:
            check(strange, mbu)
        """.replace("inf,", "float('inf'),"),
    )
    assert "a Broken" in said and "seed is -1" in said
    assert said.count("passed, ") == 2, "two of the seeds are seeds"
