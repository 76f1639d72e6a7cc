"""Specifications of chapter 02, memory: what training and serving must keep at once."""

from __future__ import annotations

from fractions import Fraction

from ._ch02_activations import ACTIVATION_BYTES, LARGEST_BATCH
from ._ch02_plan import CHECKPOINT_PLAN, WHAT_DOES_NOT_FIT
from .spec import Exercise, Mistake, Question, Quiz

SIZES = {"fp32": 4, "bf16": 2, "fp16": 2, "int8": 1}
BLOCK = 2048


def _state_bytes(n_params, recipe):
    """Every part in its own dtype; int8 with one fp32 scale for each started block."""
    total = 0
    for dtype in recipe.values():
        total += n_params * SIZES[dtype]
        if dtype == "int8":
            total += 4 * ((n_params + BLOCK - 1) // BLOCK)
    return total


def _without(part):
    return lambda n, recipe: _state_bytes(n, {k: v for k, v in recipe.items() if k != part})


def _recipe(weights, gradients, averages, master=None):
    parts = {"weights": weights, "gradients": gradients}
    if master:
        parts["master"] = master
    return parts | {"adam_m": averages, "adam_v": averages}


STATE_BYTES = Exercise(
    id="02.state_bytes",
    points=2,
    minutes=8,
    difficulty=1,
    teaches="training keeps weights, gradients, two averages and perhaps a master copy, each in "
    "its own dtype",
    cases=lambda rng: [
        (1_500_000_000, _recipe("bf16", "bf16", "fp32")),
        (1_500_000_000, _recipe("bf16", "bf16", "fp32", "fp32")),
        (int(rng.integers(1, 2000)) * 2048 + 1, _recipe("bf16", "bf16", "int8")),
        (int(rng.integers(1, 2000)) * 2048 + 7, _recipe("bf16", "fp32", "int8", "fp32")),
        (int(rng.integers(10**12, 10**13)), _recipe("fp32", "fp32", "fp32")),
        (1, _recipe("fp16", "fp16", "int8", "fp32")),
        (2048, _recipe("bf16", "bf16", "int8")),
        (int(rng.integers(10**6, 10**9)), {"weights": "fp32", "gradients": "fp32"}),
        (
            int(rng.integers(1, 2000)) * 2048 + 2047,
            {"weights": "int8", "gradients": "bf16", "adam_m": "int8", "adam_v": "bf16"},
        ),
        (
            int(rng.integers(1, 2000)) * 2048 + 1,
            {"weights": "bf16", "gradients": "int8", "master": "bf16", "adam_m": "fp32"},
        ),
        (int(rng.integers(10**6, 10**9)), dict.fromkeys(["weights", "gradients", "sgd"], "fp32")),
    ],
    expect=_state_bytes,
    tolerance=0,
    mistakes=[
        Mistake(
            lambda n, recipe: sum(n * SIZES[dtype] for dtype in recipe.values()),
            "An int8 value means nothing without its scale: add 4 bytes for each block of 2048 "
            "values, in each int8 part.",
        ),
        Mistake(
            lambda n, recipe: sum(
                n * SIZES[dtype] + (n // BLOCK * 4 if dtype == "int8" else 0)
                for dtype in recipe.values()
            ),
            "A last block that is not full has a scale too: round the number of blocks up.",
        ),
        Mistake(
            _without("master"),
            "The master copy is missing. Where a recipe has one, it is a second set of weights.",
        ),
        Mistake(_without("adam_v"), "Adam keeps two averages for each parameter, m and v."),
        Mistake(
            _without("gradients"),
            "The gradients are missing. After a backward pass there is one for each parameter.",
        ),
        Mistake(
            lambda n, recipe: _state_bytes(n, dict.fromkeys(recipe, recipe["weights"])),
            "Every part is counted in the dtype of the weights. Each part has a dtype of its own.",
        ),
    ],
    hints=[
        "How many numbers does training keep for one parameter, and how wide is each of them?",
        "Go through recipe.values(): each part holds n_params numbers of size[dtype] bytes. For "
        "int8 count the blocks too: n_params / 2048, rounded up.",
        "total += n_params * size[dtype]; if dtype == 'int8': total += 4 * -(-n_params // 2048)",
    ],
)


def _zero_bytes(n_params, n_rank, stage, weights, gradients, optimizer):
    """The first `stage` of (optimizer, gradients, weights) are shared out, the rest is whole."""
    parts = [optimizer, gradients, weights]
    return sum(
        Fraction(n_params) * Fraction(part) / (n_rank if position < stage else 1)
        for position, part in enumerate(parts)
    )


def _zero_mistake(per_rank):
    """A wrong answer from the bytes per parameter that it leaves on one rank."""

    def answer(n_params, n_rank, stage, weights, gradients, optimizer):
        return n_params * per_rank(n_rank, stage, weights, gradients, optimizer)

    return answer


ZERO_BYTES = Exercise(
    id="02.zero_bytes",
    points=2,
    minutes=8,
    difficulty=2,
    teaches="ZeRO shares out optimizer states, then gradients, then weights; the rest stays whole",
    cases=lambda rng: [
        *((7_500_000_000, 64, stage, 2, 2, 12) for stage in range(4)),
        (1, 1, 3, 2, 2, 12),
        (10, 3, 3, 2, 2, 12),  # rounding shows
        (10, 4, 1, 4, 4, 8),
        (int(rng.integers(10**6, 10**9)), int(rng.integers(2, 9)), 0, 4, 4, 12),
        (int(rng.integers(10**6, 10**9)), int(rng.integers(2, 9)), 2, 0.5, 2, 2.25),
        (int(rng.integers(10**12, 10**14)), int(rng.integers(1000, 30000)), 3, 2, 4, 12),
        *(
            (int(rng.integers(10**6, 10**11)), int(rng.integers(2, 1000)), stage, 2, 4, 8)
            for stage in (1, 2, 3)
        ),
    ],
    expect=_zero_bytes,
    tolerance=1e-9,
    mistakes=[
        Mistake(
            _zero_mistake(lambda r, s, w, g, o: (w + g + o) / (r if s else 1)),
            "Everything is shared out from stage 1 on. Stage 1 shares only the optimizer states, "
            "stage 2 the gradients as well, stage 3 the weights as well.",
        ),
        Mistake(
            _zero_mistake(
                lambda r, s, w, g, o: sum(
                    part / (r if i < s else 1) for i, part in enumerate([w, g, o])
                )
            ),
            "The order is the other way round: optimizer states first, since they are largest and "
            "are needed only once a step. Weights come last.",
        ),
        Mistake(
            _zero_mistake(
                lambda r, s, w, g, o: sum(
                    part / (r if i == s - 1 else 1) for i, part in enumerate([o, g, w])
                )
            ),
            "Each stage keeps what the stage before it shared out, and shares one part more.",
        ),
        Mistake(
            _zero_mistake(
                lambda r, s, w, g, o: sum(
                    part / (r if i < min(s, 2) else 1) for i, part in enumerate([o, g, w])
                )
            ),
            "Stage 3 shares the weights too. Nothing stays whole.",
        ),
        Mistake(
            _zero_mistake(
                lambda r, s, w, g, o: (
                    r * sum(part / (r if i < s else 1) for i, part in enumerate([o, g, w]))
                )
            ),
            "This is the sum over all ranks. Asked is what one rank holds.",
        ),
    ],
    hints=[
        "At this stage, which of the three parts does every rank hold whole?",
        "Put the parts in ZeRO's order: optimizer, gradients, weights. The first `stage` of them "
        "are divided by n_rank.",
        "parts = [optimizer, gradients, weights]; n_params * (sum(parts[:stage]) / n_rank + "
        "sum(parts[stage:]))",
    ],
)


def _kv_cache_bytes(n_layer, d_model, n_head, n_kv_head, seq_len, batch, bytes_per_element):
    """Count the elements of one head of one token, then multiply up."""
    one_head = Fraction(d_model, n_head) * Fraction(bytes_per_element)
    one_token = (one_head + one_head) * n_kv_head * n_layer
    return one_token * seq_len * batch


def _kv_case(rng):
    n_kv_head = int(rng.choice([2, 4, 8]))
    n_head = n_kv_head * int(rng.integers(2, 9))
    d_model = n_head * int(rng.choice([64, 80, 128]))
    n_token, batch = int(rng.integers(2, 200_000)), int(rng.integers(2, 500))
    size = float(rng.choice([0.5, 1, 2]))
    return int(rng.integers(2, 130)), d_model, n_head, n_kv_head, n_token, batch, size


KV_CACHE_BYTES = Exercise(
    id="02.kv_cache_bytes",
    points=2,
    minutes=6,
    difficulty=1,
    teaches="the cache holds a key and a value for each layer, token and key-value head",
    cases=lambda rng: [
        (32, 4096, 32, 32, 4096, 1, 2),
        (32, 4096, 32, 8, 131_072, 64, 2),
        (12, 768, 12, 1, 1, 1, 2),
        (1, 64, 1, 1, 1, 1, 0.5),
        (126, 16_384, 128, 8, 10_000_000, 1000, 1),
        *(_kv_case(rng) for _ in range(4)),
    ],
    expect=_kv_cache_bytes,
    tolerance=1e-9,
    mistakes=[
        Mistake(
            lambda n, d, h, kv, s, b, size: n * (d // h) * kv * s * b * size,
            "The cache holds keys and values: two vectors, not one.",
        ),
        Mistake(
            lambda n, d, h, kv, s, b, size: 2 * n * d * s * b * size,
            "Only the key-value heads are stored, n_kv_head of them. This counts all n_head.",
        ),
        Mistake(
            lambda n, d, h, kv, s, b, size: 2 * n * d * kv * s * b * size,
            "A head is d_model / n_head wide, not d_model.",
        ),
        Mistake(
            lambda n, d, h, kv, s, b, size: 2 * (d // h) * kv * s * b * size,
            "This is one layer. Every layer has a cache of its own.",
        ),
        Mistake(
            lambda n, d, h, kv, s, b, size: 2 * n * (d // h) * kv * s * size,
            "This is one sequence. Each of the batch has its own tokens.",
        ),
        Mistake(
            lambda n, d, h, kv, s, b, size: 2 * n * (d // h) * kv * s * b,
            "This counts elements. Multiply by bytes_per_element.",
        ),
    ],
    hints=[
        "For one token in one layer: which vectors must a later token be able to read?",
        "A key and a value for each of the n_kv_head heads, d_model / n_head numbers each.",
        "2 * n_layer * n_kv_head * (d_model // n_head) * seq_len * batch * bytes_per_element",
    ],
)

EXERCISES = [
    STATE_BYTES,
    ZERO_BYTES,
    ACTIVATION_BYTES,
    LARGEST_BATCH,
    CHECKPOINT_PLAN,
    KV_CACHE_BYTES,
    WHAT_DOES_NOT_FIT,
]

QUIZ = Quiz(
    "02.recall",
    [
        Question(
            "Asking for an operation costs 3 µs, and 10^9 numbers are added in a second. You halve "
            "an addition of 1,000 numbers. What happens to its time?",
            [
                ("It halves", "Only the work does, and that was 1 µs of 4."),
                ("It falls from 4 µs to 3.5 µs", "The 3 µs stay, 1 µs of work becomes 0.5 µs."),
                ("Nothing at all", "Asking is most of the time here, but the work comes on top."),
            ],
            correct=1,
        ),
        Question(
            "How many weights are in the matrices of one GPT layer of width h?",
            [
                ("4 h²", "That is attention alone: q, k, v and the output projection."),
                ("8 h²", "That is the feed-forward alone: h to 4h and back."),
                ("12 h²", "4 h² in attention and 8 h² in the feed-forward."),
            ],
            correct=2,
        ),
        Question(
            "A dense model has N parameters. About how many FLOPs does training spend on a token?",
            [
                ("2N", "That is the forward pass: a multiply and an add for each weight."),
                ("4N", "That is the backward pass alone. It follows a forward pass."),
                ("6N", "2N forward and 4N backward."),
            ],
            correct=2,
        ),
    ],
)
