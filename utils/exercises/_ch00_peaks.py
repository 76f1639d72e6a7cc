"""Specifications of chapter 00: utilisation against the right peak, and native bf16."""

from __future__ import annotations

from fractions import Fraction

from .spec import Exercise, Mistake


def _utilisation(flops_per_s, dtype, peaks):
    """Over the dense tensor rate; half the sparse one where only that is printed; else vector."""
    for label, divisor in (("tensor", 1), ("tensor sparse", 2), ("vector", 1)):
        if f"{dtype} {label}" in peaks:
            return Fraction(flops_per_s) / (Fraction(peaks[f"{dtype} {label}"]) / divisor)
    raise ValueError(f"peaks has no {dtype}")


def _utilisation_cases(rng):
    def sheet(scale, *, dense=True):
        peaks = {"fp32 vector": 67e12, "bf16 vector": 134e12, "tf32 tensor sparse": 989e12}
        if dense:
            peaks |= {"tf32 tensor": 494.5e12, "bf16 tensor": 989e12, "fp8 tensor": 1978e12}
        peaks |= {"bf16 tensor sparse": 1978e12, "fp8 tensor sparse": 3957e12}
        return {label: round(peak * scale) for label, peak in peaks.items()}

    def one(dtype, scale, dense=True):
        peaks = sheet(scale, dense=dense)
        true = float(_utilisation(1, dtype, peaks))
        return round(rng.uniform(0.05, 0.95) / true), dtype, peaks

    def only_vector(dtype):
        peaks = {"fp32 vector": 67e12, "tf32 tensor": 494.5e12, "fp64 vector": 34e12}
        return 20e12, dtype, {label: peak * rng.uniform(0.5, 1) for label, peak in peaks.items()}

    l4 = {"fp32 vector": 30.3e12, "bf16 tensor sparse": 242e12, "fp8 tensor sparse": 485e12}
    t4 = {"fp16 tensor": 65e12, "fp32 vector": 8.1e12, "int8 tensor": 130e12}
    return [
        (400e12, "bf16", sheet(1)),
        (60e12, "bf16", l4),
        (6e12, "fp32", t4),
        *(one(dtype, rng.uniform(0.1, 3)) for dtype in ("bf16", "tf32", "fp8")),
        *(one(dtype, rng.uniform(0.1, 3), dense=False) for dtype in ("bf16", "tf32", "fp8")),
        only_vector("fp64"),
        (68e12, "fp16", t4),  # over 1: a rate or a sheet is wrong, and a cap would hide it
    ]


def _first_of(peaks, *labels):
    return next(peaks[label] for label in [*labels, *peaks] if label in peaks)


def _right(rate, dtype, peaks):
    return float(_utilisation(rate, dtype, peaks))


UTILISATION = Exercise(
    id="00.utilisation",
    points=2,
    minutes=10,
    difficulty=2,
    teaches="a percentage means nothing before you say of which peak",
    cases=_utilisation_cases,
    expect=_utilisation,
    tolerance=1e-9,
    mistakes=[
        # Before the next: it fails on fewer sheets, and there it gives the same.
        Mistake(
            lambda flops_per_s, dtype, peaks: (
                flops_per_s
                / _first_of(peaks, f"{dtype} tensor", f"{dtype} tensor sparse", f"{dtype} vector")
            ),
            "Where the sheet prints only the sparse rate, the dense one is half of it.",
        ),
        Mistake(
            lambda flops_per_s, dtype, peaks: (
                flops_per_s
                / _first_of(peaks, f"{dtype} tensor sparse", f"{dtype} tensor", f"{dtype} vector")
            ),
            "You divided by the sparse peak. It counts multiplications by zeros that are skipped; "
            "the dense peak is half of it.",
        ),
        Mistake(
            lambda flops_per_s, dtype, peaks: (
                flops_per_s
                / _first_of(peaks, f"{dtype} vector", f"{dtype} tensor", f"{dtype} tensor sparse")
            ),
            "You divided by the vector rate. A matrix product runs on the tensor units.",
        ),
        Mistake(
            lambda flops_per_s, dtype, peaks: flops_per_s / peaks["fp32 vector"],
            "You divided by another dtype's peak. The rate was measured in `dtype`.",
        ),
        Mistake(
            lambda flops_per_s, dtype, peaks: flops_per_s / max(peaks.values()),
            "You divided by the largest number on the sheet, in another dtype or sparse. "
            "Take the dense rate of `dtype`.",
        ),
        Mistake(
            lambda flops_per_s, dtype, peaks: 100 * _right(flops_per_s, dtype, peaks),
            "This is in percent. Return the fraction, 0.4 for 40%.",
        ),
        Mistake(
            lambda flops_per_s, dtype, peaks: 1 / _right(flops_per_s, dtype, peaks),
            "This is the peak over the measured rate, the inverse.",
        ),
    ],
    hints=[
        "Which unit did the product run on, and did the measurement skip any zeros?",
        'Look for the key f"{dtype} tensor" first. Without it, half of f"{dtype} tensor sparse". '
        'Without both, f"{dtype} vector".',
        'if f"{dtype} tensor" in peaks: peak = peaks[f"{dtype} tensor"]; '
        'elif f"{dtype} tensor sparse" in peaks: peak = peaks[...] / 2; '
        'else: peak = peaks[f"{dtype} vector"]. Then flops_per_s / peak',
    ],
)


def _native_bf16(vendor, capability, says_supported):
    """NVIDIA's rule, 8.0 or more; no rule for others."""
    if vendor != "NVIDIA":
        return None
    major, minor = capability.split(".")
    return (int(major), int(minor)) >= (8, 0)


def _native_bf16_cases(rng):
    real = [
        ("NVIDIA", "7.5", True),  # T4: emulates
        ("NVIDIA", "8.0", True),  # A100
        ("NVIDIA", "10.0", True),  # B200
        ("NVIDIA", "9.0", True),  # H100
        ("NVIDIA", "6.1", True),  # GTX 1080: emulates
        ("NVIDIA", "7.0", False),  # V100, asked through an older PyTorch
        ("NVIDIA", "8.6", False),  # RTX 3090, the same
        ("AMD", "gfx942", True),
        ("AMD", "9.4", True),  # the same chip, as PyTorch's ROCm build puts it
        ("Intel", "12.55", True),
        ("Apple", "", True),
        ("Google", "", True),
    ]
    more = [("NVIDIA", c) for c in ("7.2", "8.6", "8.7", "8.9", "10.3", "12.0", "12.1")]
    picked = [more[i] for i in rng.permutation(len(more))]
    return real + [(*one, bool(rng.integers(2))) for one in picked]


def _on_nvidia(rule):
    """A mistake about NVIDIA only: other vendors are answered right."""

    def answer(vendor, capability, says_supported):
        return rule(capability, says_supported) if vendor == "NVIDIA" else None

    return answer


NATIVE_BF16 = Exercise(
    id="00.native_bf16",
    points=2,
    minutes=8,
    difficulty=1,
    teaches="supported may mean emulated; the compute capability says what the hardware does",
    cases=_native_bf16_cases,
    expect=_native_bf16,
    tolerance=0,
    mistakes=[
        Mistake(
            _on_nvidia(lambda capability, says_supported: says_supported),
            "is_bf16_supported() also says True where bf16 is emulated, as on a T4. "
            "Ask the compute capability.",
        ),
        Mistake(
            _on_nvidia(lambda capability, _: float(capability) >= 7.0),
            "Capability 7 brought tensor cores, but for fp16 only. bf16 needs 8.0.",
        ),
        Mistake(
            _on_nvidia(lambda capability, _: capability >= "8.0"),
            'You compared texts, and as text "10.0" comes before "8.0". Compare numbers.',
        ),
        Mistake(
            _on_nvidia(lambda capability, _: float(capability) > 8.0),
            "8.0 itself, the A100, has it: 8.0 or more.",
        ),
        Mistake(
            _on_nvidia(lambda capability, _: capability.startswith("8")),
            "Later ones have it too, such as 9.0 and 10.0: 8.0 or more.",
        ),
        Mistake(
            lambda vendor, capability, says_supported: (
                vendor == "NVIDIA" and float(capability) >= 8.0
            ),
            "Other vendors have no compute capability, so this rule says nothing about them. "
            "Return None, which means unknown; False would be a guess.",
        ),
    ],
    hints=[
        "Which of the three arguments describes the hardware, and for which vendor?",
        "Return None unless the vendor is NVIDIA. Else split the capability at the dot and "
        "compare two whole numbers with 8 and 0.",
        'if vendor != "NVIDIA": return None. '
        'Else: major, minor = capability.split("."); (int(major), int(minor)) >= (8, 0)',
    ],
)
