"""A check survives what readers write. Each answer here once ended a notebook somewhere."""

import os
import sys
import textwrap
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
    "returns a large number": ("return -(10**4000)", "a whole number of 4001 digits"),
    "returns minus zero": ("return -0.0", "you returned -0, expected 0.9995"),
    "returns infinity": ("return float('inf')", "you returned inf"),
    "returns a list in itself": ("a = []; a.append(a); return a", "a list that holds itself"),
    "returns half a character": ("return '\\ud800'", "text; expected a number"),
    "returns a tuple as a key": ("return {(1, 2): 3}", "with a tuple as a key"),
    "returns an array of objects": (
        "import numpy; return numpy.array([object()])",
        "an array of dtype object",
    ),
    "returns what equals everything": (
        "return type('E', (float,), {'__eq__': lambda a, b: True})(3)",
        "you returned 3",
    ),
    "returns what is no number when asked": (
        "return type('E', (float,), {'__float__': lambda a: 1 / 0})(3)",
        "ZeroDivisionError",
    ),
    "raises what has no text": (
        "raise type('E', (Exception,), {'__str__': lambda e: 5})()",
        "cannot be shown",
    ),
    "raises half a character": ("raise ValueError('\\ud800')", "ValueError: ?"),
    "raises what ends a thread": ("raise GeneratorExit", "GeneratorExit"),
    "puts a set into its input": ("m = {}; return {1}", "a set"),
    "is killed": ("import os; os.kill(os.getpid(), 9)", "ended its whole process (signal 9)"),
    "closes every file": ("import os; os.closerange(0, 50); return 1", "its whole process"),
    "breaks json": ("import json; json.dumps = lambda *a, **k: '0'; return 1", "nothing readable"),
    "breaks isinstance": (
        "import builtins; builtins.isinstance = lambda *a: True; return 1",
        "",
    ),
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
    verdict.lines[1].encode()
    assert judge(HEAD + f"return {RIGHT}").passed, "no answer harms the next"


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


@pytest.mark.parametrize(
    "body",
    [
        "import sys; sys.stdout.close(); print(1)",
        "import sys; sys.stdout = None; print(1)",
        "import os; os.chdir('/')",
        "import os; os.environ.clear()",
        "import numpy; numpy.array = numpy.sum = None",
        "import numpy; numpy.seterr(all='raise')",
        "import threading, time; threading.Thread(target=time.sleep, args=(99,)).start()",
        "import subprocess, sys; subprocess.Popen([sys.executable, '-c', 'input()'])",
        "import random; random.seed = random.random = None",
        "print('\\ud800')",
    ],
)
def test_a_side_effect_costs_nobody_a_verdict(body):
    for _ in range(2):
        assert judge(HEAD + f"{body}\n    return {RIGHT}").passed
    assert judge(HEAD + f"import numpy; return numpy.array([{RIGHT}])[0]").passed


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_an_answer_that_forks_replies_once():
    assert judge(HEAD + f"import os; os.fork(); return {RIGHT}").passed
    assert judge(HEAD + f"return {RIGHT}").passed


def test_a_worker_killed_between_checks_is_replaced():
    assert judge(HEAD + f"return {RIGHT}").passed
    runner.worker().process.kill()
    assert judge(HEAD + f"return {RIGHT}").passed


def test_whole_fractions_stay_exact():
    import fractions

    exercise = get("02.activation_bytes")
    assert fractions.Fraction(7 * 2**60 + 1) != float(7 * 2**60 + 1)
    text = """
        from fractions import Fraction
        from decimal import Decimal, getcontext

        def activation_bytes(s, b, h, a, mode="none", e=2, m=1):
            getcontext().prec = 50
            if mode == "full":
                return Decimal(s) * b * h * e
            kept = Fraction(s * b * h) * (16 * e + 2 * m)
            return kept + Fraction(b * a * s * s) * (2 * e + m) * (mode == "none")
    """
    verdict = grade(exercise, caller(exercise, textwrap.dedent(text)), seed=1)
    assert verdict.passed, verdict.lines


def test_a_changed_input_that_cannot_travel_is_said():
    exercise = get("02.state_bytes")
    text = "def state_bytes(n_params, recipe):\n    recipe['x'] = {1}\n    return 1"
    assert "you returned 1" in grade(exercise, caller(exercise, text), seed=1).lines[1]
    text = """
        def state_bytes(n_params, recipe):
            size = {"fp32": 4, "bf16": 2, "fp16": 2, "int8": 1}
            n = sum(n_params * size[d] for d in recipe.values())
            n += 4 * -(-n_params // 2048) * list(recipe.values()).count("int8")
            recipe["used"] = {1}
            return n
    """
    verdict = grade(exercise, caller(exercise, textwrap.dedent(text)), seed=1)
    assert "changed its input" in verdict.lines[1]


def test_thousands_of_lines_are_cut():
    verdict = judge(HEAD + f"for i in range(5000): print('line', i)\n    return {RIGHT}")
    assert verdict.passed
    assert "line 7" in verdict.printed and len(verdict.printed) <= 2000


def test_numpy_and_torch_numbers_are_numbers():
    assert judge(HEAD + f"import numpy; return numpy.float64({RIGHT})").passed
    assert judge(HEAD + f"import torch; return torch.tensor({RIGHT}, dtype=torch.float64)").passed
    assert judge(HEAD + f"from fractions import Fraction; return Fraction({RIGHT})").passed


@pytest.mark.parametrize("future", ["", "from __future__ import annotations\n"])
def test_a_helper_may_be_a_dataclass(future):
    helper = "from dataclasses import dataclass\n@dataclass\nclass Box:\n    x: float\n"
    verdict = judge(future + helper + HEAD + f"return Box({RIGHT}).x")
    assert verdict.passed, verdict.lines


def test_a_long_double_is_a_number():
    assert judge(HEAD + f"import numpy; return numpy.longdouble({RIGHT})").passed


def test_float32_is_not_enough_and_is_named():
    verdict = judge(HEAD + f"import numpy; return numpy.float32({RIGHT})")
    assert "32 bits" in verdict.lines[1]


def test_float16_noise_is_not_enough():
    verdict = judge(HEAD + f"import numpy; return float(numpy.float16({RIGHT}))")
    assert verdict.status == "not yet"


def test_the_stub_is_not_attempted():
    verdict = judge(HEAD + "raise NotImplementedError('your turn')")
    assert verdict.status == "not attempted"
    assert judge(HEAD + "raise NotImplementedError('later')").status == "not yet"
    half = judge(HEAD + f"if m < 99: return {RIGHT}\n    raise NotImplementedError('your turn')")
    assert half.status == "not yet" and "comes to the line raise" in half.lines[1]


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
