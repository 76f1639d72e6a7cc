"""bf16 in a metered kernel agrees with torch, bit for bit where both round once."""

import pytest

pytest.importorskip("triton")

import torch
import triton
import triton.language as tl

from utils.meter import measure

BF16 = torch.bfloat16


@triton.jit
def elementwise(a_ptr, b_ptr, sum_ptr, difference_ptr, product_ptr, quotient_ptr, larger_ptr,
                line_ptr, size_ptr, wide_ptr, back_ptr, half_ptr, bits_ptr, whole_ptr,
                N: tl.constexpr):  # fmt: skip
    i = tl.arange(0, N)
    a, b = tl.load(a_ptr + i), tl.load(b_ptr + i)
    tl.store(sum_ptr + i, a + b)
    tl.store(difference_ptr + i, a - b)
    tl.store(product_ptr + i, a * b)
    tl.store(quotient_ptr + i, a / b)
    tl.store(larger_ptr + i, tl.where(a > b, a, b))
    tl.store(line_ptr + i, a * 2.5 + 1.0)
    tl.store(size_ptr + i, tl.abs(a))
    tl.store(wide_ptr + i, a.to(tl.float32))
    tl.store(back_ptr + i, a.to(tl.float32) * 1.2345)
    tl.store(half_ptr + i, a.to(tl.float16))
    tl.store(bits_ptr + i, a.to(tl.int16, bitcast=True))
    tl.store(whole_ptr + i, tl.load(bits_ptr + i).to(tl.bfloat16, bitcast=True))


def special_values() -> torch.Tensor:
    inf = float("inf")
    return torch.tensor([0.0, -0.0, 1.0, -1.0, inf, -inf, float("nan"), 1e-40, -3e-39, 9.2e-41,
                         1.1754944e-38, 3.3895e38, -3.3895e38, 1 / 3, 65504.0,
                         2.0**-133]).to(BF16)  # fmt: skip


def pair() -> tuple[torch.Tensor, torch.Tensor]:
    """4,096 pairs: each special value with each, and random bits (subnormals, infinities, NaN)."""
    torch.manual_seed(0)
    special = special_values()
    bits = torch.randint(-(2**15), 2**15, (4096 - 256,), dtype=torch.int16).view(BF16)
    a = torch.cat([special.repeat_interleave(16), bits])
    b = torch.cat([special.repeat(16), bits[torch.randperm(bits.numel())]])
    return a, b


def same(one: torch.Tensor, two: torch.Tensor) -> torch.Tensor:
    return (one == two) | (one.isnan() & two.isnan())


def test_elementwise_and_conversions_are_torchs():
    a, b = pair()
    dtypes = [BF16] * 7 + [torch.float32, BF16, torch.float16, torch.int16, BF16]
    outs = [torch.empty(4096, dtype=dtype) for dtype in dtypes]
    report = measure(elementwise, (1,), a, b, *outs, N=4096)
    assert report.ok, report
    expected = [a + b, a - b, a * b, a / b, torch.where(a > b, a, b), a * 2.5 + 1.0, a.abs(),
                a.float(), (a.float() * 1.2345).to(BF16), a.to(torch.float16)]  # fmt: skip
    for name, got, want in zip(report.arguments[2:], outs, expected, strict=False):
        assert same(got, want).all(), name.name
    assert torch.equal(outs[10], a.view(torch.int16))
    assert torch.equal(outs[11].view(torch.int16), a.view(torch.int16))  # NaN bits too


@triton.jit
def rounds_fp32(x_ptr, out_ptr, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(out_ptr + i, tl.load(x_ptr + i))


def test_stores_round_to_nearest_even():
    torch.manual_seed(1)
    bits = torch.randint(-(2**31), 2**31, (65536,), dtype=torch.int64).to(torch.int32)
    ties = (torch.arange(16384, dtype=torch.int32) << 16) | 0x8000
    x = torch.cat([bits[: 65536 - 16384], ties]).view(torch.float32)
    out = torch.empty(65536, dtype=BF16)
    assert measure(rounds_fp32, (1,), x, out, N=65536).ok
    assert same(out, x.to(BF16)).all()


@triton.jit
def reductions(x_ptr, sum_ptr, max_ptr, total_ptr, argmax_ptr, scan_ptr, N: tl.constexpr):
    i = tl.arange(0, N)
    at = i[:, None] * N + i[None, :]
    x = tl.load(x_ptr + at)
    tl.store(sum_ptr + i, tl.sum(x, 1))
    tl.store(max_ptr + i, tl.max(x, 1))
    tl.store(total_ptr + i, tl.sum(x.to(tl.float32), 0))
    tl.store(argmax_ptr + i, tl.argmax(x, 1))
    tl.store(scan_ptr + at, tl.cumsum(x.to(tl.float32), 1))


def test_reductions():
    torch.manual_seed(2)
    x = torch.randn(64, 64).to(BF16)
    outs = [torch.empty(64, dtype=d) for d in (BF16, BF16, torch.float32, torch.int32)]
    scan = torch.empty(64, 64)
    report = measure(reductions, (1,), x, *outs, scan, N=64)
    assert report.ok, report
    assert torch.equal(outs[0], x.float().sum(1).to(BF16))
    assert torch.equal(outs[1], x.amax(1))
    assert torch.allclose(outs[2], x.float().sum(0), atol=1e-5)
    assert torch.equal(outs[3].long(), x.argmax(1))
    assert torch.allclose(scan, x.float().cumsum(1), atol=1e-5)


@triton.jit
def dot(a_ptr, b_ptr, out_ptr, wide_ptr, N: tl.constexpr):
    i = tl.arange(0, N)
    at = i[:, None] * N + i[None, :]
    c = tl.dot(tl.load(a_ptr + at), tl.trans(tl.load(b_ptr + at)))
    tl.store(wide_ptr + at, c)
    tl.store(out_ptr + at, c.to(tl.bfloat16))


def test_dots_agree_with_torch():
    torch.manual_seed(3)
    a, b = (torch.randn(64, 64).to(BF16) for _ in "ab")
    out, wide = torch.empty(64, 64, dtype=BF16), torch.empty(64, 64)
    report = measure(dot, (1,), a, b, out, wide, N=64)
    exact = a.double() @ b.double().T
    assert report.ok and report.flops["bf16"] == 2 * 64**3
    assert (wide - exact).abs().max() < 1e-5 * exact.abs().max()
    assert torch.equal(out, wide.to(BF16))


@triton.jit
def masked(x_ptr, out_ptr, n, N: tl.constexpr):
    i = tl.arange(0, N)
    x = tl.load(x_ptr + i, mask=i < n, other=-1.5)
    tl.store(out_ptr + i, x)


def test_other_is_bf16_too():
    x, out = torch.randn(10).to(BF16), torch.empty(16, dtype=BF16)
    assert measure(masked, (1,), x, out, 10, N=16, outputs="out_ptr").ok
    assert torch.equal(out, torch.cat([x, torch.full((6,), -1.5, dtype=BF16)]))


@triton.jit
def adds_atomically(x_ptr, out_ptr, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.atomic_add(out_ptr + i % 4, tl.load(x_ptr + i))


def test_atomic_add_rounds_each_sum():
    torch.manual_seed(4)
    x, out = torch.randn(16).to(BF16), torch.zeros(4, dtype=BF16)
    assert measure(adds_atomically, (1,), x, out, N=16).ok
    expected = torch.zeros(4, dtype=BF16)
    for row in x.view(4, 4):
        expected += row
    assert torch.equal(out, expected)


@triton.jit
def toward_zero(x_ptr, out_ptr, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(out_ptr + i, tl.load(x_ptr + i).to(tl.bfloat16, fp_downcast_rounding="rtz"))


def test_rounding_toward_zero():
    x, out = torch.randn(64), torch.empty(64, dtype=BF16)
    assert measure(toward_zero, (1,), x, out, N=64).ok
    assert torch.equal(out.float(), (x.view(torch.int32) & -65536).view(torch.float32))


@triton.jit
def from_fp8(x_ptr, out_ptr, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(out_ptr + i, tl.load(x_ptr + i).to(tl.bfloat16) * 2)


def test_fp8_to_bf16():
    x = torch.randn(64).to(torch.float8_e4m3fn)
    out = torch.empty(64, dtype=BF16)
    assert measure(from_fp8, (1,), x, out, N=64).ok
    assert torch.equal(out, x.to(BF16) * 2)


@triton.jit
def swaps(p_ptr):
    tl.atomic_cas(p_ptr, tl.load(p_ptr), tl.load(p_ptr))


def test_what_cannot_be_made_right_is_refused():
    report = measure(swaps, (1,), torch.zeros(1, dtype=BF16))
    assert report.problems[0].kind == "unsupported"
    assert "atomic_cas on bf16" in report.problems[0].message


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.float64])
def test_other_types_stay_as_they_were(dtype):
    torch.manual_seed(5)
    a = torch.randn(64, 64).to(dtype)
    wide = torch.empty(64, 64, dtype=torch.float64 if dtype == torch.float64 else torch.float32)
    report = measure(dot_as_is, (1,), a, wide, N=64)
    assert report.ok
    exact = a.double() @ a.double()
    tolerance = 1e-12 if dtype == torch.float64 else 1e-6
    assert (wide - exact).abs().max() < tolerance * exact.abs().max()


@triton.jit
def dot_as_is(a_ptr, wide_ptr, N: tl.constexpr):
    i = tl.arange(0, N)
    at = i[:, None] * N + i[None, :]
    a = tl.load(a_ptr + at)
    tl.store(wide_ptr + at, tl.dot(a, a))
