"""Broken kernels, first half: addresses. What each does wrong is its name."""

import torch
import triton
import triton.language as tl

from tests.kernels.case import Case, launch

OUT = "out of bounds"


@triton.jit
def load_without_mask(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + i, tl.load(x_ptr + i) * 2, mask=i < n)


@triton.jit
def store_without_mask(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + i, tl.load(x_ptr + i, mask=i < n, other=0.0) * 2)


@triton.jit
def mask_off_by_one(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + i, tl.load(x_ptr + i, mask=i <= n, other=0.0), mask=i < n)


@triton.jit
def index_starts_at_one(x_ptr, out_ptr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK) + 1
    tl.store(out_ptr + i, tl.load(x_ptr + i))


@triton.jit
def negative_index(x_ptr, out_ptr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + i, tl.load(x_ptr + i) - tl.load(x_ptr + i - 1))


@triton.jit
def strides_swapped(x_ptr, out_ptr, rows, columns, BLOCK: tl.constexpr):
    c = tl.arange(0, BLOCK)
    row = tl.program_id(0)
    x = tl.load(x_ptr + row * columns + c, mask=c < columns, other=0.0)
    tl.store(out_ptr + row + c * rows * 2, x, mask=c < columns)


@triton.jit
def row_stride_of_contiguous(x_ptr, out_ptr, columns, BLOCK: tl.constexpr):
    i = tl.program_id(0) * columns + tl.arange(0, BLOCK)
    tl.store(out_ptr + i, tl.load(x_ptr + i))


@triton.jit
def writes_to_wrong_pointer(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = i < n
    tl.store(x_ptr + i, tl.load(x_ptr + i, mask=inside), mask=inside)


@triton.jit
def bias_indexed_like_matrix(x_ptr, bias_ptr, out_ptr, columns, BLOCK: tl.constexpr):
    i = tl.program_id(0) * columns + tl.arange(0, BLOCK)
    tl.store(out_ptr + i, tl.load(x_ptr + i) + tl.load(bias_ptr + i))


@triton.jit
def runs_into_next_view(x_ptr, out_ptr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out_ptr + i, tl.load(x_ptr + i))


@triton.jit
def from_one_tensor_into_another(x_ptr, y_ptr, distance, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(x_ptr + distance + i, tl.load(y_ptr + i))


@triton.jit
def block_wider_than_row(x_ptr, out_ptr, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    c = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * columns + c)
    tl.store(out_ptr + row, tl.sum(x, 0))


@triton.jit
def int32_product_overflows(x_ptr, out_ptr, stride, BLOCK: tl.constexpr):
    i = tl.program_id(0) * stride + tl.arange(0, BLOCK)
    tl.store(out_ptr + tl.arange(0, BLOCK), tl.load(x_ptr + i))


@triton.jit
def atomic_past_the_end(x_ptr, bins_ptr, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n, other=0)
    tl.atomic_add(bins_ptr + x, 1, mask=i < n)


@triton.jit
def compare_and_swap_past_the_end(lock_ptr):
    tl.atomic_cas(lock_ptr + tl.program_id(0), 0, 1)


@triton.jit
def descriptor_with_wrong_shape(x_ptr, out_ptr, rows, columns, BLOCK: tl.constexpr):
    x = tl.make_tensor_descriptor(x_ptr, [rows, columns], [columns, 1], [BLOCK, BLOCK])
    out = tl.make_tensor_descriptor(out_ptr, [rows, columns], [columns, 1], [BLOCK, BLOCK])
    row = tl.program_id(0) * BLOCK
    out.store([row, 0], x.load([row, 0]))


@triton.jit
def descriptor_store_with_wrong_stride(x_ptr, out_ptr, rows, columns, BLOCK: tl.constexpr):
    out = tl.make_tensor_descriptor(out_ptr, [rows, columns], [columns * 2, 1], [BLOCK, BLOCK])
    out.store([tl.program_id(0) * BLOCK, 0], tl.zeros((BLOCK, BLOCK), tl.float32))


@triton.jit
def block_pointer_without_boundary_check(x_ptr, out_ptr, rows, columns, BLOCK: tl.constexpr):
    x = tl.make_block_ptr(x_ptr, (rows, columns), (columns, 1), (0, 0), (BLOCK, BLOCK), (1, 0))
    x = tl.advance(x, (BLOCK, 0))
    tl.store(out_ptr, tl.sum(tl.load(x)))


@triton.jit
def gather_with_bad_index(index_ptr, table_ptr, out_ptr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out_ptr + i, tl.load(table_ptr + tl.load(index_ptr + i)))


@triton.jit
def mask_of_the_other_dimension(x_ptr, out_ptr, rows, columns, BLOCK: tl.constexpr):
    r, c = tl.arange(0, BLOCK)[:, None], tl.arange(0, BLOCK)[None, :]
    x = tl.load(x_ptr + r * columns + c, mask=(c < columns) & (r < BLOCK), other=0.0)
    tl.store(out_ptr + r * columns + c, x, mask=(r < rows) & (c < columns))


@triton.jit
def element_size_added_twice(x_ptr, out_ptr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out_ptr + i, tl.load(x_ptr + i * 4))


@triton.jit
def pointer_advanced_too_often(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    i = tl.arange(0, BLOCK)
    for _ in range(0, n + 1, BLOCK):
        total += tl.load(x_ptr + i)
        x_ptr += BLOCK
    tl.store(out_ptr + i, total)


@triton.jit
def reads_empty_tensor(x_ptr, out_ptr):
    tl.store(out_ptr, tl.load(x_ptr))


@triton.jit
def pointer_made_of_a_number(x_ptr, out_ptr):
    tl.store(out_ptr, tl.load((tl.program_id(0) + 64).to(tl.int64).to(tl.pointer_type(tl.float32))))


@triton.jit
def wider_type_past_the_end(x_ptr, out_ptr):
    wide = x_ptr.to(tl.pointer_type(tl.int64))
    i = tl.arange(0, 4)
    tl.store(out_ptr + i, tl.load(wide + i))


def vectors(n=100, **named):
    return launch((2,), torch.randn(n), torch.empty(n), n, BLOCK=64, **named)


def small(n=64, grid=(1,), **named):
    return launch(grid, torch.randn(n), torch.zeros(n), BLOCK=64, **named)


def left_half():
    whole = torch.randn(8, 64)
    return launch((1,), whole[:, :32], torch.zeros(64), BLOCK=64)


def padded_rows():
    return launch((4,), torch.randn(4, 128)[:, :64], torch.zeros(256), 128, BLOCK=128)


def neighbours():
    x, y = torch.zeros(64), torch.randn(64)
    return launch((1,), x, y, (y.data_ptr() - x.data_ptr()) // 4, BLOCK=64)


def square(n, m, rows, columns, grid=(1,), block=16):
    return launch(grid, torch.randn(n, m), torch.zeros(n, m), rows, columns, BLOCK=block)


MEMORY = [
    Case(load_without_mask, vectors, OUT, "x_ptr",
         ("program (1, 0, 0)", "index 100", "100 elements", "No mask was given", "Line")),
    Case(store_without_mask, vectors, OUT, "out_ptr", ("index 100", "No mask was given")),
    Case(mask_off_by_one, vectors, OUT, "x_ptr",
         ("index 100", "1 of ", "The mask lets this lane through")),
    Case(index_starts_at_one, small, OUT, "x_ptr", ("index 64", "last at index 63")),
    Case(negative_index, small, OUT, "x_ptr", ("index -1", "negative")),
    Case(strides_swapped, lambda: square(8, 16, 8, 16, (8,)), OUT, "out_ptr", ("index 128",)),
    Case(row_stride_of_contiguous, padded_rows, OUT, "x_ptr",
         ("index 64", "between", "another view")),
    Case(writes_to_wrong_pointer, lambda: vectors(outputs="out_ptr"), "unwritten", "out_ptr",
         ("100 of the 100",)),
    Case(bias_indexed_like_matrix,
         lambda: launch((4,), torch.randn(4, 64), torch.randn(64), torch.zeros(4, 64), 64,
                        BLOCK=64),
         OUT, "bias_ptr", ("program (1, 0, 0)", "index 64")),
    Case(runs_into_next_view, left_half, OUT, "x_ptr", ("index 32", "strides (64, 1)")),
    Case(from_one_tensor_into_another, neighbours, OUT, "x_ptr", ("64 elements",)),
    Case(block_wider_than_row,
         lambda: launch((4,), torch.randn(4, 48), torch.zeros(4), 48, BLOCK=64),
         OUT, "x_ptr", ("program (3, 0, 0)", "index 192")),
    Case(int32_product_overflows,
         lambda: launch((4,), torch.randn(64), torch.zeros(64), 2**30, BLOCK=64),
         OUT, "x_ptr", ("tl.int64",)),
    Case(atomic_past_the_end,
         lambda: launch((1,), torch.arange(10), torch.zeros(8, dtype=torch.int32), 10, BLOCK=16),
         OUT, "bins_ptr", ("index 8", "2 of 10 lanes")),
    Case(compare_and_swap_past_the_end,
         lambda: launch((3,), torch.zeros(2, dtype=torch.int32)), OUT, "lock_ptr", ("index 2",)),
    Case(descriptor_with_wrong_shape, lambda: square(24, 16, 32, 16, (2,)), OUT, "x_ptr",
         ("descriptor", "index 384")),
    Case(descriptor_store_with_wrong_stride, lambda: square(16, 16, 16, 16), OUT, "out_ptr",
         ("descriptor",)),
    # triton 3.9 has no block pointers any more; 3.8 makes ordinary pointers of them.
    Case(block_pointer_without_boundary_check, lambda: square(24, 16, 24, 16),
         *(("unsupported", None, ("descriptor",)) if triton.__version__ >= "3.9" else
           (OUT, "x_ptr", ("index 384", "128 of 256 lanes")))),
    Case(gather_with_bad_index,
         lambda: launch((1,), torch.tensor([0, 3, 9, 1]), torch.randn(8), torch.zeros(4), BLOCK=4),
         OUT, "table_ptr", ("index 9", "1 of 4 lanes")),
    Case(mask_of_the_other_dimension, lambda: square(10, 12, 10, 12), OUT, "x_ptr",
         ("index 120", "The mask lets this lane through")),
    Case(element_size_added_twice, small, OUT, "x_ptr", ("index 64", "48 of 64 lanes")),
    Case(pointer_advanced_too_often, lambda: launch((1,), torch.randn(128), torch.zeros(64), 128,
                                                    BLOCK=64), OUT, "x_ptr", ("index 128",)),
    Case(reads_empty_tensor, lambda: launch((1,), torch.empty(0), torch.zeros(1)), OUT, "x_ptr",
         ("0 elements",)),
    Case(pointer_made_of_a_number, lambda: launch((1,), torch.zeros(1), torch.zeros(1)), OUT, None,
         ("no pointer argument",)),
    Case(wider_type_past_the_end,
         lambda: launch((1,), torch.zeros(7), torch.zeros(4, dtype=torch.int64)), OUT, "x_ptr",
         ("past the end",)),
]  # fmt: skip
