"""A second correct answer to every exercise of chapter 07, written differently."""

from utils.meter.on_paper import tl, triton


@triton.jit
def add_kernel(a, b, c, size, BLOCK: tl.constexpr):
    start = tl.program_id(axis=0) * BLOCK
    lanes = tl.arange(0, BLOCK)
    left = size - start
    total = tl.load(a + start + lanes, lanes < left, other=0.0)
    total += tl.load(b + start + lanes, lanes < left, other=0.0)
    tl.store(c + start + lanes, total, lanes < left)


@triton.jit
def bias_gelu_kernel(x, bias, out, rows, columns, BLOCK_ROWS: tl.constexpr,
                     BLOCK_COLUMNS: tl.constexpr):  # fmt: skip
    c = tl.program_id(1) * BLOCK_COLUMNS + tl.arange(0, BLOCK_COLUMNS)
    b = tl.load(bias + c, mask=c < columns, other=0.0)
    for k in range(BLOCK_ROWS):
        r = tl.program_id(0) * BLOCK_ROWS + k
        if r < rows:
            z = b + tl.load(x + r * columns + c, mask=c < columns, other=0.0)
            half = z * 0.5
            tl.store(out + r * columns + c, half + half * tl.erf(z / 2**0.5), mask=c < columns)


@triton.jit
def transpose_kernel(x, out, rows, columns, BLOCK: tl.constexpr):
    i, j = tl.program_id(0), tl.program_id(1)
    here = tl.arange(0, BLOCK)
    r = i * BLOCK + here
    c = j * BLOCK + here
    tile = tl.load(x + r[:, None] * columns + c[None, :],
                   mask=(r[:, None] < rows) & (c[None, :] < columns), other=0.0)  # fmt: skip
    tl.store(out + c[:, None] * rows + r[None, :], tl.trans(tile),
             mask=(c[:, None] < columns) & (r[None, :] < rows))  # fmt: skip


@triton.jit
def softmax_kernel(x, out, x_stride, out_stride, columns, BLOCK: tl.constexpr):
    """A tile of one row, and powers of two in place of powers of e."""
    c = tl.arange(0, BLOCK)[None, :]
    row = tl.program_id(0) + tl.zeros((1, 1), dtype=tl.int32)
    scores = tl.load(x + row * x_stride + c, c < columns, other=-1e30) * 1.4426950408889634
    weights = tl.exp2(scores - tl.max(scores, axis=1, keep_dims=True))
    tl.store(out + row * out_stride + c, weights / tl.sum(weights, 1)[:, None], c < columns)


@triton.jit
def rmsnorm_kernel(x, weight, out, columns, eps, BLOCK: tl.constexpr):
    """Undefined lanes are kept out by tl.where."""
    c = tl.arange(0, BLOCK)
    x += tl.program_id(0) * columns
    row = tl.load(x + c, mask=c < columns).to(tl.float32)
    squares = tl.where(c < columns, row * row, 0.0)
    scale = tl.rsqrt(tl.sum(squares) / columns + eps)
    by = tl.load(weight + c, mask=c < columns).to(tl.float32)
    result = (row * scale * by).to(out.dtype.element_ty)
    tl.store(out + tl.program_id(0) * columns + c, result, mask=c < columns)


@triton.jit
def layernorm_backward_kernel(x, weight, mean, rstd, d_out, d_x, d_weight, d_bias, rows, columns,
                              ROWS: tl.constexpr, BLOCK: tl.constexpr):  # fmt: skip
    """All rows of a program as one tile."""
    r = tl.program_id(0) * ROWS + tl.arange(0, ROWS)[:, None]
    c = tl.arange(0, BLOCK)[None, :]
    inside = (r < rows) & (c < columns)
    place = r * columns + c
    scale = tl.load(rstd + r, mask=r < rows, other=0.0)
    z = (tl.load(x + place, inside, other=0.0) - tl.load(mean + r, r < rows, other=0.0)) * scale
    dy = tl.load(d_out + place, inside, other=0.0)
    g = dy * tl.load(weight + c, c < columns, other=0.0)
    a = tl.sum(g, axis=1, keep_dims=True) / columns
    b = tl.sum(g * z, axis=1, keep_dims=True) / columns
    tl.store(d_x + place, scale * (g - (a + z * b)), inside)
    c = tl.arange(0, BLOCK)
    tl.atomic_add(d_bias + c, tl.sum(dy, axis=0), mask=c < columns)
    tl.atomic_add(d_weight + c, tl.sum(dy * z, axis=0), mask=c < columns)


@triton.jit
def cross_entropy_kernel(logits, target, loss, log_total, stride, vocab, BLOCK: tl.constexpr):
    """A maximum and a sum for each lane, joined after the loop; the target is caught in passing."""
    lane = tl.arange(0, BLOCK)
    top = tl.full((BLOCK,), -1e30, dtype=tl.float32)
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    chosen = tl.zeros((BLOCK,), dtype=tl.float32)
    wanted = tl.load(target + tl.program_id(0))
    for block in range(tl.cdiv(vocab, BLOCK)):
        i = block * BLOCK + lane
        x = tl.load(logits + tl.program_id(0) * stride + i, mask=i < vocab, other=-float("inf"))
        new = tl.maximum(top, x)
        total = total * tl.exp(top - new) + tl.exp(x - new)
        top = new
        chosen += tl.where(i == wanted, x, 0.0)
    highest = tl.max(top)
    whole = highest + tl.log(tl.sum(total * tl.exp(top - highest)))
    tl.store(log_total + tl.program_id(0), whole)
    tl.store(loss + tl.program_id(0), whole - tl.sum(chosen))
