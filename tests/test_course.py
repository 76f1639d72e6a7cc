"""What a reader calls, run in a real kernel: check, hint, reveal, mine, predict, quiz."""

import json
import multiprocessing
import os
import subprocess
import sys

import nbformat
import pytest
from nbclient import NotebookClient

from utils import ROOT
from utils.course.predicting import number

SETUP = """
import sys; sys.path.insert(0, {root!r})
from utils.course import (
    against_prediction, check, hint, mine, predict, progress, quiz, reveal)
"""
HEAD = "def arithmetic_intensity(m, n, k, size):\n    "
RIGHT = "return 2 * m * n * k / ((m * k + k * n + m * n) * size)"
CHECK = "arithmetic_intensity = check('03.arithmetic_intensity', arithmetic_intensity)"
USE = "print(round(arithmetic_intensity(64, 4096, 4096, 2), 1), arithmetic_intensity.__module__)"


@pytest.fixture
def kernel(tmp_path, monkeypatch):
    """Runs cells, each in turn, in one kernel with its own answers folder; returns their text."""
    monkeypatch.setenv("FEED_THE_GPU_ANSWERS", str(tmp_path))

    def run(*cells, store_history=True):
        setup = SETUP.format(root=str(ROOT))
        notebook = nbformat.v4.new_notebook(
            cells=[nbformat.v4.new_code_cell(text) for text in (setup, *cells)]
        )
        client = NotebookClient(notebook, timeout=60, resources={"metadata": {"path": tmp_path}})
        with client.setup_kernel():
            for index, cell in enumerate(notebook.cells):
                client.execute_cell(cell, index, store_history=store_history)
        return [_text(cell) for cell in notebook.cells[1:]]

    return run


def _text(cell):
    parts = [output.get("text") or output["data"]["text/plain"] for output in cell.outputs]
    return "\n".join(parts)


def test_wrong_then_right(kernel, tmp_path):
    progress = f"print(open({str(tmp_path / 'progress.json')!r}).read())"
    wrong, record, went_on, right, own, again = kernel(
        HEAD + "return m * n * k / ((m * k + k * n + m * n) * size)\n" + CHECK,
        progress,
        USE,
        HEAD + RIGHT + "\n" + CHECK,
        USE,
        CHECK,
    )
    assert "not yet, 0 of 8 cases" in wrong and "A multiply-add is two FLOPs" in wrong
    tried = json.loads(record)["exercises"]["03.arithmetic_intensity"]
    assert tried == {"attempts": 1}, "what did not pass has no time at which it passed"
    assert went_on == "62.1 answers_03\n", "the chapter goes on with the course's version"
    assert "passed, 8 of 8 cases" in right
    assert own == "62.1 __main__\n", "the chapter goes on with the reader's own"
    assert "passed" in again
    saved = (tmp_path / "03" / "arithmetic_intensity.py").read_text()
    assert saved == HEAD + RIGHT + "\n"
    record = json.loads((tmp_path / "progress.json").read_text())["exercises"]
    assert record["03.arithmetic_intensity"]["attempts"] == 3
    assert record["03.arithmetic_intensity"]["passed"]


def test_out_of_order_and_shadowed(kernel):
    wrong = HEAD + "return 1.0"
    first, second, shadowed, helped = kernel(
        wrong + "\n" + CHECK,
        CHECK,  # the variable now holds the course's version; the reader's is still wrong
        "torch = check_all = None\nround = 7\n" + HEAD + RIGHT + "\n" + CHECK,
        "import math as mathematics\nFACTOR = 2\ndef total(a, b, c):\n    return a + b + c\n"
        + HEAD
        + "x = total(m * k, k * n, m * n)\n"
        + "    return mathematics.prod([FACTOR, m, n, k]) / x / size\n"
        + CHECK,
    )
    assert "not yet" in first and "not yet" in second
    assert "passed" in shadowed and "passed" in helped


def test_a_front_end_that_keeps_no_history_gets_its_verdicts(kernel):
    wrong = HEAD + "return 1.0\n"
    _, first, *_, last = kernel(wrong, CHECK, HEAD + RIGHT, CHECK, store_history=False)
    assert "not yet, 0 of 8 cases" in first and "passed, 8 of 8 cases" in last


def test_what_is_not_an_answer(kernel):
    outputs = kernel(
        "x = check('03.arithmetic_intensity', 42); print(x(1, 1, 1, 1))",
        "check('03.arithmetic_intensty', max)",
        "y = check('03.arithmetic_intensity', lambda m, n, k, size: 1)",
        "def mine_too(m, n, k, size):\n    " + RIGHT,
        "z = check('03.arithmetic_intensity', mine_too); print(z is mine_too)",
        "check(3, 4)",
    )
    assert "not the function arithmetic_intensity" in outputs[0] and "0.666" in outputs[0]
    assert "Near: 03.arithmetic_intensity" in outputs[1]
    assert "not yet, 0 of 8 cases" in outputs[2], "a lambda is judged where it stands"
    assert "passed" in outputs[4] and "True" in outputs[4]
    assert "There is no exercise 3." in outputs[5]


def test_a_terminal_with_a_small_alphabet_gets_its_verdict(tmp_path):
    path = tmp_path / "answer.py"
    path.write_text(f"from utils.course import check\n{HEAD}{RIGHT}\n{CHECK}\n", encoding="utf-8")
    own = {"PYTHONPATH": str(ROOT), "PYTHONIOENCODING": "ascii", "FEED_THE_GPU_ANSWERS": tmp_path}
    done = subprocess.run(
        [sys.executable, path], env=os.environ | own, capture_output=True, text=True, timeout=120
    )
    assert done.stdout.startswith("? 03.arithmetic_intensity   passed"), done.stderr


def test_help_is_given_step_by_step_and_noted(kernel, tmp_path):
    id = "'03.arithmetic_intensity'"
    one, two, three, shown, missing = kernel(
        f"hint({id})", f"hint({id})", f"hint({id})", f"reveal({id})", "hint('03.nothing')"
    )
    assert "hint 1 of 3" in one and "2." not in one
    assert "2." in two and "3." in three and "reveal" in three
    assert "return flops / moved" in shown and "BEGIN SOLUTION" not in shown
    assert "There is no exercise '03.nothing'." in missing
    record = json.loads((tmp_path / "progress.json").read_text())["exercises"]
    assert record["03.arithmetic_intensity"] == {"hints": 3, "revealed": 1}


def test_mine(kernel, tmp_path):
    courses, _, own, damaged = kernel(
        "f = mine('03.arithmetic_intensity'); print(f.__module__)",
        HEAD + RIGHT + "\n" + CHECK,
        "f = mine('03.arithmetic_intensity'); print(f(1, 1, 1, 4))",
        f"open({str(tmp_path / '03' / 'arithmetic_intensity.py')!r}, 'w').write('def (')\n"
        "f = mine('03.arithmetic_intensity'); print(f(1, 1, 1, 4))",
    )
    assert "the course's version" in courses
    assert "your own answer" in own and "0.166" in own
    assert "does not run" in damaged and "0.166" in damaged
    assert list((tmp_path / "03").glob("arithmetic_intensity.damaged-*.py"))


def test_a_damaged_progress_file_is_set_aside(kernel, tmp_path):
    (tmp_path / "progress.json").write_text('{"exercises": {"03.')
    (said,) = kernel("hint('03.arithmetic_intensity')")
    aside = list(tmp_path.glob("progress.damaged-*.json"))
    assert len(aside) == 1 and aside[0].name in said
    assert aside[0].read_text() == '{"exercises": {"03.'


@pytest.mark.parametrize("refuses", ["filelock.FileLock.acquire", "utils.course.store.write_whole"])
def test_a_folder_that_takes_nothing_costs_the_record_and_not_the_hint(
    tmp_path, monkeypatch, capsys, refuses
):
    from utils.course import hint, predict

    def full(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setenv("FEED_THE_GPU_ANSWERS", str(tmp_path))
    monkeypatch.setattr(refuses, full)
    monkeypatch.setattr("utils.course.helping._shown", {})
    hint("03.arithmetic_intensity")
    predict("03.rows", "How many?", answer=4)
    said = capsys.readouterr().out
    assert "hint 1 of 3" in said and "You predict 4" in said
    assert said.count("This could not be saved: No space left on device.") == 2


def test_predictions(kernel):
    outputs = kernel(
        "predict('03.rows', 'How many times?', unit='times', answer='sixty')",
        "against_prediction('03.rows', 1.5, 'times')",
        "predict('03.rows', 'How many times?', unit='times', answer='64')",
        "against_prediction('03.rows', 1.5, 'times')",
        "predict('03.rows', 'How many times?', unit='times')",
        "against_prediction('03.rows', 64, 'times', kind='modelled')",
    )
    assert "not a number" in outputs[0]
    assert "measured: 1.5 times" in outputs[1] and "no prediction" in outputs[1]
    assert "You predict 64 times" in outputs[2]
    assert "you predicted: 64 times" in outputs[3] and "too high by a factor of 42.7" in outputs[3]
    assert "How many times?" in outputs[4] and "So far you said 64 times" in outputs[4]
    assert "modelled: 64 times" in outputs[5] and "Exactly" in outputs[5]


def test_a_prediction_is_read_as_people_write_it():
    assert number("7 ms", "ms") == 7 and number("33%", "%") == 33 and number("25%") == 0.25
    assert number("1,200") == 1200 and number("1/8") == 0.125 and number("3E9 s", "s") == 3e9
    assert number("1,5") is number("7 s", "ms") is number("s", "s") is number("") is None


def test_quiz(kernel, tmp_path):
    asked, answered, wrong, missing = kernel(
        "quiz('03.recall')",
        "quiz('03.recall', answers='aaa')",
        "quiz('03.recall', answers='az')",
        "quiz('99.recall')",
    )
    assert "a)" in asked and ("Yes:" in answered or "No:" in answered)
    assert "a letter a question" in wrong
    assert "There is no quiz '99.recall'." in missing
    assert len(json.loads((tmp_path / "progress.json").read_text())["quizzes"]["03.recall"]) == 3


def test_two_notebooks_at_once_lose_nothing(tmp_path, monkeypatch):
    monkeypatch.setenv("FEED_THE_GPU_ANSWERS", str(tmp_path))
    processes = [
        multiprocessing.get_context("spawn").Process(target=_note_often, args=(name,))
        for name in ("a", "b")
    ]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    record = json.loads((tmp_path / "progress.json").read_text())["exercises"]
    assert record["both"]["attempts"] == 40 and record["a"] and record["b"]


def _note_often(name):
    from utils.course import store

    for _ in range(20):
        store.note("both", attempts=store.once_more)
        store.note(name, attempts=store.once_more)
