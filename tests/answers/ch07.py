"""A second correct answer to every exercise of chapter 07, written differently."""

import triton
import triton.language as tl


@triton.jit
def add_kernel(a, b, c, size, BLOCK: tl.constexpr):
    start = tl.program_id(axis=0) * BLOCK
    lanes = tl.arange(0, BLOCK)
    left = size - start
    total = tl.load(a + start + lanes, lanes < left, other=0.0)
    total += tl.load(b + start + lanes, lanes < left, other=0.0)
    tl.store(c + start + lanes, total, lanes < left)
