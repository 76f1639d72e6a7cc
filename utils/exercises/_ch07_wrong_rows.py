"""Chapter 07's mistakes, kernels that reduce rows. Imported only when one runs: see _ch07_wrong."""

import triton
import triton.language as tl

from ._ch07_wrong import with_slip


@triton.jit
def softmax_like(x_ptr, out_ptr, x_stride, out_stride, columns, BLOCK: tl.constexpr,
                 SLIP: tl.constexpr):  # fmt: skip
    row = tl.program_id(0)
    c = tl.arange(0, BLOCK)
    inside = c < columns
    if SLIP == "no program":
        row = 0
    start = row * x_stride
    if SLIP == "stride":
        start = row * columns
    if SLIP == "axis":
        start, c = row, c * x_stride
    if SLIP == "no mask":
        x = tl.load(x_ptr + start + c)
    elif SLIP == "no other":
        x = tl.load(x_ptr + start + c, mask=inside)
    elif SLIP == "zero":
        x = tl.load(x_ptr + start + c, mask=inside, other=0.0)
    else:
        x = tl.load(x_ptr + start + c, mask=inside, other=-float("inf"))
    top = tl.max(x, axis=0)
    if SLIP == "again":
        x = tl.load(x_ptr + start + c, mask=inside, other=-float("inf"))
    raised = tl.exp(x) if SLIP == "no max" else tl.exp(x - top)
    if SLIP == "not divided":
        out = raised
    elif SLIP == "mean":
        out = raised * columns / tl.sum(raised, axis=0)
    elif SLIP == "log":
        out = x - top - tl.log(tl.sum(raised, axis=0))
    else:
        out = raised / tl.sum(raised, axis=0)
    to = out_ptr + row * out_stride + tl.arange(0, BLOCK)
    if SLIP == "out stride":
        to = out_ptr + row * x_stride + tl.arange(0, BLOCK)
    tl.store(to, out, mask=inside)


softmax_no_program = with_slip(softmax_like, "no program")
softmax_stride = with_slip(softmax_like, "stride")
softmax_out_stride = with_slip(softmax_like, "out stride")
softmax_axis = with_slip(softmax_like, "axis")
softmax_no_mask = with_slip(softmax_like, "no mask")
softmax_no_other = with_slip(softmax_like, "no other")
softmax_zero = with_slip(softmax_like, "zero")
softmax_again = with_slip(softmax_like, "again")
softmax_no_max = with_slip(softmax_like, "no max")
softmax_not_divided = with_slip(softmax_like, "not divided")
softmax_mean = with_slip(softmax_like, "mean")
softmax_log = with_slip(softmax_like, "log")


@triton.jit
def rmsnorm_like(x_ptr, weight_ptr, out_ptr, columns, eps, BLOCK: tl.constexpr,
                 SLIP: tl.constexpr):  # fmt: skip
    c = tl.arange(0, BLOCK)
    inside = c < columns
    place = tl.program_id(0) * columns + c
    if SLIP == "no other":
        x = tl.load(x_ptr + place, mask=inside)
    else:
        x = tl.load(x_ptr + place, mask=inside, other=0.0)
    if SLIP != "narrow":
        x = x.to(tl.float32)
    if SLIP == "block":
        square = tl.sum(x * x, axis=0) / BLOCK
    elif SLIP == "sum":
        square = tl.sum(x * x, axis=0)
    elif SLIP == "mean":
        x = tl.where(inside, x - tl.sum(x, axis=0) / columns, 0.0)
        square = tl.sum(x * x, axis=0) / columns
    else:
        square = (tl.sum(x * x, axis=0) / columns).to(tl.float32)
    if SLIP == "again":
        x = tl.load(x_ptr + place, mask=inside, other=0.0).to(tl.float32)
    if SLIP == "eps outside":
        scale = 1 / (tl.sqrt(square) + eps)
    elif SLIP == "no eps":
        scale = 1 / tl.sqrt(square)
    elif SLIP == "no root":
        scale = 1 / (square + eps)
    else:
        scale = 1 / tl.sqrt(square + eps)
    out = x * scale
    if SLIP != "no weight":
        out = out * tl.load(weight_ptr + c, mask=inside, other=0.0)
    tl.store(out_ptr + place, out, mask=inside)


rmsnorm_no_other = with_slip(rmsnorm_like, "no other")
rmsnorm_narrow = with_slip(rmsnorm_like, "narrow")
rmsnorm_block = with_slip(rmsnorm_like, "block")
rmsnorm_sum = with_slip(rmsnorm_like, "sum")
rmsnorm_mean = with_slip(rmsnorm_like, "mean")
rmsnorm_again = with_slip(rmsnorm_like, "again")
rmsnorm_eps_outside = with_slip(rmsnorm_like, "eps outside")
rmsnorm_no_eps = with_slip(rmsnorm_like, "no eps")
rmsnorm_no_root = with_slip(rmsnorm_like, "no root")
rmsnorm_no_weight = with_slip(rmsnorm_like, "no weight")
