"""Emulated rounding against PyTorch's casts, bit for bit, and against pure Python."""

import math

import pytest
import torch

from utils.arithmetic.formats import FORMATS, decode, round_nearest
from utils.lab.rounding import quantize_int8, quantize_per_block, round_to_format

CAST = [form for form in FORMATS.values() if form.torch_dtype]
NO_CAST = [form for form in FORMATS.values() if not form.torch_dtype]


def policy(form):
    """What this PyTorch does past the largest number. E4M3 was NaN once and saturates today."""
    dtype = getattr(torch, form.torch_dtype)
    past = torch.tensor([1e30]).to(dtype).float()
    return "saturate" if past.item() == form.max_finite else "special"


def assert_same_bits(got, expected):
    same = (got.view(torch.int32) == expected.view(torch.int32)) | (got.isnan() & expected.isnan())
    assert same.all(), (got[~same][:5], expected[~same][:5])


def cast(x, form):
    x = x if form.signed else x.abs()  # E8M0 has no sign
    return x.to(getattr(torch, form.torch_dtype)).float()


def where_the_cast_is_nearest(x, form):
    """All of x, but for E8M0 the stretch in which PyTorch goes up; see rounding.py."""
    if form.name != "E8M0":
        return x
    size = x.abs() * 2.0**100
    return x[~((size > 2.0**-27) & (size < 1.5 * 2.0**-27))]


def million():
    """A million random bit patterns of float32: every exponent, subnormals, NaN, infinities."""
    generator = torch.Generator().manual_seed(1)
    bits = torch.randint(-(2**31), 2**31, (1_000_000,), generator=generator)
    return bits.to(torch.int32).view(torch.float32)


def in_range():
    """As many of the sizes that matter, spread evenly over exponents from 1e-11 to 1e6."""
    generator = torch.Generator().manual_seed(2)
    sign = torch.randn(1_000_000, generator=generator)
    return sign * 10 ** (torch.rand(1_000_000, generator=generator) * 17 - 11)


@pytest.mark.parametrize("form", CAST, ids=lambda form: form.name)
@pytest.mark.parametrize("numbers", [million, in_range])
def test_equals_the_cast_on_a_million_numbers(form, numbers):
    x = where_the_cast_is_nearest(numbers(), form)
    assert len(x) > 990_000
    assert_same_bits(round_to_format(x, form, overflow=policy(form)), cast(x, form))


def patterns(form):
    """Every bit pattern of a format of 8 or 16 bits, as float32."""
    codes = torch.arange(2**form.bits)
    stored = codes.to(torch.uint8) if form.bits == 8 else codes.to(torch.int32).to(torch.int16)
    return stored.view(getattr(torch, form.torch_dtype)).float()


@pytest.mark.parametrize("form", [f for f in CAST if f.bits <= 16], ids=lambda form: form.name)
def test_every_bit_pattern_and_every_halfway_point(form):
    values = patterns(form)
    decoded = torch.tensor([decode(code, form) for code in range(2**form.bits)])
    assert_same_bits(decoded, values)
    assert_same_bits(round_to_format(values, form), cast(values, form))
    finite = values[values.isfinite()].double().unique()
    middle = ((finite[1:] + finite[:-1]) / 2).float()
    around = [middle, torch.nextafter(middle, middle * 2), torch.nextafter(middle, middle * 0)]
    x = where_the_cast_is_nearest(torch.cat([finite.float(), *around]), form)
    assert_same_bits(round_to_format(x, form, overflow=policy(form)), cast(x, form))


SPECIAL = [0.0, -0.0, math.inf, -math.inf, math.nan, 1e-45, -1e-45, 1e-38, 3.4e38, 448.0, 464.0,
           464.1, 480.0, 57344.0, 61439.0, 61440.0, 65504.0, 65519.0, 65520.0, 2**-24, 2**-25,
           1.5 * 2**-25, 2**-133, 2**-134]  # fmt: skip


@pytest.mark.parametrize("form", CAST, ids=lambda form: form.name)
def test_specials_one_by_one_and_together(form):
    x = torch.tensor(SPECIAL)
    expected = cast(x, form)
    assert_same_bits(round_to_format(x, form, overflow=policy(form)), expected)
    for one, alone in zip(x, expected, strict=True):  # short and long tensors take other kernels
        assert_same_bits(cast(one, form), alone)


@pytest.mark.parametrize("overflow", ["special", "saturate"])
@pytest.mark.parametrize("form", FORMATS.values(), ids=lambda form: form.name)
def test_equals_pure_python(form, overflow):
    generator = torch.Generator().manual_seed(3)
    size = torch.randn(2000, generator=generator) * 4
    x = torch.randn(2000, generator=generator) * 10**size
    x = torch.cat([x, torch.tensor([0.0, math.inf, 0.75, 1.75, 2.5, 3.5, 5.0, 7.25])])
    x = x if form.signed else x.abs()
    expected = torch.tensor([round_nearest(v, form, overflow) for v in x.tolist()])
    assert_same_bits(round_to_format(x, form, overflow=overflow), expected)


def test_nan_is_seen_also_where_the_format_has_none():
    assert round_to_format(torch.tensor([math.nan]), "E2M1").isnan().all()


@pytest.mark.parametrize("form", ["FP16", "BF16", "E4M3", "E5M2", "E2M1"])
@pytest.mark.parametrize("value", [0.3, 1.1, -2.3, 0.0007, 5.3])
def test_stochastic_rounding_is_right_on_average(form, value):
    generator = torch.Generator().manual_seed(4)
    n = 200_000
    x = torch.full((n,), value)
    got = round_to_format(x, form, rounding="stochastic", generator=generator).double()
    exact = float(x[0])
    below, above = got.min().item(), got.max().item()
    nearest = round_nearest(exact, form)
    assert nearest in (below, above) and below <= exact <= above
    assert len(got.unique()) <= 2
    error = abs(got.mean().item() - exact)
    assert error < 5 * (above - below) / 2 / math.sqrt(n) + 1e-12


def test_stochastic_rounding_leaves_what_needs_no_rounding():
    x = patterns(FORMATS["E4M3"])
    x = x[x.isfinite()]
    assert_same_bits(round_to_format(x, "E4M3", rounding="stochastic"), x)


def test_stochastic_rounding_is_repeatable():
    x = torch.randn(1000, generator=torch.Generator().manual_seed(5))
    a, b, c = (
        round_to_format(
            x, "BF16", rounding="stochastic", generator=torch.Generator().manual_seed(s)
        )
        for s in (1, 1, 2)
    )
    assert torch.equal(a, b) and not torch.equal(a, c)


@pytest.mark.parametrize("element", ["E4M3", "E5M2", "E2M1", "E2M3"])
def test_blocks_have_scales_of_their_own(element):
    x = torch.randn(6, 64, generator=torch.Generator().manual_seed(6))
    x[2, 32:] *= 1000
    x[4, :32] = 0
    values, scales = quantize_per_block(x, element, 32)
    assert values.shape == x.shape and scales.shape == (6, 2)
    end = FORMATS[element].max_finite
    for row in range(6):
        for half in range(2):
            part = x[row, 32 * half : 32 * half + 32]
            amax, scale = part.abs().max().item(), scales[row, half].item()
            assert math.log2(scale).is_integer()
            if amax:
                assert end / 2 < amax / scale <= end
            expected = [
                round_nearest(v / scale, element, "saturate") * scale for v in part.tolist()
            ]
            assert values[row, 32 * half : 32 * half + 32].tolist() == expected
    assert values[4, :32].eq(0).all() and scales[4, 0] == 1


def test_a_power_of_two_that_fits_is_taken_whole():
    x = torch.full((1, 32), 448.0)
    assert quantize_per_block(x, "E4M3", 32)[1].item() == 1.0
    assert quantize_per_block(x * 1.01, "E4M3", 32)[1].item() == 2.0


def test_one_scale_for_a_whole_tensor():
    x = torch.randn(4, 10, generator=torch.Generator().manual_seed(7))
    values, scale = quantize_per_block(x, "E4M3", None, power_of_two=False)
    assert values.shape == x.shape and scale.shape == ()
    assert (x.abs().max() / scale).item() == pytest.approx(448)
    assert (values - x).abs().max() <= x.abs().max() / 28


@pytest.mark.parametrize("dim", [None, -1])
def test_int8_is_within_half_a_step(dim):
    x = torch.randn(5, 40, generator=torch.Generator().manual_seed(8))
    x[3] = 0
    q, scale = quantize_int8(x, dim)
    assert q.dtype == torch.int8 and q.abs().max() == 127
    assert scale.numel() == (1 if dim is None else 5)
    assert ((q * scale - x).abs() <= scale / 2 * 1.0001).all()


@pytest.mark.parametrize(
    ("call", "named"),
    [
        (lambda: round_to_format(torch.zeros(2, dtype=torch.float64), "FP16"), "x is"),
        (lambda: round_to_format(torch.zeros(2), "FP17"), "name is 'FP17'"),
        (lambda: round_to_format(torch.zeros(2), "FP16", rounding="up"), "rounding is 'up'"),
        (lambda: round_to_format(torch.zeros(2), "FP16", overflow="wrap"), "overflow is 'wrap'"),
        (lambda: quantize_per_block(torch.zeros(2, 33), "E4M3", 32), "block is 32"),
    ],
)
def test_wrong_arguments_are_named(call, named):
    with pytest.raises(ValueError, match=named):
        call()
