"""utils.arithmetic.formats against the published tables of number and block formats."""

import csv
import itertools
import json
import math
import struct
from fractions import Fraction
from pathlib import Path

import pytest

from utils.arithmetic.formats import (
    BLOCK_FORMATS,
    FORMATS,
    BlockFormat,
    Format,
    block_format,
    decode,
    encode,
    neighbours,
    number_format,
    round_nearest,
)  # fmt: skip

DATA = Path(__file__).parent / "data"


def read(name):
    with open(DATA / name, encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


OURS = {
    "E4M3 (fn, OCP)": "E4M3",
    "E4M3 IEEE-like": "E4M3 IEEE",
    "E4M3 fnuz (AMD)": "E4M3 FNUZ",
    "E2M1 (FP4)": "E2M1",
    "E2M3 (FP6)": "E2M3",
    "E3M2 (FP6)": "E3M2",
    "E8M0 (scale)": "E8M0",
    "FP8 per-tensor": "FP8 per tensor",
    "DeepSeek-V3 FP8": "DeepSeek-V3 FP8 weights",
}
NARROW = [form for form in FORMATS.values() if form.bits <= 8]
HALVES = [form for form in FORMATS.values() if form.bits <= 16]


@pytest.mark.parametrize("row", read("number_formats.csv"), ids=lambda row: row["format"])
def test_every_row_of_the_table(row):
    form = FORMATS[OURS.get(row["format"], row["format"])]
    for column in ("bits", "exp_bits", "man_bits", "bias"):
        assert getattr(form, column) == int(row[column])
    assert form.max_finite == float(row["max_finite"])
    assert form.min_normal == float(row["min_normal"])
    if row["min_subnormal"]:  # E8M0 has none, and no step above 1 either
        assert form.min_subnormal == float(row["min_subnormal"])
        assert form.eps == float(row["machine_eps (ulp of 1)"])
    assert form.has_infinity == (row["infinities"] == "yes")


def test_the_table_has_every_format():
    rows = {OURS.get(row["format"], row["format"]) for row in read("number_formats.csv")}
    assert rows == set(FORMATS)


@pytest.mark.parametrize("row", read("block_formats.csv"), ids=lambda row: row["format"])
def test_every_row_of_the_block_table(row):
    form = BLOCK_FORMATS[OURS.get(row["format"], row["format"])]
    assert form.bits_per_value == pytest.approx(float(row["bits_per_value"]), abs=5e-4)
    assert all(element in row["element"] for element in form.element)
    if row["block"].isdigit():
        assert form.block == int(row["block"])


def test_an_activation_scale_of_128_values_costs_a_quarter_bit():
    assert BLOCK_FORMATS["DeepSeek-V3 FP8 activations"].bits_per_value == 8.25


def published(id):
    return next(row for row in read("cases.csv") if row["id"] == id)


def test_published_cases():
    answers = {
        "N-e4m3max": FORMATS["E4M3"].max_finite,
        "N-e5m2max": FORMATS["E5M2"].max_finite,
        "N-fp16sub": FORMATS["FP16"].min_subnormal,
        "N-cast-E4M3-0.3952": round_nearest(0.3952, "E4M3"),
        "N-bits-MXFP4": BLOCK_FORMATS["MXFP4"].bits_per_value,
    }
    rows = {row["id"] for row in read("cases.csv") if row["topic"] == "formats"}
    assert rows == set(answers)
    for id, answer in answers.items():
        assert answer == float(published(id)["expected"])
    assert json.loads(published("N-cast-E4M3-0.3952")["input_json"])["x"] == 0.3952


def test_published_facts_that_can_be_computed():
    facts = {row["fact"]: row["value"] for row in read("mixed_precision_facts.csv")}
    assert "BF16: 256 + 1 = 256" in facts and round_nearest(256 + 1, "BF16") == 256
    assert "FP16: 2048 + 1 = 2048" in facts and round_nearest(2048 + 1, "FP16") == 2048
    assert "Weight update vanishes if w/update >= 2048" in facts
    for weight in (1.0, 0.25, 8.0):
        assert round_nearest(weight + weight / 2048, "FP16") == weight
        assert round_nearest(weight + weight / 2047, "FP16") > weight
    shift = facts["Multibox SSD activation gradients (NVIDIA mixed-precision guide)"]
    assert "scale by 8 (3 exponent steps)" in shift and 2**3 == 8


def exact(code, form):
    """What a code stands for, from its digits as text. None: no number."""
    digits = f"{code:0{form.bits}b}"
    sign, rest = (digits[0], digits[1:]) if form.signed else ("0", digits)
    exponent, mantissa = rest[: form.exp_bits], rest[form.exp_bits :]
    if form.specials == "ieee" and "0" not in exponent:
        return None
    if form.specials in ("nan", "scale") and "0" not in rest:
        return None
    if form.specials == "nan at -0" and sign == "1" and "1" not in rest:
        return None
    hidden = "1" if "1" in exponent or form.specials == "scale" else "0"
    power = int(exponent, 2) - form.bias
    power += hidden == "0"
    value = Fraction(int(hidden + mantissa, 2), 2**form.man_bits) * Fraction(2) ** power
    return -value if sign == "1" else value


@pytest.mark.parametrize("form", HALVES, ids=lambda form: form.name)
def test_every_code_of_every_format_up_to_16_bits(form):
    numbers = 0
    for code in range(2**form.bits):
        value, expected = decode(code, form), exact(code, form)
        if expected is None:
            assert math.isnan(value) or math.isinf(value)
            assert form.has_nan
        else:
            assert value == float(expected)
            assert encode(value, form) == code
            numbers += 1
    assert numbers > 2 ** (form.bits - 1) - 2


@pytest.mark.parametrize("form", NARROW, ids=lambda form: form.name)
def test_rounding_takes_the_nearest_and_ties_to_even(form):
    codes = [code for code in range(2**form.bits) if exact(code, form) is not None]
    values = sorted({exact(code, form) for code in codes})
    last = {exact(code, form): code % 2 for code in codes}
    last[Fraction(0)] = 0
    for low, high in itertools.pairwise(values):
        middle = (low + high) / 2
        for share in (Fraction(1, 8), Fraction(3, 8), Fraction(5, 8), Fraction(7, 8)):
            value = low + (high - low) * share
            nearest = low if share < Fraction(1, 2) else high
            assert round_nearest(float(value), form) == nearest
        if form.man_bits:
            assert round_nearest(float(middle), form) == (high if last[low] else low)
        else:
            assert round_nearest(float(middle), form) == high  # 1.1 in binary: away from odd 1


def test_float32_equals_the_machine():
    for value in (0.1, 1e-40, 3.4e38, -2.7e-45, 123456789.0, 1.4e-46):
        stored = struct.unpack("<f", struct.pack("<f", value))[0]
        assert round_nearest(value, "FP32") == stored
        assert encode(value, "FP32") == struct.unpack("<I", struct.pack("<f", value))[0]


def test_overflow_policies():
    assert round_nearest(65519, "FP16") == 65504  # still nearer to 65504 than to 65536
    assert round_nearest(65520, "FP16") == math.inf
    assert round_nearest(-65520, "FP16", "saturate") == -65504
    assert round_nearest(464, "E4M3") == 448
    assert math.isnan(round_nearest(465, "E4M3")) and math.isnan(round_nearest(math.inf, "E4M3"))
    assert round_nearest(465, "E4M3", "saturate") == 448
    assert round_nearest(-math.inf, "E5M2") == -math.inf
    assert round_nearest(-math.inf, "E5M2", "saturate") == -57344
    assert round_nearest(1e9, "E2M1") == 6  # it has neither infinity nor NaN


def test_zeros_keep_their_sign_where_there_is_one():
    assert math.copysign(1, round_nearest(-1e-9, "FP16")) == -1
    assert math.copysign(1, round_nearest(-1e-9, "E4M3 FNUZ")) == 1
    assert encode(-0.0, "BF16") == 0x8000 and encode(0.0, "BF16") == 0


def test_neighbours_are_the_codes_beside():
    for form in NARROW:
        codes = [code for code in range(2**form.bits) if exact(code, form) is not None]
        values = sorted({float(exact(code, form)) for code in codes})
        for code in codes:
            at = values.index(decode(code, form))
            below = values[at - 1] if at else None
            above = values[at + 1] if at + 1 < len(values) else None
            assert neighbours(code, form) == (below, above)
    assert neighbours(encode(math.inf, "FP16"), "FP16") == (None, None)


@pytest.mark.parametrize(
    ("call", "named"),
    [
        (lambda: decode(256, "E4M3"), "code is 256"),
        (lambda: decode(-1, "E4M3"), "code is -1"),
        (lambda: round_nearest(math.nan, "E2M1"), "value is nan"),
        (lambda: round_nearest(-1.0, "E8M0"), "value is -1.0"),
        (lambda: round_nearest(1.0, "E4M3", "wrap"), "overflow is 'wrap'"),
        (lambda: number_format("E4M4"), "name is 'E4M4'"),
        (lambda: block_format("MXFP5"), "name is 'MXFP5'"),
        (lambda: Format("odd", 0, 3, 7), "exp_bits is 0"),
        (lambda: Format("odd", 4, 3, 7, "some"), "specials is 'some'"),
    ],
)
def test_wrong_arguments_are_named(call, named):
    with pytest.raises(ValueError, match=named):
        call()


def test_formats_of_your_own():
    assert Format("E5M10", 5, 10, 15).max_finite == 65504
    assert BlockFormat("own", ("E2M1",), 64, "FP32").bits_per_value == 4.5
