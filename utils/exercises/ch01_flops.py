"""Specifications of chapter 01, FLOPs. Those that count parameters are in _ch01_parameters."""

from __future__ import annotations

from fractions import Fraction

from ._ch01_days import DAYS_EXERCISES
from ._ch01_parameters import COUNT_PARAMETERS, PARAMETER_EXERCISES
from .spec import Exercise, Mistake, Question, Quiz


def _forward(n_layer, d_model, vocab_size, seq_len, batch):
    """The specification, product by product: (rows, inner, columns) of each, 2·m·k·n FLOPs."""
    rows = batch * seq_len
    per_block = [
        (rows, d_model, 3 * d_model),  # q, k, v
        (batch * seq_len, d_model, seq_len),  # scores, all heads together
        (batch * seq_len, seq_len, d_model),  # probabilities times v
        (rows, d_model, d_model),
        (rows, d_model, 4 * d_model),
        (rows, 4 * d_model, d_model),
    ]
    products = n_layer * sum(m * k * n for m, k, n in per_block) + rows * d_model * vocab_size
    return 2 * products


def _attention(n_layer, d_model, seq_len, batch):
    return 4 * n_layer * batch * seq_len**2 * d_model


def _forward_cases(rng):
    return [
        (12, 768, 50257, 1024, 1),
        (48, 1600, 50257, 1024, 8),
        (1, 1, 1, 1, 1),
        (2, 6, 11, 5, 3),
        (96, 12288, 50257, 2048, 1536),
        *(
            (
                rng.integers(1, 100),
                64 * rng.integers(1, 200),
                rng.integers(256, 200_000),
                rng.integers(16, 9000),
                rng.integers(2, 500),
            )
            for _ in range(4)
        ),
    ]


FORWARD_FLOPS = Exercise(
    id="01.forward_flops",
    points=3,
    minutes=10,
    difficulty=2,
    teaches="two FLOPs a weight and token, plus attention, which grows with seq_len squared",
    cases=_forward_cases,
    expect=_forward,
    tolerance=1e-12,
    mistakes=[
        Mistake(
            lambda n_layer, d, vocab, seq, batch: _forward(n_layer, d, vocab, seq, batch) // 2,
            "A multiply-add is two FLOPs. You counted it once.",
        ),
        Mistake(
            lambda n_layer, d, vocab, seq, batch: (
                _forward(n_layer, d, vocab, seq, batch) + 2 * vocab * d * seq * batch
            ),
            "The embedding is counted as a matmul. It is a lookup: a row is copied, nothing is "
            "multiplied. Only the head multiplies that table.",
        ),
        Mistake(
            lambda n_layer, d, vocab, seq, batch: (
                _forward(n_layer, d, vocab, seq, batch) - 2 * vocab * d * seq * batch
            ),
            "The output head is missing. Tied or not, each token is multiplied by it.",
        ),
        Mistake(
            lambda n_layer, d, vocab, seq, batch: (
                _forward(n_layer, d, vocab, seq, batch) - _attention(n_layer, d, seq, batch)
            ),
            "Attention proper is missing: q·k for every pair of tokens, then probabilities "
            "times v. Neither has a weight in it.",
        ),
        Mistake(
            lambda n_layer, d, vocab, seq, batch: (
                _forward(n_layer, d, vocab, seq, batch) - _attention(n_layer, d, seq, batch) // 2
            ),
            "Attention has two products: scores = q @ k, then probabilities @ v. One is missing.",
        ),
        Mistake(
            lambda n_layer, d, vocab, seq, batch: (
                _forward(n_layer, d, vocab, seq, batch)
                + _attention(n_layer, d, seq, batch) * (batch - 1)
            ),
            "Tokens attend within their own sequence. You let all batch·seq_len tokens meet.",
        ),
        Mistake(
            lambda n_layer, d, vocab, seq, batch: (
                _forward(n_layer, d, vocab, seq, batch)
                - _attention(n_layer, d, seq, batch)
                + 2 * n_layer * batch * seq * (seq + 1) * d
            ),
            "You counted only the pairs that a causal mask keeps. Here all seq_len·seq_len pairs "
            "count, as a plain matmul computes them.",
        ),
        Mistake(
            lambda n_layer, d, vocab, seq, batch: (
                2 * COUNT_PARAMETERS.expect(n_layer, d, vocab, seq) * seq * batch
            ),
            "This is 2·N a token with all parameters: a good rule, not the count. Biases, norms "
            "and position rows are not multiplied, and attention is missing.",
        ),
    ],
    hints=[
        "Which matrices multiply each token, and which two products have no weight in them?",
        "2 FLOPs · tokens · (12·n_layer·d² + vocab_size·d), plus for each sequence and block "
        "two products over seq_len² pairs, each 2·seq_len²·d.",
        "2·batch·seq_len·(12·n_layer·d² + vocab_size·d) + 4·n_layer·batch·seq_len²·d",
    ],
)


def _training(n_layer, d_model, vocab_size, seq_len, n_tokens):
    """The specification: three forward passes over as many sequences as n_tokens fill."""
    sequences = Fraction(n_tokens, seq_len)
    return int(3 * _forward(n_layer, d_model, vocab_size, seq_len, 1) * sequences)


def _training_cases(rng):
    return [
        (12, 768, 50257, 1024, 1024),
        (12, 768, 50257, 1024, 1),
        (48, 1600, 50257, 1024, 10**11),
        (1, 1, 1, 1, 1),
        (3, 4, 11, 5, 7),
        *(
            (
                rng.integers(1, 100),
                64 * rng.integers(1, 200),
                rng.integers(256, 200_000),
                rng.integers(16, 9000),
                int(rng.integers(10**6, 10**9)) * 1000,
            )
            for _ in range(4)
        ),
    ]


def _without_attention(n_layer, d_model, vocab_size, seq_len, n_tokens):
    return 6 * (12 * n_layer * d_model**2 + vocab_size * d_model) * n_tokens


TRAINING_FLOPS = Exercise(
    id="01.training_flops",
    points=2,
    minutes=8,
    difficulty=2,
    teaches="the backward pass costs two forward passes, so training costs three",
    cases=_training_cases,
    expect=_training,
    tolerance=1e-12,
    mistakes=[
        Mistake(
            lambda *case: _training(*case) // 3,
            "This is the forward pass only. Training adds a backward pass twice as large.",
        ),
        Mistake(
            lambda *case: _training(*case) * 2 // 3,
            "You took the backward pass for as large as the forward. Each product has two "
            "gradients, one for its input and one for its weight: twice as large.",
        ),
        Mistake(
            lambda *case: _training(*case) // 2,
            "A multiply-add is two FLOPs. You counted it once.",
        ),
        Mistake(
            lambda *case: _training(*case) + 6 * case[1] * case[2] * case[4],
            "The embedding is counted as a matmul. It is a lookup, and only the head multiplies "
            "that table.",
        ),
        Mistake(
            lambda *case: _without_attention(*case),
            "Attention proper is missing. Its two products have a backward pass as well.",
        ),
        Mistake(
            lambda *case: (
                _without_attention(*case) + (_training(*case) - _without_attention(*case)) // 3
            ),
            "Attention is counted forward only. Its backward pass costs twice as much again.",
        ),
        Mistake(
            lambda n_layer, d, vocab, seq, n: (
                _without_attention(n_layer, d, vocab, seq, n) + 12 * n_layer * d * n**2
            ),
            "Your attention spans the whole run. A token meets the seq_len tokens of its own "
            "sequence, not all n_tokens.",
        ),
        Mistake(
            lambda n_layer, d, vocab, seq, n: (
                6 * COUNT_PARAMETERS.expect(n_layer, d, vocab, seq) * n
            ),
            "This is the rule 6·N·D with all parameters. Here the count is exact: weights that "
            "multiply, and attention.",
        ),
    ],
    hints=[
        "How many products does the backward pass need for one product of the forward pass?",
        "Forward FLOPs of one sequence, divided by its tokens, are FLOPs a token. "
        "Training does three times that for each of n_tokens.",
        "3 * forward_flops(n_layer, d_model, vocab_size, seq_len, 1) * n_tokens // seq_len",
    ],
)


def _share(matmul_weights, n_layer, n_head, head_dim, seq_len, causal):
    """The specification: FLOPs of a whole sequence, pair by pair."""
    pairs = sum(range(1, seq_len + 1)) if causal else seq_len * seq_len
    attention = n_layer * n_head * pairs * 2 * (2 * head_dim)
    return Fraction(attention, attention + 2 * matmul_weights * seq_len)


def _share_cases(rng):
    def random(causal):
        return (
            rng.integers(10**6, 10**11), rng.integers(2, 120), rng.integers(2, 128),
            16 * rng.integers(1, 17), rng.integers(100, 100_000), causal,
        )  # fmt: skip

    return [
        (123532032, 12, 12, 64, 1024, False),
        (7504658432, 32, 32, 128, 8192, True),
        (7504658432, 32, 32, 128, 131072, False),
        (1, 1, 1, 1, 1, True),
        (50, 3, 2, 4, 9, True),
        random(True),
        random(False),
        random(True),
    ]


def _ratio(attention_flops, weight_flops):
    return attention_flops / (attention_flops + weight_flops)


def _met(seq_len, causal):
    """Tokens that a token meets on average, itself included."""
    return (seq_len + 1) / 2 if causal else seq_len


ATTENTION_SHARE = Exercise(
    id="01.attention_share",
    points=2,
    minutes=8,
    difficulty=2,
    teaches="attention's share grows with context and shrinks with width",
    cases=_share_cases,
    expect=_share,
    tolerance=1e-9,
    mistakes=[
        Mistake(
            lambda w, n, h, hd, s, causal: 4 * n * h * hd * _met(s, causal) / (2 * w),
            "This is attention over the weights' products. A share divides by both together.",
        ),
        Mistake(
            lambda w, n, h, hd, s, causal: _ratio(4 * n * h * hd * s, 2 * w),
            "The causal mask is ignored: with causal=True a token meets (seq_len + 1) / 2 "
            "tokens on average.",
        ),
        Mistake(
            lambda w, n, h, hd, s, causal: _ratio(4 * n * h * hd * s / (1 + causal), 2 * w),
            "Half of seq_len² leaves out half the diagonal: a token meets itself as well. A causal "
            "mask keeps seq_len·(seq_len + 1) / 2 pairs.",
        ),
        Mistake(
            lambda w, n, h, hd, s, causal: _ratio(2 * n * h * hd * _met(s, causal), 2 * w),
            "Attention has two products, q @ k and probabilities @ v. One is missing.",
        ),
        Mistake(
            lambda w, n, h, hd, s, causal: _ratio(4 * n * h * hd * _met(s, causal), w),
            "A weight costs two FLOPs a token, a multiplication and an addition.",
        ),
        Mistake(
            lambda w, n, h, hd, s, causal: _ratio(4 * n * h * hd * s * _met(s, causal), 2 * w),
            "You compare the attention of a whole sequence with the weights' products of one "
            "token. Count both for the same tokens.",
        ),
        Mistake(
            lambda w, n, h, hd, s, causal: 1 - _ratio(4 * n * h * hd * _met(s, causal), 2 * w),
            "This is the share of the weights' products. Attention's share is the rest.",
        ),
        Mistake(
            lambda w, n, h, hd, s, causal: _ratio(4 * n * hd * _met(s, causal), 2 * w),
            "This is one head. Each block has n_head of them.",
        ),
    ],
    hints=[
        "Take one token. How many FLOPs do the weights cost it? How many tokens does it meet?",
        "Weights: 2·matmul_weights. Attention: 4·head_dim FLOPs for each block, head and token "
        "it meets. It meets seq_len, or with the mask (seq_len + 1)/2 on average.",
        "attention = 4·n_layer·n_head·head_dim·met; attention / (attention + 2·matmul_weights)",
    ],
)

EXERCISES = [*PARAMETER_EXERCISES, FORWARD_FLOPS, TRAINING_FLOPS, ATTENTION_SHARE, *DAYS_EXERCISES]

QUIZ = Quiz(
    "01.recall",
    [
        Question(
            "A GPU product is timed with a clock before and after, and takes 20 microseconds "
            "whatever its size. What went wrong?",
            [
                ("The GPU keeps small products in its cache", "Then the time would still grow."),
                (
                    "Nobody waited for the GPU: the clock timed the launch",
                    "The call returns at once. Synchronise before you read the clock.",
                ),
                (
                    "The first call was timed without a warm-up",
                    "A first call is slower, but its time depends on what it has to set up.",
                ),
            ],
            correct=1,
        ),
        Question(
            "Copying an array of 1 GB takes 50 ms. What is the bandwidth?",
            [
                ("20 GB/s", "The array is read and written: 2 GB crossed the memory's wires."),
                ("50 GB/s", "Bytes divided by seconds; and a copy moves each byte twice."),
                ("40 GB/s", "1 GB read and 1 GB written, in 0.05 s."),
            ],
            correct=2,
        ),
        Question(
            "A data sheet gives the H100 1,979 TFLOP/s in bf16 'with sparsity'. Which peak do you "
            "divide by, to say how well your training uses it?",
            [
                ("1,979 TFLOP/s", "That rate needs half of all weights to be zero."),
                ("989 TFLOP/s", "The dense peak, in the dtype you use."),
                ("67 TFLOP/s", "That is fp32 outside the tensor cores. bf16 runs on them."),
            ],
            correct=1,
        ),
    ],
)
