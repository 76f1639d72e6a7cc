"""The course's kernels at sizes that fill a GPU, each beside what PyTorch does.

A `size` is the number of elements, rows, or positions, whichever the kernel's work grows with.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
import torch.nn.functional as F

from tests.gpu.workload import Launch, Workload
from utils.exercises.namespace import solution

COLUMNS = 1024  # of the row kernels
HEAD_DIM, N_HEAD = 64, 4
Made = tuple[Launch, Callable[[], torch.Tensor]]


def cdiv(a: int, b: int) -> int:
    return -(-a // b)


def add(n: int, device: str) -> Made:
    x, y = torch.randn(2, n, device=device)
    out = torch.empty_like(x)
    kernel, constants = solution("07.add_kernel"), {"BLOCK": 1024}
    args = (x, y, out, n)
    return Launch(kernel, (cdiv(n, 1024),), args, constants, out, 12 * n, n), lambda: x + y


def bias_gelu(rows: int, device: str) -> Made:
    x, bias = torch.randn(rows, COLUMNS, device=device), torch.randn(COLUMNS, device=device)
    out = torch.empty_like(x)
    grid, constants = (cdiv(rows, 4), 2), {"BLOCK_ROWS": 4, "BLOCK_COLUMNS": 512}
    kernel, args = solution("07.bias_gelu_kernel"), (x, bias, out, rows, COLUMNS)
    least = 8 * x.numel() + 4 * COLUMNS
    launch = Launch(kernel, grid, args, constants, out, least, 8 * x.numel())
    return launch, lambda: F.gelu(x + bias)


def softmax(rows: int, device: str) -> Made:
    x = torch.randn(rows, COLUMNS, device=device)
    out = torch.empty_like(x)
    kernel, args = solution("07.softmax_kernel"), (x, out, COLUMNS, COLUMNS, COLUMNS)
    numbers = x.numel()
    launch = Launch(kernel, (rows,), args, {"BLOCK": COLUMNS}, out, 8 * numbers, 5 * numbers)
    return launch, lambda: torch.softmax(x, 1)


def rmsnorm(rows: int, device: str) -> Made:
    x, weight = torch.randn(rows, COLUMNS, device=device), torch.randn(COLUMNS, device=device)
    out = torch.empty_like(x)
    kernel, args = solution("07.rmsnorm_kernel"), (x, weight, out, COLUMNS, 1e-5)
    least = 8 * x.numel() + 4 * COLUMNS
    launch = Launch(kernel, (rows,), args, {"BLOCK": COLUMNS}, out, least, 4 * x.numel())
    return launch, lambda: F.rms_norm(x, (COLUMNS,), weight, 1e-5)


def cross_entropy(rows: int, device: str) -> Made:
    vocab = 8 * COLUMNS
    logits = torch.randn(rows, vocab, device=device)
    target = torch.randint(vocab, (rows,), device=device)
    loss, log_total = torch.empty(2, rows, device=device)
    kernel = solution("07.cross_entropy_kernel")
    args, constants = (logits, target, loss, log_total, vocab, vocab), {"BLOCK": COLUMNS}
    least = 4 * logits.numel() + 20 * rows
    launch = Launch(kernel, (rows,), args, constants, loss, least, 4 * logits.numel())
    return launch, lambda: F.cross_entropy(logits, target, reduction="none")


def transpose(rows: int, device: str) -> Made:
    x = torch.randn(rows, COLUMNS, device=device)
    out = torch.empty(COLUMNS, rows, device=device)
    kernel, args = solution("07.transpose_kernel"), (x, out, rows, COLUMNS)
    grid = (cdiv(rows, 32), cdiv(COLUMNS, 32))
    launch = Launch(kernel, grid, args, {"BLOCK": 32}, out, 8 * x.numel(), 0)
    return launch, lambda: x.t().contiguous()


def product(n: int, device: str, *, fused: bool) -> Made:
    """A bf16 product, alone or with a bias and a ReLU in its epilogue; float32 out."""
    a, b = torch.randn(2, n, n, device=device).to(torch.bfloat16)
    bias, c = torch.randn(n, device=device), torch.empty(n, n, device=device)
    block = 128 if n > 512 else 64
    constants = {"BLOCK_M": block, "BLOCK_N": block, "BLOCK_K": 32, "num_warps": block // 16}
    sizes = (n, n, n, *a.stride(), *b.stride(), *c.stride())
    grid = (cdiv(n, block) ** 2,)
    least, flops = 8 * n * n, 2 * n**3
    if not fused:
        kernel = solution("08.matmul_kernel")
        launch = Launch(kernel, grid, (a, b, c, *sizes), constants, c, least, flops)
        return launch, lambda: (a @ b).float()
    kernel = solution("08.matmul_bias_relu_kernel")
    launch = Launch(kernel, grid, (a, b, bias, c, *sizes), constants, c, least + 4 * n, flops)
    return launch, lambda: torch.relu((a @ b).float() + bias)


def int8_gemv(n: int, device: str) -> Made:
    w = torch.randint(-127, 128, (n, n), dtype=torch.int8, device=device)
    scale, x = torch.rand(n, device=device) / 127, torch.randn(n, device=device)
    y = torch.empty(n, device=device)
    kernel, constants = solution("08.int8_gemv_kernel"), {"BLOCK_N": 16, "BLOCK_K": 256}
    launch = Launch(
        kernel, (cdiv(n, 16),), (w, scale, x, y, n, n), constants, y, n * n + 12 * n, 2 * n * n
    )
    return launch, lambda: (w.float() * scale[:, None]) @ x


def flash(seq_len: int, device: str) -> Made:
    """Causal FlashAttention, forward, fp16, 4 heads of 64."""
    q, k, v = torch.randn(3, 1, N_HEAD, seq_len, HEAD_DIM, device=device).half()
    out = torch.empty_like(q)
    lse = torch.empty(1, N_HEAD, seq_len, device=device)
    block = 64
    constants = {
        "GROUP": 1, "HEAD_DIM": HEAD_DIM, "BLOCK_Q": block, "BLOCK_K": block, "CAUSAL": True,
    }  # fmt: skip
    args = (q, k, v, out, lse, seq_len, 1 / math.sqrt(HEAD_DIM))
    least, flops = 8 * q.numel() + 4 * lse.numel(), 2 * N_HEAD * seq_len**2 * HEAD_DIM
    kernel, grid = solution("08.flash_forward_kernel"), (cdiv(seq_len, block), N_HEAD)
    launch = Launch(kernel, grid, args, constants, out, least, flops)
    return launch, lambda: F.scaled_dot_product_attention(q, k, v, is_causal=True)


def matmul(n: int, device: str) -> Made:
    return product(n, device, fused=False)


def matmul_bias_relu(n: int, device: str) -> Made:
    return product(n, device, fused=True)


WORKLOADS = [
    Workload("add", add, small=100_000, large=2**27),
    Workload("bias and GELU", bias_gelu, small=64, large=2**16),
    Workload("softmax", softmax, small=64, large=2**16),
    Workload("RMSNorm", rmsnorm, small=64, large=2**16),
    Workload("cross-entropy", cross_entropy, small=16, large=2**13),
    Workload("transpose", transpose, small=128, large=2**15),
    Workload("matmul", matmul, small=256, large=8192, tolerance=1e-2),
    Workload("matmul, bias, ReLU", matmul_bias_relu, small=256, large=8192, tolerance=1e-2),
    Workload("int8 matrix-vector", int8_gemv, small=256, large=2**14, tolerance=1e-4),
    Workload("FlashAttention", flash, small=256, large=2**13, tolerance=1e-2),
]
