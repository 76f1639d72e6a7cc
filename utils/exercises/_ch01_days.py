"""Specifications of chapter 01 that turn FLOPs into days, and throughput into MFU."""

from __future__ import annotations

from fractions import Fraction

from utils.arithmetic import palm_mfu

from .spec import Exercise, Mistake


def _days(flops, n_gpu, peak_flops_per_s, mfu):
    """The specification, in exact fractions."""
    rate = Fraction(n_gpu) * Fraction(peak_flops_per_s) * Fraction(mfu)
    return Fraction(flops) / rate / (24 * 60 * 60)


DAYS_TO_TRAIN = Exercise(
    id="01.days_to_train",
    points=1,
    minutes=5,
    difficulty=1,
    teaches="days are FLOPs over the rate that is reached, not over the peak",
    cases=lambda rng: [
        (9e20, 8, 989.4e12, 0.4),
        (3.8e25, 16384, 989.4e12, 0.41),
        (1e15, 1, 1e12, 0.5),
        *(
            (
                10 ** rng.uniform(17, 26),
                rng.integers(2, 20_000),
                10 ** rng.uniform(12, 15.5),
                rng.uniform(0.05, 0.7),
            )
            for _ in range(5)
        ),
    ],
    expect=_days,
    tolerance=1e-9,
    mistakes=[
        Mistake(
            lambda flops, n_gpu, peak, mfu: flops / (n_gpu * peak) / 86400,
            "These are the days at the full peak. A run reaches the share mfu of it.",
        ),
        Mistake(
            lambda flops, n_gpu, peak, mfu: flops / (n_gpu * peak) * mfu / 86400,
            "A lower MFU must take longer. mfu multiplies the rate, so it divides the time.",
        ),
        Mistake(
            lambda flops, n_gpu, peak, mfu: flops / (n_gpu * peak * mfu) / 3600,
            "These are hours. A day has 86,400 seconds.",
        ),
        Mistake(
            lambda flops, n_gpu, peak, mfu: flops / (n_gpu * peak * mfu),
            "These are seconds. A day has 86,400 of them.",
        ),
        Mistake(
            lambda flops, n_gpu, peak, mfu: flops / (peak * mfu) / 86400,
            "This is one GPU. peak_flops_per_s is that of one, and n_gpu share the work.",
        ),
    ],
    hints=[
        "How many FLOPs does the whole cluster really do in a second?",
        "Rate: n_gpu times the peak of one, times the share mfu. Days: FLOPs over rate, over "
        "the seconds in a day.",
        "flops / (n_gpu * peak_flops_per_s * mfu) / 86400",
    ],
)


def _mfu(tokens_per_s, n_params, n_layer, n_head, head_dim, seq_len, peak_flops_per_s, n_gpu):
    """The specification: utils.arithmetic, by PaLM's convention."""
    return palm_mfu(
        n_params, n_layer, n_head, head_dim, seq_len, tokens_per_s, peak_flops_per_s, n_gpu
    )


def _mfu_with(per_weight, per_pair, cards=True):
    """A wrong MFU: other FLOPs a weight, other FLOPs a pair, or the peak of one card."""

    def answer(tokens_per_s, n_params, n_layer, n_head, head_dim, seq_len, peak, n_gpu):
        pairs = n_layer * n_head * head_dim * seq_len
        per_token = per_weight * n_params + per_pair * pairs
        return tokens_per_s * per_token / (peak * (n_gpu if cards else 1))

    return answer


MFU_FROM_THROUGHPUT = Exercise(
    id="01.mfu_from_throughput",
    points=2,
    minutes=6,
    difficulty=2,
    teaches="MFU is tokens a second times FLOPs a token, over all cards' peak",
    cases=lambda rng: [
        (238300, 540.35e9, 118, 48, 256, 2048, 275e12, 6144),
        (10_000, 8030261248, 32, 32, 128, 8192, 989.4e12, 2),
        (1.5, 3, 1, 1, 1, 1, 1e3, 4),
        (150_000, 8030261248, 32, 32, 128, 8192, 989.4e12, 8),  # over 1: a figure is wrong
        *(
            (
                10 ** rng.uniform(3, 6),
                int(10 ** rng.uniform(8, 11)),
                rng.integers(2, 120),
                rng.integers(2, 128),
                16 * rng.integers(1, 17),
                rng.integers(256, 16_000),
                10 ** rng.uniform(13, 15.5),
                rng.integers(2, 9000),
            )
            for _ in range(5)
        ),
    ],
    expect=_mfu,
    tolerance=1e-9,
    mistakes=[
        Mistake(
            _mfu_with(6, 0),
            "The attention term is missing: 12·n_layer·n_head·head_dim·seq_len FLOPs a token.",
        ),
        Mistake(
            _mfu_with(2, 4),
            "This counts the forward pass only. Training does three times as much.",
        ),
        Mistake(
            _mfu_with(6, 4),
            "Attention is counted forward only, the weights forward and backward. Both train: "
            "12 FLOPs a pair, not 4.",
        ),
        Mistake(
            _mfu_with(6, 6),
            "Attention has two products, so 2·2·3 = 12 FLOPs for each pair and channel.",
        ),
        Mistake(
            _mfu_with(8, 16),
            "You counted recomputation: four passes instead of three. That is HFU. MFU counts "
            "what the model needs.",
        ),
        Mistake(
            _mfu_with(6, 12, cards=False),
            "tokens_per_s is that of all cards together, so divide by the peak of all n_gpu.",
        ),
        Mistake(
            lambda *case: 100 * _mfu(*case),
            "This is in per cent. Return a share: 0.46, not 46.",
        ),
        Mistake(
            lambda *case: 1 / _mfu(*case),
            "This is upside down: the FLOPs that the model needs go above the peak.",
        ),
    ],
    hints=[
        "How many FLOPs does one token cost in training, attention included?",
        "6·n_params for the weights, 12·n_layer·n_head·head_dim·seq_len for attention. "
        "Times tokens a second, that is a rate. Divide by the peak of all cards.",
        "tokens_per_s * (6·n_params + 12·n_layer·n_head·head_dim·seq_len) "
        "/ (n_gpu * peak_flops_per_s)",
    ],
)

DAYS_EXERCISES = [DAYS_TO_TRAIN, MFU_FROM_THROUGHPUT]
