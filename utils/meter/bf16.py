"""bf16, made right.

The interpreter holds bf16 as its 16 bits in a uint16 and computes with them as integers. Here a
bf16 block is a float32 array whose values are bf16 values. The one seam is TensorHandle: whatever
an operation computed, making its result a bf16 handle rounds it, to nearest even as the hardware
and torch do. Loads and stores convert at the memory's edge (seams.py).
"""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np


def round_to_bf16(values: np.ndarray) -> np.ndarray:
    """float32 values rounded to the nearest bf16, ties to even; still float32."""
    bits = values.view(np.uint32)
    if not (bits & 0xFFFF).any():
        return values
    rounded = (bits + (((bits >> 16) & 1) + np.uint32(0x7FFF))) & np.uint32(0xFFFF0000)
    rounded = np.where(np.isnan(values), np.uint32(0x7FC00000), rounded)
    return rounded.view(np.float32)


def to_bits(values: np.ndarray) -> np.ndarray:
    """float32 that are bf16 values -> their 16 bits, uint16."""
    return (values.view(np.uint32) >> 16).astype(np.uint16)


def from_bits(bits: np.ndarray) -> np.ndarray:
    """uint16 bits of bf16 -> float32 of the same value."""
    return (bits.view(np.uint16).astype(np.uint32) << 16).view(np.float32)


def is_bf16(dtype: Any) -> bool:
    return dtype.scalar.name == "bf16"


def patches(interpreter: Any, tl: Any) -> list[tuple[Any, str, Any]]:
    """What to set, and on what, so that the interpreter computes bf16 as float32."""
    handle, builder = interpreter.TensorHandle, interpreter.InterpreterBuilder
    np_dtype, fits = interpreter._get_np_dtype, interpreter._validate_np_data_size
    convert, cast, fabs = interpreter._convert_float, builder.cast_impl, builder.create_fabs
    check, fp_to_fp = handle.__post_init__, builder.create_fp_to_fp
    float32 = np.dtype(np.float32)

    def get_np_dtype(dtype):
        element = dtype.scalar
        return float32 if element.name == "bf16" else np_dtype(dtype)

    def data_fits(array, dtype):
        return True if dtype.name == "bf16" else fits(array, dtype)

    def post_init(self):
        if self.dtype.name != "bf16":
            return check(self)
        data = self.data
        if data.dtype == np.uint16:  # bits, from a path that knows nothing of this file
            raise NotImplementedError("this operation on bf16 can't be made right here")
        if data.dtype.kind == "f":  # comparisons carry their operands' dtype and booleans
            self.data = round_to_bf16(np.asarray(data, dtype=np.float32))
        return None

    def convert_float(values, source, target, rounding):
        if source.name == "bf16":
            values, source = np.ascontiguousarray(values, dtype=np.float32), tl.float32
        if target.name != "bf16":
            if source.name == target.name:
                return values.view(f"u{values.itemsize}")
            return convert(values, source, target, rounding)
        if source.name == "fp64":
            values = values.astype(np.float32)
        elif source.name == "fp16":
            values = values.view(np.float16).astype(np.float32)
        elif source.name != "fp32":
            values = convert(values, source, tl.float32, None).view(np.float32)
        bits = np.ascontiguousarray(values).view(np.uint32)
        if rounding == interpreter._ir.ROUNDING_MODE.RTZ:
            return bits & np.uint32(0xFFFF0000)
        return bits

    def cast_impl(self, source, target):
        if not (is_bf16(source.dtype) or is_bf16(target)):
            return cast(self, source, target)
        data = source.data.astype(get_np_dtype(target))
        return handle(data, target.scalar)

    def bitcast(self, source, target):
        if not (is_bf16(source.dtype) or is_bf16(target)):
            return handle(source.data.view(np_dtype(target)), target.scalar)
        bits = to_bits(source.data) if is_bf16(source.dtype) else source.data.view(np.uint16)
        data = from_bits(bits) if is_bf16(target) else bits.view(np_dtype(target))
        return handle(data, target.scalar)

    def create_fabs(self, value):
        if not is_bf16(value.dtype):
            return fabs(self, value)
        return handle(np.abs(value.data), value.dtype)

    def create_fp_to_fp(self, source, target, rounding):
        if is_bf16(source.dtype) and is_bf16(target):
            return source
        return fp_to_fp(self, source, target, rounding)

    def get_bf16(self, value):
        return handle(np.array([value], dtype=np.float32), tl.bfloat16)

    changed = [
        (interpreter, "_get_np_dtype", get_np_dtype),
        (interpreter, "_validate_np_data_size", data_fits),
        (interpreter, "_convert_float", convert_float),
        (handle, "__post_init__", post_init),
        (builder, "cast_impl", cast_impl),
        (builder, "create_bitcast", bitcast),
        (builder, "create_int_to_ptr", bitcast),
        (builder, "create_ptr_to_int", bitcast),
        (builder, "create_fabs", create_fabs),
        (builder, "create_fp_to_fp", create_fp_to_fp),
        (builder, "get_bf16", get_bf16),
    ]
    if hasattr(builder, "create_dot_scaled"):
        scaled = builder.create_dot_scaled

        def create_dot_scaled(self, lhs, *rest):
            if any(isinstance(x, handle) and is_bf16(x.dtype) for x in (lhs, *rest)):
                raise NotImplementedError("tl.dot_scaled on bf16 can't be made right here")
            return scaled(self, lhs, *rest)

        changed.append((builder, "create_dot_scaled", create_dot_scaled))
    return changed


def add_in_place(real: np.ndarray, bits: np.ndarray, mask: np.ndarray) -> np.ndarray:
    """atomic_add on bf16: lane by lane, each sum rounded. Returns the bits that were there.

    real: addresses, checked before. The interpreter's own atomics know no bf16.
    """
    before = np.zeros(real.shape, dtype=np.uint16)
    bits = np.broadcast_to(bits, real.shape)
    for lane in zip(*np.nonzero(mask), strict=True):
        cell = np.frombuffer((ctypes.c_uint16 * 1).from_address(int(real[lane])), dtype=np.uint16)
        before[lane] = cell[0]
        total = from_bits(cell.copy()) + from_bits(bits[lane].reshape(1))
        cell[:] = to_bits(round_to_bf16(total))
    return before
