"""Specifications of chapter 01 that count parameters: GPT-2, Llama, a mixture of experts."""

from __future__ import annotations

from utils import arithmetic
from utils.arithmetic import ModelShape

from .spec import Exercise, Mistake


def _gpt2(n_layer, d_model, vocab_size, seq_len):
    """The specification, from utils.arithmetic. The number of heads changes no parameter."""
    return arithmetic.count_parameters(ModelShape(n_layer, d_model, 1, vocab_size, seq_len=seq_len))


def _gpt2_cases(rng):
    return [
        (12, 768, 50257, 1024),
        (48, 1600, 50257, 1024),
        (1, 1, 1, 1),
        (1, 3, 10, 2),
        (96, 12288, 50257, 2048),
        *(
            (
                rng.integers(2, 100),
                64 * rng.integers(1, 200),
                rng.integers(256, 200_000),
                rng.integers(16, 9000),
            )
            for _ in range(4)
        ),
    ]


COUNT_PARAMETERS = Exercise(
    id="01.count_parameters",
    points=3,
    minutes=12,
    difficulty=2,
    teaches="every parameter follows from four numbers; a tied head is stored once",
    cases=_gpt2_cases,
    expect=_gpt2,
    tolerance=0,
    mistakes=[
        Mistake(
            lambda n_layer, d, vocab, seq: _gpt2(n_layer, d, vocab, seq) - 9 * n_layer * d,
            "The biases are missing: each linear layer also stores one number for each output, "
            "3d + d + 4d + d = 9d a block.",
        ),
        Mistake(
            lambda n_layer, d, vocab, seq: _gpt2(n_layer, d, vocab, seq) + vocab * d,
            "The output head is counted too, but in GPT-2 it is tied: it is the token embedding, "
            "stored once.",
        ),
        Mistake(
            lambda n_layer, d, vocab, seq: _gpt2(n_layer, d, vocab, seq) - seq * d,
            "The position embedding is missing: GPT-2 learns one row of d numbers for each of "
            "seq_len positions.",
        ),
        Mistake(
            lambda n_layer, d, vocab, seq: _gpt2(n_layer, d, vocab, seq) - 2 * d,
            "The last LayerNorm is missing: after the blocks comes one more, with 2d parameters.",
        ),
        Mistake(
            lambda n_layer, d, vocab, seq: _gpt2(n_layer, d, vocab, seq) - (4 * n_layer + 2) * d,
            "The LayerNorms are missing: two a block and one after the blocks, each a weight and "
            "a bias of d numbers.",
        ),
        Mistake(
            lambda n_layer, d, vocab, seq: _gpt2(n_layer, d, vocab, seq) - (2 * n_layer + 1) * d,
            "A LayerNorm stores two vectors of d numbers, a weight and a bias. One is missing.",
        ),
        Mistake(
            lambda n_layer, d, vocab, seq: (
                _gpt2(n_layer, d, vocab, seq) - n_layer * (2 * d * d + 2 * d)
            ),
            "q, k and v are three matrices. The input projection is d by 3d, with 3d biases.",
        ),
        Mistake(
            lambda n_layer, d, vocab, seq: 12 * n_layer * d * d,
            "12·n_layer·d² is the rule of thumb: the matrices of the blocks only. Add embeddings, "
            "biases and norms.",
        ),
    ],
    hints=[
        "Which tensors does one block store, which come once before the blocks, which once after?",
        "One block: 12·d² in four matrices, 9·d in their biases, 4·d in two norms. "
        "Once: two tables, and a norm at the end. The head is the token table again.",
        "n_layer * (12·d² + 13·d) + (vocab_size + seq_len)·d + 2·d",
    ],
)


def _llama(n_layer, d_model, n_head, n_kv_head, d_ff, vocab_size, tied):
    """The specification, added up matrix by matrix."""
    head_dim = d_model // n_head
    block = [
        (d_model, n_head * head_dim),
        (d_model, n_kv_head * head_dim),
        (d_model, n_kv_head * head_dim),
        (n_head * head_dim, d_model),
        (d_model, d_ff),
        (d_model, d_ff),
        (d_ff, d_model),
        (d_model, 1),
        (d_model, 1),
    ]
    outside = [(vocab_size, d_model), (d_model, 1)] + [(vocab_size, d_model)] * (not tied)
    return n_layer * sum(a * b for a, b in block) + sum(a * b for a, b in outside)


def _llama_cases(rng):
    def random(tied):
        n_kv_head, group = int(rng.integers(1, 9)), int(rng.integers(2, 9))
        n_head = n_kv_head * group
        d_model = n_head * 16 * int(rng.integers(1, 9))
        d_ff = int(rng.integers(100, 60_000))
        return (rng.integers(2, 130), d_model, n_head, n_kv_head, d_ff, rng.integers(99, 9e5), tied)

    return [
        (32, 4096, 32, 8, 14336, 128256, False),
        (32, 4096, 32, 32, 11008, 32000, False),
        (16, 2048, 32, 8, 8192, 128256, True),
        (126, 16384, 128, 8, 53248, 128256, False),
        (1, 2, 2, 1, 3, 5, True),
        random(True),
        random(False),
        random(False),
    ]


COUNT_LLAMA_PARAMETERS = Exercise(
    id="01.count_llama_parameters",
    points=2,
    minutes=8,
    difficulty=2,
    teaches="grouped heads shrink k and v, a gated feed-forward has three matrices",
    cases=_llama_cases,
    expect=_llama,
    tolerance=0,
    mistakes=[
        Mistake(
            lambda n, d, h, kv, ff, v, tied: _llama(n, d, h, h, ff, v, tied),
            "k and v have n_kv_head heads, not n_head: each is d_model by n_kv_head·head_dim.",
        ),
        Mistake(
            lambda n, d, h, kv, ff, v, tied: _llama(n, d, h, kv, ff, v, tied) - n * d * ff,
            "A gated feed-forward has three matrices: gate, up and down. One is missing.",
        ),
        Mistake(
            lambda n, d, h, kv, ff, v, tied: _llama(n, d, h, kv, ff, v, True),
            "You count the head as tied always. With tied=False it is a second vocab_size by "
            "d_model matrix.",
        ),
        Mistake(
            lambda n, d, h, kv, ff, v, tied: _llama(n, d, h, kv, ff, v, False),
            "You count the head always. With tied=True it is the token embedding, stored once.",
        ),
        Mistake(
            lambda n, d, h, kv, ff, v, tied: _llama(n, d, h, kv, ff, v, not tied),
            "tied is the wrong way round: True means that the head stores nothing of its own.",
        ),
        Mistake(
            lambda n, d, h, kv, ff, v, tied: _llama(n, d, h, kv, ff, v, tied) + (2 * n + 1) * d,
            "RMSNorm has a weight and no bias: d parameters, not 2d.",
        ),
        Mistake(
            lambda n, d, h, kv, ff, v, tied: _llama(n, d, h, kv, ff, v, tied) - d,
            "The last RMSNorm is missing: after the blocks comes one more, with d parameters.",
        ),
        Mistake(
            lambda n, d, h, kv, ff, v, tied: (
                _llama(n, d, h, kv, ff, v, tied) - n * d * d // h * kv
            ),
            "k and v are two matrices of that shape. One of them is missing.",
        ),
    ],
    hints=[
        "How wide is one head, and so how many columns have q, k and v?",
        "A block: q and the output projection are d by d, k and v d by n_kv_head·head_dim, "
        "three matrices of d·d_ff, two norms of d. Outside: one or two tables, one norm.",
        "n_layer * (2·d² + 2·d·n_kv_head·(d // n_head) + 3·d·d_ff + 2·d) "
        "+ vocab_size·d·(1 if tied else 2) + d",
    ],
)


def _mixture(n_layer, d_model, n_head, n_kv_head, d_ff, vocab_size, n_expert, n_expert_active):
    """The specification, from utils.arithmetic."""
    shape = _mixture_shape(n_layer, d_model, n_head, n_kv_head, d_ff, vocab_size, n_expert)
    idle = n_expert - n_expert_active
    return arithmetic.count_parameters(shape) - n_layer * idle * 3 * d_model * d_ff


def _mixture_shape(n_layer, d_model, n_head, n_kv_head, d_ff, vocab_size, n_expert):
    return ModelShape(
        n_layer, d_model, n_head, vocab_size, n_kv_head=n_kv_head, d_ff=d_ff, gated=True,
        norm="rmsnorm", positions="rope", bias=False, tied=False, n_expert=n_expert,
    )  # fmt: skip


def _mixture_cases(rng):
    def random():
        n_kv_head = int(rng.integers(1, 9))
        n_head = n_kv_head * int(rng.integers(1, 9))
        d_model = n_head * 16 * int(rng.integers(1, 9))
        n_expert = int(rng.integers(3, 300))
        return (
            rng.integers(2, 100), d_model, n_head, n_kv_head, rng.integers(100, 20_000),
            rng.integers(99, 200_000), n_expert, rng.integers(2, n_expert),
        )  # fmt: skip

    return [
        (32, 4096, 32, 8, 14336, 32000, 8, 2),
        (56, 6144, 48, 8, 16384, 32768, 8, 2),
        (1, 4, 2, 1, 3, 7, 2, 1),
        (2, 64, 4, 4, 128, 1000, 4, 4),
        *(random() for _ in range(4)),
    ]


ACTIVE_PARAMETERS = Exercise(
    id="01.active_parameters",
    points=2,
    minutes=8,
    difficulty=2,
    teaches="a token uses all of a mixture but the experts it is not sent to",
    cases=_mixture_cases,
    expect=_mixture,
    tolerance=0,
    mistakes=[
        Mistake(
            lambda *case: _mixture(*case[:7], case[6]),
            "These are all parameters. A token visits n_expert_active experts of each block.",
        ),
        Mistake(
            lambda *case: _mixture(*case[:7], case[6]) * case[7] // case[6],
            "You scaled the whole model by n_expert_active / n_expert. Attention, norms, router "
            "and embeddings are used by every token: only the experts are divided.",
        ),
        Mistake(
            lambda *case: _mixture(*case) - case[0] * case[1] * case[6],
            "The router is missing: each block has a matrix of d_model by n_expert that scores "
            "the experts.",
        ),
        Mistake(
            lambda *case: _mixture(*case) - case[0] * case[1] * (case[6] - case[7]),
            "The router scores all experts before it picks some: it is d_model by n_expert, not "
            "by n_expert_active.",
        ),
        Mistake(
            lambda *case: _mixture(*case[:7], 1),
            "This is one expert a block. The token visits n_expert_active of them.",
        ),
        Mistake(
            lambda *case: (
                case[7] * (_mixture(*case[:7], 1) - case[0] * case[1] * case[6])
                + case[0] * case[1] * case[6]
            ),
            "You multiplied the whole model by the number of experts. Only the feed-forward "
            "comes several times: this is why 8x7B is not 56B.",
        ),
        Mistake(
            lambda *case: _mixture(*case) - case[0] * case[7] * case[1] * case[4],
            "Each expert is gated: three matrices of d_model by d_ff, not two.",
        ),
    ],
    hints=[
        "Which parts of the model does every token pass, and which part does it only visit?",
        "A mixture in which 2 experts run is a dense model whose feed-forward is 2·d_ff wide, "
        "plus the router. You have just counted dense models.",
        "count_llama_parameters(..., d_ff=n_expert_active·d_ff, tied=False) "
        "+ n_layer·d_model·n_expert",
    ],
)

PARAMETER_EXERCISES = [COUNT_PARAMETERS, COUNT_LLAMA_PARAMETERS, ACTIVE_PARAMETERS]
