"""Chapter 07's mistakes in LayerNorm's gradients and the cross-entropy: see _ch07_wrong."""

import triton
import triton.language as tl

from ._ch07_wrong import with_slip


@triton.jit
def backward_like(x_ptr, weight_ptr, mean_ptr, rstd_ptr, d_out_ptr, d_x_ptr, d_weight_ptr,
                  d_bias_ptr, rows, columns, ROWS: tl.constexpr, BLOCK: tl.constexpr,
                  SLIP: tl.constexpr):  # fmt: skip
    c = tl.arange(0, BLOCK)
    inside = c < columns
    weight = tl.load(weight_ptr + c, mask=inside, other=0.0)
    d_weight = tl.zeros((BLOCK,), dtype=tl.float32)
    d_bias = tl.zeros((BLOCK,), dtype=tl.float32)
    for k in range(0, ROWS):
        row = tl.program_id(0) * ROWS + k
        if (SLIP == "no end") | (row < rows):
            place = row * columns + c
            if SLIP == "no other":
                x = tl.load(x_ptr + place, mask=inside)
            else:
                x = tl.load(x_ptr + place, mask=inside, other=0.0)
            dy = tl.load(d_out_ptr + place, mask=inside, other=0.0)
            mean, rstd = tl.load(mean_ptr + row), tl.load(rstd_ptr + row)
            x_hat = (x - mean) * rstd
            g = dy * weight
            if SLIP == "no weight":
                g = dy
            count = columns
            if SLIP == "block":
                count = BLOCK
            first = tl.sum(g, axis=0) / count
            second = tl.sum(g * x_hat, axis=0) / count
            if SLIP == "no mean":
                first = 0.0
            if SLIP == "no spread":
                second = 0.0
            d_x = (g - first - x_hat * second) * rstd
            if SLIP == "no rstd":
                d_x = g - first - x_hat * second
            tl.store(d_x_ptr + place, d_x, mask=inside)
            if SLIP == "raw x":
                d_weight += dy * x
            elif SLIP == "each row":
                tl.atomic_add(d_weight_ptr + c, dy * x_hat, mask=inside)
                tl.atomic_add(d_bias_ptr + c, dy, mask=inside)
            else:
                d_weight += dy * x_hat
            d_bias += dy
    if SLIP == "no atomic":
        old = tl.load(d_weight_ptr + c, mask=inside, other=0.0)
        tl.store(d_weight_ptr + c, old + d_weight, mask=inside)
        old = tl.load(d_bias_ptr + c, mask=inside, other=0.0)
        tl.store(d_bias_ptr + c, old + d_bias, mask=inside)
    elif SLIP == "exchanged":
        tl.atomic_add(d_weight_ptr + c, d_bias, mask=inside)
        tl.atomic_add(d_bias_ptr + c, d_weight, mask=inside)
    elif SLIP != "each row":
        tl.atomic_add(d_weight_ptr + c, d_weight, mask=inside)
        tl.atomic_add(d_bias_ptr + c, d_bias, mask=inside)


backward_no_end = with_slip(backward_like, "no end")
backward_no_weight = with_slip(backward_like, "no weight")
backward_block = with_slip(backward_like, "block")
backward_no_mean = with_slip(backward_like, "no mean")
backward_no_spread = with_slip(backward_like, "no spread")
backward_no_rstd = with_slip(backward_like, "no rstd")
backward_raw_x = with_slip(backward_like, "raw x")
backward_each_row = with_slip(backward_like, "each row")
backward_no_other = with_slip(backward_like, "no other")
backward_no_atomic = with_slip(backward_like, "no atomic")
backward_exchanged = with_slip(backward_like, "exchanged")


@triton.jit
def entropy_like(logits_ptr, target_ptr, loss_ptr, log_total_ptr, stride, vocab,
                 BLOCK: tl.constexpr, SLIP: tl.constexpr):  # fmt: skip
    row = tl.program_id(0)
    start = row * stride
    if SLIP == "stride":
        start = row * vocab
    end = vocab
    if SLIP == "one block":
        end = 1
    if SLIP == "padding":
        end = stride
    fill = -float("inf")
    if SLIP == "zero":
        fill = 0.0
    top, total = -float("inf"), 0.0
    if SLIP == "two passes":
        for first in range(0, end, BLOCK):
            i = first + tl.arange(0, BLOCK)
            block = tl.load(logits_ptr + start + i, mask=i < vocab, other=fill)
            top = tl.maximum(top, tl.max(block, axis=0))
    for first in range(0, end, BLOCK):
        i = first + tl.arange(0, BLOCK)
        if SLIP == "padding":
            block = tl.load(logits_ptr + start + i, mask=i < stride, other=fill)
        elif SLIP == "no other":
            block = tl.load(logits_ptr + start + i, mask=i < vocab)
        else:
            block = tl.load(logits_ptr + start + i, mask=i < vocab, other=fill)
        if SLIP == "no max":
            total += tl.sum(tl.exp(block), axis=0)
            top = 0.0
        else:
            new = tl.maximum(top, tl.max(block, axis=0))
            if SLIP == "no factor":
                total += tl.sum(tl.exp(block - new), axis=0)
            else:
                total = total * tl.exp(top - new) + tl.sum(tl.exp(block - new), axis=0)
            top = new
    log_total = top + tl.log(total)
    if SLIP == "log without max":
        log_total = tl.log(total)
    target = tl.load(target_ptr + row)
    where = start + target
    if SLIP == "target row":
        where = target
    chosen = tl.load(logits_ptr + where)
    loss = log_total - chosen
    if SLIP == "sign":
        loss = chosen - log_total
    if SLIP == "no target":
        loss = log_total
    tl.store(loss_ptr + row, loss)
    tl.store(log_total_ptr + row, log_total)


entropy_stride = with_slip(entropy_like, "stride")
entropy_one_block = with_slip(entropy_like, "one block")
entropy_padding = with_slip(entropy_like, "padding")
entropy_zero = with_slip(entropy_like, "zero")
entropy_no_other = with_slip(entropy_like, "no other")
entropy_two_passes = with_slip(entropy_like, "two passes")
entropy_no_max = with_slip(entropy_like, "no max")
entropy_no_factor = with_slip(entropy_like, "no factor")
entropy_log_without_max = with_slip(entropy_like, "log without max")
entropy_target_row = with_slip(entropy_like, "target row")
entropy_sign = with_slip(entropy_like, "sign")
