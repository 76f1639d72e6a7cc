"""Where the interpreter is opened: methods of InterpreterBuilder that touch memory or compute.

Each closure here takes the place of the method it is named after, for the time of one launch.
Versions differ in the trailing arguments (cache policy, eviction), which change nothing here, so
they are taken as they come. triton 3.6 to 3.7 pass block pointers' masks as bare arrays.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from utils.meter import bf16
from utils.meter.recorder import Recorder

DESCRIPTOR = "through a tensor descriptor, which lets it through: its shape or strides are wrong"
BLOCK_POINTER = "through a block pointer, whose shape and boundary_check let it through"
THROUGH = {
    "create_descriptor_load": DESCRIPTOR,
    "create_descriptor_store": DESCRIPTOR,
    "create_tensor_pointer_load": BLOCK_POINTER,
    "create_tensor_pointer_store": BLOCK_POINTER,
}
PRECISIONS = {"IEEE": ("fp32", 1), "TF32": ("tf32", 1), "TF32x3": ("tf32", 3),
              "BF16x3": ("bf16", 3), "BF16x6": ("bf16", 6)}  # fmt: skip
NARROW = ("fp16", "bf16")
HANDED = "meter: handed on by an atomic"


def patches(interpreter: Any, tl: Any, recorder: Recorder, warn: Any) -> list[tuple]:
    """What to set, and on what. warn(text): something that is legal but worth a sentence."""
    builder = interpreter.InterpreterBuilder
    return [
        *_memory(interpreter, tl, builder, recorder),
        *_atomics(interpreter, builder, recorder),
        *_arithmetic(interpreter, builder, recorder, warn),
        *_dots(builder, recorder, warn),
    ]


def _array(mask: Any) -> np.ndarray | None:
    return mask.data if mask is not None and hasattr(mask, "dtype") and not isinstance(
        mask, np.ndarray) else mask  # fmt: skip


def _stored_dtype(interpreter: Any, element: Any) -> np.dtype:
    """The numpy dtype of an element as it lies in memory."""
    return np.dtype(np.uint16) if element.name == "bf16" else interpreter._get_np_dtype(element)


def _memory(interpreter, tl, builder, recorder) -> list[tuple]:
    handle = interpreter.TensorHandle

    def load(pointers, mask, other):
        element = pointers.get_element_ty()
        dtype = _stored_dtype(interpreter, element)
        fill = None if other is None else other.data
        if bf16.is_bf16(element):
            fill = None if fill is None else bf16.to_bits(np.ascontiguousarray(fill))
        if mask is not None:
            mask = np.broadcast_to(mask, pointers.data.shape)
        block = recorder.load(pointers.data, mask, fill, dtype)
        return handle(bf16.from_bits(block) if bf16.is_bf16(element) else block, element)

    def store(pointers, value, mask):
        element = pointers.get_element_ty()
        data = value.data
        if bf16.is_bf16(element):
            data = bf16.to_bits(np.ascontiguousarray(data, dtype=np.float32))
        data = data.astype(_stored_dtype(interpreter, element), copy=False)
        if mask is not None:
            mask = np.broadcast_to(mask, pointers.data.shape)
        recorder.store(pointers.data, data, mask)

    def create_load(self, pointer, *policy, **named):
        return load(pointer, None, None)

    def create_store(self, pointer, value, *policy, **named):
        return store(pointer, value, None)

    def create_masked_load(self, pointers, mask, other, *policy, **named):
        return load(pointers, _array(mask), other)

    def create_masked_store(self, pointers, value, mask, *policy, **named):
        return store(pointers, value, _array(mask))

    def through(name, how):
        method = getattr(builder, name)

        def call(self, *arguments, **named):
            recorder.how = how
            return method(self, *arguments, **named)

        return (builder, name, call)

    def synchronising(name):
        method = getattr(builder, name)

        def call(self, *arguments, **named):
            recorder.synchronises = True
            try:
                return method(self, *arguments, **named)
            finally:
                recorder.synchronises = False

        return (builder, name, call)

    own = (create_load, create_store, create_masked_load, create_masked_store)
    ordered = ("create_atomic_load", "create_atomic_store", "create_atomic_poll")  # triton 3.9
    return [
        *((builder, function.__name__, function) for function in own),
        *(through(name, how) for name, how in THROUGH.items() if hasattr(builder, name)),
        *(synchronising(name) for name in ordered if hasattr(builder, name)),
    ]


def _atomics(interpreter, builder, recorder) -> list[tuple]:
    handle, native = interpreter.TensorHandle, interpreter._interpreter
    relaxed = interpreter._ir.MEM_SEMANTIC.RELAXED

    def remembering(result):
        if recorder.races.handed:
            result.set_attr(HANDED, recorder.races.handed)
        return result

    def create_atomic_rmw(self, op, pointers, value, mask, sem, *rest):
        narrow = bf16.is_bf16(value.dtype)
        data = bf16.to_bits(np.ascontiguousarray(value.data)) if narrow else value.data
        on = np.ascontiguousarray(np.broadcast_to(_array(mask), pointers.data.shape))
        kind = self.ir_rmw_op_to_interpreter_rmw_op[op]
        order = self.ir_sem_to_interpreter_sem[sem]

        def do(real):
            if not narrow:
                return native.atomic_rmw(kind, real, data, on, order)
            if op != interpreter._ir.ATOMIC_OP.FADD:
                raise NotImplementedError("of atomics on bf16 only atomic_add can be made right")
            return bf16.add_in_place(real, data, on)

        result = recorder.atomic(pointers.data, data, on, sem != relaxed, do)
        return remembering(handle(bf16.from_bits(result) if narrow else result, value.dtype.scalar))

    def create_atomic_cas(self, pointers, compare, value, sem, *rest):
        if bf16.is_bf16(value.dtype):
            raise NotImplementedError("atomic_cas on bf16 can't be made right here")
        order = self.ir_sem_to_interpreter_sem[sem]

        def do(real):
            return native.atomic_cas(real, compare.data, value.data, order)

        result = recorder.atomic(pointers.data, value.data, None, sem != relaxed, do)
        return remembering(handle(result, compare.dtype.scalar))

    return [(builder, f.__name__, f) for f in (create_atomic_rmw, create_atomic_cas)]


def _dots(builder, recorder, warn) -> list[tuple]:
    dot = builder.create_dot

    def create_dot(self, a, b, d, input_precision, *rest):
        name, times = a.dtype.scalar.name, 1
        if name == "fp32":
            name, times = PRECISIONS.get(input_precision.name, ("fp32", 1))
        elif name.startswith("fp8"):
            name = "fp8"
        recorder.add_flops(name, times * 2 * a.data.size * b.data.shape[-1])
        if d.dtype.scalar.name == "fp16":
            warn("tl.dot accumulates in fp16 here: sums lose digits and overflow past 65,504. "
                 "Accumulate in fp32 and convert at the end.")  # fmt: skip
        return dot(self, a, b, d, input_precision, *rest)

    changed = [(builder, "create_dot", create_dot)]
    if hasattr(builder, "create_dot_scaled"):
        scaled = builder.create_dot_scaled

        def create_dot_scaled(self, lhs, lhs_scale, lhs_format, *rest):
            result = scaled(self, lhs, lhs_scale, lhs_format, *rest)
            packed = 2 if lhs_format.name == "E2M1" else 1
            depth = lhs.data.shape[-1] * packed
            recorder.add_flops("fp4" if packed == 2 else "fp8", 2 * depth * result.data.size)
            return result

        changed.append((builder, "create_dot_scaled", create_dot_scaled))
    return changed


def _arithmetic(interpreter, builder, recorder, warn) -> list[tuple]:
    """Floating-point work outside tl.dot, one FLOP an element; comparisons don't count."""
    reduce, scan = interpreter.ReduceOps, interpreter.ScanOps

    compute = builder.binary_op

    def binary_op(self, lhs, rhs, op):
        for operand in (lhs, rhs):
            if HANDED in operand.attr:
                recorder.races.acquire(operand.attr[HANDED])
        result = compute(self, lhs, rhs, op)
        if result.data.dtype.kind == "f" and result.dtype.is_floating():
            recorder.add_flops("vector", result.data.size)
        return result

    def counted(owner, name, each=1):
        method = getattr(owner, name)

        def call(self, *arguments, **named):
            result = method(self, *arguments, **named)
            if result.dtype.is_floating() and result.data.dtype.kind == "f":
                recorder.add_flops("vector", each * result.data.size)
            return result

        return (owner, name, call)

    def combined(owner, name):
        method = getattr(owner, name)

        def call(self, value, *arguments, **named):
            first = value[0] if isinstance(value, tuple) else value
            if first.dtype.is_floating():
                recorder.add_flops("vector", first.handle.data.size)
                if name == "sum" and first.dtype.name in NARROW:
                    warn(f"tl.sum adds {first.dtype.name} values in {first.dtype.name} on a GPU, "
                         "and loses digits that this interpreter keeps. Convert to tl.float32 "
                         "first.")  # fmt: skip
            return method(self, value, *arguments, **named)

        return (owner, name, call)

    return [
        (builder, "binary_op", binary_op),
        counted(builder, "unary_op"),
        counted(builder, "create_fma", each=2),
        counted(builder, "create_rsqrt"),
        counted(builder, "create_erf"),
        combined(reduce, "sum"),
        combined(reduce, "min_max"),
        combined(scan, "cumsum"),
        combined(scan, "cumprod"),
    ]
