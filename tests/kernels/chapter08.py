"""A tiled matrix product and FlashAttention as in chapter 08: what the meter must be fast on."""

import triton
import triton.language as tl


@triton.jit
def matmul(a_ptr, b_ptr, c_ptr, M, N, K, stride_am, stride_ak, stride_bk, stride_bn, stride_cm,
           stride_cn, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
           GROUP_M: tl.constexpr):  # fmt: skip
    pid = tl.program_id(0)
    n_m, n_n = tl.cdiv(M, BLOCK_M), tl.cdiv(N, BLOCK_N)
    in_group = GROUP_M * n_n
    first_m = (pid // in_group) * GROUP_M
    group_m = min(n_m - first_m, GROUP_M)
    pid_m = first_m + (pid % in_group) % group_m
    pid_n = (pid % in_group) // group_m
    rows = pid_m * BLOCK_M + tl.arange(0, BLOCK_M)
    columns = pid_n * BLOCK_N + tl.arange(0, BLOCK_N)
    inner = tl.arange(0, BLOCK_K)
    a = a_ptr + rows[:, None] * stride_am + inner[None, :] * stride_ak
    b = b_ptr + inner[:, None] * stride_bk + columns[None, :] * stride_bn
    total = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for k in range(0, tl.cdiv(K, BLOCK_K)):
        left = inner + k * BLOCK_K < K
        x = tl.load(a, mask=(rows[:, None] < M) & left[None, :], other=0.0)
        y = tl.load(b, mask=left[:, None] & (columns[None, :] < N), other=0.0)
        total = tl.dot(x, y, total)
        a += BLOCK_K * stride_ak
        b += BLOCK_K * stride_bk
    c = c_ptr + rows[:, None] * stride_cm + columns[None, :] * stride_cn
    inside = (rows[:, None] < M) & (columns[None, :] < N)
    tl.store(c, total.to(c_ptr.dtype.element_ty), mask=inside)


@triton.jit
def flash_forward(q_ptr, k_ptr, v_ptr, o_ptr, seq_len, scale, stride_head, stride_row,
                  HEAD_DIM: tl.constexpr, BLOCK_M: tl.constexpr,
                  BLOCK_N: tl.constexpr):  # fmt: skip
    head = tl.program_id(1) * stride_head
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    dims = tl.arange(0, HEAD_DIM)
    q = tl.load(q_ptr + head + rows[:, None] * stride_row + dims[None, :],
                mask=rows[:, None] < seq_len, other=0.0)  # fmt: skip
    top = tl.full((BLOCK_M,), float("-inf"), dtype=tl.float32)
    total = tl.zeros((BLOCK_M,), dtype=tl.float32)
    out = tl.zeros((BLOCK_M, HEAD_DIM), dtype=tl.float32)
    for start in range(0, (tl.program_id(0) + 1) * BLOCK_M, BLOCK_N):
        columns = start + tl.arange(0, BLOCK_N)
        inside = columns < seq_len
        k = tl.load(k_ptr + head + columns[None, :] * stride_row + dims[:, None],
                    mask=inside[None, :], other=0.0)  # fmt: skip
        v = tl.load(v_ptr + head + columns[:, None] * stride_row + dims[None, :],
                    mask=inside[:, None], other=0.0)  # fmt: skip
        scores = tl.dot(q, k) * scale
        seen = inside[None, :] & (rows[:, None] >= columns[None, :])
        scores = tl.where(seen, scores, float("-inf"))
        new_top = tl.maximum(top, tl.max(scores, 1))
        shrink = tl.exp(top - new_top)
        weights = tl.exp(scores - new_top[:, None])
        total = total * shrink + tl.sum(weights, 1)
        out = out * shrink[:, None] + tl.dot(weights.to(v.dtype), v)
        top = new_top
    out = out / total[:, None]
    tl.store(o_ptr + head + rows[:, None] * stride_row + dims[None, :],
             out.to(o_ptr.dtype.element_ty), mask=rows[:, None] < seq_len)  # fmt: skip
