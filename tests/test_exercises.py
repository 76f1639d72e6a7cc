"""What every exercise must prove. Generated from the specifications: none can be added without."""

import importlib
import inspect
import re

import numpy as np
import pytest

from utils.exercises import all_exercises, get_quiz
from utils.exercises.compare import SAYS
from utils.exercises.grade import Outcome, call_here, grade, make_cases
from utils.exercises.namespace import fresh, solution, solution_text
from utils.exercises.plain import plain
from utils.exercises.runner import caller
from utils.exercises.source import chapter, chapters
from utils.meter.without_triton import has_triton

EXERCISES = all_exercises()
SEEDS = range(20)
NAMED = {
    "00": "median_time copy_bandwidth matmul_rate utilisation launch_overhead native_bf16",
    "01": "count_parameters forward_flops training_flops attention_share active_parameters "
    "days_to_train mfu_from_throughput",
    "02": "state_bytes activation_bytes largest_batch checkpoint_plan kv_cache_bytes "
    "what_does_not_fit zero_bytes",
    "03": "arithmetic_intensity attainable crossover_batch mbu tokens_per_second_bound "
    "gpus_for_latency bigger_or_better_fed",
    "04": "softmax attention multi_head grouped_query online_softmax tiled_attention "
    "attention_backward rope hbm_bytes",
    "05": "block gpt cross_entropy get_batch adamw lr_schedule accumulate_gradients is_it_real "
    "fit_scaling_law",
    "06": "sectors coalesced_transpose_order occupancy waves launch_bound_below fusion_bytes "
    "reduction_tree",
    "07": "add_kernel bias_gelu_kernel softmax_kernel rmsnorm_kernel layernorm_backward_kernel "
    "cross_entropy_kernel transpose_kernel",
    "08": "matmul_kernel grouped_order matmul_bias_relu_kernel int8_gemv_kernel "
    "flash_forward_kernel flash_backward_kernels flash_attention",
    "09": "decode_float round_to accumulate loss_scaler master_weights_step amax_scale "
    "quantize_block int8_linear choose_recipe",
}


def _param(exercise, *more, number=""):
    """One case of a test, skipped where the exercise is a kernel and there is no Triton."""
    skip = pytest.mark.skipif(exercise.needs_triton and not has_triton(), reason="needs Triton")
    return pytest.param(exercise, *more, id=f"{exercise.id}{number}", marks=skip)


every_exercise = pytest.mark.parametrize("exercise", [_param(one) for one in EXERCISES])


def test_the_exercises_of_the_plan_are_there():
    ids = {exercise.id for exercise in EXERCISES}
    assert len(ids) == len(EXERCISES), "an id is used twice"
    for number, names in NAMED.items():
        missing = {f"{number}.{name}" for name in names.split()} - ids
        assert not missing


@every_exercise
def test_specification_is_complete(exercise):
    assert exercise.points > 0 and exercise.minutes > 0 and exercise.teaches
    sentences = [mistake.says for mistake in exercise.mistakes]
    assert len(sentences) >= 3 and len(set(sentences)) == len(sentences)
    assert all(len(text) > 15 for text in [*sentences, *exercise.hints])
    assert 0 <= exercise.tolerance < 0.05


@every_exercise
def test_source_and_specification_agree(exercise):
    this = chapter(exercise.chapter)
    keys = [cell.key for cell in this.cells]
    assert f"{exercise.name}-check" in keys
    answer = solution(exercise.id)
    if inspect.isfunction(answer) and exercise.drive is None:
        names = list(inspect.signature(answer).parameters)
        assert list(inspect.signature(exercise.expect).parameters) == names
    before = this.cells[: keys.index(exercise.name)]
    headings = [cell.text for cell in before if "Exercise" in cell.text.split("\n")[0]]
    stars = "●" * exercise.difficulty + "○" * (4 - exercise.difficulty)
    unit = "points" if exercise.points > 1 else "point"
    assert f"{stars} · {exercise.minutes} minutes · {exercise.points} {unit}" in headings[-1]


@every_exercise
def test_docstring_examples_are_true(exercise):
    import doctest

    names = fresh(exercise.chapter)
    doc = names[exercise.name].__doc__ or ""
    test = doctest.DocTestParser().get_doctest(doc, names, exercise.id, None, None)
    result = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(test)
    assert result.attempted > 0, "show an example in the docstring"
    assert result.failed == 0


@every_exercise
def test_stub_is_not_attempted(exercise):
    stub = next(c for c in chapter(exercise.chapter).exercises if c.key == exercise.name).stub
    verdict = grade(exercise, caller(exercise, stub), seed=1)
    assert verdict.status == "not attempted"


@every_exercise
def test_solution_passes_in_the_worker(exercise):
    verdict = grade(exercise, caller(exercise, solution_text(exercise.id)), seed=1)
    assert verdict.passed, verdict.lines


@every_exercise
@pytest.mark.parametrize("seed", SEEDS)
def test_solution_passes(exercise, seed):
    verdict = grade(exercise, call_here(exercise, solution(exercise.id)), seed)
    assert verdict.passed, verdict.lines


@every_exercise
def test_second_correct_answer_passes(exercise):
    module = importlib.import_module(f"tests.answers.ch{exercise.chapter}")
    answer = getattr(module, exercise.name)
    for seed in SEEDS:
        verdict = grade(exercise, call_here(exercise, answer), seed)
        assert verdict.passed, verdict.lines


MISTAKES = [
    _param(exercise, mistake, number=f"-{number}")
    for exercise in EXERCISES
    for number, mistake in enumerate(exercise.mistakes)
]


@pytest.mark.parametrize(("exercise", "mistake"), MISTAKES)
def test_mistake_fails_with_its_own_sentence(exercise, mistake):
    # A kernel is interpreted, which takes long, and its slips depend less on the seed.
    for seed in SEEDS[:5] if exercise.needs_triton else SEEDS:
        verdict = grade(exercise, call_here(exercise, mistake.answer), seed)
        assert verdict.status == "not yet"
        assert verdict.mistake == mistake.says, verdict.lines


def _like(value, number, text=""):
    """A value of the same structure in which every number is `number`."""
    if isinstance(value, bool):
        return False
    if isinstance(value, int | float):
        return number
    if isinstance(value, str):
        return text
    if isinstance(value, np.ndarray):
        return np.full(value.shape, number, dtype=np.float64)
    if isinstance(value, list):
        return [_like(item, number, text) for item in value]
    if isinstance(value, dict):
        return {k: item if k == SAYS else _like(item, number, text) for k, item in value.items()}
    return value


CHEATS = {
    "all zeros": lambda expected, case: _like(expected, 0),
    "NaN": lambda expected, case: _like(expected, float("nan"), "nan"),
    "the input": lambda expected, case: case[0] if case else None,
    "one value too many": lambda expected, case: [expected],
    "None": lambda expected, case: None,
    "text": lambda expected, case: "a text",
}


@every_exercise
@pytest.mark.parametrize("cheat", CHEATS)
def test_empty_answers_fail_readably(exercise, cheat):
    def call(case):
        expected = plain(exercise.expect(*plain(case)))
        return Outcome(value=plain(CHEATS[cheat](expected, case)))

    for seed in SEEDS[:5]:
        verdict = grade(exercise, call, seed)
        assert verdict.status == "not yet"
        assert len(verdict.lines[1]) > 15


@every_exercise
def test_cases_are_fresh_each_time(exercise):
    assert repr(make_cases(exercise, 1)) == repr(make_cases(exercise, 1))
    assert repr(make_cases(exercise, 1)) != repr(make_cases(exercise, 2))


@pytest.mark.parametrize("number", [c.number for c in chapters()])
def test_each_chapter_recalls(number):
    quiz = get_quiz(f"{number}.recall")
    assert len(quiz.questions) == 3
    for question in quiz.questions:
        assert len(question.options) >= 3
        assert all(why for _, why in question.options)


@pytest.mark.parametrize("number", [c.number for c in chapters()])
def test_each_chapter_has_its_parts(number):
    text = "\n".join(cell.text for cell in chapter(number).cells)
    for part in ("## At scale", "## What to remember", "## Sources"):
        assert part in text
    for call in (f'start("{number}")', f'quiz("{number}.recall")', "predict(", "show.explore("):
        assert call in text
    assert {"hint", "reveal"} <= fresh(number).keys(), "a verdict names hint; it must be there"
    remember = text.split("## What to remember")[1].split("## ")[0]
    assert 1 <= len(re.findall(r"^\s*[-\d]", remember, re.M)) <= 5
