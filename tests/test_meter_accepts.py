"""What runs as Python and not as Triton is refused by name, and what both take is not."""

import pytest

pytest.importorskip("triton")

import torch
import triton
import triton.language as tl

from utils.meter import measure
from utils.meter.accepts import refused


@triton.jit
def a_list(x_ptr, n, BLOCK: tl.constexpr):
    parts = []
    for j in range(2):
        parts.append(tl.load(x_ptr + j))
    tl.store(x_ptr, parts[0])


@triton.jit
def a_block_of_ten(x_ptr, n, BLOCK: tl.constexpr):
    tl.store(x_ptr + tl.arange(0, 10), 1.0)


@triton.jit
def a_small_dot(x_ptr, n, BLOCK: tl.constexpr):
    i = tl.arange(0, 8)[:, None] * 8 + tl.arange(0, 8)[None, :]
    block = tl.load(x_ptr + i)
    tl.store(x_ptr + i, tl.dot(block, block))


@triton.jit
def a_block_of_n(x_ptr, n, BLOCK: tl.constexpr):
    tl.store(x_ptr + tl.arange(0, n), 1.0)


@triton.jit
def a_try(x_ptr, n, BLOCK: tl.constexpr):
    try:
        tl.store(x_ptr, 1.0)
    finally:
        tl.store(x_ptr, 2.0)


@triton.jit
def first(block):
    return block[0]


@triton.jit
def an_element_of_a_block(x_ptr, n, BLOCK: tl.constexpr):
    tl.store(x_ptr, first(tl.load(x_ptr + tl.arange(0, BLOCK))))


@triton.jit
def a_sum(x_ptr, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    most = min(n, BLOCK)
    tl.store(x_ptr, tl.load(x_ptr + i, mask=i < most, other=0.0).sum())


@triton.jit
def a_copy(x_ptr, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(x_ptr + n + i, tl.load(x_ptr + i))


REFUSED = {
    a_list: "append",
    a_block_of_ten: "power of 2",
    a_block_of_n: "constexpr",
    a_try: "Try",
    an_element_of_a_block: "block[0]",
}


def meter(kernel):
    return measure(kernel, (1,), torch.zeros(64), 16, BLOCK=16)


@pytest.mark.parametrize("kernel", REFUSED, ids=lambda kernel: kernel.fn.__name__)
def test_what_only_python_runs_is_refused(kernel):
    report = meter(kernel)
    assert [problem.kind for problem in report.problems] == ["error"]
    assert REFUSED[kernel] in report.problems[0].message
    assert kernel.fn.__name__ in report.problems[0].message


@pytest.mark.skipif(triton.__version__ >= "3.8", reason="Triton pads small products since 3.8")
def test_a_product_of_blocks_too_small_for_the_tensor_cores_is_refused():
    assert "K >= 16" in meter(a_small_dot).problems[0].message


def test_what_triton_takes_is_not():
    for _ in range(2):  # the second time from what is remembered
        assert meter(a_sum).ok


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.int8, torch.bool])
def test_every_common_dtype_is_known(dtype):
    assert measure(a_copy, (1,), torch.ones(64).to(dtype), 16, BLOCK=16).ok


def test_an_argument_of_unknown_kind_is_not_judged():
    assert refused(a_block_of_ten, {"x_ptr": object(), "n": 1, "BLOCK": 16}) == ""
