"""What chapter 06 says of GPUs, against NVIDIA's own calculator, the compilers and the meter."""

import ast
import csv
import os
import re
import shutil
import subprocess
import sys

import pytest
import torch

from utils import ROOT
from utils.exercises._ch06_limits import LIMITS
from utils.exercises.namespace import solution
from utils.exercises.source import chapter
from utils.hardware import accelerator
from utils.meter import measure, meter
from utils.meter.without_triton import has_triton

triton_is_here = pytest.mark.skipif(not has_triton(), reason="Triton exists for Linux")
TYPES = {"x_ptr": "*fp32", "b_ptr": "*fp32", "out_ptr": "*fp32", "n": "i32"}


def cell(key: str) -> str:
    return next(c.text for c in chapter("06").cells if c.key == key)


def test_occupancy_agrees_with_nvidias_calculator():
    """tests/data/occupancy.csv was made by cuda_occupancy.h, preferring shared memory to L1."""
    occupancy = solution("06.occupancy")
    with open(ROOT / "tests" / "data" / "occupancy.csv", encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert {row["capability"] for row in rows} == set(LIMITS)
    for row in rows:
        numbers = (int(row[name]) for name in ("registers", "threads", "shared_bytes"))
        found = occupancy(*numbers, LIMITS[row["capability"]])
        assert found["blocks"] == int(row["blocks"]), row


def test_the_chapters_limits_are_those_of_the_exercise():
    tree = ast.parse(cell("inside-table"))
    tree.body = tree.body[:2]  # the dictionary, and the loop that completes it
    names: dict = {}
    exec(compile(tree, "inside-table", "exec"), names)
    assert names["LIMITS"] == LIMITS


@pytest.mark.parametrize("name", ["T4", "A100 80GB SXM", "RTX 4090", "H100 SXM"])
def test_shared_memory_agrees_with_the_table_of_accelerators(name):
    chip = accelerator(name)
    assert LIMITS[chip.capability]["shared_bytes"] == chip.shared_bytes_per_core


@pytest.mark.parametrize(("code", "others"), [
    (lambda x, y: torch.relu(x + y), [1, 0]),
    (lambda x, y: (x * y).sigmoid() - y.clone(), [1, 0, 1]),
])  # fmt: skip
def test_the_meter_counts_the_same_unfused_bytes(code, others):
    x, y = torch.rand(2, 70, 30)
    with meter() as m:
        code(x, y)
    copies = 2 * x.numel() * 4 * len([row for row in m.rows() if row.name == "clone"])
    bytes_moved = solution("06.fusion_bytes")(x.numel(), others, 4)
    assert m.bytes - copies == bytes_moved["unfused"]


if has_triton():
    import triton
    import triton.language as tl

    from tests.kernels.chapter06 import add_relu

    @triton.jit
    def strided(x_ptr, out_ptr, offset, stride, lanes):
        i = tl.arange(0, 32)
        x = tl.load(x_ptr + offset + i * stride, mask=i < lanes)
        tl.store(out_ptr + i, x, mask=i < lanes)


@triton_is_here
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16, torch.int8])
def test_the_meter_counts_the_same_sectors(dtype):
    sectors = solution("06.sectors")
    x, out = torch.ones(1000, dtype=dtype), torch.empty(32, dtype=dtype)
    for offset, stride, lanes in [(0, 1, 32), (3, 1, 32), (1, 5, 32), (600, -7, 20), (9, 0, 32)]:
        report = measure(strided, (1,), x, out, offset, stride, lanes)
        found = report.argument("x_ptr").read_sectors
        assert found == sectors(offset, stride, x.element_size(), lanes)


COMPILES = """
import re, sys
from tests.kernels.chapter06 import add_relu, product
from utils.meter.compiled import compile_for
types = {"x_ptr": "*fp32", "b_ptr": "*fp32", "out_ptr": "*fp32", "n": "i32"}
def loads(made): return len(re.findall(r"ld\\.global", made.ptx))
small = compile_for(add_relu, types, {"BLOCK": 128}, "8.0")
large = compile_for(add_relu, types, {"BLOCK": 4096}, "8.0")
print(small.registers < large.registers <= 255, small.spill_bytes == small.shared_bytes == 0)
whole = compile_for(add_relu, types | {"n": "i32:16"}, {"BLOCK": 4096}, "8.0")
print(loads(small) == 2, loads(large) == 64, loads(whole) == 16)
print(loads(compile_for(add_relu, types, {"BLOCK": 4096}, "8.0", num_warps=8)) == 32)
pointers = {"a_ptr": "*fp16", "b_ptr": "*fp16", "c_ptr": "*fp32"}
dot = compile_for(product, pointers, {"N": 32}, "8.0")
print("mma.sync.aligned.m16n8k16" in dot.ptx, dot.shared_bytes >= 2 * 32 * 32 * 2)
print("wgmma" in compile_for(product, pointers, {"N": 64}, "9.0").ptx)
spilling = compile_for(add_relu, types, {"BLOCK": 16384}, "8.0")
print(spilling.spill_bytes > 0, spilling.registers == 255)
"""


@triton_is_here
def test_kernels_are_compiled_without_a_gpu(tmp_path):
    """As where no interpreter is switched on: registers, loads, matrix units, spills."""
    environment = {k: v for k, v in os.environ.items() if k != "TRITON_INTERPRET"}
    environment |= {"TRITON_CACHE_DIR": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", COMPILES], cwd=ROOT, env=environment,
                          capture_output=True, text=True)  # fmt: skip
    assert done.stdout.split() == ["True"] * 11, done.stdout + done.stderr[-2000:]


@triton_is_here
@pytest.mark.parametrize(("words", "change"), [
    ("capability='sm_80'", {"capability": "sm_80"}),
    ("num_warps=3", {"num_warps": 3}),
    ("expected each of x_ptr, b_ptr, out_ptr, n, BLOCK", {"constants": {}}),
    ("in one of them", {"constants": {"BLOCK": 128, "n": 5}}),
    ("kernel=", {"kernel": print}),
])  # fmt: skip
def test_wrong_arguments_of_compile_for_are_named(words, change):
    from utils.meter.compiled import compile_for

    given = {"kernel": add_relu, "signature": TYPES, "constants": {"BLOCK": 128}}
    with pytest.raises(ValueError, match=re.escape(words)):
        compile_for(**given | change)


@pytest.mark.skipif(not shutil.which("nvcc"), reason="nvcc is not installed")
def test_the_cuda_kernel_compiles(tmp_path):
    names: dict = {}
    exec(cell("cuda-source"), names)
    source = tmp_path / "add_relu.cu"
    source.write_text(names["CUDA"], encoding="utf-8")
    ptx = source.with_suffix(".ptx")
    subprocess.run(["nvcc", "-ptx", "-arch=sm_80", source, "-o", ptx], check=True)
    text = ptx.read_text(encoding="utf-8")
    assert text.count("ld.global") == 2 and text.count("st.global") == 1
