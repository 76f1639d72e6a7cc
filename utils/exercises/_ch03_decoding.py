"""Specifications of chapter 03 on decoding: attention, MBU, tokens per second, latency."""

from __future__ import annotations

import math
from fractions import Fraction

from .spec import Exercise, Mistake


def _decode_attention(n_head, n_kv_head, head_dim, seq_len, batch, bytes_per_element):
    """Count one sequence head by head, then all of them."""
    flops = elements = 0
    for _ in range(n_head):
        flops += 2 * head_dim * seq_len + 2 * seq_len * head_dim
        elements += 2 * head_dim
    for _ in range(n_kv_head):
        elements += 2 * seq_len * head_dim
    return Fraction(batch * flops, batch * elements * bytes_per_element)


def _attention_like(flops=4, cache=lambda h, g, b: 2 * g, rows=2, times=lambda b: 1):
    """An answer from FLOPs a head and position, cache rows a position, rows a head, a factor."""

    def answer(h, g, d, s, b, size):
        return flops * h * s * d * times(b) / ((cache(h, g, b) * s + rows * h) * d * size)

    return answer


DECODE_ATTENTION_INTENSITY = Exercise(
    id="03.decode_attention_intensity",
    points=3,
    minutes=8,
    difficulty=3,
    teaches="a batch does not help attention in decoding, sharing heads does",
    cases=lambda rng: [
        (32, 32, 128, 2048, 1, 2),
        (64, 8, 128, 4096, 16, 2),
        (8, 1, 64, 1, 3, 4),
        (1, 1, 1, 1, 1, 1),
        *(
            (groups * shared, groups, 2 * half, seq_len, batch, size)
            for groups, shared, half, seq_len, batch, size in zip(
                rng.integers(1, 9, 5),
                rng.integers(2, 9, 5),
                rng.integers(8, 100, 5),
                rng.integers(2, 3000, 5),
                rng.integers(2, 65, 5),
                rng.choice([1, 2, 4], 5),
                strict=True,
            )
        ),
    ],
    expect=_decode_attention,
    tolerance=1e-9,
    mistakes=[
        Mistake(
            _attention_like(times=lambda b: b),
            "Every sequence has a cache of its own: a batch multiplies the bytes as it does the "
            "FLOPs, and cancels.",
        ),
        Mistake(
            _attention_like(cache=lambda h, g, b: g),
            "The cache holds keys and values: two elements for each head, position and width.",
        ),
        Mistake(
            _attention_like(cache=lambda h, g, b: 2 * h),
            "Grouped heads share their keys and values: the cache has n_kv_head heads, not n_head.",
        ),
        Mistake(
            _attention_like(flops=2),
            "There are two products, queries with keys and weights with values, and a multiply-add "
            "is two FLOPs: 4·n_head·seq_len·head_dim a sequence.",
        ),
        Mistake(
            _attention_like(rows=0),
            "The query is read and the output written: 2·n_head·head_dim elements a sequence.",
        ),
    ],
    hints=[
        "Which tensors does one new token's attention read, and which of them do heads or "
        "sequences share?",
        "One sequence does 4·n_head·seq_len·head_dim FLOPs. It reads keys and values of n_kv_head "
        "heads and one query row for each of n_head heads, and writes as many output rows.",
        "(4·n_head·seq_len) / ((2·n_kv_head·seq_len + 2·n_head) · bytes_per_element)",
    ],
)


def _mbu(weight_bytes, kv_bytes, seconds_per_token, peak_bytes_per_s, n_gpu):
    moved = Fraction(weight_bytes) + Fraction(kv_bytes)
    could_move = Fraction(seconds_per_token) * Fraction(peak_bytes_per_s) * n_gpu
    return moved / could_move


MBU = Exercise(
    id="03.mbu",
    points=1,
    minutes=5,
    difficulty=1,
    teaches="the share of a named bandwidth that decoding really uses",
    cases=lambda rng: [
        (14e9, 0, 0.014, 2e12, 1),
        (70e9, 0, 0.030, 2.039e12, 8),
        (70e9, 20e9, 1 / 30, 2.039e12, 8),
        (140e9, 0, 0.02, 3.35e12, 2),  # over 1: a figure is wrong, and a cap would hide it
        (1.0, 0.5, 4.0, 1.0, 1),
        *(
            (*(float(x) for x in values), int(n_gpu))
            for *values, n_gpu in zip(
                rng.uniform(1e9, 2e11, 4),
                rng.uniform(1e8, 5e10, 4),
                rng.uniform(0.005, 0.2, 4),
                rng.uniform(3e11, 8e12, 4),
                rng.integers(2, 17, 4),
                strict=True,
            )
        ),
    ],
    expect=_mbu,
    tolerance=1e-9,
    mistakes=[
        Mistake(
            lambda w, kv, s, peak, n: (w + kv) / s / peak,
            "n_gpu GPUs have n_gpu times the bandwidth.",
        ),
        Mistake(
            lambda w, kv, s, peak, n: w / s / (peak * n),
            "The KV cache is read for each token too.",
        ),
        Mistake(
            lambda w, kv, s, peak, n: 100 * (w + kv) / s / (peak * n),
            "Return a share from 0 to 1, not per cent.",
        ),
        Mistake(
            lambda w, kv, s, peak, n: (w + kv) * s / (peak * n),
            "seconds_per_token is a time: divide the bytes by it to get bytes per second.",
        ),
        Mistake(
            lambda w, kv, s, peak, n: s * peak * n / (w + kv),
            "This is what could be moved over what is moved, the inverse.",
        ),
    ],
    hints=[
        "How many bytes a second does the model really read?",
        "It reads weight_bytes + kv_bytes every seconds_per_token. All GPUs together could read "
        "n_gpu times the peak of one.",
        "(weight_bytes + kv_bytes) / seconds_per_token / (peak_bytes_per_s · n_gpu)",
    ],
)


def _tokens_bound(
    weight_bytes, kv_bytes_per_sequence, flops_per_token, batch, peak_flops_per_s, bytes_per_s
):
    """Tokens a second of a batch: whichever of two rates is lower."""
    step_bytes = Fraction(weight_bytes) + batch * Fraction(kv_bytes_per_sequence)
    fed = batch * Fraction(bytes_per_s) / step_bytes
    done = Fraction(peak_flops_per_s) / Fraction(flops_per_token)
    return min(fed, done)


TOKENS_PER_SECOND_BOUND = Exercise(
    id="03.tokens_per_second_bound",
    points=2,
    minutes=7,
    difficulty=2,
    teaches="a batch shares the weights, not the caches, and arithmetic is the last ceiling",
    cases=lambda rng: [
        (70e9, 0, 140e9, 1, 989.4e12, 3.35e12),
        (16e9, 0.5e9, 16e9, 32, 312e12, 2.039e12),
        (16e9, 1e6, 16e9, 4096, 312e12, 2.039e12),
        (1e9, 1e6, 2e10, 4, 1e11, 1e12),
        *(
            (float(w), float(kv), float(2 * w), int(batch), float(peak), 3.35e12)
            for w, kv, batch, peak in zip(
                rng.uniform(1e9, 2e11, 4),
                rng.uniform(1e7, 3e9, 4),
                rng.integers(2, 200, 4),
                rng.uniform(1e14, 1e15, 4),
                strict=True,
            )
        ),
    ],
    expect=_tokens_bound,
    tolerance=1e-9,
    mistakes=[
        Mistake(
            lambda w, kv, f, b, peak, slope: b / max((w + kv) / slope, b * f / peak),
            "Each sequence brings its own cache: batch times kv_bytes_per_sequence.",
        ),
        Mistake(
            lambda w, kv, f, b, peak, slope: b / max(b * (w + kv) / slope, b * f / peak),
            "One step reads the weights once, for the whole batch.",
        ),
        Mistake(
            lambda w, kv, f, b, peak, slope: 1 / max((w + b * kv) / slope, b * f / peak),
            "This is the rate of one sequence. A step gives batch tokens.",
        ),
        Mistake(
            lambda w, kv, f, b, peak, slope: b / ((w + b * kv) / slope),
            "Arithmetic has a limit too: no more than peak / flops_per_token tokens a second.",
        ),
        Mistake(
            lambda w, kv, f, b, peak, slope: b / max((w + b * kv) / slope, f / peak),
            "Every token of the batch needs its FLOPs: batch times flops_per_token a step.",
        ),
        Mistake(
            lambda w, kv, f, b, peak, slope: b / ((w + b * kv) / slope + b * f / peak),
            "You added the two times. They overlap: the longer one is the bound.",
        ),
    ],
    hints=[
        "How long does one step take, that gives every sequence one token?",
        "Bytes of a step: the weights once, a cache for each sequence. FLOPs of a step: batch "
        "tokens. The longer time counts.",
        "batch / max((weight_bytes + batch·kv)/bytes_per_s, batch·flops_per_token/peak)",
    ],
)


def _gpus(weight_bytes, kv_bytes, seconds_per_token, bytes_per_s, memory_bytes, utilisation):
    """Add GPUs one by one until the model fits and the token comes in time."""
    held = Fraction(weight_bytes) + Fraction(kv_bytes)
    in_time = Fraction(seconds_per_token) * Fraction(bytes_per_s) * Fraction(utilisation)
    n_gpu = 1
    while held > n_gpu * Fraction(memory_bytes) or held > n_gpu * in_time:
        n_gpu += 1
    return n_gpu


def _gpus_like(held=lambda w, kv: w + kv, rate=lambda s, slope, u: s * slope * u, whole=math.ceil):
    def answer(w, kv, s, slope, memory, u):
        return max(1, whole(held(w, kv) / rate(s, slope, u)), whole(held(w, kv) / memory))

    return answer


GPUS_FOR_LATENCY = Exercise(
    id="03.gpus_for_latency",
    points=2,
    minutes=7,
    difficulty=2,
    teaches="latency asks for bandwidth, size asks for memory, utilisation decides the bill",
    cases=lambda rng: [
        (70e9, 0, 0.030, 2.039e12, 80e9, 0.15),
        (70e9, 0, 0.030, 2.039e12, 80e9, 0.6),
        (2**36, 0, 0.5, 2**35, 2**37, 0.5),
        (405e9, 60e9, 0.5, 3.35e12, 80e9, 0.7),
        (0.3e9, 0, 0.05, 3.2e11, 16e9, 0.5),
        (100e9, 45e9, 0.01, 3.35e12, 141e9, 0.5),
        (16e9, 6e9, 0.02, 1e12, 80e9, 0.5),  # 2.2 cards in time, so 3
        (60e9, 16e9, 0.5, 1e12, 24e9, 0.8),  # 3.2 cards hold it, so 4
        (150e9, 100e9, 0.5, 3.35e12, 80e9, 0.7),  # the cache alone asks for the fourth
        (12e9, 12e9, 0.02, 1e12, 80e9, 0.5),  # one half card each: 3 together, not 2 and 2
        *(
            tuple(float(x) for x in values)
            for values in zip(
                rng.uniform(1e10, 4e11, 4),
                rng.uniform(1e9, 9e10, 4),
                rng.uniform(0.01, 0.05, 4),
                rng.uniform(9e11, 8e12, 4),
                rng.uniform(4e10, 2e11, 4),
                rng.uniform(0.2, 0.8, 4),
                strict=True,
            )
        ),
    ],
    expect=_gpus,
    tolerance=0,
    mistakes=[
        Mistake(
            _gpus_like(rate=lambda s, slope, u: s * slope),
            "No card reaches its full bandwidth: multiply it by the utilisation.",
        ),
        Mistake(
            _gpus_like(rate=lambda s, slope, u: s * slope / u),
            "The utilisation makes the bandwidth smaller: multiply by it.",
        ),
        Mistake(
            lambda w, kv, s, slope, memory, u: math.ceil((w + kv) / (s * slope * u)),
            "In time is not enough: weights and cache must also fit in n_gpu times memory_bytes.",
        ),
        Mistake(
            lambda w, kv, s, slope, memory, u: math.ceil((w + kv) / memory),
            "It fits, but you forgot the clock: weights and cache are read once in "
            "seconds_per_token.",
        ),
        Mistake(
            _gpus_like(whole=math.floor),
            "Round up: with less than that the token comes late or the model does not fit.",
        ),
        Mistake(
            _gpus_like(held=lambda w, kv: w),
            "The KV cache is held and read too.",
        ),
    ],
    hints=[
        "Two things can demand another GPU. Which?",
        "In seconds_per_token one GPU reads seconds_per_token · bytes_per_s · utilisation bytes. "
        "It holds memory_bytes. Each gives a number of GPUs.",
        "max(ceil(held / (seconds·bytes_per_s·utilisation)), ceil(held / memory_bytes)) with "
        "held = weight_bytes + kv_bytes",
    ],
)

DECODING = [
    DECODE_ATTENTION_INTENSITY,
    MBU,
    TOKENS_PER_SECOND_BOUND,
    GPUS_FOR_LATENCY,
]
