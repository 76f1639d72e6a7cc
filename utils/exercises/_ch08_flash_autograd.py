"""Chapter 08: FlashAttention as a function that PyTorch can differentiate."""

from __future__ import annotations

import contextlib
from typing import Any

import numpy as np

from ._ch04_drive import as_in_a_model
from ._ch08_flash_reference import SLACK, attention64, gradients64, heads, normal, whole
from .spec import Exercise, Mistake

KERNELS = "flash_forward_kernel", "flash_backward_kernels"


def _saved_limit(q, k) -> int:
    """Bytes of q, k, v, output and log-sum-exp, and a tenth more."""
    return int(SLACK * (2 * q.nbytes + 2 * k.nbytes + 4 * q.size // q.shape[3]))


def _words(q, k) -> dict[str, str]:
    return {
        "dtypes": " ".join([str(q.dtype)] * 4),
        "saved": f"at most {_saved_limit(q, k):,} bytes",
        "kernels": " and ".join(KERNELS),
    }


def drive(answer, q, k, v, d_out, causal):
    """Forward and backward on tensors laid out as in a model, what is saved between them, and
    which kernels ran. d_out of one number is that of a sum: every element in one place."""
    import torch

    from utils.meter.on_paper import KernelError, launches

    tensors = as_in_a_model([q, k, v])
    leaves = [tensor.requires_grad_() for tensor in tensors]
    with launches() as reports:
        try:
            with _Saved() as saved:
                out = answer(*leaves, causal)
            saved.add_attributes(out)
            spread = torch.from_numpy(d_out).expand(q.shape)
            given = as_in_a_model([d_out])[0] if d_out.size == q.size else spread
            gradients = torch.autograd.grad(out, leaves, given)
        except KernelError as error:
            problem = reports[-1].problems[0]
            wrong = f"{problem.kind}, {problem.argument}, {problem.index}, {problem.program}"
            return {"says": str(error), "wrong": wrong}
        except NotImplementedError:
            if not reports:
                raise
            return {"says": "The forward pass runs; the backward pass is still to be written."}
    ran = [name for name in KERNELS if name in {report.kernel for report in reports}]
    report = _words(q, k) | {
        "dtypes": " ".join(str(x.dtype).removeprefix("torch.") for x in (out, *gradients)),
        "kernels": " and ".join(ran) or "none of yours",
    }
    if saved.bytes > _saved_limit(q, k):
        report["saved"] = f"{saved.bytes:,} bytes"
    named = dict(zip(("out", "d_q", "d_k", "d_v"), (out, *gradients), strict=True))
    return {"says": ""} | {name: value.detach() for name, value in named.items()} | report


class _Saved(contextlib.AbstractContextManager):
    """The bytes that are kept for the backward pass, each storage once."""

    def __enter__(self) -> _Saved:
        import torch

        self._sizes: dict[int, int] = {}
        self._hooks = torch.autograd.graph.saved_tensors_hooks(self._pack, lambda kept: kept)
        self._hooks.__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        self._hooks.__exit__(*error)

    @property
    def bytes(self) -> int:
        return sum(self._sizes.values())

    def _pack(self, tensor: Any) -> Any:
        storage = tensor.untyped_storage()
        self._sizes[storage.data_ptr()] = storage.nbytes()
        return tensor

    def add_attributes(self, out: Any) -> None:
        """And what hangs on the function itself, past save_for_backward."""
        for value in vars(out.grad_fn).values() if hasattr(out.grad_fn, "__dict__") else ():
            value = list(value.values()) if isinstance(value, dict) else value
            for one in value if isinstance(value, tuple | list) else [value]:
                if hasattr(one, "untyped_storage"):
                    self._pack(one)


def expect(q, k, v, d_out, causal):
    d_out = np.broadcast_to(d_out, q.shape).copy()
    gradients = gradients64(q, k, v, d_out, causal)
    parts = zip(("d_q", "d_k", "d_v"), gradients, strict=True)
    return {"says": "", "out": attention64(q, k, v, causal)[0], **dict(parts)} | _words(q, k)


def cases(rng):
    def case(*sizes, causal=True, one=False):
        q, k, v = heads(rng, *sizes)
        return q, k, v, normal(rng, *((1, 1, 1, 1) if one else q.shape)), causal

    return [
        case(1, 2, 1, 40),
        case(1, 1, 1, int(rng.integers(17, 31)), 32, causal=False),
        (*_exact_in_half(rng), False),
        case(2, 2, 2, 20, one=True),
    ]


def _exact_in_half(rng):
    """q, k, v, d_out in half precision, where every weight is 1/32 and all that is stored is
    exact. Only delta is not: of near 1,000 and a few 32nds, half precision keeps no 32nds."""
    shape = 1, 1, 32, 16
    k = np.zeros(shape, np.float16)
    k[0, 0, rng.permutation(32)[:16], np.arange(16)] = 1  # one key a column: nothing to add up
    v = whole(rng, 1, *shape, dtype=np.float16) + rng.integers(40, 60, 16).astype(np.float16)
    return np.zeros_like(k), k, v, rng.integers(1, 4, shape).astype(np.float16)


def _wrong(name: str):
    def answer(q, k, v, causal):
        from . import _ch08_wrong_flash

        return getattr(_ch08_wrong_flash, f"autograd_{name}")(q, k, v, causal)

    return answer


def _plain(q, k, v, causal):
    import torch.nn.functional as F

    k, v = (x.repeat_interleave(q.shape[1] // k.shape[1], dim=1) for x in (k, v))
    return F.scaled_dot_product_attention(q, k, v, is_causal=causal)


def _copied_keys(q, k, v, causal):
    from .namespace import solution

    k, v = (x.repeat_interleave(q.shape[1] // k.shape[1], dim=1) for x in (k, v))
    return solution("08.flash_attention")(q, k, v, causal)


FLASH_ATTENTION = Exercise(
    id="08.flash_attention",
    points=4,
    minutes=15,
    difficulty=3,
    teaches="autograd keeps what you save: four arrays and one number a row",
    cases=cases,
    expect=expect,
    drive=drive,
    tolerance=2e-5,
    needs_triton=True,
    mistakes=[
        Mistake(
            _wrong("strides"),
            "Your kernels expect rows one after the other, and a model's q, k, v are views with "
            "other strides. Call contiguous() first.",
        ),
        Mistake(
            _wrong("d_out_strides"),
            "d_out comes in whatever layout the rest of the model gives it. Call contiguous() "
            "on it too.",
        ),
        Mistake(
            _wrong("order"),
            "backward returns one gradient for each argument of forward, in their order: d_q, d_k, "
            "d_v.",
        ),
        Mistake(
            _wrong("delta_of_values"),
            "delta is the row sum of d_out times the output, not times q.",
        ),
        Mistake(
            _wrong("always_causal"),
            "You ignore `causal`: without it every query sees every key.",
        ),
        Mistake(
            _copied_keys,
            "Keys and values are copied for each query head, and the copies are saved. The kernels "
            "read head // GROUP: hand them k and v as they are.",
        ),
        Mistake(
            _plain,
            "The numbers are right, but they come from PyTorch's own attention, not from your "
            "kernels.",
        ),
    ],
    hints=[
        "What do the backward kernels read that the forward pass had or made?",
        "forward: contiguous copies, out = torch.empty_like(q), lse in float32, launch, "
        "ctx.save_for_backward(q, k, v, out, lse). backward: delta = (d_out.float() * "
        "out.float()).sum(-1), three empty gradients, two launches.",
        "grids: (n_tiles, batch * n_head), and (n_tiles, batch * n_kv_head) with KEYS=True. "
        "constants go in as **constants; backward returns d_q, d_k, d_v.",
    ],
)
