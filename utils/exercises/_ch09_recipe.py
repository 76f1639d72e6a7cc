"""Chapter 09's decision: which formats for this card."""

from __future__ import annotations

import csv

from utils.hardware.table import TABLE

from .spec import Exercise, Mistake


def _row(name):
    with open(TABLE, encoding="utf-8", newline="") as file:
        return next(row for row in csv.DictReader(file) if row["name"] == name)


def _choose(
    name, fp8_is_fine, *, bf16="native_bf16", fp8="native_fp8", ask=True, half=True, yes=("yes",)
):
    """From the table's columns. The options are for the mistakes."""
    row = _row(name)
    if fp8 and row[fp8] in yes and (fp8_is_fine or not ask):
        return {"products": "fp8", "scaling": "tensor"}
    if bf16 == "all" or row[bf16] in yes:
        return {"products": "bf16", "scaling": "none"}
    if half and row["fp16_tflops"]:
        return {"products": "fp16", "scaling": "loss"}
    return {"products": "fp32", "scaling": "none"}


def _expect(name, fp8_is_fine):
    return _choose(name, fp8_is_fine)


def _scaling(**changed):
    """The right products with another scaling."""

    def answer(name, fp8_is_fine):
        right = _choose(name, fp8_is_fine)
        return right | {"scaling": changed.get(right["products"], right["scaling"])}

    return answer


def _emulated(name, fp8_is_fine):
    """What torch.cuda.is_bf16_supported() says: yes on every NVIDIA card."""
    nvidia = _row(name)["vendor"] == "NVIDIA"
    return _choose(name, fp8_is_fine, bf16="all" if nvidia else "native_bf16")


CARDS = ("A10G", "L4", "RTX 4090", "A100 80GB SXM", "H200 SXM", "MI300X", "MI250X", "TPU v5e")

CHOOSE_RECIPE = Exercise(
    id="09.choose_recipe",
    points=2,
    minutes=8,
    difficulty=2,
    teaches="native formats decide, fp16 brings loss scaling, fp8 brings a scale a tensor",
    cases=lambda rng: [
        ("T4", False),
        ("T4", True),
        ("V100-SXM2-32GB", True),
        ("RTX 3090", True),
        ("A100 40GB SXM", True),
        ("H100 SXM", True),
        ("H100 SXM", False),
        ("Apple M1 Max", True),
        ("Cerebras WSE-2", False),
        ("MI300X", True),
        ("Apple M3 Max 40c", True),
        *((name, bool(rng.integers(0, 2))) for name in CARDS),
    ],
    expect=_expect,
    tolerance=0,
    mistakes=[
        Mistake(
            _emulated,
            "The T4 and the V100 only emulate bf16, though PyTorch says that it is supported. "
            "Native means capability 8.0 or more.",
        ),
        Mistake(
            lambda name, fp8_is_fine: _choose(name, fp8_is_fine, fp8="native_bf16"),
            "bf16 tensor cores came with capability 8.0, fp8 only with 8.9: an A100 has none.",
        ),
        Mistake(
            lambda name, fp8_is_fine: _choose(name, fp8_is_fine, yes=("yes", "")),
            "None means that the table does not know. Count it as no.",
        ),
        Mistake(
            lambda name, fp8_is_fine: _choose(name, fp8_is_fine, ask=False),
            "The card can do fp8, but this model may not: look at fp8_is_fine.",
        ),
        Mistake(
            lambda name, fp8_is_fine: _choose(name, fp8_is_fine, fp8=None),
            "Where fp8 is native and fine, it has twice the peak of bf16.",
        ),
        Mistake(
            _scaling(fp16="none"),
            "fp16 needs loss scaling: its smallest number is 6e-8, and gradients are smaller.",
        ),
        Mistake(
            _scaling(bf16="loss"),
            "bf16 has the exponents of fp32. It needs no loss scaling.",
        ),
        Mistake(
            lambda name, fp8_is_fine: _choose(name, fp8_is_fine, half=False),
            "Without bf16 there is still fp16, many times faster than fp32 on matrix units.",
        ),
    ],
    hints=[
        "Which method of a card tells native from emulated?",
        'card = accelerator(name); ask card.native("fp8") and fp8_is_fine, then '
        'card.native("bf16"), then card.native("fp16"). None means unknown: treat it as no.',
        'if card.native("fp8") and fp8_is_fine: fp8 with "tensor"; elif card.native("bf16"): bf16 '
        'with "none"; elif card.native("fp16"): fp16 with "loss"; else fp32 with "none"',
    ],
)
