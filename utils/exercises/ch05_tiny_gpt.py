"""Specifications of chapter 05, the tiny GPT. They are in the _ch05 files beside it."""

from __future__ import annotations

from ._ch05_accumulate import ACCUMULATE_GRADIENTS
from ._ch05_block import BLOCK
from ._ch05_data import CROSS_ENTROPY, GET_BATCH
from ._ch05_evidence import FIT_SCALING_LAW, IS_IT_REAL
from ._ch05_gpt import GPT
from ._ch05_train import ADAMW, LR_SCHEDULE
from .spec import Question, Quiz

EXERCISES = [
    GET_BATCH,
    BLOCK,
    GPT,
    CROSS_ENTROPY,
    ADAMW,
    LR_SCHEDULE,
    ACCUMULATE_GRADIENTS,
    IS_IT_REAL,
    FIT_SCALING_LAW,
]

QUIZ = Quiz(
    "05.recall",
    [
        Question(
            "Chapter 1: a dense model has N parameters that take part in matrix products. About "
            "how many FLOPs does training cost for each token?",
            [
                ("2N", "That is the forward pass alone."),
                ("6N", "2N forward, and twice that backward."),
                ("4N", "That is the backward pass alone."),
            ],
            correct=1,
        ),
        Question(
            "Chapter 2: in fp32, how many bytes does AdamW keep for each parameter, beside the "
            "weight and its gradient?",
            [
                ("8", "Two running averages, m and v, of four bytes each."),
                ("4", "There are two averages, m and v."),
                ("16", "That counts the weight and the gradient too."),
            ],
            correct=0,
        ),
        Question(
            "Chapter 4: position 7 of a causal attention. Which keys may it see?",
            [
                ("0 to 6", "It may see itself: its own byte is known, only the next is not."),
                ("All of them", "Then it would see the byte that it is to predict."),
                ("0 to 7", "Those before it, and its own."),
            ],
            correct=2,
        ),
    ],
)
