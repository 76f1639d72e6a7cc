"""Comparing values, and judging with made-up exercises."""

import numpy as np
import pytest

from utils.exercises import Exercise, Mistake
from utils.exercises.compare import difference, show
from utils.exercises.grade import Outcome, call_here, grade
from utils.exercises.plain import NotPlain, decode, encode, plain


def made_up(**changes):
    fields = {
        "id": "99.double", "points": 1, "minutes": 1, "difficulty": 1, "teaches": "doubling",
        "cases": lambda rng: [(rng.normal(size=(4, 3)),), (np.ones((1, 3)),)],
        "expect": lambda x: 2 * x, "tolerance": 1e-6,
        "mistakes": [
            Mistake(lambda x: x * x, "This is the square."),
            Mistake(lambda x: 3 * x, "This is three times x."),
        ],
        "hints": ["one", "two", "three"],
    }  # fmt: skip
    return Exercise(**(fields | changes))


@pytest.mark.parametrize(
    ("got", "expected", "sentence"),
    [
        (np.zeros((2, 3)), np.ones((2, 3)), "largest error at (0, 0)"),
        (np.ones((3, 2)), np.ones((2, 3)), "shape (3, 2), expected (2, 3)"),
        (np.full((2, 2), np.nan), np.ones((2, 2)), "NaN or infinity"),
        ([[1], [1, 2]], np.ones((2, 2)), "rows differ in length"),
        ([[{}, 1]], np.ones((1, 2)), "hold no numbers"),
        ([10**400], np.ones(1), "hold no numbers"),
        (10**400, 1.5, "a whole number of 401 digits"),
        (1.0000001, 1.0, "32 bits"),
        (3.0, np.ones(3), "a number, expected an array"),
        ([1, 2], [1, 2, 3], "2 values"),
        ([1, [2, 4]], [1, [2, 3]], "[1][1]"),
        ({"a": 1}, {"a": 1, "b": 2}, "b is missing"),
        ({"a": 1, "c": 2}, {"a": 1}, "c should not"),
        ({"a": 1}, {"a": 2}, "['a']"),
        (1, True, "expected True"),
        (True, 1, "expected a number"),
        ("weights", "activations", "expected 'activations'"),
        (1.0000001, 1.0000002, "you returned 1.0000001"),
        (0.1, 0, "expected 0"),
        (float("inf"), 1e300, "inf"),
    ],
)
def test_a_difference_is_said(got, expected, sentence):
    assert sentence in difference(got, expected, 1e-9)


@pytest.mark.parametrize(
    ("got", "expected"),
    [
        (2.0, 2), (2, 2.0), (1 + 1e-12, 1.0), (" Weights", "weights"), ([1, 2.0], [1.0, 2]),
        (np.array([1.0, 2]), [1, 2]), ([1.0, 2], np.array([1, 2])), (0.0, 0), (None, None),
        (np.zeros((0, 3)), np.zeros((0, 3))), ({"a": [1]}, {"a": [1]}),
    ],
)  # fmt: skip
def test_equal_values_are_equal(got, expected):
    assert difference(got, expected, 1e-9) is None


def test_exact_means_exact():
    assert difference(10**24 + 1, 10**24, 0)
    assert "stay with whole numbers" in difference(float(2**53), 2**53 + 1, 0)
    assert difference(float(10**15), 10**15, 0) is None


def test_plain_data_travels():
    value = {"a": [1, 2.5, None, True, "x"], 3: np.arange(6, dtype=np.float32).reshape(2, 3)}
    back = decode(encode(value))
    assert back["a"] == value["a"]
    assert back[3].dtype == np.float32 and (back[3] == value[3]).all()


def test_numpy_scalars_become_numbers():
    assert type(plain(np.int64(3))) is int and type(plain(np.float32(0.5))) is float
    with pytest.raises(NotPlain, match="a set"):
        plain({1, 2})


def test_every_wrong_case_must_look_like_the_mistake():
    exercise = made_up()
    assert grade(exercise, call_here(exercise, lambda x: x * x), 1).mistake == "This is the square."
    verdict = grade(exercise, call_here(exercise, lambda x: x * x if len(x) > 1 else x + 9), 1)
    assert verdict.status == "not yet" and not verdict.mistake


def test_a_changed_input_is_said():
    exercise = made_up()

    def call(case):
        return Outcome(value=2 * case[0], changed_input=True)

    assert "changed its input" in grade(exercise, call, 1).lines[1]


@pytest.mark.parametrize(
    "changes", [{"id": "softmax"}, {"hints": ["one"]}, {"difficulty": 5}], ids=str
)
def test_a_bad_specification_is_refused(changes):
    with pytest.raises(ValueError, match=r"must|three"):
        made_up(**changes)


def test_a_long_list_of_lists_is_shown_by_its_first():
    rows = [[1, 2]] * 9
    assert show(rows) == "9 lists, the first [1, 2]"
    assert show([[1], [2]]) == "[[1], [2]]"
