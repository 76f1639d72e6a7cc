"""Held-out loss, and text that the model writes."""

import contextlib

import torch

from utils.arithmetic import checks
from utils.lab.data import Split, get_batch
from utils.lab.gpt import GPT, next_token_loss
from utils.lab.recipe import DTYPES

SAME_WINDOWS = 20_260_101  # a seed: every model and every run is measured on the same bytes
WINDOWS_AT_ONCE = 32


def autocast(device: torch.device, dtype: str) -> contextlib.AbstractContextManager:
    """Matrix products in that dtype, weights as they are. "fp32" changes nothing."""
    if dtype == "fp32":
        return contextlib.nullcontext()
    return torch.autocast(device.type, DTYPES[dtype])


@torch.no_grad()
def evaluate(
    model: GPT,
    split: Split,
    *,
    windows: int = 256,
    seq_len: int | None = None,
    dtype: str = "fp32",
) -> float:
    """Mean loss in nats a byte over the same random windows of the split each time.

    seq_len: bytes predicted in each window, default shape.seq_len
    Raises ValueError naming a wrong argument.
    """
    left = checks.whole("windows", windows)
    seq_len = checks.whole("seq_len", seq_len or model.shape.seq_len, 1, model.shape.seq_len)
    checks.choice("dtype", dtype, DTYPES)
    device = next(model.parameters()).device
    generator = torch.Generator().manual_seed(SAME_WINDOWS)
    total = torch.zeros((), dtype=torch.float64)
    while left:
        n = min(left, WINDOWS_AT_ONCE)
        x, y = (part.to(device) for part in get_batch(split, n, seq_len, generator))
        with autocast(device, dtype):
            total += n * next_token_loss(model(x), y).double().cpu()
        left -= n
    return float(total) / windows


@torch.no_grad()
def generate(
    model: GPT, prompt: str, n_bytes: int = 300, *, temperature: float = 0.8, seed: int = 0
) -> str:
    """The prompt and what the model writes after it, byte by byte, each drawn at random.

    temperature: logits are divided by it; near 0 the likeliest byte always wins
    Every byte runs the whole context again: chapter 11 shows how not to. Bytes that are no UTF-8
    show as �. Raises ValueError naming a wrong argument.
    """
    if not isinstance(prompt, str) or not prompt:
        raise checks.refuse("prompt", prompt, "some text, at least one character")
    checks.positive("temperature", temperature)
    device = next(model.parameters()).device
    generator = torch.Generator().manual_seed(seed)
    written = list(prompt.encode())
    for _ in range(checks.whole("n_bytes", n_bytes)):
        context = torch.tensor([written[-model.shape.seq_len :]], device=device)
        logits = model(context)[0, -1, :256].float().cpu() / temperature
        written.append(int(torch.multinomial(logits.softmax(-1), 1, generator=generator)))
    return bytes(written).decode(errors="replace")
