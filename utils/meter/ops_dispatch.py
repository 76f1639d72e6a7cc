"""The dispatch mode: sees every operator that PyTorch runs, with its tensors, and records it."""

from collections.abc import Callable
from functools import cache

import torch
from torch._subclasses.fake_tensor import FakeTensor
from torch.utils._python_dispatch import TorchDispatchMode

from utils.meter.ops_flops import product_formula, vector_flops
from utils.meter.ops_memory import LiveBytes
from utils.meter.ops_record import Call
from utils.meter.ops_traffic import roles, tensors, traffic

NAMES = {
    torch.float32: "fp32", torch.float16: "fp16", torch.bfloat16: "bf16", torch.float64: "fp64",
    torch.float8_e4m3fn: "fp8", torch.float8_e5m2: "fp8",
}  # fmt: skip
# They ask about a tensor and touch no data.
QUESTIONS = {
    "device", "layout", "size", "sym_size", "stride", "sym_stride", "storage_offset",
    "sym_storage_offset", "numel", "sym_numel", "dim", "is_contiguous", "sym_is_contiguous",
    "is_strides_like_format", "is_non_overlapping_and_dense",
}  # fmt: skip
DENSE = (torch.Tensor, torch.nn.Parameter, FakeTensor)
_has_kernel = torch._C._dispatch_has_kernel_for_dispatch_key


class Recorder(TorchDispatchMode):
    """Runs every operator as it is and hands a Call to `record`, in order.

    An operator that is a composition of others and has no kernel of its own (torch.inference_mode
    shows them) is taken apart, so its parts are counted and it is not. Tensors that wrap others,
    such as distributed ones, unwrap themselves first: what counts is the work of this process.
    """

    supports_higher_order_operators = True

    def __init__(self, record: Callable[[Call, bool], None], memory: LiveBytes):
        super().__init__()
        self._record, self._memory = record, memory

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if not isinstance(func, torch._ops.OpOverload) or any(t not in DENSE for t in types):
            return NotImplemented
        if func.namespace == "profiler" or func.overloadpacket.__name__ in QUESTIONS:
            return NotImplemented if types else func(*args, **kwargs)
        if _composed(func):
            with self:
                return func.decompose(*args, **kwargs)
        given = [tensor.untyped_storage() for tensor in _inputs(args, kwargs)]
        self._memory.use(given)
        result = func(*args, **kwargs)
        call = _call(func, args, kwargs, result, {storage._cdata for storage in given})
        made = [tensor.untyped_storage() for tensor in tensors(result)]
        self._record(call, self._memory.make(made))
        return result


@cache
def _composed(func) -> bool:
    """Is the operator only a composition of others, without a kernel of its own?"""
    kernels = ("CPU", "CUDA", "CompositeExplicitAutograd")
    return _has_kernel(func.name(), "CompositeImplicitAutograd") and not any(
        _has_kernel(func.name(), kernel) for kernel in kernels
    )


def _inputs(args: tuple, kwargs: dict) -> list[torch.Tensor]:
    return list(tensors((args, tuple(kwargs.values()))))


def _call(func, args, kwargs, result, given: set[int]) -> Call:
    """What one call did. given: the storages of its arguments, by address."""
    role, formula = roles(func), product_formula(func)
    inputs, outputs = _inputs(args, kwargs), list(tensors(result))
    new = [tensor for tensor in outputs if tensor.untyped_storage()._cdata not in given]
    shares = bool(outputs) and not new
    if role.view or (shares and not role.written):
        return Call(_name(func), _dtype(next(iter(outputs), None), False), view=True)
    read, written, launches = traffic(func, args, kwargs, new)
    flops = int(formula(*args, **kwargs, out_val=result)) if formula else 0
    return Call(
        name=_name(func),
        dtype=_dtype(_operand(func, inputs, outputs), formula is not None),
        flops=flops,
        vector_flops=0 if formula else int(vector_flops(func, inputs, outputs)),
        bytes_read=int(read),
        bytes_written=int(written),
        launches=launches,
        in_place=role.in_place,
        matmul=formula is not None,
    )


def _operand(func, inputs: list, outputs: list) -> torch.Tensor | None:
    """The tensor whose dtype decides the rate: a factor of a product, never its bias."""
    biased = func.overloadpacket.__name__ in ("addmm", "addmv", "addbmm", "baddbmm")
    return next(iter(inputs[int(biased) :] or outputs), None)


def _dtype(tensor: torch.Tensor | None, product: bool) -> str:
    if tensor is None:
        return ""
    name = NAMES.get(tensor.dtype) or str(tensor.dtype).removeprefix("torch.")
    if product and name == "fp32" and torch.get_float32_matmul_precision() != "highest":
        return "tf32"
    return name


def _name(func) -> str:
    return func.overloadpacket.__name__
