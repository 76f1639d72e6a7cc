"""The mistakes of chapter 08's FlashAttention: the course's solutions, each with one slip.

A name here is that of a slip. It is made when it is asked for, because kernels need Triton.
"""

from __future__ import annotations

import functools
from typing import Any

from .namespace import fresh, run_text, solution_text

FORWARD, BACKWARD, AUTOGRAD = (
    "08.flash_forward_kernel",
    "08.flash_backward_kernels",
    "08.flash_attention",
)
ROWS, REAL = "mask=own[:, None], other=0.0", "mask=real[:, None], other=0.0"

SLIPS: dict[str, tuple[str, list[tuple[str, str]]]] = {
    "forward_out_not_rescaled": (FORWARD, [("mixed = mixed * shrink[:, None]", "pass")]),
    "forward_total_not_rescaled": (FORWARD, [("total = total * shrink", "total = total")]),
    "forward_no_maximum": (FORWARD, [("new = tl.maximum(top, tl.max(scores, 1))", "new = 0 * total"),
                                     ("shrink = tl.exp(top - new)", "shrink = 0 * total + 1")]),
    "forward_not_divided": (FORWARD, [("mixed / total[:, None]", "mixed")]),
    "forward_no_scale": (FORWARD, [("tl.trans(k)) * scale", "tl.trans(k))")]),
    "forward_diagonal_seen": (FORWARD, [("key[None, :] <= query[:, None]",
                                         "key[None, :] < first + BLOCK_Q")]),
    "forward_nothing_skipped": (FORWARD, [("min(first + BLOCK_Q, seq_len) if CAUSAL else seq_len",
                                           "seq_len")]),
    "forward_diagonal_skipped": (FORWARD, [("min(first + BLOCK_Q, seq_len)", "first")]),
    "forward_tail_counts": (FORWARD, [("seen = real[None, :]", "seen = key[None, :] >= 0")]),
    "forward_values_undefined": (FORWARD, [(f"v_ptr + at, {REAL}", "v_ptr + at, mask=real[:, None]")]),
    "forward_no_masks": (FORWARD, [(f", {ROWS}", ""), (f", {REAL}", ""),
                                   (", mask=own[:, None])", ")"), (", mask=own)", ")")]),
    "forward_own_key_head": (FORWARD, [("head // GROUP", "head")]),
    "forward_lse_is_maximum": (FORWARD, [("top + tl.log(total)", "top")]),
    "forward_half_sums": (FORWARD, [("top = new", "top, mixed = new, mixed.to(v.dtype).to(tl.float32)")]),
    "backward_no_delta": (BACKWARD, [(" - delta[None, :]", ""), (" - delta[:, None]", "")]),
    "backward_no_scale": (BACKWARD, [("delta[None, :]) * scale", "delta[None, :])"),
                                     ("delta[:, None]) * scale", "delta[:, None])")]),
    "backward_scores_not_scaled": (BACKWARD, [("tl.trans(q)) * scale", "tl.trans(q))"),
                                              ("tl.trans(k)) * scale", "tl.trans(k))")]),
    "backward_no_lse": (BACKWARD, [("tl.exp(scores - lse[None, :])", "tl.exp(scores)"),
                                   ("tl.exp(scores - lse[:, None])", "tl.exp(scores)")]),
    "backward_future_seen": (BACKWARD, [("key[:, None] <= query[None, :]", "key[:, None] >= 0"),
                                        ("key[None, :] <= query[:, None]", "key[None, :] >= 0")]),
    "backward_first_of_group": (BACKWARD, [("for member in range(GROUP)", "for member in range(1)")]),
    "backward_nothing_skipped": (BACKWARD, [("first // BLOCK_Q * BLOCK_Q if CAUSAL else 0", "0"),
                                            ("min(first + BLOCK_Q, seq_len) if CAUSAL else seq_len",
                                             "seq_len")]),
    "backward_starts_late": (BACKWARD, [("first // BLOCK_Q * BLOCK_Q", "tl.cdiv(first, BLOCK_Q) * BLOCK_Q")]),
    "backward_undefined": (BACKWARD, [(f"tl.load(q_ptr + q_at, {ROWS})",
                                       "tl.load(q_ptr + q_at, mask=own[:, None])")]),
    "backward_half_sums": (BACKWARD, [("tl.dot(weights.to(d_out.dtype), d_out)",
                                       "tl.dot(weights.to(d_out.dtype), d_out)\n"
                                       "                d_v = d_v.to(q.dtype).to(tl.float32)")]),
    "autograd_strides": (AUTOGRAD, [("(x.contiguous() for x in (q, k, v))", "(q, k, v)")]),
    "autograd_d_out_strides": (AUTOGRAD, [("d_out.contiguous()", "d_out")]),
    "autograd_order": (AUTOGRAD, [("return tuple(grads)", "return grads[1], grads[0], grads[2]")]),
    "autograd_delta_of_values": (AUTOGRAD, [("d_out.float() * out.float()", "d_out.float() * q.float()")]),
    "autograd_always_causal": (AUTOGRAD, [('"CAUSAL": causal', '"CAUSAL": True')]),
}  # fmt: skip


@functools.cache
def _names() -> dict[str, Any]:
    return fresh("08")


@functools.cache
def made(slip: str) -> Any:
    """The solution with this slip. Raises ValueError where the solution has no such line."""
    id, edits = SLIPS[slip]
    text = solution_text(id)
    for right, wrong in edits:
        if right not in text:
            raise ValueError(f"{slip}: the solution of {id} does not say {right!r}")
        text = text.replace(right, wrong)
    names = dict(_names())
    run_text(text, f"<{slip}>", names)
    return names[id.split(".")[1]]


def __getattr__(name: str) -> Any:
    if name in SLIPS:
        return made(name)
    raise AttributeError(name)
