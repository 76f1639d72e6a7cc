"""Broken kernels, second half: races, outputs, masked lanes, loops, grids, precision."""

import torch
import triton
import triton.language as tl
from triton.language.extra import libdevice

from tests.kernels.case import Case, launch

LIMIT = 1.0  # seconds, for kernels that never end


@triton.jit
def every_program_adds_without_atomic(x_ptr, total_ptr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(total_ptr, tl.load(total_ptr) + tl.sum(tl.load(x_ptr + i), 0))


@triton.jit
def blocks_overlap(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * (BLOCK // 2) + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n, other=0.0)
    tl.store(out_ptr + i, x - tl.sum(x, 0), mask=i < n)


@triton.jit
def forgets_program_id(x_ptr, out_ptr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + tl.arange(0, BLOCK), tl.load(x_ptr + i))


@triton.jit
def in_place_shift(x_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x_ptr + i, tl.load(x_ptr + i + 1, mask=i + 1 < n, other=0.0), mask=i < n)


@triton.jit
def in_place_transpose(x_ptr, N: tl.constexpr, BLOCK: tl.constexpr):
    r = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)[:, None]
    c = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)[None, :]
    tl.store(x_ptr + c * N + r, tl.load(x_ptr + r * N + c))


@triton.jit
def lanes_share_an_address(x_ptr, out_ptr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out_ptr + i // 2, tl.load(x_ptr + i))


@triton.jit
def first_program_clears_then_all_add(x_ptr, total_ptr, BLOCK: tl.constexpr):
    if tl.program_id(0) == 0:
        tl.store(total_ptr, 0.0)
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.atomic_add(total_ptr, tl.sum(tl.load(x_ptr + i), 0))


@triton.jit
def last_program_reads_without_counter(x_ptr, part_ptr, out_ptr, BLOCK: tl.constexpr,
                                       PROGRAMS: tl.constexpr):  # fmt: skip
    p = tl.program_id(0)
    tl.store(part_ptr + p, tl.sum(tl.load(x_ptr + p * BLOCK + tl.arange(0, BLOCK)), 0))
    if p == tl.num_programs(0) - 1:
        tl.store(out_ptr, tl.sum(tl.load(part_ptr + tl.arange(0, PROGRAMS)), 0))


@triton.jit
def relaxed_counter(x_ptr, part_ptr, count_ptr, out_ptr, BLOCK: tl.constexpr,
                    PROGRAMS: tl.constexpr):  # fmt: skip
    p = tl.program_id(0)
    tl.store(part_ptr + p, tl.sum(tl.load(x_ptr + p * BLOCK + tl.arange(0, BLOCK)), 0))
    if tl.atomic_add(count_ptr, 1, sem="relaxed") == PROGRAMS - 1:
        tl.store(out_ptr, tl.sum(tl.load(part_ptr + tl.arange(0, PROGRAMS)), 0))


@triton.jit
def last_block_forgotten(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + i, tl.load(x_ptr + i, mask=i < n), mask=i < n)


@triton.jit
def writes_every_second(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + i, tl.load(x_ptr + i, mask=i < n), mask=(i < n) & (i % 2 == 0))


@triton.jit
def adds_to_what_is_not_there(x_ptr, out_ptr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + i, tl.load(out_ptr + i) + tl.load(x_ptr + i))


@triton.jit
def atomic_add_to_what_is_not_there(x_ptr, out_ptr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.atomic_add(out_ptr + i, tl.load(x_ptr + tl.program_id(0) * BLOCK + i))


@triton.jit
def softmax_without_other(x_ptr, out_ptr, columns, BLOCK: tl.constexpr):
    c = tl.arange(0, BLOCK)
    row = tl.program_id(0) * columns
    x = tl.load(x_ptr + row + c, mask=c < columns)
    e = tl.exp(x - tl.max(x, 0))
    tl.store(out_ptr + row + c, e / tl.sum(e, 0), mask=c < columns)


@triton.jit
def sum_without_other(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out_ptr, tl.sum(tl.load(x_ptr + i, mask=i < n), 0))


@triton.jit
def max_without_other(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out_ptr, tl.max(tl.load(x_ptr + i, mask=i < n), 0))


@triton.jit
def matmul_tail_without_other(a_ptr, b_ptr, out_ptr, K, N: tl.constexpr):
    i, k = tl.arange(0, N), tl.arange(0, N)
    a = tl.load(a_ptr + i[:, None] * K + k[None, :], mask=k[None, :] < K)
    b = tl.load(b_ptr + k[:, None] * N + i[None, :], mask=k[:, None] < K)
    tl.store(out_ptr + i[:, None] * N + i[None, :], tl.dot(a, b))


@triton.jit
def loop_without_step(x_ptr, out_ptr, n):
    i = 0
    total = 0.0
    while i < n:
        total += tl.load(x_ptr + i)
    tl.store(out_ptr, total)


@triton.jit
def loop_that_touches_nothing(out_ptr):
    i = 1
    while i > 0:
        i = 3 - i
    tl.store(out_ptr, i)


@triton.jit
def loop_of_bare_python(out_ptr):
    while True:
        pass


@triton.jit
def waits_for_a_later_program(flag_ptr, out_ptr):
    p = tl.program_id(0)
    if p == 0:
        while tl.atomic_add(flag_ptr, 0) == 0:
            pass
    else:
        tl.atomic_add(flag_ptr, 1)
    tl.store(out_ptr + p, p)


@triton.jit
def one_program_an_element(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + i, tl.load(x_ptr + i, mask=i < n), mask=i < n)


@triton.jit
def grid_too_long_along_y(x_ptr, out_ptr):
    tl.store(out_ptr + tl.program_id(1), tl.load(x_ptr + tl.program_id(1)))


@triton.jit
def bf16_dot_into_bf16(a_ptr, out_ptr, N: tl.constexpr):
    i = tl.arange(0, N)
    at = i[:, None] * N + i[None, :]
    a = tl.load(a_ptr + at)
    tl.store(out_ptr + at, tl.dot(a, a, out_dtype=tl.bfloat16))


@triton.jit
def bf16_atomic_max(x_ptr, out_ptr, N: tl.constexpr):
    tl.atomic_max(out_ptr, tl.max(tl.load(x_ptr + tl.arange(0, N)), 0).to(tl.bfloat16))


@triton.jit
def block_not_a_power_of_two(x_ptr, out_ptr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out_ptr + i, tl.load(x_ptr + i))


@triton.jit
def dot_of_unequal_types(a_ptr, b_ptr, out_ptr, N: tl.constexpr):
    i = tl.arange(0, N)
    at = i[:, None] * N + i[None, :]
    tl.store(out_ptr + at, tl.dot(tl.load(a_ptr + at), tl.load(b_ptr + at)))


@triton.jit
def name_that_is_nowhere(x_ptr, out_ptr):
    tl.store(out_ptr, tl.load(x_ptr) * scale)  # noqa: F821


@triton.jit
def function_only_compiled(x_ptr, out_ptr):
    tl.store(out_ptr, libdevice.normcdf(tl.load(x_ptr)))


def vector(n=128, grid=(2,), block=64, **named):
    return launch(grid, torch.randn(n), torch.zeros(n), n, BLOCK=block, **named)


def summed(grid=(2,), **named):
    return launch(grid, torch.randn(128), torch.zeros(1), BLOCK=64, **named)


def bare(*args, grid=(1,), **named):
    return lambda: launch(grid, *args, **named)


def counters(*middle):
    ints = [torch.zeros(1, dtype=torch.int32)] * len(middle)
    return lambda: launch((4,), torch.randn(256), torch.zeros(4), *ints, torch.zeros(1), BLOCK=64,
                          PROGRAMS=4)  # fmt: skip


SEVENTY_THOUSAND = 70_000
PROGRAMS = [
    Case(every_program_adds_without_atomic, summed, "race", "total_ptr",
         ("(0, 0, 0) and (1, 0, 0)", "total_ptr[0]")),
    Case(blocks_overlap, lambda: vector(96), "race", "out_ptr", ("out_ptr[32]", "atomic")),
    Case(forgets_program_id, lambda: launch((2,), torch.randn(128), torch.zeros(128), BLOCK=64,
                                            outputs=()), "race", "out_ptr", ("both write",)),
    Case(in_place_shift, lambda: launch((2,), torch.randn(128), 128, BLOCK=64), "race", "x_ptr",
         ("x_ptr[64]", "nothing orders them")),
    Case(in_place_transpose, lambda: launch((2, 2), torch.randn(32, 32), N=32, BLOCK=16), "race",
         "x_ptr", ("nothing orders them",)),
    Case(lanes_share_an_address, lambda: launch((1,), torch.randn(64), torch.zeros(64), BLOCK=64),
         "race", "out_ptr", ("two lanes", "out_ptr[0]")),
    Case(first_program_clears_then_all_add, summed, "race", "total_ptr", ("nothing orders",)),
    Case(last_program_reads_without_counter, counters(), "race", "part_ptr", ("part_ptr[0]",)),
    Case(relaxed_counter, counters("count"), "race", "part_ptr", ("nothing orders them",)),
    Case(last_block_forgotten, lambda: vector(100, (1,), outputs="out_ptr"), "unwritten", "out_ptr",
         ("36 of the 100", "index 64")),
    Case(writes_every_second, lambda: vector(outputs="out_ptr"), "unwritten", "out_ptr",
         ("64 of the 128", "index 1")),
    Case(adds_to_what_is_not_there,
         lambda: launch((2,), torch.randn(128), torch.empty(128), BLOCK=64, outputs="out_ptr"),
         "uninitialised read", "out_ptr", ("out_ptr[0]", "nothing has written")),
    Case(atomic_add_to_what_is_not_there,
         lambda: launch((2,), torch.randn(128), torch.empty(64), BLOCK=64, outputs="out_ptr"),
         "uninitialised read", "out_ptr", ("nothing has written",)),
    Case(softmax_without_other,
         lambda: launch((4,), torch.randn(4, 50), torch.zeros(4, 50), 50, BLOCK=64),
         "undefined lanes", "x_ptr", ("`other`",)),
    Case(sum_without_other, bare(torch.randn(50), torch.zeros(1), 50, BLOCK=64),
         "undefined lanes", "x_ptr", ("`other`",)),
    Case(max_without_other, bare(torch.rand(63), torch.zeros(1), 63, BLOCK=64),
         "undefined lanes", "x_ptr", ("`other`",)),
    Case(matmul_tail_without_other,
         bare(torch.randn(16, 10), torch.randn(10, 16), torch.zeros(16, 16), 10, N=16),
         "undefined lanes", "a_ptr", ("`other`",)),
    Case(loop_without_step, bare(torch.randn(8), torch.zeros(1), 8, seconds=LIMIT), "time limit",
         None, ("first program never ended", "Line")),
    Case(loop_that_touches_nothing, bare(torch.zeros(1, dtype=torch.int32), seconds=LIMIT),
         "time limit", None, ("stopped after 1 s",)),
    Case(loop_of_bare_python, bare(torch.zeros(1), seconds=LIMIT), "time limit", None,
         ("while True:",)),
    Case(waits_for_a_later_program,
         bare(torch.zeros(1, dtype=torch.int32), torch.zeros(2, dtype=torch.int32), grid=(2,),
              seconds=LIMIT), "time limit", None, ("waits for a later one",)),
    Case(one_program_an_element,
         lambda: vector(100_000, (100_000,), 1024), "grid", None, ("triton.cdiv", "= 98")),
    Case(grid_too_long_along_y,
         bare(torch.zeros(SEVENTY_THOUSAND), torch.zeros(SEVENTY_THOUSAND),
              grid=(1, SEVENTY_THOUSAND)), "grid", None, ("65,535",)),
    Case(bf16_dot_into_bf16,
         bare(torch.randn(16, 16).bfloat16(), torch.zeros(16, 16).bfloat16(), N=16), "error", None,
         ("out_dtype=bfloat16",)),
    Case(bf16_atomic_max, bare(torch.randn(16).bfloat16(), torch.zeros(1).bfloat16(), N=16),
         "error", None, ("does not support bf16",)),
    Case(block_not_a_power_of_two, bare(torch.randn(100), torch.zeros(100), BLOCK=100), "error",
         None, ("power of 2",)),
    Case(dot_of_unequal_types,
         bare(torch.randn(16, 16), torch.randn(16, 16).half(), torch.zeros(16, 16), N=16), "error",
         None, ("same dtype",)),
    Case(function_only_compiled, bare(torch.zeros(1), torch.zeros(1)), "unsupported", None,
         ("libdevice.normcdf", "compiled")),
    Case(name_that_is_nowhere, bare(torch.zeros(1), torch.zeros(1)), "error", None, ("scale",)),
]  # fmt: skip
