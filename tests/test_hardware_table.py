"""The table of accelerators: typed, sourced, true to its published figures, and easy to ask."""

import csv
import subprocess
import sys

import pytest

from utils import ROOT
from utils.hardware import accelerator, accelerators, native_on_nvidia
from utils.hardware.table import TABLE, read_table


@pytest.fixture
def edited(tmp_path):
    """A function that changes one field of one row and returns the path of the changed table."""

    def edit(name, column, value):
        with TABLE.open(encoding="utf-8", newline="") as file:
            rows = list(csv.DictReader(file))
        [row] = [row for row in rows if row["name"] == name]
        row[column] = value
        path = tmp_path / "accelerators.csv"
        with path.open("w", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(file, list(rows[0]))
            writer.writeheader()
            writer.writerows(rows)
        return path

    return edit


def test_the_table_is_whole():
    assert len(accelerators()) == 36
    for row in accelerators():
        assert row.source, row.name
        assert row.bytes_per_s and row.memory_bytes, row.name


def test_sources_read_as_public_sources():
    for row in accelerators():
        assert not row.source.startswith((";", ",")), row.name
        assert not row.source.endswith((";", ",")), row.name
        assert ";;" not in row.source, row.name
        assert ".csv" not in row.source + row.notes, row.name
        assert "from memory" not in (row.source + row.notes).lower(), row.name


# Datasheet peaks and bandwidths; the ridge point is their quotient (jax-ml/scaling-book, gpus).
@pytest.mark.parametrize(
    ("name", "dtype", "flop_per_byte"),
    [("A100 80GB SXM", "bf16", 153.0), ("H100 SXM", "bf16", 295.3), ("T4", "fp16", 203.1)],
)
def test_ridge_points(name, dtype, flop_per_byte):
    assert accelerator(name).ridge_point(dtype) == pytest.approx(flop_per_byte, rel=1e-3)


def test_h100_peak_follows_from_its_cores_and_clock():
    """132 SMs, 4 tensor cores each, 512 multiply-adds a cycle (stas00/ml-engineering)."""
    h100 = accelerator("H100 SXM")
    assert (h100.cores, h100.boost_hz) == (132, 1830e6)
    assert h100.cores * 4 * 512 * 2 * h100.boost_hz == pytest.approx(989.43e12, rel=1e-4)
    assert h100.peak("bf16") == pytest.approx(989.43e12, rel=1e-4)


def test_units():
    a100 = accelerator("A100 40GB SXM")
    assert a100.bytes_per_s == 1555e9
    assert a100.memory_bytes == 40e9
    assert a100.onchip_bytes == 40e6
    assert a100.shared_bytes_per_core == 164 * 1024
    assert a100.link_bytes_per_s == 300e9
    assert a100.peak("int8") == 624e12


def test_dense_peaks_not_sparse_ones_and_tensor_rates_not_vector_ones():
    assert accelerator("H100 SXM").peak("fp8") == 1978.9e12  # 3957.8 is sparse
    assert accelerator("L4").peak("fp16") == 121e12  # 242 is sparse
    assert accelerator("RTX 4090").peak("bf16") == 165.2e12  # 82.6 is vector, 330 fp16 accumulate
    assert accelerator("RTX 3090").peak("bf16") == 71.2e12  # 35.6 is vector


@pytest.mark.parametrize(
    ("asked", "found"),
    [
        ("a100 80gb sxm", "A100 80GB SXM"),
        ("A10", "A10"),
        ("A100 80", "A100 80GB SXM"),
        ("4090", "RTX 4090"),
        ("H200", "H200 SXM"),
        ("B200", "B200 SXM (HGX)"),
        ("v5e", "TPU v5e"),
        ("m1", "Apple M1 Max"),
        ("Tesla T4", "T4"),
        ("NVIDIA A100-SXM4-80GB", "A100 80GB SXM"),
        ("NVIDIA H100 80GB HBM3", "H100 SXM"),
        ("NVIDIA H100 PCIe", "H100 PCIe"),
        ("Tesla V100-SXM2-32GB", "V100-SXM2-32GB"),
        ("NVIDIA GeForce RTX 3090", "RTX 3090"),
    ],
)
def test_short_forms_and_what_torch_calls_them(asked, found):
    assert accelerator(asked).name == found


def test_every_name_finds_its_own_row():
    for row in accelerators():
        assert accelerator(row.name.upper()) is row


@pytest.mark.parametrize(
    ("asked", "sentence"),
    [
        ("H100", "fits 2 accelerators. Say which: 'H100 SXM', 'H100 PCIe'"),
        ("A100", "'A100 40GB SXM', 'A100 80GB SXM'"),
        ("H10O", "Near names: .*'H100 SXM'"),
        ("RTX 4091", "Near names: .*'RTX 4090'"),
        ("banana", "It has: T4, "),
        ("", "expected a text"),
        (None, "expected a text"),
    ],
)
def test_a_wrong_name_says_what_to_type(asked, sentence):
    with pytest.raises(ValueError, match=sentence):
        accelerator(asked)


@pytest.mark.parametrize(
    ("name", "dtype", "sentence"),
    [
        ("A100 80GB SXM", "fp8", "the A100 80GB SXM has no native fp8, so no peak"),
        ("T4", "bf16", "the T4 has no native bf16"),
        ("TPU v5e", "fp16", "the table does not know the TPU v5e's fp16 peak"),
        ("T4", "float16", "dtype='float16': expected one of fp32, tf32"),
    ],
)
def test_an_unknown_peak_is_never_a_number(name, dtype, sentence):
    with pytest.raises(ValueError, match=sentence):
        accelerator(name).peak(dtype)


def test_native_means_the_hardware_not_its_emulation():
    assert [accelerator(name).native("bf16") for name in ("T4", "A10", "H100 SXM")] == [
        False,
        True,
        True,
    ]
    assert accelerator("A100 80GB SXM").native("fp8") is False
    assert accelerator("L4").native("fp8") is True
    assert accelerator("T4").native("tf32") is False
    assert accelerator("TPU v5e").native("fp16") is None
    assert native_on_nvidia("bf16", (7, 5)) is False
    assert native_on_nvidia("bf16", "8.0") is True
    assert native_on_nvidia("fp8", (8, 6)) is False
    assert native_on_nvidia("fp8", "8.9") is True
    assert native_on_nvidia("fp8", "12.0") is True
    assert native_on_nvidia("int8", "8.0") is None
    with pytest.raises(ValueError, match="capability='eight'"):
        native_on_nvidia("bf16", "eight")


@pytest.mark.parametrize(
    ("name", "column", "value", "sentence"),
    [
        ("T4", "tdp_w", "seventy", "row 'T4', column tdp_w: 'seventy' is not a positive number"),
        ("T4", "fp16_tflops", "-65", "fp16_tflops: '-65' is not a positive"),
        ("T4", "fp16_tflops", "0", "fp16_tflops: '0' is not a positive"),
        ("T4", "fp16_tflops", "nan", "fp16_tflops: 'nan' is not a positive"),
        ("T4", "native_bf16", "yes", "is not what the compute capability says"),
        ("T4", "native_bf16", "maybe", "is not one of 'yes', 'no', ''"),
        ("T4", "capability", "Turing", "is not a compute capability"),
        ("T4", "source", "", "column source"),
        ("T4", "status", "sure", "column status"),
        ("T4", "less_certain", "link_speed", "column less_certain"),
        ("T4", "year", "18", "column year"),
        ("T4", "name", "l4", "appear twice: l4"),
        ("MI300X", "native_fp8", "no", "for a row with a fp8 peak"),
    ],
)
def test_a_wrong_field_is_named(edited, name, column, value, sentence):
    with pytest.raises(ValueError, match=sentence):
        read_table(edited(name, column, value))


def test_an_empty_field_is_unknown(edited):
    rows = {row.name: row for row in read_table(edited("T4", "memory_gb_per_s", ""))}
    assert rows["T4"].bytes_per_s is None
    with pytest.raises(ValueError, match="does not know the T4's memory bandwidth"):
        rows["T4"].ridge_point("fp16")


def test_a_missing_column_is_named(tmp_path):
    text = TABLE.read_text(encoding="utf-8").replace(",source,", ",origin,", 1)
    path = tmp_path / "accelerators.csv"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ValueError, match="columns missing or unknown: origin, source"):
        read_table(path)


def test_the_lookup_loads_no_torch_and_no_numpy():
    code = (
        "import sys; from utils.hardware import accelerator; accelerator('T4'); "
        "print([m for m in ('torch', 'numpy') if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=True
    )
    assert done.stdout.strip() == "[]"
