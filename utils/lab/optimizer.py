"""AdamW in two groups, and the learning rate of each step."""

import math

import torch
from torch import nn

from utils.arithmetic.checks import refuse


def make_optimizer(
    model: nn.Module,
    *,
    peak_lr: float,
    weight_decay: float = 0.1,
    beta1: float = 0.9,
    beta2: float = 0.99,
) -> torch.optim.AdamW:
    """AdamW (arXiv 1711.05101) that decays matrices and leaves norms and biases alone.

    Decay pulls a weight towards 0, which says something about a matrix; a norm's weight starts
    at 1. The update runs as one fused kernel over all parameters where the device has one.
    """
    parameters = [parameter for parameter in model.parameters() if parameter.requires_grad]
    groups = [
        {"params": [p for p in parameters if p.ndim >= 2], "weight_decay": weight_decay},
        {"params": [p for p in parameters if p.ndim < 2], "weight_decay": 0.0},
    ]
    fused = all(parameter.device.type in ("cpu", "cuda") for parameter in parameters)
    return torch.optim.AdamW(groups, lr=peak_lr, betas=(beta1, beta2), fused=fused)


def learning_rate(
    step: int, *, steps: int, peak_lr: float, warmup_steps: int, final_share: float = 0.1
) -> float:
    """Rate of step 0, 1, ... steps - 1: a straight line up to the peak, then half a cosine down.

    The first step has peak_lr / warmup_steps, step warmup_steps has the peak, and the last would
    be followed by final_share * peak_lr. Source: arXiv 1608.03983, eq. 5, with one cycle.
    Raises ValueError when step is not one of the run's.

    >>> learning_rate(0, steps=100, peak_lr=1.0, warmup_steps=10)
    0.1
    >>> learning_rate(10, steps=100, peak_lr=1.0, warmup_steps=10)
    1.0
    """
    if not 0 <= step < steps:
        raise refuse("step", step, f"0 to {steps - 1}, as steps is {steps}")
    if step < warmup_steps:
        return peak_lr * (step + 1) / warmup_steps
    done = (step - warmup_steps) / max(1, steps - warmup_steps)
    low = final_share * peak_lr
    return low + (peak_lr - low) * 0.5 * (1 + math.cos(math.pi * done))
