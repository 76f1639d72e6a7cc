"""A GPT and its training loop as most people write them: what the lab's speed is compared with.

Written from the published architecture of GPT-2 and the habits of small public trainers: LayerNorm
before each part, one matrix for q, k and v, PyTorch's fused attention, exact GELU, tied head, AdamW
with its default implementation, gradients clipped by their norm, windows cut out of a memory map
one by one. Nothing is slowed down on purpose.
"""

import math

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn


class PlainAttention(nn.Module):
    def __init__(self, d_model: int, n_head: int, bias: bool) -> None:
        super().__init__()
        self.c_attn = nn.Linear(d_model, 3 * d_model, bias=bias)
        self.c_proj = nn.Linear(d_model, d_model, bias=bias)
        self.n_head = n_head

    def forward(self, x):
        B, T, C = x.shape
        q, k, v = self.c_attn(x).split(C, dim=2)
        q = q.view(B, T, self.n_head, C // self.n_head).transpose(1, 2)
        k = k.view(B, T, self.n_head, C // self.n_head).transpose(1, 2)
        v = v.view(B, T, self.n_head, C // self.n_head).transpose(1, 2)
        y = F.scaled_dot_product_attention(q, k, v, dropout_p=0.0, is_causal=True)
        return self.c_proj(y.transpose(1, 2).contiguous().view(B, T, C))


class PlainBlock(nn.Module):
    def __init__(self, d_model: int, n_head: int, bias: bool) -> None:
        super().__init__()
        self.ln_1 = nn.LayerNorm(d_model, bias=bias)
        self.attn = PlainAttention(d_model, n_head, bias)
        self.ln_2 = nn.LayerNorm(d_model, bias=bias)
        self.mlp = nn.Sequential(
            nn.Linear(d_model, 4 * d_model, bias=bias),
            nn.GELU(),
            nn.Linear(4 * d_model, d_model, bias=bias),
        )

    def forward(self, x):
        x = x + self.attn(self.ln_1(x))
        return x + self.mlp(self.ln_2(x))


class PlainGPT(nn.Module):
    def __init__(self, n_layer, d_model, n_head, vocab_size, seq_len, bias) -> None:
        super().__init__()
        self.wte = nn.Embedding(vocab_size, d_model)
        self.wpe = nn.Embedding(seq_len, d_model)
        self.h = nn.ModuleList(PlainBlock(d_model, n_head, bias) for _ in range(n_layer))
        self.ln_f = nn.LayerNorm(d_model, bias=bias)
        self.lm_head = nn.Linear(d_model, vocab_size, bias=False)
        self.lm_head.weight = self.wte.weight
        for name, parameter in self.named_parameters():
            if parameter.ndim == 2:
                last = name.endswith(("c_proj.weight", "mlp.2.weight"))
                nn.init.normal_(parameter, 0.0, 0.02 / math.sqrt(2 * n_layer) if last else 0.02)

    def forward(self, tokens, targets):
        positions = torch.arange(0, tokens.shape[1], dtype=torch.long, device=tokens.device)
        x = self.wte(tokens) + self.wpe(positions)
        for block in self.h:
            x = block(x)
        logits = self.lm_head(self.ln_f(x))
        return F.cross_entropy(logits.view(-1, logits.size(-1)), targets.view(-1), ignore_index=-1)


class PlainLoop:
    """step() trains once and returns the loss. data: a uint8 memory map or array, one long text."""

    def __init__(self, model, data: np.ndarray, batch: int, seq_len: int, dtype: str) -> None:
        self.model, self.data, self.batch, self.seq_len = model, data, batch, seq_len
        self.bf16 = dtype == "bf16"
        decay = [p for p in model.parameters() if p.dim() >= 2]
        no_decay = [p for p in model.parameters() if p.dim() < 2]
        groups = [{"params": decay, "weight_decay": 0.1}, {"params": no_decay, "weight_decay": 0.0}]
        self.optimizer = torch.optim.AdamW(groups, lr=1e-3, betas=(0.9, 0.99))

    def get_batch(self):
        at = torch.randint(len(self.data) - self.seq_len, (self.batch,))
        read = self.data
        x = [torch.from_numpy(read[i : i + self.seq_len].astype(np.int64)) for i in at]
        y = [torch.from_numpy(read[i + 1 : i + 1 + self.seq_len].astype(np.int64)) for i in at]
        return torch.stack(x), torch.stack(y)

    def step(self) -> float:
        x, y = self.get_batch()
        with torch.autocast("cpu", torch.bfloat16, enabled=self.bf16):
            loss = self.model(x, y)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        return loss.item()
