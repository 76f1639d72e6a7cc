"""The worked example of CONTRIBUTING.md is true: its specification, solution and second answer."""

import re

from utils import ROOT
from utils.exercises.grade import call_here, grade
from utils.exercises.source import read

TEXT = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
CELLS, SPECIFICATION, SECOND = re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)


def test_the_worked_example_works(tmp_path):
    names = {}
    exec(SPECIFICATION, names)
    exercise = names["READ_SECONDS"]

    slice_of_chapter = (ROOT / "source" / "03_roofline.py").read_text(encoding="utf-8")
    path = tmp_path / "03_roofline.py"
    path.write_text(slice_of_chapter + "\n\n" + CELLS, encoding="utf-8")
    solved = {}
    exec(read(path).cell("read_seconds").solved, solved)
    exec(SECOND, second := {})

    for seed in range(20):
        for answer in (solved["read_seconds"], second["read_seconds"]):
            verdict = grade(exercise, call_here(exercise, answer), seed)
            assert verdict.passed, verdict.lines
        for mistake in exercise.mistakes:
            verdict = grade(exercise, call_here(exercise, mistake.answer), seed)
            assert verdict.mistake == mistake.says
