"""Chapter 07's mistakes: kernels people really write. Needs Triton, so specifications name them
through WrongKernel, and this module is imported only when one of them runs."""

import triton
import triton.language as tl


@triton.jit
def add_no_mask(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + i, tl.load(x_ptr + i) + tl.load(y_ptr + i))


@triton.jit
def add_store_not_masked(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = i < n
    x, y = tl.load(x_ptr + i, mask=inside, other=0), tl.load(y_ptr + i, mask=inside, other=0)
    tl.store(out_ptr + i, x + y)


@triton.jit
def add_no_program(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    inside = i < n
    x, y = tl.load(x_ptr + i, mask=inside), tl.load(y_ptr + i, mask=inside)
    tl.store(out_ptr + i, x + y, mask=inside)


@triton.jit
def add_overlapping(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) + tl.arange(0, BLOCK)
    inside = i < n
    x, y = tl.load(x_ptr + i, mask=inside), tl.load(y_ptr + i, mask=inside)
    tl.store(out_ptr + i, x + y, mask=inside)


@triton.jit
def add_interleaved(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK) * tl.num_programs(0) + tl.program_id(0)
    inside = i < n
    x, y = tl.load(x_ptr + i, mask=inside), tl.load(y_ptr + i, mask=inside)
    tl.store(out_ptr + i, x + y, mask=inside)


@triton.jit
def add_everything(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    for start in range(0, n, BLOCK):
        i = start + tl.arange(0, BLOCK)
        inside = i < n
        x, y = tl.load(x_ptr + i, mask=inside), tl.load(y_ptr + i, mask=inside)
        tl.store(out_ptr + i, x + y, mask=inside)
