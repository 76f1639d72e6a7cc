"""FLOPs of one operator. Matrix products, convolutions and attention as PyTorch's counter has them.

The formulas come from torch.utils.flop_counter. Those added here are products that it leaves out.
A multiply-add is two FLOPs. Attention counts all pairs of query and key, masked or not.
"""

from collections.abc import Callable
from functools import cache
from math import prod

import torch
from torch.utils import flop_counter

aten = torch.ops.aten

ATTENTION = (
    "flash_attention", "flash_attention_for_cpu", "efficient_attention", "cudnn_attention",
    "fused_attention_overrideable",
)  # fmt: skip
# Pointwise operators that move numbers and compute none.
MOVES = {"clone", "copy", "where", "masked_fill", "fill", "zeros_like", "ones_like", "full_like"}
REDUCTIONS = {
    "sum", "mean", "prod", "amax", "amin", "max", "min", "argmax", "argmin", "nansum",
    "linalg_vector_norm", "norm", "cumsum", "cumprod", "dot",
}  # fmt: skip
# Steps for each element, of all that makes these operators up: softmax is a maximum, a difference,
# an exponential, a sum and a quotient.
STEPS = {
    "_softmax": 5, "_safe_softmax": 5, "_softmax_backward_data": 4,
    "_log_softmax": 5, "_log_softmax_backward_data": 4, "logsumexp": 4,
    "var": 4, "var_mean": 4, "std": 4, "std_mean": 4,
    "native_layer_norm": 8, "native_group_norm": 8, "_fused_rms_norm": 5,
}  # fmt: skip


@cache
def product_formula(func) -> Callable[..., int] | None:
    """The FLOP formula of a matrix product, convolution or attention; None for other operators.

    Call it with the operator's arguments and out_val=its result.
    """
    packet = func.overloadpacket
    return _more().get(packet) or flop_counter.flop_registry.get(packet)


@cache
def _more() -> dict[object, Callable[..., int]]:
    """Products that PyTorch's counter does not count, and attention of every kind.

    Attention is here because older counters refuse grouped heads.
    """
    formulas = {
        "mv": lambda a, x: 2 * prod(a),
        "addmv": lambda bias, a, x: 2 * prod(a),
        "dot": lambda a, b: 2 * prod(a),
        "vdot": lambda a, b: 2 * prod(a),
        "addbmm": lambda bias, a, b: 2 * prod(a) * b[-1],
        "_int_mm": lambda a, b: 2 * prod(a) * b[-1],
        "_addmm_activation": lambda bias, a, b: 2 * prod(a) * b[-1],
        "_scaled_mm_v2": lambda a, b: 2 * prod(a) * b[-1],
        "_scaled_dot_product_attention_math_for_mps": _attention,
    }
    for kind in ATTENTION:
        formulas[f"_scaled_dot_product_{kind}"] = _attention
        formulas[f"_scaled_dot_product_{kind}_backward"] = _attention_backward
    return {getattr(aten, name): _of_shapes(f) for name, f in formulas.items() if has(name)}


def has(name: str) -> bool:
    """Does this version of PyTorch have the aten operator?"""
    return hasattr(aten, name)


def _of_shapes(formula: Callable[..., int]) -> Callable[..., int]:
    """A formula of the first arguments' shapes as a formula of the arguments themselves."""
    count = formula.__code__.co_argcount

    def of_tensors(*args, out_val=None, **kwargs) -> int:
        shapes = [tensor.shape for tensor in (*args, *kwargs.values())[:count]]
        return formula(*shapes)

    return of_tensors


def _heads(query, *others):
    """Shapes of key and value with as many heads as the query: grouped heads save no FLOPs."""
    return [(shape[0], query[1], *shape[2:]) for shape in others]


def _attention(q, k, v) -> int:
    return flop_counter.sdpa_flop_count(q, *_heads(q, k, v))


def _attention_backward(grad, q, k, v) -> int:
    return flop_counter.sdpa_backward_flop_count(grad, q, *_heads(q, k, v))


def vector_flops(func, inputs: list[torch.Tensor], outputs: list[torch.Tensor]) -> int:
    """Arithmetic outside matrix products: one for each element, whatever the function.

    Pointwise operators count their output, reductions their first input; softmax and norms some
    steps for each element. Results that are not floating point count nothing, copies nothing.
    """
    name = func.overloadpacket.__name__.removeprefix("_foreach_").rstrip("_")
    if not outputs or not outputs[0].is_floating_point():
        return 0
    if name in STEPS:
        return STEPS[name] * inputs[0].numel()
    if name in REDUCTIONS:
        return inputs[0].numel()
    if torch.Tag.pointwise in func.tags and name not in MOVES:
        return sum(output.numel() for output in outputs)
    return 0
