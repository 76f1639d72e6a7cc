"""Second, differently written correct answers to chapter 04's exercises."""

import math

import torch
import torch.nn.functional as F


def softmax(x):
    return (x - torch.logsumexp(x, dim=-1, keepdim=True)).exp()


def attention(q, k, v, causal=True):
    """In place on its own buffer."""
    scores = torch.einsum("bhid,bhjd->bhij", q, k)
    scores /= math.sqrt(q.size(-1))
    if causal:
        position = torch.arange(q.size(2))
        scores += torch.where(position[:, None] >= position, 0.0, -1e9).to(q)
    scores -= scores.amax(-1, keepdim=True)
    scores.exp_()
    scores /= scores.sum(-1, keepdim=True)
    return torch.einsum("bhij,bhjd->bhid", scores, v)


def multi_head(x, w_qkv, w_out, n_head, causal=True):
    """One head after the other, side by side again with cat."""
    d_model = x.shape[-1]
    q, k, v = (x @ w_qkv[:, i * d_model : (i + 1) * d_model] for i in range(3))
    heads = zip(*(y.split(d_model // n_head, dim=-1) for y in (q, k, v)), strict=True)
    mixed = [F.scaled_dot_product_attention(*head, is_causal=causal) for head in heads]
    return F.linear(torch.cat(mixed, dim=-1), w_out.T)


def grouped_query(q, k, v, causal=True):
    """A fifth axis for the group, and nothing copied."""
    batch, _, seq_len, head_dim = q.shape
    grouped = q.reshape(batch, k.shape[1], -1, seq_len, head_dim)
    scores = torch.einsum("bgsid,bgjd->bgsij", grouped, k) / head_dim**0.5
    if causal:
        scores = scores.masked_fill(~torch.ones(seq_len, seq_len).tril().bool(), -torch.inf)
    out = torch.einsum("bgsij,bgjd->bgsid", scores.softmax(-1), v)
    return out.reshape(q.shape)


def rope(x, start=0, base=10_000.0):
    """As a product of complex numbers."""
    head_dim = x.shape[-1]
    rate = torch.pow(base, -2 * torch.arange(head_dim // 2, dtype=torch.float64) / head_dim)
    angle = torch.outer(torch.arange(start, start + x.shape[2], dtype=torch.float64), rate)
    turn = torch.polar(torch.ones_like(angle), angle)
    first, second = x.double().split(head_dim // 2, dim=-1)
    turned = torch.complex(first, second) * turn
    return torch.cat([turned.real, turned.imag], dim=-1).to(x.dtype)


def online_softmax(chunks):
    """With tensors only, and the sum kept as a logarithm."""
    top, log_total = torch.tensor(-torch.inf), torch.tensor(-torch.inf)
    for chunk in chunks:
        top = torch.maximum(top, chunk.max())
        log_total = torch.logaddexp(log_total, torch.logsumexp(chunk, 0))
    return top, torch.exp(log_total - top)


def tiled_attention(q, k, v, causal=True, block_q=64, block_k=64):
    """Head by head in float64, tiles joined with cat, each merged by its logsumexp."""
    heads = [
        _one_head(*(x[batch, head].double() for x in (q, k, v)), causal, block_q, block_k)
        for batch in range(q.shape[0])
        for head in range(q.shape[1])
    ]
    return torch.stack(heads).reshape(q.shape).to(q.dtype)


def _one_head(q, k, v, causal, block_q, block_k):
    finished = []
    for i, queries in enumerate(q.split(block_q)):
        rows = i * block_q + torch.arange(len(queries))
        out, log_total = torch.zeros_like(queries), torch.full((len(queries),), -torch.inf)
        for j, keys in enumerate(k.split(block_k)):
            columns = j * block_k + torch.arange(len(keys))
            if causal and columns[0] > rows[-1]:
                break
            scores = queries @ keys.T / math.sqrt(q.shape[1])
            if causal:
                scores[columns[None] > rows[:, None]] = -torch.inf
            here = scores.logsumexp(1)
            both = torch.logaddexp(log_total, here)
            part = (scores - both[:, None]).exp() @ v[j * block_k : (j + 1) * block_k]
            out = out * (log_total - both).exp()[:, None] + part
            log_total = both
        finished.append(out)
    return torch.cat(finished)


def hbm_bytes(seq_len, head_dim, bytes_per_element, block_q=None, block_k=None, causal=False):
    if block_q is None:
        kernels = [
            2 * seq_len * head_dim + seq_len**2,
            2 * seq_len**2,
            seq_len**2 + 2 * seq_len * head_dim,
        ]
        return sum(kernels) * bytes_per_element
    visited = 0
    for start in range(0, seq_len, block_q):
        last = min(start + block_q, seq_len) - 1
        tiles = last // block_k + 1 if causal else math.ceil(seq_len / block_k)
        visited += min(tiles * block_k, seq_len)
    return 2 * head_dim * (seq_len + visited) * bytes_per_element


def attention_backward(q, k, v, d_out, causal=True):
    """With the row sums taken from the output: sum of weights · d_weights is out · d_out."""
    scale = q.shape[-1] ** -0.5
    scores = torch.einsum("bhid,bhjd->bhij", q, k).mul_(scale)
    if causal:
        scores.masked_fill_(torch.ones(q.shape[2], q.shape[2]).triu(1).bool(), -torch.inf)
    weights = torch.exp(scores - scores.logsumexp(-1, keepdim=True))
    out = torch.einsum("bhij,bhjd->bhid", weights, v)
    d_weights = torch.einsum("bhid,bhjd->bhij", d_out, v)
    d_weights -= (out * d_out).sum(-1, keepdim=True)
    d_scores = weights * d_weights * scale
    d_q = torch.einsum("bhij,bhjd->bhid", d_scores, k)
    d_k = torch.einsum("bhij,bhid->bhjd", d_scores, q)
    return d_q, d_k, torch.einsum("bhij,bhid->bhjd", weights, d_out)
