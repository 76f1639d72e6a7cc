"""Chapter 07's mistakes, elementwise kernels: what people really write. Needs Triton, so
specifications name them through WrongKernel, and this module is imported only when one runs."""

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


@triton.jit
def gelu_like(x_ptr, bias_ptr, out_ptr, rows, columns, BLOCK_ROWS: tl.constexpr,
              BLOCK_COLUMNS: tl.constexpr, SLIP: tl.constexpr):  # fmt: skip
    first, second = tl.program_id(0), tl.program_id(1)
    if SLIP == "swapped":
        first, second = second, first
    r = first * BLOCK_ROWS + tl.arange(0, BLOCK_ROWS)[:, None]
    c = second * BLOCK_COLUMNS + tl.arange(0, BLOCK_COLUMNS)[None, :]
    inside = (r < rows) & (c < columns)
    if SLIP == "rows only":
        inside = (r < rows) & (c >= 0)
    if SLIP == "columns only":
        inside = (r >= 0) & (c < columns)
    stride = columns
    if SLIP == "stride":
        stride = BLOCK_COLUMNS
    if SLIP == "each row":
        bias = tl.load(bias_ptr + c + 0 * r, mask=inside, other=0.0)
    elif SLIP == "bias by row":
        bias = tl.load(bias_ptr + r, mask=r < rows, other=0.0)
    else:
        bias = tl.load(bias_ptr + c, mask=(c < columns) | (SLIP == "rows only"), other=0.0)
    z = tl.load(x_ptr + r * stride + c, mask=inside, other=0.0)
    if SLIP != "no bias":
        z += bias
    root = 0.7071067811865476
    if SLIP == "no root":
        root = 1.0
    if SLIP == "tanh":
        twice = 2 * 0.7978845608028654 * (z + 0.044715 * z * z * z)
        gelu = z - z / (1 + tl.exp(twice))
    else:
        gelu = 0.5 * z * (1 + tl.erf(z * root))
    if SLIP == "bias after":
        z = z - bias
        gelu = 0.5 * z * (1 + tl.erf(z * root)) + bias
    tl.store(out_ptr + r * stride + c, gelu, mask=inside)


@triton.jit
def transpose_like(x_ptr, out_ptr, rows, columns, BLOCK: tl.constexpr, SLIP: tl.constexpr):
    r0, c0 = tl.program_id(0) * BLOCK, tl.program_id(1) * BLOCK
    lane = tl.arange(0, BLOCK)
    r, c = r0 + lane[:, None], c0 + lane[None, :]
    inside = (r < rows) & (c < columns)
    if SLIP == "no mask":
        inside = (r >= 0) & (c >= 0)
    tile = tl.load(x_ptr + r * columns + c, mask=inside)
    if SLIP == "copy":
        tl.store(out_ptr + r * columns + c, tile, mask=inside)
    elif SLIP == "stride":
        tl.store(out_ptr + c * columns + r, tile, mask=inside)
    elif SLIP == "same mask":
        across, down = c0 + lane[:, None], r0 + lane[None, :]
        tl.store(out_ptr + across * rows + down, tl.trans(tile), mask=inside)
    elif SLIP == "tile stays":
        across, down = r0 + lane[:, None], c0 + lane[None, :]
        tl.store(out_ptr + across * rows + down, tl.trans(tile),
                 mask=(across < columns) & (down < rows))  # fmt: skip
    elif SLIP == "not turned":
        across, down = c0 + lane[:, None], r0 + lane[None, :]
        tl.store(out_ptr + across * rows + down, tile, mask=(across < columns) & (down < rows))
    else:
        tl.store(out_ptr + c * rows + r, tile, mask=inside)


@triton.jit
def transpose_by_rows(x_ptr, out_ptr, rows, columns, BLOCK: tl.constexpr):
    r0, c0 = tl.program_id(0) * BLOCK, tl.program_id(1) * BLOCK
    for k in range(0, BLOCK):
        r, c = r0 + k, c0 + tl.arange(0, BLOCK)
        inside = (r < rows) & (c < columns)
        row = tl.load(x_ptr + r * columns + c, mask=inside)
        tl.store(out_ptr + c * rows + r, row, mask=inside)


@triton.jit
def transpose_by_columns(x_ptr, out_ptr, rows, columns, BLOCK: tl.constexpr):
    r0, c0 = tl.program_id(0) * BLOCK, tl.program_id(1) * BLOCK
    for k in range(0, BLOCK):
        r, c = r0 + tl.arange(0, BLOCK), c0 + k
        inside = (r < rows) & (c < columns)
        column = tl.load(x_ptr + r * columns + c, mask=inside)
        tl.store(out_ptr + c * rows + r, column, mask=inside)


def with_slip(kernel, slip):
    """The kernel with its constant SLIP set."""
    return triton.heuristics({"SLIP": lambda args: slip})(kernel)


gelu_swapped = with_slip(gelu_like, "swapped")
gelu_rows_only = with_slip(gelu_like, "rows only")
gelu_columns_only = with_slip(gelu_like, "columns only")
gelu_stride = with_slip(gelu_like, "stride")
gelu_each_row = with_slip(gelu_like, "each row")
gelu_bias_by_row = with_slip(gelu_like, "bias by row")
gelu_no_bias = with_slip(gelu_like, "no bias")
gelu_bias_after = with_slip(gelu_like, "bias after")
gelu_no_root = with_slip(gelu_like, "no root")
gelu_tanh = with_slip(gelu_like, "tanh")

transpose_no_mask = with_slip(transpose_like, "no mask")
transpose_copy = with_slip(transpose_like, "copy")
transpose_stride = with_slip(transpose_like, "stride")
transpose_same_mask = with_slip(transpose_like, "same mask")
transpose_tile_stays = with_slip(transpose_like, "tile stays")
transpose_not_turned = with_slip(transpose_like, "not turned")
