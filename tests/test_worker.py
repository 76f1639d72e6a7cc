"""A check survives what readers write. Each answer here once ended a notebook somewhere."""

import os
import sys
from types import SimpleNamespace

import pytest

from utils.exercises import get, runner
from utils.exercises.grade import grade, make_cases
from utils.exercises.runner import caller

EXERCISE = get("03.arithmetic_intensity")
HEAD = "def arithmetic_intensity(m, n, k, size):\n    "
RIGHT = "2 * m * n * k / ((m * k + k * n + m * n) * size)"

TROUBLE = {
    "raises": ("return {}[m]", "KeyError"),
    "names the line": ("x = 1\n    return x / 0", "in your line 3: return x / 0"),
    "unknown name": ("return helper(m)", "travel to the check"),
    "returns None": ("pass", "Is a return missing?"),
    "returns text": ("return '31'", "text; expected a number"),
    "returns a function": ("return max", "the function max itself"),
    "returns a generator": ("yield 1", "a generator"),
    "returns complex": ("return 1j", "a complex"),
    "returns a truth value": ("return True", "True or False; expected a number"),
    "returns a list": (f"return [{RIGHT}]", "a list; expected a number"),
    "returns NaN": ("return float('nan')", "you returned nan"),
    "returns a huge number": ("return 10**5000", "4300 digits"),
    "asks": ("return input()", "cannot ask with input()"),
    "exits": ("import sys; sys.exit()", "it does not exit"),
    "ends its process": ("import os; os._exit(3)", "ended its whole process (exit code 3)"),
    "recurses without end": ("return arithmetic_intensity(m, n, k, size)", "calls itself"),
    "takes too few arguments": ("pass", "positional argument"),
    "does not parse": ("return (", "SyntaxError"),
    "is not a function": ("", "not callable"),
}


def judge(text):
    return grade(EXERCISE, caller(EXERCISE, text), seed=1)


@pytest.mark.parametrize("name", TROUBLE)
def test_trouble_is_said_in_a_sentence(name):
    body, sentence = TROUBLE[name]
    text = HEAD + body
    if name == "takes too few arguments":
        text = "def arithmetic_intensity(m):\n    return 1"
    if name == "is not a function":
        text = "arithmetic_intensity = 42"
    verdict = judge(text)
    assert verdict.status == "not yet"
    assert sentence in verdict.lines[1], verdict.lines
    assert "\n" not in verdict.lines[1]


@pytest.mark.parametrize(
    "body",
    [
        "while True: pass",
        "while True:\n        try: m += 1\n        except: pass",
        "return sum(range(10**13))",  # a loop in C that no signal interrupts
        "import time; time.sleep(1000)",
    ],
)
def test_an_endless_loop_is_stopped(body):
    verdict = judge(HEAD + body)
    assert "stopped" in verdict.lines[1]
    assert judge(HEAD + f"return {RIGHT}").passed, "the next check starts a new process"


def test_a_crash_is_survived():
    verdict = judge(HEAD + "import ctypes; ctypes.string_at(0)")
    assert "ended its whole process" in verdict.lines[1]
    assert judge(HEAD + f"return {RIGHT}").passed


def test_an_endless_loop_outside_the_function_names_its_own_limit(monkeypatch):
    monkeypatch.setattr(runner, "LOAD_SECONDS", 7.0)
    verdict = judge(f"x = [0 for _ in iter(int, 1)]\n{HEAD}return x")
    assert "not done in 7 seconds" in verdict.lines[1]


def test_only_the_answers_own_seconds_count(monkeypatch):
    clock = SimpleNamespace(now=0.0, monotonic=lambda: clock.now)
    monkeypatch.setattr(runner, "time", clock)
    call = caller(EXERCISE, HEAD + f"return {RIGHT}")
    for case in make_cases(EXERCISE, seed=1)[:2]:
        clock.now += 100  # the reference is slow to compute
        assert not call(case).trouble


@pytest.mark.skipif(
    sys.platform != "linux" or os.path.exists("/dev/nvidiactl"),
    reason="the limit is kept on Linux without a GPU only",
)
def test_too_much_memory_is_refused():
    assert "more memory" in judge(HEAD + "return [0] * 10**10").lines[1]


def test_a_million_lines_are_cut():
    verdict = judge(HEAD + f"for i in range(10**5): print('line', i)\n    return {RIGHT}")
    assert verdict.passed
    assert "line 7" in verdict.printed and len(verdict.printed) <= 2000


def test_numpy_and_torch_numbers_are_numbers():
    assert judge(HEAD + f"import numpy; return numpy.float64({RIGHT})").passed
    assert judge(HEAD + f"import torch; return torch.tensor({RIGHT}, dtype=torch.float64)").passed
    assert judge(HEAD + f"from fractions import Fraction; return Fraction({RIGHT})").passed


def test_float16_noise_is_not_enough():
    verdict = judge(HEAD + f"import numpy; return float(numpy.float16({RIGHT}))")
    assert verdict.status == "not yet"


def test_the_stub_is_not_attempted():
    verdict = judge(HEAD + "raise NotImplementedError('your turn')")
    assert verdict.status == "not attempted"
    assert judge(HEAD + "raise NotImplementedError('later')").status == "not yet"


def test_an_answer_sees_the_chapters_other_exercises_but_not_its_own_solution():
    verdict = judge("def other(): pass\narithmetic_intensity = arithmetic_intensity")
    assert "NameError" in verdict.lines[1]


def test_the_worker_holds_no_expected_value(monkeypatch):
    """What travels to the worker is the answer's text and the inputs."""
    seen = []
    original = runner.Worker.ask

    def spy(self, message, seconds):
        seen.append(message)
        return original(self, message, seconds)

    monkeypatch.setattr(runner.Worker, "ask", spy)
    judge(HEAD + f"return {RIGHT}")
    assert {key for message in seen for key in message} == {"do", "id", "text", "case"}
