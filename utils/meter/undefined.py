"""Results that depend on what a masked-off lane holds.

`tl.load(p, mask=m)` without `other` leaves the lanes outside the mask undefined on a GPU; the
interpreter puts zeros there, so a kernel that relies on them looks right. A program that made
such a load is therefore undone and run once more with rubbish in those lanes. If it then stores
anything else, or somewhere else, its result is undefined.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from utils.meter.memory import Access

MOST_PROGRAMS = 32  # run again: bounds what this costs when every program has such lanes


@dataclass
class Effects:
    """What one program did to memory, in order: (access, bits before, bits given)."""

    changes: list[tuple[Access, np.ndarray, np.ndarray]] = field(default_factory=list)

    def note(self, access: Access, old: np.ndarray, new: np.ndarray) -> None:
        self.changes.append((access, old, new))

    def undo(self) -> None:
        for access, old, _ in reversed(self.changes):
            # Of lanes that share an address the last written wins: the first held the original.
            access.argument.storage.view(access.size)[access.place[::-1]] = old[::-1]

    def same_as(self, other: Effects) -> bool:
        if len(self.changes) != len(other.changes):
            return False
        return all(
            a.argument is b.argument and np.array_equal(a.byte, b.byte) and np.array_equal(x, y)
            for (a, _, x), (b, _, y) in zip(self.changes, other.changes, strict=True)
        )


def rubbish(dtype: np.dtype, n: int) -> np.ndarray:
    """n lanes of huge, hugely negative and (for floats) not-a-number values, in turn."""
    if dtype.kind == "f":
        big = float(np.finfo(dtype).max) / 2
        cycle = np.array([big, -big, np.nan], dtype=dtype)
    elif dtype.kind == "b":
        cycle = np.array([True])
    else:
        limits = np.iinfo(dtype)
        cycle = np.array([limits.max // 2, limits.min // 2, 1], dtype=dtype)
    return np.resize(cycle, n)
