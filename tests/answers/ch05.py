"""Second, differently written correct answers to chapter 05's exercises."""

import math

import numpy as np
import torch
import torch.nn.functional as F


def get_batch(tokens, ends, seq_len, u):
    """Window by window: a start is good when no file ends inside its inputs."""
    closing = torch.zeros(len(tokens) + 1, dtype=torch.long)
    closing[ends + 1] = 1
    before = closing.cumsum(0)  # files that end before each place
    starts = torch.arange(max(0, len(tokens) - seq_len))
    good = starts[before[starts + seq_len] == before[starts]]
    first = good[(u * len(good)).long()]
    rows = torch.stack([tokens[i : i + seq_len + 1].to(torch.int64) for i in first.tolist()])
    return rows[:, :-1], rows[:, 1:]


def block(x, weights, n_head, attention):
    """With einsum, norms by hand, GELU from the error function."""

    def norm(x, name):
        centred = x - x.mean(-1, keepdim=True)
        return centred * (centred.square().mean(-1, keepdim=True) + 1e-5).rsqrt() * weights[name]

    d_model = x.shape[-1]
    per_head = weights["attention.qkv.weight"].reshape(3, n_head, d_model // n_head, d_model)
    q, k, v = torch.einsum("btc,phdc->pbhtd", norm(x, "norm_1.weight"), per_head)
    mixed = attention(q, k, v, True)
    out = weights["attention.out.weight"].reshape(d_model, n_head, d_model // n_head)
    x = x + torch.einsum("bhtd,chd->btc", mixed, out)
    hidden = norm(x, "norm_2.weight") @ weights["feed_forward.up.weight"].mT
    hidden = 0.5 * hidden * (1 + torch.erf(hidden / math.sqrt(2)))
    return x + hidden @ weights["feed_forward.down.weight"].mT


def gpt(tokens, weights, n_layer, n_head, attention):
    """A lookup as a product with one-hot rows; the same product, turned, is the head."""
    table = weights["token_embedding.weight"]
    x = F.one_hot(tokens, len(table)).to(table.dtype) @ table
    x += weights["position_embedding.weight"].split(tokens.shape[-1])[0]
    names = [name.split(".", 2)[2] for name in weights if name.startswith("blocks.0.")]
    for layer in range(n_layer):
        x = block(x, {name: weights[f"blocks.{layer}.{name}"] for name in names}, n_head, attention)
    norm = F.layer_norm(x, (x.shape[-1],), weights["norm.weight"])
    return torch.einsum("btc,vc->btv", norm, table)


def cross_entropy(logits, targets):
    log_p = F.log_softmax(logits.transpose(1, 2), dim=1).movedim(1, -1)
    return -(log_p * F.one_hot(targets, logits.shape[-1])).sum() / targets.numel()


def adamw(w, g, m, v, step, lr, beta1, beta2, eps, weight_decay):
    """In place, as optimizers do it, with the corrections moved into the rate."""
    if w.ndim > 1:
        w.mul_(1 - lr * weight_decay)
    m.lerp_(g, 1 - beta1)
    v.mul_(beta2).addcmul_(g, g, value=1 - beta2)
    root = (v / (1 - beta2**step)).sqrt_().add_(eps)
    w.addcdiv_(m, root, value=-lr / (1 - beta1**step))
    return w, m, v


def lr_schedule(step, steps, peak_lr, warmup_steps, final_share):
    if warmup_steps > step:
        return np.linspace(0, peak_lr, warmup_steps + 1)[step + 1]
    angle = np.pi * (step - warmup_steps) / max(1, steps - warmup_steps)
    return float(peak_lr * np.interp(np.cos(angle), [-1, 1], [final_share, 1]))


def accumulate_gradients(loss_of, weights, micro_batches):
    """Into .grad, as training loops do it: gradients of sums first, divided at the end."""
    n = 0
    for x, y in micro_batches:
        (loss_of(weights, x, y) * y.numel()).backward()
        n += y.numel()
    return {name: weight.grad / n for name, weight in weights.items()}


def is_it_real(losses_a, losses_b, t):
    gaps = np.subtract(losses_b, losses_a)
    half = t * gaps.std(ddof=1) / len(gaps) ** 0.5
    low, high = gaps.mean() - half, gaps.mean() + half
    return {"difference": gaps.mean(), "low": low, "high": high, "real": bool(low * high > 0)}


def fit_scaling_law(sizes, losses, t, new_size):
    """Moved so that the new size is the origin: its prediction is the intercept."""
    x, y = np.log(np.divide(sizes, new_size)), np.log(losses)
    (slope, middle), covariance = np.polyfit(x, y, 1, cov="unscaled")
    left = y - middle - slope * x
    half = t * math.sqrt((left @ left) / (len(x) - 2) * (1 + covariance[1, 1]))
    low, high = np.exp([middle - half, middle + half])
    return {"exponent": -slope, "prediction": np.exp(middle), "low": low, "high": high}
