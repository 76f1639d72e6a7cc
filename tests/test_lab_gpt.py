"""The GPT against an independent one with the same weights: loops and einsum, in float64."""

import math
from dataclasses import replace

import pytest
import torch

from utils.arithmetic import MODELS, ModelShape, count_parameters
from utils.lab import CONFIGS, GPT, configuration, next_token_loss, scaled_dot_product_attention
from utils.lab.gpt import two_products

GPT_2 = ModelShape(2, 24, 4, 50, seq_len=11)
LLAMA = ModelShape(
    2, 24, 4, 50, seq_len=11, n_kv_head=2, d_ff=40, gated=True, norm="rmsnorm", positions="rope",
    bias=False, tied=False,
)  # fmt: skip
SHAPES = {
    "gpt-2": GPT_2,
    "llama": LLAMA,
    "gpt-2 without biases": replace(GPT_2, bias=False, qkv_bias=False),
    "one key head, wide heads": replace(LLAMA, n_kv_head=1, head_dim=10),
    "biases on qkv only": replace(LLAMA, qkv_bias=True, tied=True),
    "rope and layernorm": replace(GPT_2, positions="rope"),
    "gated with biases": replace(GPT_2, gated=True),
}


def reference_loss(weights: dict, shape: ModelShape, tokens, targets):
    """Logits (B, T, V) and mean loss, from named weights and nothing of the lab's."""
    x = weights["token_embedding.weight"][tokens]
    T = tokens.shape[1]
    if shape.positions == "learned":
        x = x + weights["position_embedding.weight"][:T]
    for layer in range(shape.n_layer):
        at = f"blocks.{layer}."
        normed = reference_norm(x, weights, at + "norm_1", shape)
        x = x + reference_attention(normed, weights, at + "attention.", shape)
        normed = reference_norm(x, weights, at + "norm_2", shape)
        hidden = linear(normed, weights, at + "feed_forward.up")
        if shape.gated:
            gate, up = hidden[..., : shape.d_ff], hidden[..., shape.d_ff :]
            hidden = gate / (1 + torch.exp(-gate)) * up
        else:
            hidden = hidden * 0.5 * (1 + torch.erf(hidden / math.sqrt(2)))
        x = x + linear(hidden, weights, at + "feed_forward.down")
    x = reference_norm(x, weights, "norm", shape)
    head = weights["token_embedding.weight" if shape.tied else "head.weight"]
    logits = torch.einsum("btc,vc->btv", x, head)
    right = torch.gather(logits, 2, targets[..., None])[..., 0]
    return logits, (torch.logsumexp(logits, -1) - right).mean()


def linear(x, weights, name):
    out = torch.einsum("btc,oc->bto", x, weights[name + ".weight"])
    return out + weights[name + ".bias"] if name + ".bias" in weights else out


def reference_norm(x, weights, name, shape):
    if shape.norm == "layernorm":
        x = x - x.mean(-1, keepdim=True)
    x = x / torch.sqrt((x**2).mean(-1, keepdim=True) + 1e-5) * weights[name + ".weight"]
    return x + weights[name + ".bias"] if name + ".bias" in weights else x


def reference_attention(x, weights, at, shape):
    T = x.shape[1]
    D, H, K = shape.head_dim, shape.n_head, shape.n_kv_head
    qkv = linear(x, weights, at + "qkv")
    pieces = []
    for h in range(H):
        kv = h // (H // K)
        q = qkv[..., h * D : (h + 1) * D]
        k = qkv[..., (H + kv) * D : (H + kv + 1) * D]
        v = qkv[..., (H + K + kv) * D : (H + K + kv + 1) * D]
        if shape.positions == "rope":
            q, k = turn(q), turn(k)
        rows = []
        for t in range(T):
            scores = torch.einsum("bd,bsd->bs", q[:, t], k[:, : t + 1]) / math.sqrt(D)
            weight = torch.exp(scores - torch.logsumexp(scores, -1, keepdim=True))
            rows.append(torch.einsum("bs,bsd->bd", weight, v[:, : t + 1]))
        pieces.append(torch.stack(rows, 1))
    return linear(torch.cat(pieces, -1), weights, at + "out")


def turn(x):
    """Rotary positions as a product of complex numbers: x[i] + j x[i + D/2] times e^(j t θ)."""
    half = x.shape[-1] // 2
    theta = 10000.0 ** (-2 * torch.arange(half, dtype=torch.float64) / x.shape[-1])
    angle = torch.arange(x.shape[1], dtype=torch.float64)[:, None] * theta
    turned = torch.complex(x[..., :half], x[..., half:]) * torch.polar(
        torch.ones_like(angle), angle
    )
    return torch.cat([turned.real, turned.imag], -1)


def double_gpt(shape: ModelShape, **options) -> GPT:
    """In float64, with weights large enough that every part matters."""
    model = GPT(shape, **options).double()
    if shape.positions == "rope":  # made in float32; here its rounding would show
        theta = 10000.0 ** (-2 * torch.arange(shape.head_dim // 2).double() / shape.head_dim)
        angle = torch.arange(shape.seq_len).double()[:, None] * theta
        assert torch.allclose(model.rotation, torch.stack([angle.cos(), angle.sin()]), atol=1e-6)
        model.rotation = torch.stack([angle.cos(), angle.sin()])
    generator = torch.Generator().manual_seed(3)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter += 0.3 * torch.randn(parameter.shape, generator=generator).double()
    return model


def some_tokens(shape: ModelShape, batch: int = 3, seq_len: int = 9):
    generator = torch.Generator().manual_seed(4)
    both = torch.randint(shape.vocab_size, (2, batch, seq_len), generator=generator)
    return both[0], both[1]


@pytest.mark.parametrize("name", SHAPES)
def test_logits_and_gradients_equal_an_independent_implementation(name):
    shape = SHAPES[name]
    model = double_gpt(shape)
    tokens, targets = some_tokens(shape)
    weights = {n: p.detach().clone().requires_grad_() for n, p in model.named_parameters()}
    expected, expected_loss = reference_loss(weights, shape, tokens, targets)
    logits = model(tokens)
    assert torch.allclose(logits, expected, rtol=1e-10, atol=1e-10)
    next_token_loss(logits, targets).backward()
    expected_loss.backward()
    for n, p in model.named_parameters():
        error = (p.grad - weights[n].grad).norm() / weights[n].grad.norm()
        assert error < 1e-10, (n, error)


@pytest.mark.parametrize("name", SHAPES)
def test_parameters_equal_arithmetic(name):
    n_stored = sum(parameter.numel() for parameter in GPT(SHAPES[name]).parameters())
    assert n_stored == count_parameters(SHAPES[name])


@pytest.mark.parametrize("name", CONFIGS)
def test_named_sizes_are_what_they_say_and_are_built_as_counted(name):
    with torch.device("meta"):  # no memory for the weights, no time to draw them
        shell = GPT(configuration(name))
    n_stored = sum(parameter.numel() for parameter in shell.parameters())
    assert n_stored == count_parameters(configuration(name))
    assert n_stored == pytest.approx(float(name.removesuffix("M")) * 1e6, rel=0.17)


def test_124m_is_gpt_2():
    assert configuration("124M") == MODELS["GPT-2 124M"]


@pytest.mark.parametrize("name", ["gpt-2", "llama"])
def test_recomputed_activations_give_the_same_gradients(name):
    tokens, targets = some_tokens(SHAPES[name])
    gradients = []
    for recompute in (False, True):
        model = double_gpt(SHAPES[name], recompute=recompute)
        next_token_loss(model(tokens), targets).backward()
        gradients.append([parameter.grad for parameter in model.parameters()])
    assert all(torch.equal(a, b) for a, b in zip(*gradients, strict=True))


def test_recompute_keeps_less_for_the_backward_pass():
    tokens, targets = some_tokens(GPT_2)
    held = []
    for recompute in (False, True):
        model, sizes = double_gpt(GPT_2, recompute=recompute), []
        keep = lambda t, sizes=sizes: (sizes.append(t.nbytes), t)[1]  # noqa: E731
        with torch.autograd.graph.saved_tensors_hooks(keep, lambda t: t):
            next_token_loss(model(tokens), targets)
        held.append(sum(sizes))
    assert held[1] < 0.5 * held[0]


def test_any_attention_is_called_with_the_documented_shapes():
    seen = []

    def mine(q, k, v, causal):
        seen.append((q.shape, k.shape, v.shape, causal))
        scores = torch.einsum("bhqd,bhkd->bhqk", q, k) / math.sqrt(q.shape[-1])
        hidden = torch.ones(q.shape[2], k.shape[2]).triu(1).bool()
        return torch.einsum(
            "bhqk,bhkd->bhqd", scores.masked_fill(hidden, -torch.inf).softmax(-1), v
        )

    tokens, _ = some_tokens(LLAMA)
    model, usual = double_gpt(LLAMA, attention=mine), double_gpt(LLAMA)
    assert torch.allclose(model(tokens), usual(tokens), atol=1e-10)
    head = (3, 4, 9, 6)
    assert seen == [(head, head, head, True)] * LLAMA.n_layer


@pytest.mark.parametrize("causal", [True, False])
def test_two_products_are_the_fused_attention(causal):
    generator = torch.Generator().manual_seed(0)
    q, k, v = torch.randn(3, 2, 3, 17, 8, generator=generator, dtype=torch.float64)
    expected = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=causal)
    assert torch.allclose(two_products(q, k, v, causal), expected, atol=1e-12)
    assert torch.allclose(scaled_dot_product_attention(q, k, v, causal), expected, atol=1e-12)
    half = [t.bfloat16().requires_grad_() for t in (q, k, v)]
    near = scaled_dot_product_attention(*half, causal).double()
    assert (near - expected).norm() / expected.norm() < 0.02


def test_a_token_changes_nothing_before_it():
    model = double_gpt(LLAMA)
    tokens, _ = some_tokens(LLAMA)
    other = tokens.clone()
    other[:, 5] = (other[:, 5] + 1) % LLAMA.vocab_size
    assert torch.equal(model(tokens)[:, :5], model(other)[:, :5])
    assert not torch.allclose(model(tokens)[:, 5:], model(other)[:, 5:])


def test_weights_start_as_in_gpt_2_and_from_their_seed():
    shape = ModelShape(8, 128, 4, 256, seq_len=64)
    model = GPT(shape, seed=5)
    weights = {name: p.detach() for name, p in model.named_parameters()}
    assert weights["token_embedding.weight"].std().item() == pytest.approx(0.02, rel=0.02)
    assert weights["blocks.3.attention.qkv.weight"].std().item() == pytest.approx(0.02, rel=0.02)
    assert weights["blocks.3.attention.out.weight"].std().item() == pytest.approx(0.005, rel=0.02)
    assert weights["blocks.3.feed_forward.down.weight"].std().item() == pytest.approx(
        0.005, rel=0.02
    )
    assert all(not p.any() for n, p in weights.items() if n.endswith("bias"))
    assert all((p == 1).all() for n, p in weights.items() if "norm" in n and n.endswith("weight"))
    tokens, targets = some_tokens(shape)
    assert next_token_loss(model(tokens), targets).item() == pytest.approx(math.log(256), abs=0.1)
    torch.manual_seed(99)  # the global generator has no say
    again, other = GPT(shape, seed=5), GPT(shape, seed=6)
    assert all(torch.equal(p, weights[n]) for n, p in again.named_parameters())
    assert not torch.equal(other.head.weight, model.head.weight)


def test_wrong_arguments_are_named():
    with pytest.raises(ValueError, match="n_expert=1"):
        GPT(ModelShape(1, 8, 1, 10, n_expert=2))
    with pytest.raises(ValueError, match="shape is 3"):
        GPT(3)
    with pytest.raises(ValueError, match="attention is None"):
        GPT(GPT_2, None)
    with pytest.raises(ValueError, match="head_dim is 3"):
        GPT(replace(LLAMA, head_dim=3))
    with pytest.raises(ValueError, match="at most seq_len=11"):
        GPT(GPT_2)(torch.zeros(1, 12, dtype=torch.long))
    with pytest.raises(ValueError, match='"1M"'):
        configuration("1m")
