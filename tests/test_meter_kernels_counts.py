"""What the meter counts equals what a hand derives: bytes, sectors, FLOPs, traffic past L2."""

import dataclasses
import math

import pytest

pytest.importorskip("triton")

import numpy as np
import torch
import triton
import triton.language as tl

from tests.kernels.chapter08 import flash_forward, matmul
from utils.hardware import accelerator
from utils.meter import LAUNCH_SECONDS, Cost, measure
from utils.meter.l2 import L2

A100 = accelerator("A100 80GB SXM")


@triton.jit
def add(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = i < n
    x, y = tl.load(x_ptr + i, mask=inside), tl.load(y_ptr + i, mask=inside)
    tl.store(out_ptr + i, x + y, mask=inside)


@triton.jit
def softmax(x_ptr, out_ptr, columns, BLOCK: tl.constexpr):
    c = tl.arange(0, BLOCK)
    at = tl.program_id(0) * columns + c
    x = tl.load(x_ptr + at, mask=c < columns, other=float("-inf"))
    e = tl.exp(x - tl.max(x, 0))
    tl.store(out_ptr + at, e / tl.sum(e, 0), mask=c < columns)


@triton.jit
def strided(x_ptr, out_ptr, step, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out_ptr + i, tl.load(x_ptr + i * step))


@triton.jit
def transpose(x_ptr, out_ptr, N: tl.constexpr, BLOCK: tl.constexpr):
    r = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)[:, None]
    c = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)[None, :]
    tl.store(out_ptr + c * N + r, tl.load(x_ptr + r * N + c))


@triton.jit
def transpose_by_columns(x_ptr, out_ptr, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(out_ptr + i * N + tl.program_id(0), tl.load(x_ptr + tl.program_id(0) * N + i))


@triton.jit
def two_halves(x_ptr, out_ptr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + i, tl.load(x_ptr + i) + tl.load(x_ptr + i))


@pytest.mark.parametrize("n", [1, 1000, 4096])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64])
def test_vector_add(n, dtype):
    x, y, out = (torch.randn(n).to(dtype) for _ in "xyo")
    report = measure(add, (triton.cdiv(n, 256),), x, y, out, n, BLOCK=256, outputs="out_ptr")
    size = x.element_size()
    assert report.ok
    assert report.requested_bytes == report.fewest_bytes == 3 * n * size
    assert report.cost.bytes_read == 2 * 32 * math.ceil(n * size / 32)
    assert report.cost.bytes_written == 32 * math.ceil(n * size / 32)
    assert report.argument("x_ptr").read_sectors == math.ceil(n * size / 32)
    assert all(a.read_coalescing in (None, 1.0) for a in report.arguments)
    assert report.flops == {"vector": 256 * triton.cdiv(n, 256)}  # masked-off lanes compute too


def test_row_softmax():
    rows, columns, block = 5, 100, 128
    x, out = torch.randn(rows, columns), torch.empty(rows, columns)
    report = measure(softmax, (rows,), x, out, columns, BLOCK=block, outputs="out_ptr")
    assert torch.allclose(out, x.softmax(1), atol=1e-6)
    assert report.requested_bytes == 2 * rows * columns * 4 == report.fewest_bytes
    # max, subtract, exp, sum, divide: five for each lane of the block
    assert report.flops == {"vector": 5 * rows * block}


@pytest.mark.parametrize("order", ["ieee", "tf32"])
def test_tiled_matmul(order):
    m, n, k, bm, bn, bk = 96, 64, 80, 32, 32, 16
    a, b, c = torch.randn(m, k), torch.randn(k, n), torch.empty(m, n)
    grid = ((m // bm) * (n // bn),)
    report = measure(matmul, grid, a, b, c, m, n, k, k, 1, n, 1, n, 1, BLOCK_M=bm, BLOCK_N=bn,
                     BLOCK_K=bk, GROUP_M=1, outputs="c_ptr")  # fmt: skip
    assert torch.allclose(c, a @ b, atol=1e-4)
    # each of the (m/bm)(n/bn) tiles reads a strip of A and a strip of B, and is written once
    assert report.requested_bytes == 4 * (m * k * (n // bn) + k * n * (m // bm) + m * n)
    assert report.fewest_bytes == 4 * (m * k + k * n + m * n)
    assert report.flops["tf32"] == report.dot_flops == 2 * m * n * k
    assert report.cost.bytes_read == 4 * (m * k + k * n)  # everything fits L2: once each
    assert report.cost.bytes_written == 4 * m * n


def test_matmul_with_tails_asks_for_no_more():
    m = n = k = 50
    a, b, c = (torch.randn(50, 50) for _ in "abc")
    report = measure(matmul, (16,), a, b, c, m, n, k, k, 1, n, 1, n, 1, BLOCK_M=16, BLOCK_N=16,
                     BLOCK_K=16, GROUP_M=2, outputs="c_ptr")  # fmt: skip
    assert report.ok and torch.allclose(c, a @ b, atol=1e-4)
    assert report.requested_bytes == 4 * (2 * 50 * 50 * 4 + 50 * 50)


def test_flash_attention_bytes():
    heads, seq, d, bm, bn = 2, 128, 32, 32, 32
    q, k, v, o = (torch.randn(heads, seq, d) for _ in "qkvo")
    report = measure(flash_forward, (seq // bm, heads), q, k, v, o, seq, d**-0.5, seq * d, d,
                     HEAD_DIM=d, BLOCK_M=bm, BLOCK_N=bn, outputs="o_ptr")  # fmt: skip
    reference = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
    assert report.ok and torch.allclose(o, reference, atol=1e-5)
    n = seq // bm
    visited = n * (n + 1) // 2  # causal: the tiles on and under the diagonal
    assert report.requested_bytes == 4 * heads * (2 * seq * d + 2 * visited * bn * d)
    assert report.dot_flops == heads * visited * 2 * 2 * bm * bn * d
    assert report.argument("k_ptr").read_coalescing == 1.0  # read transposed, yet contiguous


@pytest.mark.parametrize(("step", "dtype", "sectors"), [
    (1, torch.float32, 4), (2, torch.float32, 8), (8, torch.float32, 32), (64, torch.float32, 32),
    (1, torch.float16, 2), (1, torch.int8, 1), (16, torch.float16, 32), (0, torch.float32, 1),
])  # fmt: skip
def test_sectors_of_one_warp(step, dtype, sectors):
    x, out = torch.zeros(max(32 * step, 1)).to(dtype), torch.zeros(32).to(dtype)
    report = measure(strided, (1,), x, out, step, BLOCK=32)
    row = report.argument("x_ptr")
    assert row.read_sectors == sectors
    distinct = x.element_size() * (32 if step else 1)
    assert row.read_coalescing == math.ceil(distinct / 32) / sectors


def test_misaligned_view_costs_a_sector():
    x, out = torch.zeros(64), torch.zeros(32)
    for start, sectors in ((8, 4), (1, 5)):
        report = measure(strided, (1,), x[start:], out, 1, BLOCK=32)
        assert report.argument("x_ptr").read_sectors == sectors


def test_transposes():
    x, out = torch.randn(64, 64), torch.empty(64, 64)
    tiled = measure(transpose, (2, 2), x, out, N=64, BLOCK=32, outputs="out_ptr")
    assert tiled.ok and torch.equal(out, x.T)
    assert tiled.argument("x_ptr").read_coalescing == 1.0
    assert tiled.argument("out_ptr").written_coalescing == 1.0
    naive = measure(transpose_by_columns, (64,), x, out, N=64, outputs="out_ptr")
    assert naive.ok and torch.equal(out, x.T)
    assert naive.argument("out_ptr").written_coalescing == 1 / 8
    assert naive.argument("out_ptr").written_sectors == 64 * 64


def test_repeated_loads_are_requested_twice_and_distinct_once():
    x, out = torch.randn(256), torch.empty(256)
    report = measure(two_halves, (4,), x, out, BLOCK=64, outputs="out_ptr")
    row = report.argument("x_ptr")
    assert (row.read_bytes, row.read_distinct_bytes) == (2048, 1024)
    assert report.l2_hit_rate == 0.5 and report.cost.bytes_read == 1024


def small_cache(kib: int, cores: int):
    return dataclasses.replace(A100, name="small", onchip_bytes=kib * 1024, cores=cores)


def test_program_order_decides_what_passes_l2():
    """Row by row, a wave of 8 programs covers 1 x 8 tiles and needs 9 strips; grouped by 2 it
    covers 2 x 4 and needs 6. The cache holds 8 strips of 32 x 256 fp32, not all 16 + C."""
    n, block = 256, 32
    a, b, c = (torch.randn(n, n) for _ in "abc")
    chip = small_cache(256, 8)

    def traffic(group):
        report = measure(matmul, (64,), a, b, c, n, n, n, n, 1, n, 1, n, 1, BLOCK_M=block,
                         BLOCK_N=block, BLOCK_K=block, GROUP_M=group, outputs="c_ptr",
                         accelerator=chip)  # fmt: skip
        assert report.ok
        assert report.requested_bytes == 4 * (2 * n * n * (n // block) + n * n)
        return report

    by_rows, grouped = traffic(1), traffic(2)
    assert grouped.cost.bytes_read < by_rows.cost.bytes_read
    assert grouped.l2_hit_rate > by_rows.l2_hit_rate
    strip = 4 * block * n
    assert by_rows.cost.bytes_read == 8 * 9 * strip
    assert grouped.cost.bytes_read <= 8 * 6 * strip
    large = measure(matmul, (64,), a, b, c, n, n, n, n, 1, n, 1, n, 1, BLOCK_M=block, BLOCK_N=block,
                    BLOCK_K=block, GROUP_M=1)  # fmt: skip
    assert large.cost.bytes_read == 2 * 4 * n * n


def naive_lru(accesses, capacity):
    cache, misses = {}, 0
    for sectors in accesses:
        fresh = [s for s in sectors if s not in cache]
        misses += len(fresh)
        for s in sectors:
            cache.pop(s, None)
            cache[s] = True
        while len(cache) > capacity:
            cache.pop(next(iter(cache)))
    return misses


def test_l2_is_least_recently_used():
    rng = np.random.default_rng(0)
    accesses = [np.unique(rng.integers(0, 200, rng.integers(1, 20))) for _ in range(400)]
    for capacity in (30, 60, 150, 250):
        cache = L2(200, capacity * 32, 1)
        for sectors in accesses:
            cache.start_program()
            cache.access(sectors, "load")
        cache.finish()
        assert cache.misses == naive_lru([a.tolist() for a in accesses], capacity)


def test_written_sectors_leave_once():
    cache = L2(100, 10 * 32, 1)
    for first in (0, 5, 10, 0):
        cache.start_program()
        cache.access(np.arange(first, first + 10), "store")
    cache.finish()
    assert cache.misses == 0 and cache.bytes_read == 0
    assert cache.written_back == 10 + 20  # 0..9 pushed out by 10..19, then both sets at the end


def test_modelled_time_is_the_roofline_plus_a_launch():
    cost = Cost(2 * 10**9, 10**9, {"bf16": 312 * 10**9, "vector": 0}, launches=3)
    modelled = cost.on(A100)
    assert modelled.bound_by == "memory"
    assert modelled.seconds == pytest.approx(3e9 / A100.bytes_per_s + 3 * LAUNCH_SECONDS)
    assert modelled.parts["matrix units"] == pytest.approx(1e-3)
    assert Cost(0, 0, {"bf16": 10**15}).on(A100).bound_by == "matrix units"
    assert Cost(0, 0, {"vector": 10**15}).on(A100).bound_by == "vector units"
    assert Cost(32, 0).on(A100).bound_by == "launch"
    assert cost.intensity == pytest.approx(104)
    assert Cost(0, 0).intensity is None


def test_a_peak_nobody_knows_gives_no_time():
    t4 = Cost(1, 1, {"bf16": 1}).on(accelerator("T4"))
    assert t4.seconds is None and "T4 has no native bf16" in str(t4)


def test_report_in_three_forms():
    import json

    x, y, out = torch.randn(100), torch.randn(100), torch.empty(100)
    report = measure(add, (2,), x, y, out, 100, BLOCK=64, outputs="out_ptr", accelerator="H100 SXM")
    plain = json.loads(json.dumps(report.to_dict()))
    assert plain["arguments"][0]["read_bytes"] == 400 and plain["waves"] == 1
    assert plain["accelerator"] == "H100 SXM" and plain["bound_by"] == "launch"
    assert report.rows()[2]["written"] == "400 B"
    text = str(report)
    assert "nothing wrong" in text and "not modelled: registers" in text and "x_ptr" in text
    assert repr(report) == text
    with pytest.raises(ValueError, match="x_ptr, y_ptr, out_ptr"):
        report.argument("z_ptr")
