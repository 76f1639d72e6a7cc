"""Chapter 05: the optimizer and its learning rate."""

from __future__ import annotations

import math

import numpy as np

from ._ch05_drive import drive_adamw
from .spec import Exercise, Mistake


def _adamw(w, g, m, v, step, lr, beta1, beta2, eps, weight_decay):
    """One element after the other, as arXiv 1711.05101, algorithm 2, has it."""
    decay = weight_decay if w.ndim >= 2 else 0.0
    new_w, new_m, new_v = np.empty_like(w), np.empty_like(m), np.empty_like(v)
    for i in np.ndindex(w.shape):
        new_m[i] = m[i] + (1 - beta1) * (g[i] - m[i])
        new_v[i] = v[i] + (1 - beta2) * (g[i] ** 2 - v[i])
        size = math.sqrt(new_v[i] / (1 - beta2**step)) + eps
        new_w[i] = w[i] - lr * (new_m[i] / (1 - beta1**step) / size + decay * w[i])
    return [new_w, new_m, new_v]


def _adamw_cases(rng):
    def case(shape, step, lr=0.05, beta1=0.9, beta2=0.99, eps=1e-2, weight_decay=0.4):
        w, g, m = (rng.normal(size=shape) for _ in "wgm")
        v = rng.random(size=shape)
        if step == 1:
            m, v = np.zeros(shape), np.zeros(shape)
        return w, g, m, v, step, lr, beta1, beta2, eps, weight_decay

    w, _, m, v, *rest = case((2, 2), 1)
    return [
        case((3, 4), 1),
        case((3, 4), 7),
        case((5,), 3),
        case((5,), 1),
        (w, np.zeros((2, 2)), m, v, *rest),
        case((2, 3), 1000, lr=3e-3, beta2=0.999, eps=1e-8, weight_decay=0.1),
        case((2, 3), int(rng.integers(2, 50)), beta1=0.8, beta2=0.95, eps=1e-3),
        case((1, 1), 2, lr=1.0),
        case((2, 1, 3), 4),
    ]


def adamw_like(
    coupled=False,
    correct=lambda beta, step: 1 - beta**step,
    decays=lambda w: w.ndim >= 2,
    pull=lambda lr, decay: lr * decay,
    root=lambda v, eps: v.sqrt() + eps,
    late=False,
    keep_corrected=False,
    square=lambda g: g * g,
    fresh=lambda beta: 1 - beta,
):
    """A step of AdamW with its parts exchanged."""

    def answer(w, g, m, v, step, lr, beta1, beta2, eps, weight_decay):
        decay = weight_decay if decays(w) else 0.0
        if coupled:
            g, decay = g + decay * w, 0.0
        m = beta1 * m + fresh(beta1) * g
        v = beta2 * v + fresh(beta2) * square(g)
        m_hat, v_hat = m / correct(beta1, step), v / correct(beta2, step)
        move = lr * m_hat / root(v_hat, eps)
        kept = 1 - pull(lr, decay)
        w = (w - move) * kept if late else w * kept - move
        return (w, m_hat, v_hat) if keep_corrected else (w, m, v)

    return answer


def _betas_exchanged(w, g, m, v, step, lr, beta1, beta2, eps, weight_decay):
    return adamw_like()(w, g, m, v, step, lr, beta2, beta1, eps, weight_decay)


ADAMW = Exercise(
    id="05.adamw",
    points=4,
    minutes=12,
    difficulty=3,
    teaches="two running averages, both corrected; decay apart from the gradient, on matrices only",
    cases=_adamw_cases,
    expect=_adamw,
    drive=drive_adamw,
    tolerance=1e-9,
    mistakes=[
        Mistake(
            adamw_like(coupled=True),
            "The decay goes through the gradient, so v divides it away where gradients are "
            "large. That is Adam with L2. AdamW shrinks the weight directly by lr · weight_decay.",
        ),
        Mistake(
            adamw_like(correct=lambda beta, step: 1),
            "There is no bias correction. m and v start at 0, so early on they are too small by "
            "1 - beta^step: divide by it.",
        ),
        Mistake(
            adamw_like(correct=lambda beta, step: 1 - beta ** (step + 1)),
            "The bias correction is one step ahead. step counts from 1, and the power is step.",
        ),
        Mistake(
            adamw_like(decays=lambda w: True),
            "Tensors with one axis, the norms, must not decay: towards 0 is no sensible place "
            "for a norm's weight, which starts at 1.",
        ),
        Mistake(
            adamw_like(decays=lambda w: w.ndim == 2),
            "Tensors with three axes, such as a convolution's, decay too: two or more.",
        ),
        Mistake(
            adamw_like(pull=lambda lr, decay: decay),
            "The decay lacks the learning rate: a weight shrinks by lr · weight_decay of itself.",
        ),
        Mistake(
            adamw_like(late=True),
            "You shrink the weight after the step, so the step shrinks too. Shrink the weight as "
            "it was.",
        ),
        Mistake(
            adamw_like(root=lambda v, eps: (v + eps).sqrt()),
            "eps is inside the square root. It is added to the root.",
        ),
        Mistake(
            adamw_like(root=lambda v, eps: v + eps),
            "The square root of v is missing: a step has the size of m over the root of v.",
        ),
        Mistake(
            _betas_exchanged,
            "The betas are exchanged: beta1 is for m, the average of gradients, beta2 for v, "
            "that of their squares.",
        ),
        Mistake(
            adamw_like(keep_corrected=True),
            "You return the corrected averages, and the next step would correct them again. "
            "Return m and v as they were before the correction.",
        ),
        Mistake(
            adamw_like(fresh=lambda beta: 1),
            "The averages grow without bound: the new gradient enters with 1 - beta.",
        ),
        Mistake(
            adamw_like(square=lambda g: g.abs()),
            "v averages the squares of the gradient, not its absolute values.",
        ),
    ],
    hints=[
        "Which of the two averages says where to go, which how far gradients usually reach? What "
        "are both at step 1?",
        "m = beta1·m + (1 - beta1)·g, the same for v with g². Divide each by 1 - beta^step. Shrink "
        "w by lr·weight_decay if it has two or more axes, then subtract lr·m_hat/(√v_hat + eps).",
        "decay = weight_decay if w.ndim >= 2 else 0; w = w * (1 - lr * decay) - "
        "lr * m_hat / (v_hat.sqrt() + eps)",
    ],
)


def _lr_schedule(step, steps, peak_lr, warmup_steps, final_share):
    """Half a cosine is a squared cosine of half the angle."""
    if step < warmup_steps:
        return (step + 1) / warmup_steps * peak_lr
    half = (step - warmup_steps) / (steps - warmup_steps) * math.pi / 2
    return peak_lr * (final_share + (1 - final_share) * math.cos(half) ** 2)


def _lr_cases(rng):
    steps = int(rng.integers(200, 2000))
    warmup = int(rng.integers(10, 100))
    return [
        (0, 1000, 3e-3, 50, 0.05),
        (49, 1000, 3e-3, 50, 0.05),
        (50, 1000, 3e-3, 50, 0.05),
        (525, 1000, 3e-3, 50, 0.05),
        (999, 1000, 3e-3, 50, 0.05),
        (0, 100, 0.01, 0, 0.1),
        (9, 10, 0.5, 10, 0.1),
        (30, 100, 1e-3, 10, 1.0),
        *((int(s), steps, 6e-4, warmup, 0.1) for s in rng.integers(warmup + 1, steps, 4)),
        (int(rng.integers(0, warmup)), steps, 6e-4, warmup, 0.1),
    ]


def _lr_like(
    rise=lambda step, warmup: (step + 1) / warmup,
    done=lambda step, steps, warmup: (step - warmup) / (steps - warmup),
    shape=lambda x: (1 + math.cos(math.pi * x)) / 2,
    low=lambda peak, share: share * peak,
):
    def answer(step, steps, peak, warmup, share):
        if step < warmup:
            return peak * rise(step, warmup)
        floor = low(peak, share)
        return floor + (peak - floor) * shape(done(step, steps, warmup))

    return answer


LR_SCHEDULE = Exercise(
    id="05.lr_schedule",
    points=2,
    minutes=8,
    difficulty=2,
    teaches="a line up, half a cosine down, and a floor",
    cases=_lr_cases,
    expect=_lr_schedule,
    tolerance=1e-9,
    mistakes=[
        Mistake(
            _lr_like(rise=lambda step, warmup: step / warmup),
            "Your first step has rate 0 and moves nothing. Step 0 has peak_lr / warmup_steps.",
        ),
        Mistake(
            _lr_like(done=lambda step, steps, warmup: step / steps),
            "Your cosine began at step 0, so it does not meet the peak. Progress is counted from "
            "the end of the warm-up.",
        ),
        Mistake(
            _lr_like(done=lambda step, steps, warmup: (step - warmup) / steps),
            "The cosine has only steps - warmup_steps steps to come down in.",
        ),
        Mistake(
            _lr_like(done=lambda step, steps, warm: (step - warm) / max(1, steps - warm - 1)),
            "Your last step reaches the floor. Step `steps` would, and it is never made: p is the "
            "share of steps - warmup_steps.",
        ),
        Mistake(
            _lr_like(low=lambda peak, share: 0),
            "It comes down to 0. The floor is final_share · peak_lr.",
        ),
        Mistake(
            _lr_like(low=lambda peak, share: share),
            "final_share is a share of the peak, not a rate.",
        ),
        Mistake(
            _lr_like(shape=lambda x: 1 - x),
            "This is a straight line down. Half a cosine is flat at both ends.",
        ),
        Mistake(
            _lr_like(shape=lambda x: math.cos(math.pi * x / 2)),
            "A quarter of a cosine falls steeply at the end. Half of one, from angle 0 to π, is "
            "flat there: (1 + cos(π · progress)) / 2.",
        ),
        Mistake(
            lambda step, steps, peak, warmup, share: (
                share * peak
                + (peak - share * peak)
                * (1 + math.cos(math.pi * max(0, step - warmup) / max(1, steps - warmup)))
                / 2
                * (min(1, (step + 1) / warmup) if warmup else 1)
            ),
            "Your warm-up starts from the floor. It is a share of peak_lr alone: "
            "(step + 1) / warmup_steps of it.",
        ),
    ],
    hints=[
        "Two cases. What is the rate just before and just after the warm-up ends?",
        "Before: peak_lr · (step + 1) / warmup_steps. After: progress from 0 to 1 over the steps "
        "that are left, and a cosine of it between peak and floor.",
        "low + (peak_lr - low) * (1 + math.cos(math.pi * progress)) / 2",
    ],
)
