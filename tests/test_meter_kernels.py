"""The meter names what is wrong with a kernel and survives it; on a correct one it is silent.

Every case runs in this one process, one after another: a corrupted heap or a patch left in triton
would show in those that follow.
"""

import os
import subprocess
import sys

import numpy as np
import pytest

pytest.importorskip("triton")

import torch
import triton
import triton.language as tl

from tests.kernels.broken_memory import MEMORY
from tests.kernels.broken_programs import PROGRAMS
from tests.kernels.case import Case
from tests.kernels.correct import CORRECT
from utils import ROOT
from utils.meter import KernelReport, measure

BROKEN = [*MEMORY, *PROGRAMS]


def run(case: Case, **more) -> tuple[KernelReport, object]:
    torch.manual_seed(0)
    made = case.make()
    return measure(case.kernel, made.grid, *made.args, **made.named, **more), made


@pytest.mark.parametrize("case", BROKEN, ids=lambda case: case.name)
def test_names_what_is_wrong(case):
    report, _ = run(case)
    assert not report.ok
    problem = report.problems[0]
    assert (problem.kind, problem.argument) == (case.kind, case.argument), str(problem)
    for words in case.says:
        assert words in problem.message, problem.message
    assert case.name in problem.message
    assert str(problem) in str(report) and "WRONG" in str(report)


@pytest.mark.parametrize("case", CORRECT, ids=lambda case: case.name)
def test_is_silent_on_what_is_right(case):
    report, made = run(case)
    assert report.problems == () and report.warnings == ()
    assert case.right(made)
    assert report.programs_run == report.programs


def test_corpus_is_as_large_as_promised():
    assert len({case.name for case in BROKEN}) >= 25
    assert len({case.name for case in CORRECT}) >= 10


def test_a_bad_store_changes_no_memory():
    case = next(case for case in BROKEN if case.name == "from_one_tensor_into_another")
    report, made = run(case)
    x, y = made.args[:2]
    assert not report.ok and bool((x == 0).all()) and bool((y != 0).any())


def test_the_time_limit_is_not_raised_later():
    case = next(case for case in BROKEN if case.name == "loop_of_bare_python")
    made = case.make()
    measure(case.kernel, made.grid, *made.args, seconds=0.2)
    assert sum(range(10**6)) == 499999500000  # any later bytecode would be hit
    good = CORRECT[0]
    report, made = run(good, seconds=0.5)
    assert report.ok


def test_python_runs_as_before_after_a_launch():
    """A profiler hangs, and everything is slower, when an asynchronous exception is left behind."""
    script = (
        "import cProfile, os\nfrom tests.test_meter_kernels import CORRECT, run\n"
        "run(CORRECT[0])\ncProfile.run('sum(i for i in range(1000))', os.devnull)\nprint('done')"
    )
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True,
                          timeout=120)  # fmt: skip
    assert done.stdout.split() == ["done"], done.stderr[-2000:]


def test_nothing_stays_changed_in_triton():
    from triton.runtime import interpreter

    places = (interpreter, interpreter.InterpreterBuilder, interpreter.TensorHandle, tl, tl.core,
              tl.tensor, tl.math, triton.JITFunction, interpreter.InterpretedFunction,
              interpreter.ReduceOps)  # fmt: skip
    before = [dict(vars(place)) for place in places]
    for case in (CORRECT[0], BROKEN[0], next(c for c in BROKEN if c.kind == "time limit")):
        run(case)
        for place, was in zip(places, before, strict=True):
            now = dict(vars(place))
            assert {k for k in now if now[k] is not was.get(k)} == set(), place
            assert set(was) == set(now), place


def test_reader_module_gets_no_new_names():
    case = CORRECT[0]
    before = set(case.kernel.fn.__globals__)
    run(case)
    assert set(case.kernel.fn.__globals__) == before


COMPILES = """
import triton, triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
from tests.kernels.chapter08 import flash_forward
from tests.kernels.correct import CORRECT
from utils.meter import measure
made = CORRECT[0].make()
for _ in range(2):
    signature = {n: "*fp32" if n.endswith("_ptr") else "i32" for n in flash_forward.arg_names}
    constants = {"HEAD_DIM": 64, "BLOCK_M": 64, "BLOCK_N": 64}
    signature |= {n: "constexpr" for n in constants} | {"scale": "fp32"}
    source = ASTSource(fn=flash_forward, signature=signature, constexprs=constants)
    print("ptx" in triton.compile(source, target=GPUTarget("cuda", 80, 32)).asm)
    print(measure(CORRECT[0].kernel, made.grid, *made.args, **made.named).ok)
"""


def test_a_kernel_that_was_metered_still_compiles(tmp_path):
    """As on a GPU machine: kernels are decorated to be compiled, metered, and compiled again."""
    environment = {k: v for k, v in os.environ.items() if k != "TRITON_INTERPRET"}
    environment |= {"TRITON_CACHE_DIR": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", COMPILES], cwd=ROOT, env=environment,
                          capture_output=True, text=True)  # fmt: skip
    assert done.stdout.split() == ["True"] * 4, done.stderr[-2000:]


def test_interpreted_kernels_are_metered_too():
    """As on a CPU machine: TRITON_INTERPRET was set before triton was imported."""
    script = (
        "from tests.test_meter_kernels import CORRECT, MEMORY, run\n"
        "print([run(c)[0].ok for c in CORRECT].count(False))\n"
        "print([run(c)[0].ok for c in MEMORY].count(True))"
    )
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True,
                          env={**os.environ, "TRITON_INTERPRET": "1"})  # fmt: skip
    assert done.stdout.split() == ["0", "0"], done.stderr[-2000:]


@triton.jit
def copy(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + i, tl.load(x_ptr + i, mask=i < n), mask=i < n)


def test_outputs_are_filled_first():
    x, out, ints = torch.randn(4), torch.zeros(8), torch.zeros(8, dtype=torch.int32)
    report = measure(copy, (1,), x, out, 4, BLOCK=4, outputs=["out_ptr"])
    assert bool(out[4:].isnan().all()) and torch.equal(out[:4], x)
    assert report.problems[0].kind == "unwritten"
    measure(copy, (1,), ints.clone(), ints, 4, BLOCK=4, outputs=["out_ptr"])
    assert ints[4:].tolist() == [torch.iinfo(torch.int32).min] * 4
    assert measure(copy, (1,), x, out, 4, BLOCK=4).ok  # not declared: nothing is claimed


WRONG = {
    "grid=5": lambda x: measure(copy, 5, x, x, 4, BLOCK=4),
    "grid=(1, 1, 1, 1)": lambda x: measure(copy, (1, 1, 1, 1), x, x, 4, BLOCK=4),
    "grid=(-1,)": lambda x: measure(copy, (-1,), x, x, 4, BLOCK=4),
    "grid=(1.5,)": lambda x: measure(copy, (1.5,), x, x, 4, BLOCK=4),
    "kernel=": lambda x: measure(copy.fn, (1,), x, x, 4, BLOCK=4),
    "copy takes (x_ptr, out_ptr, n, BLOCK)": lambda x: measure(copy, (1,), x, x, 4),
    "outputs='y'": lambda x: measure(copy, (1,), x, x, 4, BLOCK=4, outputs="y"),
    "shares memory with x_ptr": lambda x: measure(copy, (1,), x, x, 4, BLOCK=4, outputs="out_ptr"),
    "seconds=0": lambda x: measure(copy, (1,), x, x, 4, BLOCK=4, seconds=0),
    "name='B300'": lambda x: measure(copy, (1,), x, x, 4, BLOCK=4, accelerator="B300"),
    "x_ptr: expected an ordinary": lambda x: measure(copy, (1,), x.to("meta"), x, 4, BLOCK=4),
}


@pytest.mark.parametrize("words", WRONG)
def test_wrong_arguments_are_named(words):
    with pytest.raises(ValueError) as error:
        WRONG[words](torch.zeros(4))
    assert words in str(error.value)


def test_launch_options_are_taken():
    report = measure(copy, lambda meta: (triton.cdiv(meta["n"], meta["BLOCK"]),), torch.randn(10),
                     torch.zeros(10), 10, BLOCK=4, num_warps=4, num_stages=2)  # fmt: skip
    assert report.ok and report.grid == (3, 1, 1)


def test_autotuned_and_heuristic_kernels():
    configs = [triton.Config({"BLOCK": 4}), triton.Config({"BLOCK": 8})]
    tuned = triton.autotune(configs, key=["n"])(copy)
    grid = lambda meta: (triton.cdiv(meta["n"], meta["BLOCK"]),)  # noqa: E731
    report = measure(tuned, grid, torch.randn(10), torch.zeros(10), 10)
    assert report.ok and report.programs == 3 and "first of 2" in report.warnings[0]
    report = measure(tuned, grid, torch.randn(10), torch.zeros(10), 10, BLOCK=8)
    assert report.ok and report.programs == 2 and report.warnings == ()
    chosen = triton.heuristics({"BLOCK": lambda args: 2 if args["n"] < 20 else 4})(copy)
    assert measure(chosen, grid, torch.randn(10), torch.zeros(10), 10).programs == 5


def test_a_new_version_is_said(monkeypatch):
    monkeypatch.setattr(triton, "__version__", "4.1.0")
    report = measure(copy, (1,), torch.randn(4), torch.zeros(4), 4, BLOCK=4)
    assert "triton 4.1.0 is new to the meter" in report.warnings[0]


def test_a_version_without_the_seams_is_refused(monkeypatch):
    from triton.runtime import interpreter

    monkeypatch.delattr(interpreter, "ScanOps")
    with pytest.raises(ValueError, match="has no ScanOps"):
        measure(copy, (1,), torch.randn(4), torch.zeros(4), 4, BLOCK=4)


def test_two_launches_at_once_are_refused():
    from utils.meter import interpreter

    with (
        interpreter.interpreting(_Nobody(), print),
        pytest.raises(ValueError, match="one launch is metered at a time"),
    ):
        measure(copy, (1,), torch.randn(4), torch.zeros(4), 4, BLOCK=4)
    assert measure(copy, (1,), torch.randn(4), torch.zeros(4), 4, BLOCK=4).ok


class _Nobody:
    how, synchronises = "", False


@triton.jit
def accumulates_in_fp16(a_ptr, out_ptr, N: tl.constexpr):
    i = tl.arange(0, N)
    at = i[:, None] * N + i[None, :]
    a = tl.load(a_ptr + at)
    tl.store(out_ptr + at, tl.dot(a, a, out_dtype=tl.float16))
    tl.store(out_ptr + i, tl.sum(a, 1))


def test_precision_is_a_warning():
    a = torch.randn(16, 16).half()
    report = measure(accumulates_in_fp16, (1,), a, torch.zeros(16, 16).half(), N=16)
    assert report.ok
    assert "accumulates in fp16" in report.warnings[0] and "tl.sum adds fp16" in report.warnings[1]


def test_values_of_a_race_are_shown():
    case = next(case for case in BROKEN if case.name == "forgets_program_id")
    report, made = run(case)
    one, two = (f"{value:.6g}" for value in made.args[0][[0, 64]].tolist())
    assert f"{one} and {two}" in report.problems[0].message


def test_meter_needs_no_torch_to_import():
    script = "import sys, utils.meter; print({'torch', 'triton', 'numpy'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True)
    assert done.stdout.strip() == "set()"


def test_numpy_warnings_are_unchanged():
    before = np.geterr()
    run(CORRECT[0])
    assert np.geterr() == before
