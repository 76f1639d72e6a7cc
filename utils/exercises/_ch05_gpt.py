"""Chapter 05: the GPT, as a function of a plain dict of weights."""

from __future__ import annotations

from ._ch05_block import block_like, block_weights, lab_shape, norm
from ._ch05_drive import causal_attention, drive_gpt, gradients_of, leaves_of, probe
from .spec import Exercise, Mistake
from .tensors import to_tensors


def gpt_weights(rng, vocab_size: int, seq_len: int, d_model: int, n_layer: int) -> dict:
    """Weights of a GPT under the names of the lab's model, without the tied head."""
    weights = {
        "token_embedding.weight": rng.normal(size=(vocab_size, d_model)),
        "position_embedding.weight": rng.normal(size=(seq_len, d_model)),
    }
    for layer in range(n_layer):
        block = block_weights(rng, d_model, 4 * d_model)
        weights |= {f"blocks.{layer}.{name}": array for name, array in block.items()}
    return weights | {"norm.weight": 1 + 0.4 * rng.normal(size=d_model)}


def _gpt(tokens, weights, n_layer, n_head):
    """The lab's GPT, a torch module, in float64."""
    from torch.func import functional_call

    from utils.lab.gpt import GPT as LabGPT

    vocab_size, d_model = weights["token_embedding.weight"].shape
    seq_len = len(weights["position_embedding.weight"])
    shape = lab_shape(n_layer, d_model, n_head, vocab_size, seq_len, 4 * d_model)
    leaves = leaves_of(weights)
    tied = {"head.weight": leaves["token_embedding.weight"]}
    module = LabGPT(shape, causal_attention).double()
    logits = functional_call(module, leaves | tied, (to_tensors(tokens),))
    return {"logits": logits, "gradients": gradients_of(probe(logits), leaves)}


def _gpt_cases(rng):
    def case(batch, seq_len, table, d_model, n_layer, n_head, vocab_size):
        tokens = rng.integers(0, vocab_size, size=(batch, seq_len))
        return tokens, gpt_weights(rng, vocab_size, table, d_model, n_layer), n_layer, n_head

    return [
        case(2, 5, 8, 8, 2, 2, 11),
        case(1, 6, 6, 8, 3, 4, 7),
        case(3, 1, 4, 6, 1, 1, 5),
        case(1, int(rng.integers(3, 7)), 9, 8, 2, 2, 13),
    ]


def gpt_like(
    start=0, layer=lambda i: i, final=True, scale=1.0, head=lambda w: w, after=lambda x: x
):
    """A GPT with its parts exchanged. start: the first position; None for no positions."""
    block = block_like()

    def answer(tokens, weights, n_layer, n_head, attention):
        import torch

        table = weights["token_embedding.weight"]
        positions = weights["position_embedding.weight"]
        x = table[tokens] * (scale or table.shape[1] ** 0.5)
        if start is not None:
            x = x + positions[(torch.arange(tokens.shape[1]) + start) % len(positions)]
        for i in range(n_layer):
            name = f"blocks.{layer(i)}."
            inner = {k.removeprefix(name): w for k, w in weights.items() if k.startswith(name)}
            x = block(x, inner, n_head, attention)
        x = norm(x, weights["norm.weight"]) if final else x
        return after(x @ head(table).T)

    return answer


GPT = Exercise(
    id="05.gpt",
    points=3,
    minutes=10,
    difficulty=2,
    teaches="embeddings, blocks, a last norm, and the embedding once more as the head",
    cases=_gpt_cases,
    expect=_gpt,
    drive=drive_gpt,
    tolerance=1e-8,
    mistakes=[
        Mistake(
            gpt_like(start=None),
            "The position embedding is missing: without it the model cannot tell where in the "
            "window a byte stands.",
        ),
        Mistake(
            gpt_like(start=1),
            "The first byte of a window has position 0. Yours has position 1.",
        ),
        Mistake(
            gpt_like(layer=lambda i: 0),
            "Every layer uses the weights of blocks.0. Layer i has those under blocks.i.",
        ),
        Mistake(
            gpt_like(final=False),
            "The last norm is missing. Nothing has normalised the stream: norm.weight does it "
            "before the head.",
        ),
        Mistake(
            gpt_like(after=lambda logits: logits.softmax(-1)),
            "These are probabilities. Return the logits: the loss does the softmax itself, in a "
            "form that does not overflow.",
        ),
        Mistake(
            gpt_like(scale=0),
            "You multiplied the embedding by √d_model, as the transformer of 2017 did. A GPT "
            "does not.",
        ),
        Mistake(
            gpt_like(head=lambda w: w.detach()),
            "The logits are right, but the tied embedding gets a gradient from one of its two "
            "uses only. Use the tensor itself as the head, not a detached copy.",
        ),
        Mistake(
            gpt_like(after=lambda logits: logits[:, -1:]),
            "You returned the logits of the last position. Training needs them at every position: "
            "each predicts its next byte.",
        ),
    ],
    hints=[
        "Four stages: numbers for each byte, numbers for each place, n_layer blocks, logits. "
        "Which weights does each use?",
        "x = token_embedding[tokens] + position_embedding[:seq_len]; block for each layer with "
        "the weights under 'blocks.{i}.'; layer_norm; F.linear with the token embedding.",
        "prefix = f'blocks.{i}.'; inner = {name.removeprefix(prefix): w for name, w in "
        "weights.items() if name.startswith(prefix)}; x = block(x, inner, n_head, attention)",
    ],
)
