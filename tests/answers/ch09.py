"""Second, differently written correct answers to chapter 09's exercises."""

import math
import struct

import numpy as np
import torch

from utils.hardware import accelerators


def decode_float(code, exp_bits, man_bits, bias, ieee):
    """Through the bits of a double, which holds every narrower format."""
    sign, rest = divmod(code, 2 ** (exp_bits + man_bits))
    exponent, mantissa = divmod(rest, 2**man_bits)
    if ieee and exponent == 2**exp_bits - 1:
        wide = (0x7FF << 52) | (mantissa << (52 - man_bits))
        return struct.unpack(">d", struct.pack(">Q", (sign << 63) | wide))[0]
    steps = mantissa + (2**man_bits if exponent > 0 else 0)
    return math.ldexp(-steps if sign else steps, max(1, exponent) - bias - man_bits)


def round_to(value, man_bits, min_exponent, max_finite, saturate):
    """Add and take away a large number, so that the machine's own rounding does the work."""
    power = 2.0**min_exponent
    while power * 2 <= abs(value):
        power *= 2
    shift = 1.5 * 2**52 * (power / 2**man_bits)
    rounded = (abs(value) + shift) - shift
    if rounded > max_finite:
        rounded = max_finite if saturate else float("inf")
    return -rounded if value < 0 else rounded


def accumulate(values, chunk):
    parts = [values[i : i + chunk] for i in range(0, len(values), chunk)]
    sums = [torch.zeros((), dtype=torch.float16) for _ in parts]
    for i, part in enumerate(parts):
        for value in torch.from_numpy(part):
            sums[i] = sums[i] + value
    total = torch.zeros(())
    for part_sum in sums:
        total += part_sum
    return total


def loss_scaler(gradients, scale, good_steps, interval):
    total = sum(float(g.double().sum()) for g in gradients)
    if math.isnan(total) or math.isinf(total):
        return {"gradients": None, "scale": scale * 0.5, "good_steps": 0}
    inverse = 1.0 / scale
    unscaled = [(g.to(torch.float64) * inverse).to(torch.float32) for g in gradients]
    if good_steps + 1 < interval:
        return {"gradients": unscaled, "scale": scale, "good_steps": good_steps + 1}
    return {"gradients": unscaled, "scale": scale + scale, "good_steps": 0}


def master_weights_step(master, gradient, lr):
    new = master.clone()
    new.add_(gradient.to(torch.float32), alpha=-lr)
    return new, new.to(torch.bfloat16)


def amax_scale(x, max_finite):
    amax = max(float(x.max()), -float(x.min()))
    if not 0 < amax < math.inf:
        return 1.0
    mantissa, exponent = math.frexp(max_finite)
    amax_mantissa, amax_exponent = math.frexp(amax)
    return math.ldexp(1.0, exponent - amax_exponent - (amax_mantissa > mantissa))


def quantize_block(x, block):
    values, scales = x.clone(), x.new_zeros(x.shape[0], x.shape[1] // block)
    for row in range(x.shape[0]):
        for b, start in enumerate(range(0, x.shape[1], block)):
            part = slice(start, start + block)
            scale = amax_scale(x[row, part], 448.0)
            narrow = (x[row, part] * scale).to(torch.float8_e4m3fn)
            values[row, part] = narrow.double() / scale
            scales[row, b] = scale
    return [values, scales]


def int8_linear(x, w):
    """In numpy and double."""
    x, w = x.double().numpy(), w.double().numpy()

    def whole(t):
        scale = np.abs(t).max(axis=1) / 127
        scale[scale == 0] = 1
        return np.rint(t / scale[:, None]).astype(np.int64), scale

    (q, s), (r, t) = whole(x), whole(w)
    return np.einsum("ik,jk->ij", q, r) * s[:, None] * t


def choose_recipe(name, fp8_is_fine):
    card = next(card for card in accelerators() if card.name == name)
    ways = {"fp8": "tensor", "bf16": "none", "fp16": "loss", "fp32": "none"}
    for products, scaling in ways.items():
        if card.native(products) is True and (fp8_is_fine or products != "fp8"):
            return {"scaling": scaling, "products": products}
