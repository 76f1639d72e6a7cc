"""Kernels that look odd and are right: the meter must stay silent, and compute what they should."""

import torch
import triton
import triton.language as tl
from triton.language.extra import libdevice
from triton.language.extra.libdevice import log1p

from tests.kernels.case import Case, launch


@triton.jit
def grid_stride(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    for start in range(tl.program_id(0) * BLOCK, n, tl.num_programs(0) * BLOCK):
        i = start + tl.arange(0, BLOCK)
        tl.store(out_ptr + i, tl.load(x_ptr + i, mask=i < n) + 1, mask=i < n)


@triton.jit
def masked_tail(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + i, tl.load(x_ptr + i, mask=i < n) * 2, mask=i < n)


@triton.jit
def histogram_by_atomics(x_ptr, bins_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.atomic_add(bins_ptr + tl.load(x_ptr + i, mask=i < n, other=0), 1, mask=i < n)


@triton.jit
def split_k(a_ptr, b_ptr, c_ptr, K: tl.constexpr, N: tl.constexpr):
    i, k = tl.arange(0, N), tl.program_id(0) * N + tl.arange(0, N)
    a = tl.load(a_ptr + i[:, None] * K + k[None, :])
    b = tl.load(b_ptr + k[:, None] * N + i[None, :])
    tl.atomic_add(c_ptr + i[:, None] * N + i[None, :], tl.dot(a, b, input_precision="ieee"))


@triton.jit
def three_point_average(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    for d in tl.static_range(-1, 2):
        total += tl.load(x_ptr + i + d, mask=(i + d >= 0) & (i + d < n), other=0.0)
    tl.store(out_ptr + i, total / 3, mask=i < n)


@triton.jit
def last_block_shifted_back(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    start = min(tl.program_id(0) * BLOCK, n - BLOCK)
    i = start + tl.arange(0, BLOCK)
    tl.store(out_ptr + i, tl.load(x_ptr + i) * 3)


@triton.jit
def reversed_by_negative_stride(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    last = x_ptr + n - 1
    tl.store(out_ptr + i, tl.load(last - i, mask=i < n), mask=i < n)


@triton.jit
def pointer_far_outside_but_masked(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    far = x_ptr - 1_000_000
    tl.store(out_ptr + i, tl.load(far + i + 1_000_000, mask=i < n, other=0.0), mask=i < n)


@triton.jit
def int64_offsets(x_ptr, out_ptr, stride, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    row = tl.program_id(0).to(tl.int64) * stride
    tl.store(out_ptr + tl.program_id(0) * BLOCK + i, tl.load(x_ptr + row * 2**31 // 2**31 + i))


@triton.jit
def relu_in_place(x_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n)
    tl.store(x_ptr + i, tl.maximum(x, 0.0), mask=i < n)


@triton.jit
def broadcast_bias(x_ptr, bias_ptr, out_ptr, columns: tl.constexpr, ROWS: tl.constexpr):
    r = tl.program_id(0) * ROWS + tl.arange(0, ROWS)[:, None]
    c = tl.arange(0, columns)[None, :]
    bias = tl.load(bias_ptr + c + r * 0)
    tl.store(out_ptr + r * columns + c, tl.load(x_ptr + r * columns + c) + bias)


@triton.jit
def rows_of_a_view(x_ptr, out_ptr, stride, columns, BLOCK: tl.constexpr):
    c = tl.arange(0, BLOCK)
    row = tl.program_id(0)
    x = tl.load(x_ptr + row * stride + c, mask=c < columns, other=0.0)
    tl.store(out_ptr + row * columns + c, x, mask=c < columns)


@triton.jit
def spin_lock(x_ptr, total_ptr, lock_ptr, BLOCK: tl.constexpr):
    part = tl.sum(tl.load(x_ptr + tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)), 0)
    while tl.atomic_cas(lock_ptr, 0, 1) == 1:
        pass
    tl.store(total_ptr, tl.load(total_ptr) + part)
    tl.atomic_xchg(lock_ptr, 0)


@triton.jit
def last_program_reduces(x_ptr, part_ptr, count_ptr, out_ptr, BLOCK: tl.constexpr,
                         PROGRAMS: tl.constexpr):  # fmt: skip
    p = tl.program_id(0)
    tl.store(part_ptr + p, tl.sum(tl.load(x_ptr + p * BLOCK + tl.arange(0, BLOCK)), 0))
    if tl.atomic_add(count_ptr, 1) == PROGRAMS - 1:
        tl.store(out_ptr, tl.sum(tl.load(part_ptr + tl.arange(0, PROGRAMS)), 0))


@triton.jit
def all_set_one_flag(x_ptr, flag_ptr, BLOCK: tl.constexpr):
    x = tl.load(x_ptr + tl.program_id(0) * BLOCK + tl.arange(0, BLOCK))
    if tl.max(x, 0) > 0:
        tl.store(flag_ptr, 1)


@triton.jit
def early_return(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    start = tl.program_id(0) * BLOCK
    if start >= n:
        return
    i = start + tl.arange(0, BLOCK)
    tl.store(out_ptr + i, tl.load(x_ptr + i, mask=i < n), mask=i < n)


@triton.jit
def zero_size(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + i, tl.load(x_ptr + i, mask=i < n), mask=i < n)


@triton.jit
def descriptor_padded_tail(x_ptr, out_ptr, rows, columns: tl.constexpr, BLOCK: tl.constexpr):
    x = tl.make_tensor_descriptor(x_ptr, [rows, columns], [columns, 1], [BLOCK, columns])
    out = tl.make_tensor_descriptor(out_ptr, [rows, columns], [columns, 1], [BLOCK, columns])
    row = tl.program_id(0) * BLOCK
    out.store([row, 0], x.load([row, 0]) * 2)


@triton.jit
def chosen_pointer(x_ptr, y_ptr, out_ptr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    p = tl.where(i % 2 == 0, x_ptr + i, y_ptr + i)
    tl.store(out_ptr + i, tl.load(p))


@triton.jit
def three_dimensions(out_ptr, NX: tl.constexpr, NY: tl.constexpr):
    x, y, z = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    tl.store(out_ptr + (z * NY + y) * NX + x, x + 10 * y + 100 * z)


@triton.jit
def optional_pointer(x_ptr, bias_ptr, out_ptr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i)
    if bias_ptr is not None:
        x += tl.load(bias_ptr + i)
    tl.store(out_ptr + i, x)


@triton.jit
def helper(x, FACTOR: tl.constexpr):
    return x * FACTOR


@triton.jit
def calls_a_helper(x_ptr, out_ptr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out_ptr + i, helper(tl.load(x_ptr + i), 4) + tl.load(x_ptr + i).sum(0))


@triton.jit
def booleans(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n, other=0)
    tl.store(out_ptr + i, x == 0, mask=i < n)


@triton.jit
def uses_libdevice(x_ptr, out_ptr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i)
    tl.store(out_ptr + i, libdevice.tanh(x) + log1p(tl.abs(x)))


def vector(n=100, grid=(2,), **named):
    return launch(grid, torch.randn(n), torch.empty(n), n, BLOCK=64, outputs="out_ptr", **named)


def same(function, out=1):
    """Is argument `out` what function(first argument) gives?"""
    return lambda made: torch.allclose(made.args[out], function(made.args[0]), atol=1e-5)


def three(x):
    padded = torch.nn.functional.pad(x, (1, 1))
    return (padded[:-2] + padded[1:-1] + padded[2:]) / 3


def view():
    return launch((4,), torch.randn(4, 128)[:, 32:80], torch.empty(4, 48), 128, 48, BLOCK=64,
                  outputs="out_ptr")  # fmt: skip


def total(out):
    return lambda made: torch.allclose(made.args[out], made.args[0].sum(), atol=1e-4)


I32 = torch.int32
CORRECT = [
    Case(grid_stride, lambda: vector(1000, (3,)), right=same(lambda x: x + 1)),
    Case(masked_tail, vector, right=same(lambda x: x * 2)),
    Case(histogram_by_atomics,
         lambda: launch((4,), torch.randint(0, 8, (200,)), torch.zeros(8, dtype=I32), 200,
                        BLOCK=64),
         right=lambda m: torch.equal(m.args[1].long(), torch.bincount(m.args[0], minlength=8))),
    Case(split_k,
         lambda: launch((4,), torch.randn(16, 64), torch.randn(64, 16), torch.zeros(16, 16), K=64,
                        N=16),
         right=lambda m: torch.allclose(m.args[2], m.args[0] @ m.args[1], atol=1e-4)),
    Case(three_point_average, vector, right=same(three)),
    Case(last_block_shifted_back, vector, right=same(lambda x: x * 3)),
    Case(reversed_by_negative_stride, vector, right=same(lambda x: x.flip(0))),
    Case(pointer_far_outside_but_masked, lambda: vector(50, (1,)), right=same(lambda x: x)),
    Case(int64_offsets, lambda: launch((3,), torch.randn(3, 64), torch.empty(3, 64), 64, BLOCK=64,
                                       outputs="out_ptr"), right=same(lambda x: x)),
    Case(relu_in_place, lambda: launch((2,), torch.randn(100), 100, BLOCK=64),
         right=lambda m: bool((m.args[0] >= 0).all())),
    Case(broadcast_bias,
         lambda: launch((4,), torch.randn(16, 32), torch.randn(32), torch.empty(16, 32), 32, ROWS=4,
                        outputs="out_ptr"),
         right=lambda m: torch.equal(m.args[2], m.args[0] + m.args[1])),
    Case(rows_of_a_view, view, right=same(lambda x: x)),
    Case(spin_lock,
         lambda: launch((4,), torch.randn(256), torch.zeros(1), torch.zeros(1, dtype=I32),
                        BLOCK=64), right=total(1)),
    Case(last_program_reduces,
         lambda: launch((4,), torch.randn(256), torch.empty(4), torch.zeros(1, dtype=I32),
                        torch.empty(1), BLOCK=64, PROGRAMS=4, outputs=("part_ptr", "out_ptr")),
         right=total(3)),
    Case(all_set_one_flag,
         lambda: launch((4,), torch.rand(256), torch.zeros(1, dtype=I32), BLOCK=64),
         right=lambda m: int(m.args[1]) == 1),
    Case(early_return, lambda: vector(100, (5,)), right=same(lambda x: x)),
    Case(zero_size, lambda: vector(0, (0,)), right=same(lambda x: x)),
    Case(zero_size, lambda: vector(0, (1,)), right=same(lambda x: x)),
    Case(descriptor_padded_tail,
         lambda: launch((2,), torch.randn(20, 16), torch.empty(20, 16), 20, columns=16, BLOCK=16,
                        outputs="out_ptr"), right=same(lambda x: x * 2)),
    Case(chosen_pointer,
         lambda: launch((1,), torch.zeros(64), torch.ones(64), torch.empty(64), BLOCK=64,
                        outputs="out_ptr"),
         right=lambda m: torch.equal(m.args[2], torch.arange(64) % 2 + 0.0)),
    Case(three_dimensions,
         lambda: launch((4, 3, 2), torch.empty(24, dtype=I32), NX=4, NY=3, outputs="out_ptr"),
         right=lambda m: m.args[0].tolist() == [x + 10 * y + 100 * z for z in range(2)
                                                for y in range(3) for x in range(4)]),
    Case(optional_pointer,
         lambda: launch((1,), torch.randn(64), None, torch.empty(64), BLOCK=64, outputs="out_ptr"),
         right=same(lambda x: x, out=2)),
    Case(calls_a_helper, lambda: launch((1,), torch.randn(64), torch.empty(64), BLOCK=64,
                                        outputs="out_ptr"), right=same(lambda x: 4 * x + x.sum())),
    Case(uses_libdevice, lambda: launch((1,), torch.randn(64), torch.empty(64), BLOCK=64,
                                        outputs="out_ptr"),
         right=same(lambda x: x.tanh() + x.abs().log1p())),
    Case(booleans, lambda: launch((1,), torch.rand(50) > 0.5, torch.empty(50, dtype=torch.bool), 50,
                                  BLOCK=64, outputs="out_ptr"),
         right=lambda m: torch.equal(m.args[1], ~m.args[0])),
]  # fmt: skip
