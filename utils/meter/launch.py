"""A launch as the reader wrote it, made ready: which function, which arguments, which grid."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from utils.meter.memory import Argument, Memory

MOST_PROGRAMS = 50_000
LAUNCH_OPTIONS = {
    "num_warps", "num_stages", "num_ctas", "maxnreg", "enable_fp_fusion", "warmup", "debug",
    "sanitize_overflow", "launch_cooperative_grid", "launch_pdl", "waves_per_eu",
    "matrix_instr_nonkdim",
}  # fmt: skip


class Pointer:
    """What stands for a tensor in the kernel: its dtype, and a made-up address."""

    def __init__(self, tensor: Any, argument: Argument):
        self.tensor, self.dtype, self.argument = tensor, tensor.dtype, argument

    def data_ptr(self) -> int:
        return self.argument.address

    def __getattr__(self, name: str) -> Any:
        return getattr(self.tensor, name)


@dataclass
class Launch:
    """kernel: as @triton.jit made it. function: the reader's, inside it. arguments: by name, with
    Pointers in place of tensors."""

    name: str
    kernel: Any
    function: Callable
    arguments: dict[str, Any]
    memory: Memory
    warnings: list[str] = field(default_factory=list)
    copies: list[tuple[Any, Any]] = field(default_factory=list)  # (device storage, its CPU copy)

    def copy_back(self) -> None:
        for device, host in self.copies:
            device.copy_(host)


def prepare(
    kernel: Any, args: tuple, named: dict[str, Any], outputs: Iterable[str] | None
) -> Launch:
    """Take the plain function out of a kernel and bind its arguments.

    Raises ValueError when the kernel is none, or an argument is missing, unknown or not dense.
    """
    launch_arguments = dict(named)
    kernel, values, warnings = _unwrap(kernel, args, launch_arguments)
    function = kernel.fn
    signature = inspect.signature(function)
    for option in LAUNCH_OPTIONS - set(signature.parameters):
        values.pop(option, None)
    try:
        bound = signature.bind(*args, **values)
    except TypeError as error:
        wanted = ", ".join(signature.parameters)
        raise ValueError(f"{function.__name__} takes ({wanted}): {error}") from None
    bound.apply_defaults()
    launch = Launch(function.__name__, kernel, function, {}, Memory(), warnings)
    hosts: dict[int, Any] = {}
    for name, value in bound.arguments.items():
        launch.arguments[name] = _convert(launch, hosts, name, value)
    _mark_outputs(launch, outputs)
    return launch


def _unwrap(kernel: Any, args: tuple, values: dict[str, Any]) -> tuple[Any, dict, list[str]]:
    """Through @triton.autotune and @triton.heuristics down to what @triton.jit made."""
    warnings = []
    while type(kernel).__name__ in ("Autotuner", "Heuristics"):
        given = {**dict(zip(kernel.arg_names, args, strict=False)), **values}
        if type(kernel).__name__ == "Heuristics":
            for name, rule in kernel.values.items():
                values[name] = rule({**given, **values})
        elif kernel.configs and not set(kernel.configs[0].kwargs) <= set(given):
            values.update(kernel.configs[0].kwargs)
            warnings.append(
                f"not autotuned: metered with the first of {len(kernel.configs)} configurations, "
                f"{kernel.configs[0].kwargs}. Pass those names to choose another."
            )
        kernel = kernel.fn
    if not inspect.isfunction(getattr(kernel, "fn", None)):
        raise ValueError(f"kernel={kernel!r}: expected a function decorated with @triton.jit")
    return kernel, values, warnings


def _convert(launch: Launch, hosts: dict[int, Any], name: str, value: Any) -> Any:
    if isinstance(value, tuple):
        items = [_convert(launch, hosts, f"{name}[{i}]", item) for i, item in enumerate(value)]
        return type(value)(*items) if hasattr(value, "_fields") else tuple(items)
    if type(value).__name__ == "TensorDescriptor":
        import copy

        descriptor = copy.copy(value)
        descriptor.base = _convert(launch, hosts, name, value.base)
        return descriptor
    if type(value).__name__ == "TensorWrapper":  # triton.reinterpret(tensor, dtype)
        return _convert(launch, hosts, name, _reinterpreted(name, value))
    if hasattr(value, "__array_interface__") and hasattr(value, "shape") and value.shape:
        raise ValueError(f"{name} is a numpy array: a kernel takes tensors, torch.from_numpy(it)")
    if not hasattr(value, "data_ptr"):
        return value
    tensor = _on_cpu(launch, hosts, name, value.detach())
    return Pointer(tensor, launch.memory.add(name, tensor))


def _reinterpreted(name: str, wrapper: Any) -> Any:
    import torch

    wanted = {"fp8e4nv": "float8_e4m3fn", "fp8e5": "float8_e5m2"}.get(str(wrapper.dtype))
    dtype = getattr(torch, wanted) if wanted else wrapper.dtype
    if not isinstance(dtype, torch.dtype):
        raise ValueError(f"{name}: the meter can't reinterpret a tensor as {wrapper.dtype}")
    return wrapper.base.view(dtype)


def _on_cpu(launch: Launch, hosts: dict[int, Any], name: str, tensor: Any) -> Any:
    """The tensor itself, or a view of a CPU copy of its storage: views stay views of one memory."""
    import torch

    strided = tensor.layout == torch.strided and tensor.device.type != "meta"
    if not strided or type(tensor) is not torch.Tensor:
        raise ValueError(f"{name}: expected an ordinary tensor, got {type(tensor).__name__} "
                         f"on {tensor.device} ({tensor.layout})")  # fmt: skip
    if tensor.device.type == "cpu":
        return tensor
    storage = tensor.untyped_storage()
    if storage.data_ptr() not in hosts:
        hosts[storage.data_ptr()] = storage.cpu()
        launch.copies.append((storage, hosts[storage.data_ptr()]))
    host = torch.empty(0, dtype=tensor.dtype)
    host.set_(hosts[storage.data_ptr()], tensor.storage_offset(), tensor.shape, tensor.stride())
    return host


def _mark_outputs(launch: Launch, outputs: Iterable[str] | None) -> None:
    """Fill declared outputs with what no kernel would compute: NaN, or the smallest integer."""
    import torch

    if outputs is None:
        return
    if isinstance(outputs, str):
        outputs = (outputs,)
    pointers = {argument.name: argument for argument in launch.memory.arguments.values()}
    for name in outputs:
        if name not in pointers:
            raise ValueError(f"outputs={name!r}: {launch.name} has the pointer arguments "
                             f"{', '.join(pointers)}")  # fmt: skip
        output = pointers[name]
        output.is_output = True
        for other in pointers.values():
            if other is not output and other.overlaps(output):
                raise ValueError(
                    f"outputs={name!r} shares memory with {other.name}, which filling it would "
                    "destroy. Leave an argument that is changed in place out of outputs."
                )
        value = launch.arguments.get(name)
        tensor = getattr(value, "base", value).tensor
        if tensor.dtype == torch.bool:
            tensor.fill_(True)
        elif tensor.dtype.is_floating_point:
            tensor.fill_(math.nan)
        else:
            tensor.fill_(torch.iinfo(tensor.dtype).min or torch.iinfo(tensor.dtype).max)


def resolve_grid(grid: Any, arguments: dict[str, Any]) -> tuple[int, int, int]:
    """grid, or grid(arguments), as (x, y, z). Raises ValueError unless 1 to 3 whole numbers."""
    sizes = grid(arguments) if callable(grid) else grid
    allowed = "expected a tuple of 1 to 3 whole numbers, or a function that returns one"
    if not isinstance(sizes, tuple | list) or not 1 <= len(sizes) <= 3:
        raise ValueError(f"grid={sizes!r}: {allowed}")
    for size in sizes:
        if isinstance(size, bool) or not hasattr(size, "__index__") or size < 0:
            raise ValueError(f"grid={tuple(sizes)!r}: {allowed}, none negative")
    return tuple([int(size) for size in sizes] + [1] * (3 - len(sizes)))


def grid_trouble(grid: tuple[int, int, int], launch: Launch) -> str:
    """Why this grid is refused, with the size to use; "" when it is fine."""
    x, y, z = grid
    if y > 65_535 or z > 65_535 or x > 2**31 - 1:
        return (f"grid {grid} can't be launched: CUDA allows 2,147,483,647 programs along x and "
                "65,535 along y and z. Put the long dimension first.")  # fmt: skip
    programs = x * y * z
    if programs <= MOST_PROGRAMS:
        return ""
    message = (f"grid {grid} has {programs:,} programs; the meter runs at most {MOST_PROGRAMS:,}, "
               f"one after another. ")  # fmt: skip
    largest = max((a.n_elements for a in launch.memory.arguments.values()), default=0)
    constants = [value for name, value in launch.arguments.items() if name.isupper()]
    blocks = [value for value in constants if type(value) is int and value > 1]
    if programs == largest and blocks:
        block = max(blocks)
        return message + (
            f"It has one program for each of {largest:,} elements, but a program handles "
            f"{block:,}: use triton.cdiv({largest:,}, {block:,}) = {-(-largest // block):,}."
        )
    factor = -(-programs // MOST_PROGRAMS)
    return message + (f"Use inputs {factor} times smaller, or blocks {factor} times larger: "
                      f"at most {MOST_PROGRAMS:,} programs.")  # fmt: skip
