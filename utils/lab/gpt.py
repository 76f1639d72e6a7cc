"""A transformer to read in one sitting: GPT-2, or with RMSNorm, RoPE and SwiGLU, a Llama.

Shapes in comments: B batch, T tokens in a sequence, C d_model, H heads, D head_dim.
"""

import math
from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.checkpoint import checkpoint

from utils.arithmetic import ModelShape
from utils.arithmetic.checks import flag, refuse

NORM_EPSILON = 1e-5
ROPE_BASE = 10_000.0
INIT_STD = 0.02
SHORT = 512  # tokens; see scaled_dot_product_attention

# (q, k, v, causal) -> out. All four tensors are (batch, n_head, seq_len, head_dim).
Attention = Callable[[torch.Tensor, torch.Tensor, torch.Tensor, bool], torch.Tensor]


def scaled_dot_product_attention(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, causal: bool
) -> torch.Tensor:
    """softmax(q kᵀ / √head_dim) v; all four (batch, n_head, seq_len, head_dim).

    causal: query i sees keys 0 to i. PyTorch's fused kernel, but for one case: its backward
    pass in bf16 on a CPU is several times slower than two plain products on short sequences.
    Source: arXiv 1706.03762, eq. 1.
    """
    on_cpu_in_bf16 = q.device.type == "cpu" and q.dtype == torch.bfloat16
    if on_cpu_in_bf16 and q.requires_grad and q.shape[2] <= SHORT:
        return two_products(q, k, v, causal)
    return F.scaled_dot_product_attention(q, k, v, is_causal=causal)


def two_products(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, causal: bool) -> torch.Tensor:
    """The same, with the (seq_len, seq_len) scores in memory."""
    batch, n_head, seq_len, head_dim = q.shape
    q, k, v = (t.reshape(batch * n_head, -1, head_dim) for t in (q, k, v))
    bias = torch.zeros(seq_len, k.shape[1], dtype=q.dtype, device=q.device)
    if causal:
        bias = bias.fill_(float("-inf")).triu_(1)
    with torch.autocast(q.device.type, enabled=False):  # all three are in one dtype already
        scores = torch.baddbmm(bias, q, k.transpose(1, 2), alpha=1 / math.sqrt(head_dim))
        return torch.bmm(scores.softmax(-1), v).view(batch, n_head, seq_len, head_dim)


class GPT(nn.Module):
    """Tokens in, logits of each next token out.

    shape: a ModelShape, dense (n_expert=1); CONFIGS has named ones
    attention: what mixes the tokens; see Attention. Grouped k and v arrive already repeated,
      so that any attention for equal heads will do.
    recompute: keep no activations inside a block; compute them again in the backward pass
      (arXiv 1604.06174). Same gradients, about a third more FLOPs.
    seed: of the initial weights, which are the same on every device
    Raises ValueError naming a wrong argument.

    >>> model = GPT(ModelShape(2, 32, 4, 256, seq_len=16))
    >>> model(torch.zeros(3, 16, dtype=torch.long)).shape
    torch.Size([3, 16, 256])
    """

    def __init__(
        self,
        shape: ModelShape,
        attention: Attention = scaled_dot_product_attention,
        *,
        recompute: bool = False,
        seed: int = 0,
    ) -> None:
        super().__init__()
        if not isinstance(shape, ModelShape) or shape.n_expert != 1:
            raise refuse("shape", shape, "a ModelShape with n_expert=1")
        if not callable(attention):
            raise refuse("attention", attention, "a function (q, k, v, causal) -> out")
        self.shape = shape
        self.recompute = flag("recompute", recompute)
        self.token_embedding = nn.Embedding(shape.vocab_size, shape.d_model)
        if shape.positions == "learned":
            self.position_embedding = nn.Embedding(shape.seq_len, shape.d_model)
        else:
            self.register_buffer("rotation", rope_table(shape), persistent=False)
        self.blocks = nn.ModuleList(Block(shape, attention) for _ in range(shape.n_layer))
        self.norm = make_norm(shape)
        self.head = nn.Linear(shape.d_model, shape.vocab_size, bias=False)
        if shape.tied:
            self.head.weight = self.token_embedding.weight
        self.initialise(seed)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """tokens (batch, seq_len) integers -> logits (batch, seq_len, vocab_size).

        Raises ValueError when the sequence is longer than shape.seq_len.
        """
        seq_len = tokens.shape[1]
        if seq_len > self.shape.seq_len:
            raise refuse("tokens.shape[1]", seq_len, f"at most seq_len={self.shape.seq_len}")
        x = self.token_embedding(tokens)  # (B, T, C)
        rotation = None
        if self.shape.positions == "learned":
            x = x + self.position_embedding.weight[:seq_len]
        else:
            rotation = self.rotation[:, :seq_len]
        for block in self.blocks:
            if self.recompute and torch.is_grad_enabled():
                x = checkpoint(block, x, rotation, use_reentrant=False)
            else:
                x = block(x, rotation)
        return self.head(self.norm(x))

    @torch.no_grad()
    def initialise(self, seed: int) -> None:
        """Weights as in GPT-2: normal with std 0.02, biases 0, norms 1.

        The two matrices of a block that write into the residual stream get 0.02 / √(2 n_layer),
        so that the sum of all blocks starts out as large as one. Source: GPT-2 report, section 2.3.
        """
        generator = torch.Generator("cpu").manual_seed(seed)
        residual_std = INIT_STD / math.sqrt(2 * self.shape.n_layer)
        for name, parameter in self.named_parameters():
            if parameter.ndim < 2 or parameter.is_meta:
                continue  # norms are made as 1 and 0; biases follow; a meta tensor has no values
            std = residual_std if name.endswith(("out.weight", "down.weight")) else INIT_STD
            values = torch.empty(parameter.shape, device="cpu")
            parameter.copy_(values.normal_(0.0, std, generator=generator))
        for module in self.modules():
            if isinstance(module, nn.Linear) and module.bias is not None:
                module.bias.zero_()


class Block(nn.Module):
    """Attention mixes the tokens, the feed-forward works on each; both add to the stream."""

    def __init__(self, shape: ModelShape, attention: Attention) -> None:
        super().__init__()
        self.norm_1 = make_norm(shape)
        self.attention = SelfAttention(shape, attention)
        self.norm_2 = make_norm(shape)
        self.feed_forward = FeedForward(shape)

    def forward(self, x: torch.Tensor, rotation: torch.Tensor | None) -> torch.Tensor:
        """x (batch, seq_len, d_model) -> the same shape."""
        x = x + self.attention(self.norm_1(x), rotation)
        return x + self.feed_forward(self.norm_2(x))


class SelfAttention(nn.Module):
    """Project to heads, rotate where positions are rotary, attend causally, project back."""

    def __init__(self, shape: ModelShape, attention: Attention) -> None:
        super().__init__()
        self.attention = attention
        self.n_head, self.n_kv_head, self.head_dim = shape.n_head, shape.n_kv_head, shape.head_dim
        n_projected = (self.n_head + 2 * self.n_kv_head) * self.head_dim
        self.qkv = nn.Linear(shape.d_model, n_projected, bias=shape.qkv_bias)
        self.out = nn.Linear(self.n_head * self.head_dim, shape.d_model, bias=shape.bias)

    def forward(self, x: torch.Tensor, rotation: torch.Tensor | None) -> torch.Tensor:
        """x (batch, seq_len, d_model) -> the same shape. rotation: see rope_table."""
        batch, seq_len, _ = x.shape
        heads = self.qkv(x).view(batch, seq_len, -1, self.head_dim)  # (B, T, H, D)
        parts = heads.split([self.n_head, self.n_kv_head, self.n_kv_head], dim=2)
        q, k, v = (part.transpose(1, 2) for part in parts)  # (B, H, T, D)
        if rotation is not None:
            q, k = rotate(q, rotation), rotate(k, rotation)
        if self.n_kv_head < self.n_head:  # query head h reads key head h // group
            group = self.n_head // self.n_kv_head
            k, v = k.repeat_interleave(group, dim=1), v.repeat_interleave(group, dim=1)
        mixed = self.attention(q, k, v, True)  # (B, H, T, D)
        return self.out(mixed.transpose(1, 2).reshape(batch, seq_len, -1))


class FeedForward(nn.Module):
    """down(gelu(up(x))), or gated: down(silu(gate(x)) * up(x)), SwiGLU of arXiv 2002.05202."""

    def __init__(self, shape: ModelShape) -> None:
        super().__init__()
        self.gated = shape.gated
        n_up = 2 * shape.d_ff if shape.gated else shape.d_ff  # gate and up in one matmul
        self.up = nn.Linear(shape.d_model, n_up, bias=shape.bias)
        self.down = nn.Linear(shape.d_ff, shape.d_model, bias=shape.bias)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """x (..., d_model) -> the same shape."""
        if self.gated:
            gate, up = self.up(x).chunk(2, dim=-1)
            return self.down(F.silu(gate) * up)
        return self.down(F.gelu(self.up(x)))


def make_norm(shape: ModelShape) -> nn.Module:
    """LayerNorm (arXiv 1607.06450) or RMSNorm (arXiv 1910.07467), as the shape says."""
    if shape.norm == "rmsnorm":
        return nn.RMSNorm(shape.d_model, eps=NORM_EPSILON)
    return nn.LayerNorm(shape.d_model, eps=NORM_EPSILON, bias=shape.bias)


def rope_table(shape: ModelShape) -> torch.Tensor:
    """(2, seq_len, head_dim / 2): cosine and sine of position * base^(-2i / head_dim).

    Raises ValueError when head_dim is odd. Source: arXiv 2104.09864, eq. 15.
    """
    if shape.head_dim % 2:
        raise refuse("head_dim", shape.head_dim, "an even number, for rotary positions")
    frequency = ROPE_BASE ** (-torch.arange(0, shape.head_dim, 2).double() / shape.head_dim)
    angle = torch.arange(shape.seq_len).double()[:, None] * frequency
    return torch.stack([angle.cos(), angle.sin()]).float()


def rotate(x: torch.Tensor, rotation: torch.Tensor) -> torch.Tensor:
    """Turn each pair (x[i], x[i + head_dim / 2]) by its position's angle. x: (B, H, T, D).

    The paper pairs neighbours; halves are the same up to an order of the weights' rows.
    """
    first, second = x.chunk(2, dim=-1)
    cos, sin = rotation
    turned = torch.cat([first * cos - second * sin, second * cos + first * sin], dim=-1)
    return turned.to(x.dtype)


def next_token_loss(logits: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    """Mean cross-entropy in nats a token. logits (B, T, vocab_size), targets (B, T) -> scalar."""
    return F.cross_entropy(logits.view(-1, logits.shape[-1]), targets.reshape(-1))
