"""Kernels for the tests of what is compiled."""

import triton
import triton.language as tl


@triton.jit
def add_relu(x_ptr, b_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = i < n
    x = tl.load(x_ptr + i, mask=inside)
    b = tl.load(b_ptr + i, mask=inside)
    tl.store(out_ptr + i, tl.maximum(x + b, 0.0), mask=inside)


@triton.jit
def product(a_ptr, b_ptr, c_ptr, N: tl.constexpr):
    i = tl.arange(0, N)
    at = i[:, None] * N + i[None, :]
    tl.store(c_ptr + at, tl.dot(tl.load(a_ptr + at), tl.load(b_ptr + at)))
