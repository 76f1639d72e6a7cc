"""Bytes that one operator must read and write, and what it launches.

The rule for all: each input's distinct elements are read once, each output is written once. An
expanded dimension counts once, a strided view counts its elements and not the storage behind it,
the same tensor given twice counts once. Operators that touch less, or more, have a rule below.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from math import prod
from typing import NamedTuple

import torch

NOTHING = {"empty", "empty_like", "empty_strided", "empty_permuted", "new_empty",
           "new_empty_strided"}  # fmt: skip
# In place, but only the shape changes.
RESHAPES = {"resize_", "resize_as_", "set_", "detach_", "squeeze_", "unsqueeze_", "t_",
            "as_strided_", "transpose_", "swapdims_", "swapaxes_", "rename_"}  # fmt: skip
# In place, but the old values are not read.
OVERWRITES = {"copy_", "fill_", "zero_", "normal_", "uniform_", "random_", "bernoulli_",
              "exponential_", "log_normal_", "geometric_", "cauchy_"}  # fmt: skip
# Arguments of which only the shape is used.
SHAPE_ONLY = {
    **{f"{what}_like": {"self"} for what in ("zeros", "ones", "full", "rand", "randn", "randint")},
    **{f"new_{what}": {"self"} for what in ("zeros", "ones", "full")},
    "native_layer_norm_backward": {"bias"},
    "nll_loss_backward": {"self"},
    "nll_loss2d_backward": {"self"},
    "max_pool2d_with_indices_backward": {"self"},
}
# Written in the schema, but only where grad_scale is given.
NOT_WRITTEN = {f"_fused_{name}_": {"grads"} for name in ("adam", "adamw", "sgd", "adagrad")}


class Traffic(NamedTuple):
    """Bytes read, bytes written, kernels launched."""

    read: int
    written: int
    launches: int


@dataclass(frozen=True)
class Roles:
    """What an operator's schema says of its arguments: which are read, which are written."""

    names: tuple[str, ...]
    unread: frozenset[str]
    written: frozenset[str]
    view: bool
    in_place: bool
    rule: Callable | None


@cache
def roles(func) -> Roles:
    """The roles of an operator's arguments, from its schema and the lists above."""
    name, arguments = func.overloadpacket.__name__, func._schema.arguments
    plain = name.removeprefix("_foreach_")
    written = {a.name for a in arguments if a.alias_info is not None and a.alias_info.is_write}
    written -= NOT_WRITTEN.get(name, set())
    unread = {a.name for a in arguments if a.is_out} | SHAPE_ONLY.get(plain, set())
    in_place = bool(written - {a.name for a in arguments if a.is_out})
    if plain in OVERWRITES:
        unread |= {arguments[0].name}
    return Roles(
        names=tuple(a.name for a in arguments),
        unread=frozenset(unread),
        written=frozenset(written),
        view=name in RESHAPES,
        in_place=in_place,
        rule=RULES.get(name),
    )


def tensors(value) -> Iterator[torch.Tensor]:
    """The dense tensors in an argument or a result: itself, or in a list of them."""
    if isinstance(value, torch.Tensor):
        if value.layout is torch.strided:
            yield value
    elif isinstance(value, tuple | list):
        for part in value:
            yield from tensors(part)


def elements(tensor: torch.Tensor) -> int:
    """Distinct elements behind a tensor: an expanded dimension counts once."""
    if tensor.is_contiguous():
        return tensor.numel()
    count = extent = 1
    for size, stride in zip(tensor.shape, tensor.stride(), strict=True):
        if stride:
            count, extent = count * size, extent + (size - 1) * stride
    return min(count, extent) if tensor.numel() else 0


def size(tensor: torch.Tensor) -> int:
    """Bytes of a tensor's distinct elements."""
    return elements(tensor) * tensor.element_size()


def traffic(func, args: tuple, kwargs: dict, new: list[torch.Tensor]) -> Traffic:
    """Bytes read and written by one call. new: the results that have storage of their own."""
    name, role = func.overloadpacket.__name__, roles(func)
    if name in NOTHING:
        return Traffic(0, 0, 0)
    given = dict(zip(role.names, args, strict=False)) | kwargs
    read = {}  # what and where: the same tensor twice is read once
    written = sum(map(size, new))
    for argument, value in given.items():
        for tensor in tensors(value):
            bytes_ = size(tensor)
            if argument in role.written:
                written += bytes_
            if argument not in role.unread:
                where = tensor.untyped_storage()._cdata, tensor.storage_offset()
                read[where, tensor.shape, tensor.stride()] = bytes_
    if role.rule is not None:
        return role.rule(given, new or list(tensors(given.get("out"))))
    return Traffic(sum(read.values()), written, 1 if read or written else 0)


# --- operators with a rule of their own: (arguments by name, new results) -> Traffic -------------


def _picks(source: str, *others: str) -> Callable:
    """Reads only as many elements of `source` as it returns, and all of its indices."""

    def rule(given: dict, new: list) -> Traffic:
        out = new[0]
        picked = min(elements(out), elements(given[source])) * out.element_size()
        indices = sum(size(tensor) for name in others for tensor in tensors(given[name]))
        return Traffic(picked + indices, size(out), 1)

    return rule


def _nll_loss(given: dict, new: list) -> Traffic:
    """Reads one element a row, and the target."""
    logits, target = given["self"], given["target"]
    picked = min(target.numel(), elements(logits)) * logits.element_size()
    weight = sum(map(size, tensors(given.get("weight"))))
    return Traffic(picked + size(target) + weight, sum(map(size, new)), 1)


def _zeros_then_some(touched: Callable[[dict], tuple[int, bool]], *reads: str) -> Callable:
    """Fills the whole result with zeros, then writes (or adds to) some of it: two launches."""

    def rule(given: dict, new: list) -> Traffic:
        out = new[0]
        count, adds = touched(given)
        some = min(count, elements(out)) * out.element_size()
        read = sum(size(tensor) for name in reads for tensor in tensors(given.get(name)))
        return Traffic(read + some * adds, size(out) + some, 2)

    return rule


def _scatters(touched: Callable[[dict], int], source: str, *, adds: Callable | bool) -> Callable:
    """Writes some elements of self, or reads and writes them where it adds.

    The form that is not in place first copies all of self: one launch more.
    """

    def rule(given: dict, new: list) -> Traffic:
        target = given["self"]
        count = min(touched(given), elements(target))
        some = count * target.element_size()
        adding = adds(given) if callable(adds) else adds
        indices = given.get("index", given.get("indices"))
        read = some * adding + sum(map(size, tensors(indices)))
        for tensor in tensors(given.get(source)):
            read += min(touched(given), elements(tensor)) * tensor.element_size()
        copied = size(target) if new else 0
        return Traffic(read + copied, some + copied, 2 if new else 1)

    return rule


def _rows(given: dict) -> int:
    """Elements of self that a one-dimensional index along `dim` reaches."""
    target, index = given["self"], given["index"]
    if not target.dim():
        return 1
    return target.numel() // max(target.shape[given["dim"]], 1) * index.numel()


def _indexed(given: dict) -> int:
    """Elements of self that self[indices] reaches; a mask may reach all that it covers."""
    shape, positions, masked, dim = list(given["self"].shape), [], 1, 0
    for index in given["indices"]:
        if index is None:
            dim += 1
            continue
        mask = index.dtype in (torch.bool, torch.uint8)
        wide = index.dim() if mask else 1
        if mask:
            masked = max(masked, index.numel())
        else:
            positions.append(index.shape)
        shape[dim : dim + wide] = [1] * wide
        dim += wide
    return prod(shape) * max(masked, prod(torch.broadcast_shapes(*positions)))


def _index_count(given: dict) -> int:
    return given["index"].numel()


RULES: dict[str, Callable] = {
    "embedding": _picks("weight", "indices"),
    "gather": _picks("self", "index"),
    "index_select": _picks("self", "index"),
    "take": _picks("self", "index"),
    "index": _picks("self", "indices"),
    "nll_loss_forward": _nll_loss,
    "nll_loss2d_forward": _nll_loss,
    "nll_loss_backward": _zeros_then_some(
        lambda given: (given["target"].numel(), False),
        "grad_output", "target", "weight", "total_weight",
    ),
    "slice_backward": _zeros_then_some(
        lambda given: (given["grad_output"].numel(), False), "grad_output"
    ),
    "select_backward": _zeros_then_some(
        lambda given: (given["grad_output"].numel(), False), "grad_output"
    ),
    "embedding_dense_backward": _zeros_then_some(
        lambda given: (given["grad_output"].numel(), True), "grad_output", "indices"
    ),
}  # fmt: skip
for _name, _rule in {
    "scatter": _scatters(_index_count, "src", adds=lambda given: "reduce" in given),
    "scatter_add": _scatters(_index_count, "src", adds=True),
    "scatter_reduce": _scatters(_index_count, "src", adds=True),
    "index_add": _scatters(_rows, "source", adds=True),
    "index_copy": _scatters(_rows, "source", adds=False),
    "index_fill": _scatters(_rows, "", adds=False),
    "index_put": _scatters(_indexed, "values", adds=lambda given: given.get("accumulate", False)),
    "_index_put_impl": _scatters(
        _indexed, "values", adds=lambda given: given.get("accumulate", False)
    ),
}.items():
    RULES[_name] = RULES[f"{_name}_"] = _rule
