"""The GPU run, as far as a CPU can run it: its JSON, its time limit, how it reads the counters."""

import json
import subprocess
import sys

import pytest
import torch

from utils import ROOT

pytest.importorskip("triton")
from tests.gpu import counters, run
from tests.gpu.__main__ import Results
from tests.gpu.workloads import WORKLOADS


@pytest.mark.parametrize("workload", WORKLOADS, ids=lambda w: w.name)
def test_each_kernel_is_right_on_paper(workload):
    found = run.check(workload, "cpu")
    assert found["right"], found
    metered = found["metered"]
    assert metered["requested_bytes"] >= 0.99 * metered["least_bytes"]


@pytest.mark.parametrize("workload", WORKLOADS, ids=lambda w: w.name)
def test_each_kernel_compiles_for_an_a100(workload):
    """Fits its registers and its shared memory, and products are on the tensor cores."""
    found = run.compiled(workload, "8.0")
    assert found["spill_bytes"] == 0 and found["shared_bytes"] <= 163 * 1024
    assert found["tensor_cores"] == (workload.name.startswith(("matmul", "Flash")))


def test_a_wrong_kernel_is_said_to_be_wrong():
    import dataclasses

    add = WORKLOADS[0]

    def off(size, device):
        launch, reference = add.make(size, device)
        return launch, lambda: reference() + 1

    assert not run.check(dataclasses.replace(add, make=off), "cpu")["right"]


def test_times_have_a_spread():
    found = run.spread(lambda: torch.ones(10) + 1, 0.01)
    assert 0 < found["low_s"] <= found["median_s"] <= found["high_s"]


def test_an_error_is_a_result_and_nothing_starts_after_the_time(tmp_path, capsys):
    results = Results(tmp_path / "out" / "found.json", 60)
    results.step("part", "good", lambda: {"value": 1})
    results.step("part", "bad", lambda: 1 / 0)
    late = Results(tmp_path / "late.json", 0)
    late.step("part", "late", lambda: {"value": 1})
    found = json.loads(results.path.read_text(encoding="utf-8"))
    assert found["part"]["good"] == {"value": 1}
    assert "ZeroDivisionError" in found["part"]["bad"]["error"]
    assert results.failed == ["part bad"]
    assert "the time is up" in capsys.readouterr().out and not late.path.exists()


def test_without_a_gpu_it_says_so():
    if torch.cuda.is_available():
        pytest.skip("there is a GPU")
    command = [sys.executable, "-m", "tests.gpu"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 1 and "--paper" in done.stderr
    assert "Traceback" not in done.stderr


SECTORS = "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum"
NCU = f"""==PROF== Connected to process 1
"ID","Process ID","Kernel Name","Section Name","Metric Name","Metric Unit","Metric Value"
"0","1","add_kernel","Command line","dram__bytes_read.sum","Mbyte","0.80"
"0","1","add_kernel","Command line","{SECTORS}","sector","25,000"
"""


def test_counters_are_read_in_their_units():
    assert counters.read(NCU) == {"dram_bytes_read": 800_000, "load_sectors": 25_000}


def test_refused_counters_are_said():
    said = "==PROF== x\n==ERROR== ERR_NVGPUCTRPERM - no permission to read the counters\n"
    assert "ERR_NVGPUCTRPERM" in counters.read(said)["why_not"]
    assert counters.read("")["why_not"]
