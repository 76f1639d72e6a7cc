"""Chapter 09's tools that make narrow training work: loss scaling and master weights."""

from __future__ import annotations

import numpy as np

from .spec import Exercise, Mistake
from .tensors import drive_tensors, of_dtype


def _loss_scaler(gradients, scale, good_steps, interval):
    """In numpy and float64."""
    wide = [np.asarray(g, dtype=np.float64) for g in gradients]
    if not all(np.isfinite(g).all() for g in wide):
        return {"gradients": None, "scale": scale / 2, "good_steps": 0}
    good_steps += 1
    grows = good_steps == interval
    return {
        "gradients": [g / scale for g in wide],
        "scale": scale * 2 if grows else scale,
        "good_steps": 0 if grows else good_steps,
    }


def _scaler_like(
    bad=lambda g: not g.isfinite().all(),
    narrow=False,
    skips=True,
    backs_off=True,
    resets=True,
    grows=True,
    restarts=True,
    early=False,
):
    """A scaler with one thing changed."""

    def answer(gradients, scale, good_steps, interval):
        overflow = any(bool(bad(g)) for g in gradients)
        after, count = scale, good_steps + 1
        if overflow:
            after = scale / 2 if backs_off else scale
            count = 0 if resets else good_steps
        elif grows is None or (grows and count >= interval):
            after, count = scale * 2, (0 if restarts else count)
        divide = after if early else scale
        if overflow and skips:
            unscaled = None
        elif narrow:
            unscaled = [(g / divide).float() for g in gradients]
        else:
            unscaled = [g.float() / divide for g in gradients]
            if overflow:  # the good ones are applied, the others left out
                unscaled = [u.nan_to_num(0.0, 0.0, 0.0) for u in unscaled]
        return {"gradients": unscaled, "scale": after, "good_steps": count}

    return answer


def _scaler_cases(rng):
    def gradients(size=1.0, spoil=None, first=False):
        one = (rng.standard_normal((3, 4)) * size).astype(np.float16)
        two = (rng.standard_normal(5) * size).astype(np.float16)
        if spoil is not None:
            (one[int(rng.integers(0, 3))] if first else two)[int(rng.integers(0, 4))] = spoil
        return [one, two]

    return [
        (gradients(), 1024.0, 3, 2000),
        (gradients(0.01), 65536.0, 0, 2000),  # unscaled they are below fp16's smallest number
        (gradients(spoil=np.inf), 65536.0, 17, 2000),
        (gradients(spoil=-np.inf), 2.0, 0, 100),
        (gradients(spoil=np.nan), 4096.0, 5, 100),
        (gradients(spoil=np.inf, first=True), 4096.0, 5, 100),
        ([np.full(3, 60_000, np.float16), np.full(2, 60_000, np.float16)], 4096.0, 5, 100),
        (gradients(), 512.0, 99, 100),
        (gradients(), 512.0, 98, 100),
        (gradients(spoil=np.inf), 512.0, 99, 100),
        (gradients(), 1.0, 0, 1),
        (gradients(), float(2 ** rng.integers(4, 12)), int(rng.integers(1, 50)), 100),
    ]


def _drive_scaler(answer, *case):
    import torch

    found = drive_tensors(answer, *case)
    gradients = found.get("gradients") if isinstance(found, dict) else None
    if isinstance(gradients, list | tuple):
        for tensor in gradients:
            if isinstance(tensor, torch.Tensor) and tensor.dtype is not torch.float32:
                raise ValueError(f"you returned {tensor.dtype}: the gradients are to be fp32")
    return found


LOSS_SCALER = Exercise(
    id="09.loss_scaler",
    points=4,
    minutes=15,
    difficulty=3,
    teaches="unscale in fp32, skip a step that overflowed, halve then, double after good steps",
    drive=_drive_scaler,
    cases=_scaler_cases,
    expect=_loss_scaler,
    tolerance=1e-6,
    mistakes=[
        Mistake(
            _scaler_like(narrow=True),
            "You divided in fp16, so the small gradients vanish after all. Go to fp32 first, then "
            "divide by the scale.",
        ),
        Mistake(
            _scaler_like(bad=lambda g: g.isinf().any()),
            "NaN is an overflow too: infinity minus infinity somewhere in the backward pass.",
        ),
        Mistake(
            _scaler_like(bad=lambda g: (g == float("inf")).any() or g.isnan().any()),
            "Minus infinity is an overflow too.",
        ),
        Mistake(
            lambda gradients, *rest: _scaler_like(bad=lambda g: not gradients[-1].isfinite().all())(
                gradients, *rest
            ),
            "You looked at one gradient. A number that is not finite in any of them spoils the "
            "step.",
        ),
        Mistake(
            _scaler_like(bad=lambda g: not g.sum().isfinite()),
            "A sum of finite fp16 gradients may itself overflow. Look at the elements.",
        ),
        Mistake(
            _scaler_like(skips=False),
            "One infinity means that the whole step is worthless: return None for the gradients, "
            "so that nobody applies a part of them.",
        ),
        Mistake(
            _scaler_like(backs_off=False),
            "After an overflow the scale is halved. Else the next step overflows as well.",
        ),
        Mistake(
            _scaler_like(resets=False),
            "After an overflow the count of good steps starts again at 0.",
        ),
        Mistake(
            _scaler_like(grows=False),
            "After `interval` good steps in a row the scale is doubled. A scale that only falls "
            "ends where gradients vanish.",
        ),
        Mistake(
            _scaler_like(grows=None),
            "The scale doubles after `interval` good steps in a row, not after each.",
        ),
        Mistake(
            _scaler_like(restarts=False),
            "When the scale has doubled, the count of good steps starts again at 0.",
        ),
        Mistake(
            _scaler_like(early=True),
            "These gradients were made with the old scale. Divide by that, then change it.",
        ),
    ],
    hints=[
        "What do you do with a step when one number of one gradient is infinite?",
        "First look for anything that is not finite, in all gradients. If there is: None, half the "
        "scale, count 0. If not: fp32, divide by the scale, count one more, and at `interval` "
        "double the scale and start the count again.",
        "if not all(g.isfinite().all() for g in gradients): return dict(gradients=None, "
        "scale=scale / 2, good_steps=0); else unscaled = [g.float() / scale for g in gradients]",
    ],
)


def _drive_master(answer, master, gradient, lr):
    import torch

    result = answer(torch.from_numpy(master), torch.from_numpy(gradient).bfloat16(), lr)
    if not isinstance(result, tuple | list) or len(result) != 2:
        raise ValueError("return two tensors: the new master weights and the bf16 weights")
    new, weights = result
    new = of_dtype(master, new)
    if not (isinstance(new, torch.Tensor) and isinstance(weights, torch.Tensor)):
        return {"master": new, "weights": weights, "bits of a weight": 0}
    return {"master": new, "weights": weights, "bits of a weight": 8 * weights.element_size()}


def _bf16(x):
    """float32 numpy to bf16 and back, by the bits: nearest, ties to even."""
    bits = np.asarray(x, np.float32).view(np.uint32).astype(np.uint64)
    bits = (bits + 0x7FFF + ((bits >> 16) & 1)) & 0xFFFF0000
    return bits.astype(np.uint32).view(np.float32)


def _master_step(master, gradient, lr):
    new = master.astype(np.float64) - lr * gradient.astype(np.float64)
    return {
        "master": new,
        "weights": _bf16(new.astype(np.float32)),
        "bits of a weight": 16,
    }


def _master_cases(rng):
    def case(n, lr, size):
        """Updates of up to `size` of a weight, most of them under half a step of bf16."""
        master = (rng.uniform(1.0, 2.0, n) * rng.choice([-1, 1], n)).astype(np.float32)
        gradient = _bf16(rng.uniform(-1, 1, n) * size / lr)
        new = master.astype(np.float64) - lr * gradient.astype(np.float64)
        near = _bf16(new * (1 - 1e-6)) != _bf16(new * (1 + 1e-6))  # a tie, but for fp32's last bit
        gradient[near] = 0
        master[near] = 1.25
        return master, gradient, lr

    return [
        case(200, 0.001, 0.003),
        case(200, 0.1, 0.003),
        case(1000, 0.001, 0.0005),
        case(50, 1.0, 0.3),
        (np.full(4, 256.0, np.float32), np.full(4, -1.0, np.float32), 1.0),
        case(1, 0.01, 0.003),
    ]


def _narrow_update(master, gradient, lr):
    weights = master.bfloat16()
    weights = weights - (lr * gradient.float()).bfloat16()
    return weights.float(), weights


def _from_weights(master, gradient, lr):
    new = master.bfloat16().float() - lr * gradient.float()
    return new, new.bfloat16()


def _master_rounded(master, gradient, lr):
    weights = (master - lr * gradient.float()).bfloat16()
    return weights.float(), weights


def _update_rounded(master, gradient, lr):
    new = master - (lr * gradient).float()
    return new, new.bfloat16()


def _weights_wide(master, gradient, lr):
    new = master - lr * gradient.float()
    return new, new


def _ascends(master, gradient, lr):
    new = master + lr * gradient.float()
    return new, new.bfloat16()


def _weights_old(master, gradient, lr):
    return master - lr * gradient.float(), master.bfloat16()


MASTER_WEIGHTS_STEP = Exercise(
    id="09.master_weights_step",
    points=2,
    minutes=8,
    difficulty=2,
    teaches="updates are kept in fp32 and only the copy that is multiplied is rounded",
    drive=_drive_master,
    cases=_master_cases,
    expect=_master_step,
    tolerance=2e-7,
    mistakes=[
        Mistake(
            _narrow_update,
            "You updated the bf16 weights. An update under half a step of bf16 vanishes there, "
            "and in the next step again. Update the master.",
        ),
        Mistake(
            _from_weights,
            "You started from the rounded weights. What earlier steps had saved in the master's "
            "low bits is lost that way.",
        ),
        Mistake(
            _master_rounded,
            "The master stays in fp32: only the copy is rounded.",
        ),
        Mistake(
            _update_rounded,
            "lr * gradient was computed in bf16. Take the gradient to fp32 first.",
        ),
        Mistake(
            _weights_wide,
            "The weights that the products use are a bf16 copy of the master: .bfloat16().",
        ),
        Mistake(
            _ascends,
            "Gradient descent subtracts the gradient.",
        ),
        Mistake(
            _weights_old,
            "The bf16 copy was made before the update. Make it from the new master.",
        ),
    ],
    hints=[
        "Two copies of each weight exist. Which of them remembers small updates?",
        "New master: fp32, old master minus lr times the gradient in fp32. The weights are that, "
        "rounded to bf16.",
        "new = master - lr * gradient.float(); return new, new.bfloat16()",
    ],
)
