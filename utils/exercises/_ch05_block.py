"""Chapter 05: the block, as a function of a plain dict of weights."""

from __future__ import annotations

import numpy as np

from ._ch05_drive import (
    as_state,
    causal_attention,
    drive_block,
    gradients_of,
    leaves_of,
    probe,
)
from .spec import Exercise, Mistake

EPSILON = 1e-5


def block_weights(rng: np.random.Generator, d_model: int, d_ff: int) -> dict:
    """Weights of one block, large enough that every part of it shows in the output."""

    def matrix(rows, columns):
        return rng.normal(size=(rows, columns)) / np.sqrt(columns) * 1.5

    return {
        "norm_1.weight": 1 + 0.4 * rng.normal(size=d_model),
        "attention.qkv.weight": matrix(3 * d_model, d_model),
        "attention.out.weight": matrix(d_model, d_model),
        "norm_2.weight": 1 + 0.4 * rng.normal(size=d_model),
        "feed_forward.up.weight": matrix(d_ff, d_model),
        "feed_forward.down.weight": matrix(d_model, d_ff),
    }


def lab_shape(n_layer, d_model, n_head, vocab_size, seq_len, d_ff):
    """The ModelShape of the lab's model that has these weights."""
    from utils.arithmetic import ModelShape

    return ModelShape(n_layer, d_model, n_head, vocab_size, seq_len=seq_len, d_ff=d_ff, bias=False)


def _block(x, weights, n_head):
    """The lab's block, a torch module, in float64."""
    from torch.func import functional_call

    from utils.lab.gpt import Block

    d_ff, d_model = weights["feed_forward.up.weight"].shape
    module = Block(lab_shape(1, d_model, n_head, 2, 1, d_ff), causal_attention).double()
    module.load_state_dict(as_state(weights))
    leaves = leaves_of({"x": x} | weights)
    named = {name: leaf for name, leaf in leaves.items() if name != "x"}
    out = functional_call(module, named, (leaves["x"], None))
    return {"out": out, "gradients": gradients_of(probe(out), leaves)}


def _block_cases(rng):
    def case(batch, seq_len, d_model, n_head, d_ff):
        x = rng.normal(size=(batch, seq_len, d_model))
        return x, block_weights(rng, d_model, d_ff), n_head

    return [
        case(2, 5, 8, 2, 32),
        case(1, 4, 12, 4, 24),
        case(3, 3, 6, 1, 24),
        case(2, 1, 8, 4, 32),
        case(1, int(rng.integers(6, 12)), 8, 2, 16),
    ]


def norm(x, weight):
    """LayerNorm over the last axis, without a bias."""
    import torch.nn.functional as F

    return F.layer_norm(x, x.shape[-1:], weight, eps=EPSILON)


def _gelu(x):
    import torch.nn.functional as F

    return F.gelu(x)


def _own(q, k, v, causal):
    """The usual attention, whatever was given."""
    return causal_attention(2 * q, k, v, causal)


def _attend(x, weights, n_head, attention, split="heads", merge=True, causal=True, own=None):
    batch, seq_len, d_model = x.shape
    heads = batch, seq_len, n_head, d_model // n_head
    qkv = x @ weights["attention.qkv.weight"].T
    if split == "interleaved":
        parts = qkv.view(batch, seq_len, n_head, 3, -1).unbind(3)
        q, k, v = (part.transpose(1, 2) for part in parts)
    elif split == "viewed":
        parts = qkv.chunk(3, -1)
        q, k, v = (part.reshape(batch, n_head, seq_len, -1) for part in parts)
    else:
        q, k, v = (part.reshape(heads).transpose(1, 2) for part in qkv.chunk(3, -1))
    out = (own or attention)(q, k, v, causal)
    out = out.transpose(1, 2) if merge else out
    return out.reshape(batch, seq_len, d_model) @ weights["attention.out.weight"].T


def _feed(x, weights, act=_gelu):
    return act(x @ weights["feed_forward.up.weight"].T) @ weights["feed_forward.down.weight"].T


def block_like(order="pre", act=_gelu, norm=norm, **attend):
    """A block with its parts exchanged."""

    def answer(x, weights, n_head, attention):
        first, second = weights["norm_1.weight"], weights["norm_2.weight"]

        def mix(x):
            return _attend(x, weights, n_head, attention, **attend)

        if order == "post":
            x = norm(x + mix(x), first)
            return norm(x + _feed(x, weights, act), second)
        if order == "none":
            x = mix(norm(x, first))
            return _feed(norm(x, second), weights, act)
        if order == "normed":
            x = norm(x, first)
            x = x + mix(x)
            x = norm(x, second)
            return x + _feed(x, weights, act)
        if order == "parallel":
            return x + mix(norm(x, first)) + _feed(norm(x, second), weights, act)
        x = x + mix(norm(x, first))
        return x + _feed(norm(x, second), weights, act)

    return answer


def _relu(x):
    return x.relu()


def _tanh_gelu(x):
    import torch.nn.functional as F

    return F.gelu(x, approximate="tanh")


def _plain_norm(x, weight):
    return norm(x, None)


def _cut(x, weight):
    return norm(x.detach(), weight)


BLOCK = Exercise(
    id="05.block",
    points=3,
    minutes=12,
    difficulty=2,
    teaches="two parts read a normalised copy of the residual stream and add to the stream itself",
    cases=_block_cases,
    expect=_block,
    drive=drive_block,
    tolerance=1e-8,
    mistakes=[
        Mistake(
            block_like(order="post"),
            "You normalise after each sum, as in the transformer of 2017. Here the norm is on the "
            "way into each part, and the stream itself is never normalised.",
        ),
        Mistake(
            block_like(order="none"),
            "The residual connections are missing: each part's output is added to x, it does not "
            "replace it.",
        ),
        Mistake(
            block_like(order="normed"),
            "You add to the normalised x. Add to x as it came in; only the part sees the norm.",
        ),
        Mistake(
            block_like(order="parallel"),
            "The feed-forward reads the x from before the attention. It comes second: it reads "
            "the sum.",
        ),
        Mistake(
            block_like(split="viewed"),
            "The heads are cut wrong. View as (batch, seq_len, n_head, head_dim) first, then "
            "exchange axes 1 and 2: a view straight to n_head first mixes positions.",
        ),
        Mistake(
            block_like(split="interleaved"),
            "The rows of qkv are all of q, then all of k, then all of v. You cut them head by "
            "head.",
        ),
        Mistake(
            block_like(merge=False),
            "After attention, exchange axes 1 and 2 back before the heads are joined.",
        ),
        Mistake(
            block_like(causal=False),
            "Attention must be causal, or every byte sees the one it shall predict. Pass True.",
        ),
        Mistake(
            block_like(own=_own),
            "You brought an attention of your own. Call the one that you were given: chapter 5 "
            "passes in different ones.",
        ),
        Mistake(
            block_like(act=_relu),
            "The feed-forward's activation is GELU, not ReLU.",
        ),
        Mistake(
            block_like(act=_tanh_gelu),
            "This is GELU's tanh approximation. F.gelu alone is the exact one.",
        ),
        Mistake(
            block_like(norm=_plain_norm),
            "The norms have weights: pass norm_1.weight and norm_2.weight.",
        ),
        Mistake(
            block_like(norm=_cut),
            "The output is right, but part of the gradient is cut off. Do not detach anything.",
        ),
    ],
    hints=[
        "Two sentences of the form x = x + part(norm(x)). What are the two parts?",
        "qkv = F.linear(h, weights[...]); three chunks along the last axis, each viewed as "
        "(batch, seq_len, n_head, head_dim) with axes 1 and 2 exchanged; attention(q, k, v, "
        "True); exchange back, reshape, out. Then the feed-forward with F.gelu.",
        "q, k, v = (t.view(b, n, n_head, -1).transpose(1, 2) for t in qkv.chunk(3, -1)); "
        "x = x + F.linear(mixed.transpose(1, 2).reshape(b, n, d), out_weight)",
    ],
)
