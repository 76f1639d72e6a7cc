"""What chapter 07 shows beside its exercises: gradients by hand, and dropout without a mask."""

import os
import re
import subprocess
import sys

import pytest

from utils import ROOT


@pytest.fixture(scope="module")
def printed(tmp_path_factory):
    """What the solved chapter prints as a script."""
    environment = os.environ | {
        "FEED_THE_GPU_ANSWERS": str(tmp_path_factory.mktemp("answers")),
        "PYTHONPATH": str(ROOT),
    }
    command = [sys.executable, "source/07_triton_first_kernels.py"]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


def test_gradients_equal_autograds(printed):
    gaps = re.findall(r"^(\S+) relative gap (?:of|to) (\w+)", printed, re.M)
    assert {"d_x", "d_weight", "d_bias", "autograd"} <= {name for _, name in gaps}
    assert all(0 <= float(gap) < 1e-5 for gap, _ in gaps), gaps


def test_dropout_drops_the_same_both_ways(printed):
    assert "the same were dropped: True" in printed
    assert "with another seed: False" in printed


def test_a_broken_kernel_is_stopped_with_a_sentence(printed):
    for kernel, words in (
        ("careless_kernel", "is out of bounds"),
        ("hopeful_kernel", "depends on lanes"),
        ("racing_kernel", "race:"),
    ):
        assert any(kernel in line and words in line for line in printed.splitlines()), kernel


def test_every_kernel_passes(printed):
    assert len(re.findall(r"07\.\w+_kernel +passed", printed)) == 7
