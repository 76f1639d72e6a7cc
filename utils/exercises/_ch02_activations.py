"""Chapter 02's exercises on activations: bytes that one layer keeps, and the batch that fits."""

from __future__ import annotations

from .spec import Exercise, Mistake

MODES = ("none", "selective", "full")

# (elements per token and channel, masks per token and channel) of everything a layer keeps
_HIDDEN = {
    "inputs of two LayerNorms": (2, 0),
    "input of q, k, v": (1, 0),
    "q, k, v": (3, 0),
    "input of the output projection": (1, 0),
    "dropout after attention": (0, 1),
    "input of the feed-forward": (1, 0),
    "input of GELU": (4, 0),
    "input of the second matrix": (4, 0),
    "dropout after the feed-forward": (0, 1),
}


def _activation_bytes(seq_len, batch, d_model, n_head, recompute, element_bytes, mask_bytes):
    """Add up the table, then the attention matrix: softmax, its mask, the masked softmax."""
    n_hidden, n_scores = seq_len * batch * d_model, batch * n_head * seq_len * seq_len
    if recompute == "full":
        return n_hidden * element_bytes
    total = 0
    for elements, masks in _HIDDEN.values():
        total += n_hidden * (elements * element_bytes + masks * mask_bytes)
    if recompute == "none":
        total += n_scores * (element_bytes + mask_bytes + element_bytes)
    return total


def _counted(hidden, scores, full=lambda e, m: e):
    """A wrong answer: bytes per token and channel, per score, and of a recomputed layer."""

    def answer(seq_len, batch, d_model, n_head, recompute, element_bytes, mask_bytes):
        n_hidden, n_scores = seq_len * batch * d_model, batch * n_head * seq_len**2
        if recompute == "full":
            return n_hidden * full(element_bytes, mask_bytes)
        total = n_hidden * hidden(element_bytes, mask_bytes)
        if recompute == "none":
            total += n_scores * scores(element_bytes, mask_bytes)
        return total

    return answer


def _swapped(s, b, h, a, recompute, e, m):
    other = {"none": "none", "selective": "full", "full": "selective"}
    return _activation_bytes(s, b, h, a, other[recompute], e, m)


def _no_matrix(s, b, h, a, recompute, e, m):
    return _activation_bytes(s, b, h, a, "selective" if recompute == "none" else recompute, e, m)


def _one_head(s, b, h, a, recompute, e, m):
    return _activation_bytes(s, b, h, 1, recompute, e, m)


def _one_sequence(s, b, h, a, recompute, e, m):
    return _activation_bytes(s, 1, h, a, recompute, e, m)


def _activation_cases(rng):
    def one(recompute, element_bytes, mask_bytes):
        n_head = int(rng.integers(2, 97))
        d_model = n_head * int(rng.choice([32, 64, 96, 128]))
        n_token, batch = int(rng.integers(2, 9000)), int(rng.integers(2, 65))
        return n_token, batch, d_model, n_head, recompute, element_bytes, mask_bytes

    sizes = [(2, 1), (2, 2), (4, 1), (1, 1)]
    return [
        *((2048, 1, 12288, 96, recompute, 2, 1) for recompute in MODES),
        *(one(recompute, *sizes[rng.integers(4)]) for recompute in MODES),
        *(one(recompute, 4, 1) for recompute in MODES),
        *(one(recompute, 2, 2) for recompute in ("none", "selective")),
        (1, 1, 1, 1, "none", 2, 1),
        (1_000_000, 64, 16384, 128, "none", 2, 1),
    ]


ACTIVATION_BYTES = Exercise(
    id="02.activation_bytes",
    points=4,
    minutes=15,
    difficulty=3,
    teaches="what one layer keeps for its backward pass, with and without the attention matrix",
    cases=_activation_cases,
    expect=_activation_bytes,
    tolerance=0,
    mistakes=[
        Mistake(
            _counted(lambda e, m: 16 * e + m, lambda e, m: 2 * e + m),
            "One dropout mask of width d_model is missing: there is one after attention and one "
            "after the feed-forward.",
        ),
        Mistake(
            _no_matrix,
            'The attention matrix is missing. With recompute="none" it is kept: batch · n_head · '
            "seq_len² scores.",
        ),
        Mistake(
            _one_head,
            "Every head has an attention matrix of its own: multiply by n_head.",
        ),
        Mistake(
            _counted(lambda e, m: 16 * e + 2 * m, lambda e, m: e + m),
            "The attention matrix is kept twice: the softmax's output for its own backward pass, "
            "and the masked one, which is multiplied by v.",
        ),
        Mistake(
            _counted(lambda e, m: 18 * e, lambda e, m: 3 * e),
            "A dropout mask has a size of its own, mask_bytes, not element_bytes.",
        ),
        Mistake(
            _counted(lambda e, m: 12 * e + 2 * m, lambda e, m: 2 * e + m),
            "One of the two tensors of width 4 · d_model is missing. GELU keeps its input, and "
            "the second matrix keeps GELU's output.",
        ),
        Mistake(
            _swapped,
            'Selective and full are swapped: "full" keeps only the layer\'s input, "selective" '
            "drops only the attention matrix.",
        ),
        Mistake(
            _one_sequence,
            "This is one sequence. Everything here grows with the batch.",
        ),
    ],
    hints=[
        "Each operation must later compute a gradient. Which of its tensors does it need for that?",
        "Width d_model: 16 elements and 2 masks a token and channel. The attention matrix: the "
        "softmax's output, its mask, and the two multiplied, for each of batch · n_head · seq_len² "
        "scores.",
        "hidden = seq_len * batch * d_model; scores = batch * n_head * seq_len**2; none: hidden * "
        "(16 * element_bytes + 2 * mask_bytes) + scores * (2 * element_bytes + mask_bytes)",
    ],
)

LOGIT_BYTES = 12


def _one_layer(seq_len, d_model, n_head, recompute):
    return _activation_bytes(seq_len, 1, d_model, n_head, recompute, 2, 1)


def _per_sequence(n_layer, d_model, n_head, seq_len, vocab_size, recompute):
    """(bytes the layers keep, bytes of the loss, bytes one recomputed layer brings back)."""
    kept = _one_layer(seq_len, d_model, n_head, recompute)
    back = _one_layer(seq_len, d_model, n_head, "none") - kept
    return n_layer * kept, LOGIT_BYTES * seq_len * vocab_size, back


def _largest_batch(
    memory_bytes, fixed_bytes, n_layer, d_model, n_head, seq_len, vocab_size, recompute
):
    """Whole sequences that fit beside what is fixed."""
    kept, loss, back = _per_sequence(n_layer, d_model, n_head, seq_len, vocab_size, recompute)
    peak = kept + (loss if loss > back else back)
    free = memory_bytes - fixed_bytes
    return free // peak if free > 0 else 0


def _batch_mistake(peak, rounded=lambda free, one: max(0, free // one), fixed=1):
    """A wrong answer: what it takes for one sequence's peak, and how it rounds."""

    def answer(memory_bytes, fixed_bytes, n_layer, d_model, n_head, seq_len, vocab_size, recompute):
        parts = _per_sequence(n_layer, d_model, n_head, seq_len, vocab_size, recompute)
        return rounded(memory_bytes - fixed * fixed_bytes, peak(n_layer, *parts))

    return answer


def _peak(n_layer, kept, loss, back):
    return kept + max(loss, back)


def _batch_cases(rng):
    def fits(batch, spare, n_layer, d_model, n_head, seq_len, vocab_size, recompute):
        """A card on which exactly `batch` sequences fit, with `spare` of one more left over."""
        parts = _per_sequence(n_layer, d_model, n_head, seq_len, vocab_size, recompute)
        one = _peak(n_layer, *parts)
        fixed = 12 * n_layer * d_model**2 * 16
        return (
            fixed + batch * one + int(spare * one), fixed,
            n_layer, d_model, n_head, seq_len, vocab_size, recompute,
        )  # fmt: skip

    def many():
        return int(rng.integers(40, 400))

    gpt2, xl = (12, 768, 12, 1024, 50257), (48, 1600, 25, 1024, 50257)
    long, wide = (80, 8192, 64, 8192, 32000), (4, 512, 8, 256, 150_000)
    return [
        fits(many(), 0.3, *gpt2, "none"),
        fits(many(), 0, *gpt2, "full"),
        fits(many(), 0.7, *xl, "selective"),
        fits(many(), 0.999, *long, "full"),
        fits(many(), 0.5, *wide, "full"),
        fits(many(), 0.2, *long, "none"),
        fits(1, 0, *gpt2, "none"),  # one, to the byte
        fits(0, 0.9, *xl, "none"),
        fits(-1, 0.5, *xl, "selective"),
        fits(-3, 0.5, *gpt2, "full"),
    ]


LARGEST_BATCH = Exercise(
    id="02.largest_batch",
    points=3,
    minutes=12,
    difficulty=2,
    teaches="the peak of a step: states, all layers, and the larger of loss and recomputed layer",
    cases=_batch_cases,
    expect=_largest_batch,
    tolerance=0,
    mistakes=[
        Mistake(
            _batch_mistake(lambda n, kept, loss, back: kept + back),
            "The loss is missing: 12 bytes a token and word of the vocabulary.",
        ),
        Mistake(
            _batch_mistake(lambda n, kept, loss, back: kept + loss),
            "While a recomputed layer goes backward, all that it had dropped is there again. Where "
            "that is more than the loss, it sets the peak.",
        ),
        Mistake(
            _batch_mistake(lambda n, kept, loss, back: kept + loss + back),
            "The loss is over before the first layer is recomputed: take the larger of the two, "
            "not their sum.",
        ),
        Mistake(
            _batch_mistake(lambda n, kept, loss, back: kept // n + max(loss, back)),
            "This is one layer. All n_layer layers keep their activations until the backward pass.",
        ),
        Mistake(
            _batch_mistake(_peak, fixed=0),
            "The states are there first: subtract fixed_bytes from the memory.",
        ),
        Mistake(
            _batch_mistake(_peak, rounded=lambda free, one: max(0, -(-free // one))),
            "Rounded up, the last sequence does not fit. Round down.",
        ),
        Mistake(
            _batch_mistake(_peak, rounded=lambda free, one: free // one),
            "A batch is never negative. When the states alone do not fit, the answer is 0.",
        ),
        Mistake(
            _batch_mistake(lambda n, kept, loss, back: kept + max(loss // 6, back)),
            "The loss takes 12 bytes for each token and word: three fp32 numbers, not one in bf16.",
        ),
    ],
    hints=[
        "Everything but the fixed bytes is proportional to the batch. What does one sequence take?",
        "One sequence: n_layer times activation_bytes(...), plus the larger of 12 · seq_len · "
        "vocab_size and what one recomputed layer brings back.",
        "one = n_layer * kept + max(12 * seq_len * vocab_size, whole - kept); max(0, (memory_bytes "
        "- fixed_bytes) // one), with whole and kept from activation_bytes for batch 1",
    ],
)
