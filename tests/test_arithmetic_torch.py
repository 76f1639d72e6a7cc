"""utils.arithmetic against PyTorch: real modules' parameters, and PyTorch's own FLOP counter."""

import pytest
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint, set_checkpoint_early_stop
from torch.utils.flop_counter import FlopCounterMode

from utils.arithmetic import (
    ModelShape,
    active_parameters,
    count_parameters,
    forward_flops,
    model,
    training_flops,
)

LLAMA = {"gated": True, "norm": "rmsnorm", "positions": "rope", "bias": False, "tied": False}
SHAPES = {
    "gpt": ModelShape(3, 48, 4, 101, seq_len=32),
    "gpt without biases, untied": ModelShape(2, 48, 4, 101, seq_len=32, bias=False, tied=False),
    "llama": ModelShape(3, 48, 6, 101, n_kv_head=2, d_ff=72, **LLAMA),
    "llama, multi-query, wide heads": ModelShape(2, 48, 4, 101, n_kv_head=1, head_dim=20, **LLAMA),
    "qwen, tied": ModelShape(
        2, 48, 4, 101, n_kv_head=2, d_ff=80, qkv_bias=True, **{**LLAMA, "tied": True}
    ),
    "gated with biases": ModelShape(2, 48, 4, 101, gated=True, seq_len=32),
    "experts": ModelShape(2, 48, 4, 101, d_ff=56, n_expert=5, n_expert_active=2, **LLAMA),
    "shared experts, biases": ModelShape(
        2, 48, 4, 101, seq_len=32, n_expert=4, n_expert_active=1, n_expert_shared=2, d_ff_expert=40
    ),
}


def norm(shape):
    if shape.norm == "rmsnorm":
        return nn.RMSNorm(shape.d_model)
    return nn.LayerNorm(shape.d_model, bias=shape.bias)


def core(q, k, v):
    """Attention proper. q, k, v: (batch, head, token, head_dim)."""
    scores = q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5
    mask = torch.ones(scores.shape[-2:], dtype=torch.bool, device=q.device).triu(1)
    return scores.masked_fill(mask, float("-inf")).softmax(-1) @ v


class Attention(nn.Module):
    def __init__(self, shape):
        super().__init__()
        self.shape = shape
        d, q, kv = shape.d_model, shape.n_head * shape.head_dim, shape.n_kv_head * shape.head_dim
        self.q, self.k, self.v = (nn.Linear(d, n, bias=shape.qkv_bias) for n in (q, kv, kv))
        self.out = nn.Linear(q, d, bias=shape.bias)

    def forward(self, x, recompute):
        batch, tokens, _ = x.shape
        q, k, v = (
            linear(x).view(batch, tokens, -1, self.shape.head_dim).transpose(1, 2)
            for linear in (self.q, self.k, self.v)
        )
        group = self.shape.n_head // self.shape.n_kv_head
        k, v = k.repeat_interleave(group, 1), v.repeat_interleave(group, 1)
        if recompute == "selective":
            y = checkpoint(core, q, k, v, use_reentrant=False)
        else:
            y = core(q, k, v)
        return self.out(y.transpose(1, 2).reshape(batch, tokens, -1))


class FeedForward(nn.Module):
    def __init__(self, shape, d_hidden):
        super().__init__()
        self.up = nn.Linear(shape.d_model, d_hidden, bias=shape.bias)
        self.gate = nn.Linear(shape.d_model, d_hidden, bias=shape.bias) if shape.gated else None
        self.down = nn.Linear(d_hidden, shape.d_model, bias=shape.bias)

    def forward(self, x):
        if self.gate is None:
            return self.down(nn.functional.gelu(self.up(x)))
        return self.down(nn.functional.silu(self.gate(x)) * self.up(x))


class Experts(nn.Module):
    def __init__(self, shape):
        super().__init__()
        self.n_active = shape.n_expert_active
        self.router = nn.Linear(shape.d_model, shape.n_expert, bias=False)
        make = [FeedForward(shape, shape.d_ff_expert) for _ in range(shape.n_expert)]
        self.routed = nn.ModuleList(make)
        self.shared = nn.ModuleList(
            FeedForward(shape, shape.d_ff_expert) for _ in range(shape.n_expert_shared)
        )

    def forward(self, x):
        rows = x.reshape(-1, x.shape[-1])
        weights, chosen = self.router(rows).softmax(-1).topk(self.n_active)
        y = sum((expert(rows) for expert in self.shared), torch.zeros_like(rows))
        for number, expert in enumerate(self.routed):
            row, slot = (chosen == number).nonzero(as_tuple=True)
            if len(row):
                y = y.index_add(0, row, expert(rows[row]) * weights[row, slot, None])
        return y.view_as(x)


class Block(nn.Module):
    def __init__(self, shape):
        super().__init__()
        self.norm_1, self.norm_2 = norm(shape), norm(shape)
        self.attention = Attention(shape)
        dense = shape.n_expert == 1
        self.feed_forward = FeedForward(shape, shape.d_ff) if dense else Experts(shape)

    def forward(self, x, recompute):
        x = x + self.attention(self.norm_1(x), recompute)
        return x + self.feed_forward(self.norm_2(x))


class Net(nn.Module):
    """The model that a shape describes. Rotation of q and k is left out: it is no matmul."""

    def __init__(self, shape):
        super().__init__()
        self.tokens = nn.Embedding(shape.vocab_size, shape.d_model)
        learned = shape.positions == "learned"
        self.positions = nn.Embedding(shape.seq_len, shape.d_model) if learned else None
        self.blocks = nn.ModuleList(Block(shape) for _ in range(shape.n_layer))
        self.norm = norm(shape)
        self.head = nn.Linear(shape.d_model, shape.vocab_size, bias=False)
        if shape.tied:
            self.head.weight = self.tokens.weight

    def forward(self, ids, recompute="none"):
        x = self.tokens(ids)
        if self.positions is not None:
            x = x + self.positions(torch.arange(ids.shape[1], device=ids.device))
        for block in self.blocks:
            if recompute == "full":
                x = checkpoint(block, x, recompute, use_reentrant=False)
            else:
                x = block(x, recompute)
        return self.head(self.norm(x))


def size(parameters):
    return sum(parameter.numel() for parameter in parameters)


def counted(run):
    with FlopCounterMode(display=False) as counter:
        run()
    return counter.get_total_flops()


@pytest.fixture(params=SHAPES, ids=list(SHAPES))
def shape(request):
    torch.manual_seed(0)
    return SHAPES[request.param]


def test_parameters(shape):
    assert count_parameters(shape) == size(Net(shape).parameters())


@pytest.mark.parametrize("name", ["GPT-2 124M", "Llama 3.1 8B", "Qwen2.5 0.5B", "Mixtral 8x7B"])
def test_parameters_of_whole_models_without_their_weights(name):
    with torch.device("meta"):
        net = Net(model(name))
    assert count_parameters(model(name)) == size(net.parameters())


def test_active_parameters_are_those_one_token_gives_a_gradient(shape):
    net = Net(shape)
    net(torch.zeros(1, 1, dtype=torch.long)).sum().backward()
    touched = size(p for p in net.parameters() if p.grad is not None)
    assert active_parameters(shape) == touched


def test_forward_flops(shape):
    ids = torch.randint(shape.vocab_size, (3, 20))
    net = Net(shape)
    assert forward_flops(shape, seq_len=20, batch=3) == counted(lambda: net(ids))


def test_forward_flops_of_gpt2_on_meta_tensors():
    with torch.device("meta"):
        net, ids = Net(model("GPT-2 124M")), torch.zeros(1, 1024, dtype=torch.long)
    assert counted(lambda: net(ids)) == forward_flops(model("GPT-2 124M")) == 291_648_307_200


@pytest.mark.parametrize("recompute", ["none", "selective", "full"])
def test_training_flops(shape, recompute):
    ids = torch.randint(shape.vocab_size, (2, 20))
    net = Net(shape)
    # Without this PyTorch stops recomputing before the last product, which nobody needs again.
    with set_checkpoint_early_stop(False):
        got = counted(lambda: net(ids, recompute).sum().backward())
    assert training_flops(shape, seq_len=20, batch=2, recompute=recompute) == got
