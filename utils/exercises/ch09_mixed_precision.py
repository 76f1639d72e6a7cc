"""Specifications of chapter 09, number formats. They are in the _ch09 files beside it."""

from __future__ import annotations

from ._ch09_accumulate import ACCUMULATE
from ._ch09_formats import DECODE_FLOAT, ROUND_TO
from ._ch09_int8 import INT8_LINEAR
from ._ch09_recipe import CHOOSE_RECIPE
from ._ch09_scales import AMAX_SCALE, QUANTIZE_BLOCK
from ._ch09_training import LOSS_SCALER, MASTER_WEIGHTS_STEP
from .spec import Question, Quiz

EXERCISES = [
    DECODE_FLOAT,
    ROUND_TO,
    ACCUMULATE,
    LOSS_SCALER,
    MASTER_WEIGHTS_STEP,
    AMAX_SCALE,
    QUANTIZE_BLOCK,
    INT8_LINEAR,
    CHOOSE_RECIPE,
]

QUIZ = Quiz(
    "09.recall",
    [
        Question(
            "Chapter 2: a recipe keeps bf16 weights (2 bytes), bf16 gradients (2), fp32 master "
            "weights (4) and Adam's two averages in fp32 (8). How many bytes a parameter?",
            [
                ("12", "That is without the master weights."),
                ("16", "2 + 2 + 4 + 8. The master copy is the part this chapter asks about."),
                ("4", "That is what the forward and backward pass see, without the optimizer."),
            ],
            correct=1,
        ),
        Question(
            "Chapter 3: training multiplies large matrices, far right of the ridge. What does a "
            "format with half the bits buy there?",
            [
                (
                    "Half the bytes, so half the time",
                    "Right of the ridge bytes are not what you wait for.",
                ),
                ("Nothing", "Matrix units have a higher peak in narrower formats."),
                (
                    "A higher peak of the matrix units",
                    "On an H100 fp8 has twice the peak of bf16. Fewer bytes come on top.",
                ),
            ],
            correct=2,
        ),
        Question(
            "Chapter 0: PyTorch says that a T4 supports bf16. What does that mean?",
            [
                (
                    "It computes, by emulation",
                    "Its capability is 7.5; tensor cores take bf16 from 8.0 on.",
                ),
                ("It has bf16 tensor cores", "Those came with capability 8.0."),
                ("It stores bf16 but cannot compute in it", "It computes, only slowly."),
            ],
            correct=0,
        ),
    ],
)
