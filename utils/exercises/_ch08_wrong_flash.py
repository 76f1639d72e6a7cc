"""The mistakes of chapter 08's FlashAttention: the course's solutions, each with one slip.

A name here is that of a slip. It is made when it is asked for, because kernels need Triton.
"""

from __future__ import annotations

import functools
from typing import Any

from .slips import made

OWN, REAL = "mask=own[:, None]", "mask=real[:, None]"

_FORWARD = {
    "out_not_rescaled": {"mixed = mixed * shrink[:, None]": "pass"},
    "total_not_rescaled": {"total = total * shrink": "total = total"},
    "no_maximum": {
        "new = tl.maximum(top, tl.max(scores, 1))": "new = 0 * total",
        "shrink = tl.exp(top - new)": "shrink = 0 * total + 1",
    },
    "not_divided": {"mixed / total[:, None]": "mixed"},
    "no_scale": {"tl.trans(k)) * scale": "tl.trans(k))"},
    "diagonal_seen": {"key[None, :] <= query[:, None]": "key[None, :] < first + BLOCK_Q"},
    "nothing_skipped": {"min(first + BLOCK_Q, seq_len) if CAUSAL else seq_len": "seq_len"},
    "diagonal_skipped": {"min(first + BLOCK_Q, seq_len)": "first"},
    "tail_counts": {"seen = real[None, :]": "seen = key[None, :] >= 0"},
    "values_undefined": {f"v_ptr + at, {REAL}, other=0.0": f"v_ptr + at, {REAL}"},
    "no_masks": {
        f", {OWN}, other=0.0": "",
        f", {REAL}, other=0.0": "",
        f", {OWN})": ")",
        ", mask=own)": ")",
    },
    "own_key_head": {"head // GROUP": "head"},
    "lse_is_maximum": {"top + tl.log(total)": "top"},
    "lse_is_total": {"top + tl.log(total)": "total"},
    "half_sums": {"top = new": "top, mixed = new, mixed.to(v.dtype).to(tl.float32)"},
}
_BACKWARD = {
    "no_delta": {" - delta[None, :]": "", " - delta[:, None]": ""},
    "no_scale": {
        "delta[None, :]) * scale": "delta[None, :])",
        "delta[:, None]) * scale": "delta[:, None])",
    },
    "scores_not_scaled": {
        "tl.trans(q)) * scale": "tl.trans(q))",
        "tl.trans(k)) * scale": "tl.trans(k))",
    },
    "no_lse": {"scores - lse[None, :]": "scores", "scores - lse[:, None]": "scores"},
    "future_seen": {
        "key[:, None] <= query[None, :]": "key[:, None] >= 0",
        "key[None, :] <= query[:, None]": "key[None, :] >= 0",
    },
    "first_of_group": {"for member in range(GROUP)": "for member in range(1)"},
    "nothing_skipped": {
        "first // BLOCK_Q * BLOCK_Q if CAUSAL else 0": "0",
        "min(first + BLOCK_Q, seq_len) if CAUSAL else seq_len": "seq_len",
    },
    "starts_late": {"first // BLOCK_Q * BLOCK_Q": "tl.cdiv(first, BLOCK_Q) * BLOCK_Q"},
    "undefined": {f"q_ptr + q_at, {OWN}, other=0.0": f"q_ptr + q_at, {OWN}"},
    "half_sums": {
        "d_v += tl.dot(weights.to(d_out.dtype), d_out)": "d_v = (d_v + tl.dot(weights.to("
        "d_out.dtype), d_out)).to(d_out.dtype).to(tl.float32)"
    },
}
_AUTOGRAD = {
    "strides": {"(x.contiguous() for x in (q, k, v))": "(q, k, v)"},
    "d_out_strides": {"d_out.contiguous()": "d_out"},
    "order": {"return tuple(grads)": "return grads[1], grads[0], grads[2]"},
    "delta_of_values": {"d_out.float() * out.float()": "d_out.float() * q.float()"},
    "always_causal": {'"CAUSAL": causal': '"CAUSAL": True'},
}
SLIPS = {
    "forward": ("08.flash_forward_kernel", _FORWARD),
    "backward": ("08.flash_backward_kernels", _BACKWARD),
    "autograd": ("08.flash_attention", _AUTOGRAD),
}


@functools.cache
def __getattr__(name: str) -> Any:
    part, _, slip = name.partition("_")
    if part not in SLIPS or slip not in SLIPS[part][1]:
        raise AttributeError(name)
    return made(SLIPS[part][0], slip, SLIPS[part][1][slip])
