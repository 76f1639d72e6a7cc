"""The three measurements of a machine: matrix products, copies, and tiny operations.

Each builds its operands once and returns a function without arguments, ready for time_samples().
Data is random: a chip that multiplies zeros draws less power and clocks higher than a real one.
"""

import functools
from collections.abc import Callable, Iterator

from utils.hardware import system
from utils.hardware.timing import time_samples

TORCH_NAMES = {
    "fp32": "float32",
    "tf32": "float32",
    "fp16": "float16",
    "bf16": "bfloat16",
    "fp8": "float8_e4m3fn",
    "int8": "int8",
}
MATMUL_SIZES = (128, 256, 512, 1024, 2048, 4096, 8192)
LONGEST_PRODUCT_SECONDS = 0.3
KIB, MIB, GIB = 2**10, 2**20, 2**30


def torch_dtype(dtype: str):
    """The torch dtype of a name such as "bf16". Raises ValueError for an unknown one."""
    import torch

    if dtype not in TORCH_NAMES:
        raise ValueError(f"dtype={dtype!r}: expected one of {', '.join(TORCH_NAMES)}")
    return getattr(torch, TORCH_NAMES[dtype])


def matmul(dtype: str, device: str, n: int) -> Callable[[], object]:
    """An (n, n) @ (n, n) product. The output is allocated once: a new one each call would
    spend part of the time in the operating system, which hands out memory page by page.

    Raises RuntimeError or AttributeError where this device or this PyTorch can't do it.
    """
    import torch

    if dtype == "int8":
        a, b = (torch.randint(-127, 128, (n, n), dtype=torch.int8, device=device) for _ in "ab")
        out = torch.empty(n, n, dtype=torch.int32, device=device)
        return lambda: torch._int_mm(a, b.t(), out=out)
    a, b = (torch.randn(n, n, device=device).to(torch_dtype(dtype)) for _ in "ab")
    if dtype == "fp8":
        one = torch.ones((), device=device)
        return lambda: torch._scaled_mm(
            a, b.t(), scale_a=one, scale_b=one, out_dtype=torch.bfloat16, use_fast_accum=True
        )
    out = torch.empty_like(a)
    return lambda: torch.mm(a, b, out=out)


def matmul_flops(n: int) -> int:
    """FLOPs of an (n, n) @ (n, n) product: a multiply and an add for each of n^3 terms."""
    return 2 * n**3


def best_matmul_size(dtype: str, device: str) -> int:
    """The size with the highest rate, among sizes whose product takes under 0.3 s.

    A dtype without fast hardware stops at the smallest size, so it can't hold up the probe.
    Sizes are compared by their fastest sample: what disturbs a sample only ever slows it.
    """
    rates = {}
    for n in MATMUL_SIZES:
        seconds = min(time_samples(matmul(dtype, device, n), repeats=3))
        rates[matmul_flops(n) / seconds] = n
        if seconds * 8 > LONGEST_PRODUCT_SECONDS:  # twice the size is eight times the work
            break
    return rates[max(rates)]


def copies(device: str) -> Iterator[tuple[int, Callable[[], object]]]:
    """Copies of growing working sets: (bytes, function).

    bytes counts the source, which is read, and the target, which is written; so it is both the
    working set and what one copy moves. A CPU may also read the target before it writes it;
    that hidden third is not counted. Pages are touched before anything is timed.
    """
    import torch

    smallest, largest = copy_range(device)
    elements = largest // 2 // 4
    random = torch.randn(min(elements, MIB), device=device)
    source = random.repeat(elements // random.numel())
    target = source.clone()
    size = smallest
    while size <= largest:
        part = size // 2 // 4
        # Sliced out here: a slice costs as much as copying 16 KiB.
        yield size, functools.partial(target[:part].copy_, source[:part])
        size *= 2


def copy_range(device: str) -> tuple[int, int]:
    """Smallest and largest working set in bytes: from the first cache to well past the last.

    The largest is an eighth of the memory at most.
    """
    import torch

    if device == "cuda":
        memory, smallest, largest = torch.cuda.mem_get_info()[0], MIB, 2 * GIB
    else:
        memory, smallest, largest = system.memory_bytes() or 4 * GIB, 32 * KIB, GIB
    while largest > memory // 8 and largest > 64 * MIB:
        largest //= 2
    return smallest, largest


def tiny_op(device: str) -> Callable[[], object]:
    """An addition of two numbers: all overhead, no work. Back to back, as a program issues them."""
    import torch

    a, b = torch.randn(1, device=device), torch.randn(1, device=device)
    return lambda: a + b


def caches(device: str) -> dict[str, int]:
    """Cache sizes in bytes as the system or the GPU's driver reports them; {} if it doesn't."""
    if device == "cpu":
        return system.caches()
    if device == "cuda":
        import torch

        size = getattr(torch.cuda.get_device_properties(), "L2_cache_size", 0)
        return {"L2": size} if size else {}
    return {}
