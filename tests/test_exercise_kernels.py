"""Exercises that are kernels: what `run` says of one that is right, slow, wrong, or none."""

import numpy as np
import pytest

pytest.importorskip("triton")

import torch

from utils.exercises import kernels
from utils.exercises.compare import difference
from utils.exercises.grade import YOUR_TURN
from utils.exercises.kernels import right, run
from utils.exercises.plain import plain
from utils.meter.on_paper import tl, triton

ROWS, COLUMNS, WIDER = 4, 40, 48
LIMITS = {"at_most_bytes": 2 * ROWS * COLUMNS * 4, "coalescing": 0.9}


@triton.jit
def double(x_ptr, out_ptr, stride, columns, BLOCK: tl.constexpr):
    c = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + tl.program_id(0) * stride + c, mask=c < columns)
    tl.store(out_ptr + tl.program_id(0) * columns + c, 2 * x, mask=c < columns)


@triton.jit
def double_twice(x_ptr, out_ptr, stride, columns, BLOCK: tl.constexpr):
    c = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + tl.program_id(0) * stride + c, mask=c < columns)
    x += tl.load(x_ptr + tl.program_id(0) * stride + c, mask=c < columns)
    tl.store(out_ptr + tl.program_id(0) * columns + c, x, mask=c < columns)


@triton.jit
def double_down_columns(x_ptr, out_ptr, stride, columns, BLOCK: tl.constexpr):
    r = tl.arange(0, BLOCK)
    inside = r < tl.num_programs(0)
    for c in range(tl.program_id(0), columns, tl.num_programs(0)):
        x = tl.load(x_ptr + r * stride + c, mask=inside)
        tl.store(out_ptr + r * columns + c, 2 * x, mask=inside)


@triton.jit
def double_without_mask(x_ptr, out_ptr, stride, columns, BLOCK: tl.constexpr):
    c = tl.arange(0, BLOCK)
    tl.store(out_ptr + tl.program_id(0) * columns + c, 2 * tl.load(x_ptr + c))


@triton.jit
def stub(x_ptr, out_ptr, stride, columns, BLOCK: tl.constexpr):
    raise NotImplementedError("your turn")


def report(kernel, **limits):
    """Of a kernel on a part of a wider array."""
    x = np.arange(ROWS * WIDER, dtype=np.float32).reshape(ROWS, WIDER)[:, :COLUMNS]
    out = np.empty((ROWS, COLUMNS), dtype=np.float32)
    args = [x, out, WIDER, COLUMNS]
    return plain(run(kernel, (ROWS,), args, {"out": 1}, {"BLOCK": 64}, **limits)), 2 * x


def test_a_right_kernel_gives_what_right_says():
    got, out = report(double, **LIMITS)
    assert difference(got, right({"out": out}, **LIMITS), 1e-6) is None


def test_bytes_and_coalescing_beyond_the_limits_are_said():
    got, out = report(double_twice, **LIMITS)
    said = difference(got, right({"out": out}, **LIMITS), 1e-6)
    assert f"asks for {3 * ROWS * COLUMNS * 4:,} bytes" in said
    got, out = report(double_down_columns, **LIMITS)
    said = difference(got, right({"out": out}, **LIMITS), 1e-6)
    assert "only 25% of what is fetched is needed" in said  # 2 of the 8 numbers in a sector


def test_a_stopped_kernel_gives_the_meters_sentence():
    got, out = report(double_without_mask)
    assert got.keys() == {"says", "wrong"}
    assert difference(got, right({"out": out}), 1e-6) == got["says"]
    assert "out of bounds" in got["says"]


def test_a_stub_is_not_attempted_and_a_function_is_no_kernel():
    with pytest.raises(NotImplementedError, match=YOUR_TURN):
        report(stub)
    with pytest.raises(ValueError, match="keep the line"):
        report(double.fn)


@pytest.fixture
def gpu(monkeypatch):
    """A machine that says it has a GPU, whose memory is this one's."""
    copy = kernels._copy
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "synchronize", lambda: None)
    monkeypatch.setattr(kernels, "_copy", lambda value, device: copy(value, "cpu"))


def test_on_a_gpu_a_part_of_a_wider_tensor_keeps_its_strides(gpu):
    """Without them the launch on the GPU reads other elements than the one on paper."""
    got, _ = report(double)
    assert got["says"] == ""


class Otherwise:
    """A kernel that does on the GPU what `launch` does, and on paper what `double` does."""

    def __init__(self, launch):
        self.fn, self.arg_names, self.launch = double.fn, double.arg_names, launch

    def __getitem__(self, grid):
        return self.launch


def fail(*args, **constants):
    raise RuntimeError("first line\nout of shared memory")


def nothing(x, out, *args, **constants):
    out.zero_()


@pytest.mark.parametrize(
    ("launch", "says"), [(fail, "run: out of shared memory"), (nothing, "out comes out different")]
)
def test_what_differs_on_the_gpu_is_said(gpu, launch, says):
    got, _ = report(Otherwise(launch))
    assert says in got["says"]
