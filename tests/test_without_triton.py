"""Where Triton is not installed: kernels are defined, and the kernel chapters run to their end."""

import os
import subprocess
import sys

import pytest

from utils import ROOT
from utils.command.environment import kernel_environment
from utils.command.notebook import find_notebook, run_notebook
from utils.meter.without_triton import WHERE

WITHOUT = """
import sys
sys.modules["triton"] = None  # as if it were not installed
from utils.course.skipping import FIRST_LINE, SAYS, skip
from utils.meter.on_paper import tl, triton
from utils.meter.without_triton import NoTriton

@triton.jit
def kernel(x_ptr, n, BLOCK: tl.constexpr):
    "Docs."
    tl.store(x_ptr, 1)

tuned = triton.autotune(configs=[triton.Config({"BLOCK": 8}, num_warps=4)], key=["n"])(kernel)
assert (kernel.__doc__, kernel.arg_names) == ("Docs.", ["x_ptr", "n", "BLOCK"])
assert (triton.cdiv(7, 2), triton.next_power_of_2(5)) == (4, 8)
try:
    tuned[(1,)](None, 3, BLOCK=4)
except NoTriton as error:
    print(error._render_traceback_()[0])
assert skip([FIRST_LINE + "\\n", "kernel[1]()\\n"]) == [SAYS]
assert skip(["x = 1\\n"]) == ["x = 1\\n"]
from utils.course import check
from utils.exercises.namespace import solution
assert check("07.add_kernel", kernel) is solution("07.add_kernel")
"""


def test_without_triton_kernels_are_defined_and_launches_say_where(tmp_path):
    environment = os.environ | {"FEED_THE_GPU_ANSWERS": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT], cwd=ROOT, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr[-2000:]
    first, *verdict = done.stdout.splitlines()
    assert first == WHERE
    assert any("not checked" in line for line in verdict) and any(WHERE in x for x in verdict)


HIDE = "import sys\nsys.modules['triton'] = None\n"


def _has_triton(environment):
    ask = "from utils.meter.without_triton import has_triton; print(has_triton())"
    done = subprocess.run([sys.executable, "-c", ask], cwd=ROOT, env=environment,
                          capture_output=True, text=True, check=True)  # fmt: skip
    return done.stdout.strip() == "True"


@pytest.fixture(scope="module")
def answers(tmp_path_factory):
    """One folder for all, so that the machine is measured once."""
    return tmp_path_factory.mktemp("answers")


@pytest.mark.slow
@pytest.mark.parametrize("number", ["06", "07", "08"])
@pytest.mark.parametrize("solved", [False, True], ids=["chapter", "solution"])
def test_the_chapter_runs_without_triton(number, solved, answers, tmp_path, monkeypatch):
    (tmp_path / "sitecustomize.py").write_text(HIDE, encoding="utf-8")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    assert not _has_triton(kernel_environment(answers))  # else nothing is shown below
    times = run_notebook(find_notebook(number, solved), answers, each=lambda cell: None)
    assert len(times) > 10
    assert [cell for cell in times if cell.error] == []
