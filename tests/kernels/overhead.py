"""What metering costs over the plain interpreter: python -m tests.kernels.overhead.

Both run in turn on the same inputs. Seconds are of the processor, so that other programs on the
machine count less; the ratio is of medians, taken within one run.
"""

import os
import statistics
import time
from collections.abc import Callable
from functools import partial

os.environ["TRITON_INTERPRET"] = "1"  # for the plain runs, before triton is imported

import torch

from tests.kernels.chapter08 import flash_forward, matmul
from utils.meter import measure

ROUNDS = 5


def cases(dtype: torch.dtype) -> dict[str, tuple]:
    """name -> (kernel, grid, arguments, constants), chapter 08's kernels at the issue's sizes."""
    n = 256
    a, b, c = (torch.randn(n, n).to(dtype) for _ in "abc")
    q, k, v, o = (torch.randn(4, 256, 64).to(dtype) for _ in "qkvo")
    return {
        "matmul 256^3 in 64 x 64 x 32": (
            matmul, (16,), (a, b, c, n, n, n, n, 1, n, 1, n, 1),
            {"BLOCK_M": 64, "BLOCK_N": 64, "BLOCK_K": 32, "GROUP_M": 2},
        ),
        "flash attention 4 x 256 x 64": (
            flash_forward, (4, 4), (q, k, v, o, 256, 0.125, 256 * 64, 64),
            {"HEAD_DIM": 64, "BLOCK_M": 64, "BLOCK_N": 64},
        ),
    }  # fmt: skip


def overheads(dtype: torch.dtype = torch.float32, rounds: int = ROUNDS) -> dict[str, dict]:
    """name -> seconds plain, seconds metered, and their ratio."""
    found = {}
    for name, (kernel, grid, arguments, constants) in cases(dtype).items():
        plain, metered = [], []
        for _ in range(rounds + 1):
            plain.append(_seconds(partial(kernel[grid], *arguments, **constants)))
            metered.append(_seconds(partial(measure, kernel, grid, *arguments, **constants)))
        one, two = statistics.median(plain[1:]), statistics.median(metered[1:])
        found[name] = {"plain_seconds": one, "metered_seconds": two, "ratio": two / one}
    return found


def _seconds(function: Callable[[], object]) -> float:
    start = time.process_time()
    function()
    return time.process_time() - start


if __name__ == "__main__":
    for dtype in (torch.float32, torch.float16, torch.bfloat16):
        for name, figures in overheads(dtype).items():
            print(f"{name:32}{str(dtype).removeprefix('torch.'):10}"
                  f"{figures['plain_seconds']:.3f} s plain, {figures['metered_seconds']:.3f} s "
                  f"metered, {figures['ratio']:.2f} times")  # fmt: skip
