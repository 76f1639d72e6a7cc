"""The course's kernels at sizes that fill a GPU, each beside what PyTorch does."""

from __future__ import annotations

import torch

from tests.gpu.workload import Launch, Workload
from utils.exercises.namespace import solution


def add(n: int, device: str):
    x, y = (torch.randn(n, device=device) for _ in "xy")
    out = torch.empty_like(x)
    grid, constants = (-(-n // 1024),), {"BLOCK": 1024}
    launch = Launch(solution("07.add_kernel"), grid, (x, y, out, n), constants, out, 12 * n, n)
    return launch, lambda: x + y


WORKLOADS = [
    Workload("add", add, small=100_000, large=2**27),
]
