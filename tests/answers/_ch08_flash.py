"""Second answers to chapter 08's FlashAttention, written differently."""

import torch

from utils.meter.on_paper import tl, triton

LOG2E: tl.constexpr = tl.constexpr(1.4426950408889634)


@triton.jit
def flash_forward_kernel(q_ptr, k_ptr, v_ptr, out_ptr, lse_ptr, n, scale, GROUP: tl.constexpr,
                         HEAD_DIM: tl.constexpr, BLOCK_Q: tl.constexpr, BLOCK_K: tl.constexpr,
                         CAUSAL: tl.constexpr):  # fmt: skip
    """Powers of two, keys loaded transposed, tiles merged by their log-sum-exp, output kept
    divided; heads and rows as separate offsets."""
    tile, head = tl.program_id(0), tl.program_id(1)
    rows, dims = tile * BLOCK_Q + tl.arange(0, BLOCK_Q), tl.arange(0, HEAD_DIM)
    q_ptr += head * n * HEAD_DIM
    out_ptr += head * n * HEAD_DIM
    k_ptr += (head // GROUP) * n * HEAD_DIM
    v_ptr += (head // GROUP) * n * HEAD_DIM
    inside = (rows < n)[:, None]
    at = rows[:, None] * HEAD_DIM + dims
    q = tl.load(q_ptr + at, mask=inside)
    lse = tl.full([BLOCK_Q], float("-inf"), tl.float32)
    out = tl.zeros([BLOCK_Q, HEAD_DIM], tl.float32)
    n_tiles = tl.cdiv(n, BLOCK_K)
    if CAUSAL:
        n_tiles = tl.minimum(n_tiles, tl.cdiv((tile + 1) * BLOCK_Q, BLOCK_K))
    for j in range(n_tiles):
        columns = j * BLOCK_K + tl.arange(0, BLOCK_K)
        k = tl.load(k_ptr + columns[None, :] * HEAD_DIM + dims[:, None],
                    mask=columns[None, :] < n)  # fmt: skip
        v = tl.load(v_ptr + columns[:, None] * HEAD_DIM + dims, mask=columns[:, None] < n, other=0)
        scores = tl.dot(q, k) * (scale * LOG2E)
        hidden = columns[None, :] >= n
        if CAUSAL:
            hidden |= columns[None, :] > rows[:, None]
        scores = tl.where(hidden, float("-inf"), scores)
        top = tl.maximum(lse, tl.max(scores, axis=1))
        both = top + tl.log2(tl.exp2(lse - top) + tl.sum(tl.exp2(scores - top[:, None]), axis=1))
        weights = tl.exp2(scores - both[:, None])
        out = tl.dot(weights.to(v.dtype), v, out * tl.exp2(lse - both)[:, None])
        lse = both
    tl.store(out_ptr + at, out.to(out_ptr.dtype.element_ty), mask=inside)
    tl.store(lse_ptr + head * n + rows, lse / LOG2E, mask=rows < n)


@triton.jit
def flash_backward_kernels(q_ptr, k_ptr, v_ptr, d_out_ptr, lse_ptr, delta_ptr, d_q_ptr, d_k_ptr,
                           d_v_ptr, n, scale, GROUP: tl.constexpr, HEAD_DIM: tl.constexpr,
                           BLOCK_Q: tl.constexpr, BLOCK_K: tl.constexpr, CAUSAL: tl.constexpr,
                           KEYS: tl.constexpr):  # fmt: skip
    """Query tiles from the last to the first, a row is always a query, the scale comes last, and
    tails need no mask where zeros were loaded."""
    dims = tl.arange(0, HEAD_DIM)[None, :]
    tile, head = tl.program_id(0), tl.program_id(1)
    if KEYS:
        columns = tile * BLOCK_K + tl.arange(0, BLOCK_K)
        there = (columns < n)[:, None]
        k_at = (head * n + columns[:, None]) * HEAD_DIM + dims
        k = tl.load(k_ptr + k_at, mask=there, other=0)
        v = tl.load(v_ptr + k_at, mask=there, other=0)
        d_k = tl.zeros([BLOCK_K, HEAD_DIM], tl.float32)
        d_v = tl.zeros([BLOCK_K, HEAD_DIM], tl.float32)
        first = tile * BLOCK_K // BLOCK_Q if CAUSAL else 0
        n_tiles = tl.cdiv(n, BLOCK_Q) - first
        for step in range(GROUP * n_tiles):
            rows = (first + n_tiles - 1 - step % n_tiles) * BLOCK_Q + tl.arange(0, BLOCK_Q)
            inside = rows < n
            flat = (head * GROUP + step // n_tiles) * n + rows
            at = flat[:, None] * HEAD_DIM + dims
            q = tl.load(q_ptr + at, mask=inside[:, None], other=0)
            d_out = tl.load(d_out_ptr + at, mask=inside[:, None], other=0)
            lse = tl.load(lse_ptr + flat, mask=inside, other=0)
            delta = tl.load(delta_ptr + flat, mask=inside, other=0)
            exponent = tl.dot(q, tl.trans(k)) * scale - lse[:, None]
            if CAUSAL:
                exponent = tl.where(columns[None, :] > rows[:, None], float("-inf"), exponent)
            exponent = tl.where(there.trans(), exponent, float("-inf"))
            p = tl.exp(exponent)
            d_v = tl.dot(tl.trans(p).to(d_out.dtype), d_out, d_v)
            d_s = p * (tl.dot(d_out, tl.trans(v)) - delta[:, None])
            d_k = tl.dot(tl.trans(d_s).to(q.dtype), q, d_k)
        tl.store(d_k_ptr + k_at, (d_k * scale).to(d_k_ptr.dtype.element_ty), mask=there)
        tl.store(d_v_ptr + k_at, d_v.to(d_v_ptr.dtype.element_ty), mask=there)
    else:
        rows = tile * BLOCK_Q + tl.arange(0, BLOCK_Q)
        inside = rows < n
        at = (head * n + rows[:, None]) * HEAD_DIM + dims
        q = tl.load(q_ptr + at, mask=inside[:, None])
        d_out = tl.load(d_out_ptr + at, mask=inside[:, None])
        lse = tl.load(lse_ptr + head * n + rows, mask=inside)
        delta = tl.load(delta_ptr + head * n + rows, mask=inside)
        d_q = tl.zeros([BLOCK_Q, HEAD_DIM], tl.float32)
        n_tiles = tl.cdiv(n, BLOCK_K)
        if CAUSAL:
            n_tiles = tl.minimum(n_tiles, tl.cdiv((tile + 1) * BLOCK_Q, BLOCK_K))
        for j in range(n_tiles):
            columns = j * BLOCK_K + tl.arange(0, BLOCK_K)
            k_at = (head // GROUP * n + columns[:, None]) * HEAD_DIM + dims
            there = (columns < n)[:, None]
            k = tl.load(k_ptr + k_at, mask=there, other=0)
            v = tl.load(v_ptr + k_at, mask=there, other=0)
            exponent = tl.dot(q, tl.trans(k)) * scale - lse[:, None]
            if CAUSAL:
                exponent = tl.where(columns[None, :] > rows[:, None], float("-inf"), exponent)
            d_s = tl.exp(exponent) * (tl.dot(d_out, tl.trans(v)) - delta[:, None])
            d_q = tl.dot(d_s.to(k.dtype), k, d_q)
        tl.store(d_q_ptr + at, (d_q * scale).to(d_q_ptr.dtype.element_ty), mask=inside[:, None])


class Attention(torch.autograd.Function):
    """A class of its own, with what it needs on ctx, and tiles of 16."""

    @staticmethod
    def forward(ctx, q, k, v, causal):
        q, k, v = (x.clone(memory_format=torch.contiguous_format) for x in (q, k, v))
        ctx.sizes = q.shape[3] ** -0.5, q.shape[1] // k.shape[1], causal
        batch, n_head, n, head_dim = q.shape
        out, lse = torch.empty_like(q), torch.empty(batch, n_head, n)
        scale, group, causal = ctx.sizes
        flash_forward_kernel[-(-n // 16), batch * n_head](
            q, k, v, out, lse, n, scale, group, head_dim, 16, 16, causal
        )
        ctx.save_for_backward(q, k, v, lse, out)
        return out

    @staticmethod
    def backward(ctx, d_out):
        q, k, v, lse, out = ctx.saved_tensors
        scale, group, causal = ctx.sizes
        batch, _, n, head_dim = q.shape
        d_out = d_out.clone(memory_format=torch.contiguous_format)
        delta = torch.einsum("bhid,bhid->bhi", d_out.float(), out.float())
        grads = [torch.zeros_like(x) for x in (q, k, v)]
        for keys in (False, True):
            flash_backward_kernels[-(-n // 16), batch * (k if keys else q).shape[1]](
                q, k, v, d_out, lse, delta, *grads, n, scale, group, head_dim, 16, 16, causal, keys
            )
        return *grads, None


def flash_attention(q, k, v, causal=True):
    return Attention.apply(q, k, v, causal)
