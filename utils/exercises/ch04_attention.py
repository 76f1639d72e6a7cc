"""Specifications of chapter 04, attention. They are in the _ch04 files beside it."""

from __future__ import annotations

from ._ch04_attention import ATTENTION
from ._ch04_backward import ATTENTION_BACKWARD
from ._ch04_bytes import HBM_BYTES
from ._ch04_heads import GROUPED_QUERY, MULTI_HEAD
from ._ch04_rope import ROPE
from ._ch04_softmax import ONLINE_SOFTMAX, SOFTMAX
from ._ch04_tiled import TILED_ATTENTION
from .spec import Question, Quiz

EXERCISES = [
    SOFTMAX,
    ATTENTION,
    MULTI_HEAD,
    GROUPED_QUERY,
    ROPE,
    ONLINE_SOFTMAX,
    TILED_ATTENTION,
    HBM_BYTES,
    ATTENTION_BACKWARD,
]

QUIZ = Quiz(
    "04.recall",
    [
        Question(
            "Chapter 1: seq_len doubles and the model stays. How does attention's share of the "
            "FLOPs change while it is small?",
            [
                ("It about doubles", "Its FLOPs per token grow with seq_len, the rest do not."),
                (
                    "It stays",
                    "FLOPs per token of the weights stay; those of attention grow with seq_len.",
                ),
                (
                    "It quadruples",
                    "The FLOPs of a whole sequence do; per token, and so the share, only doubles.",
                ),
            ],
            correct=0,
        ),
        Question(
            "Chapter 2: which activation of a layer grows with the square of seq_len?",
            [
                ("The feed-forward's hidden layer", "It has seq_len rows of d_ff numbers."),
                ("The keys and values", "They have seq_len rows each: linear."),
                (
                    "The attention weights",
                    "Every head stores a number for every pair of positions.",
                ),
            ],
            correct=2,
        ),
        Question(
            "Chapter 3: a kernel is far left of the ridge point. What makes it faster?",
            [
                ("Fewer FLOPs", "The arithmetic units already wait. Fewer FLOPs wait as well."),
                ("Fewer bytes", "Below the ridge the time is the bytes over the bandwidth."),
                ("A dtype with a higher peak", "Only through its smaller size, which is bytes."),
            ],
            correct=1,
        ),
    ],
)
