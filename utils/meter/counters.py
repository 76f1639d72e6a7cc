"""What is counted of one access: bytes asked for, and 32-byte sectors per warp.

A warp is 32 lanes. Lanes run along the dimension in which the block's addresses are contiguous,
as Triton's coalescing pass lays them out; without one, along the last dimension. A warp fetches
whole sectors of 32 bytes (CUDA C++ Best Practices Guide, "Coalesced Access to Global Memory").
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from utils.meter.memory import SECTOR_BYTES, Access

WARP = 32


@dataclass
class Traffic:
    """Totals of one argument in one direction. ideal_sectors: the fewest that could have held
    each warp's distinct bytes."""

    accesses: int = 0
    bytes: int = 0
    sectors: int = 0
    ideal_sectors: int = 0

    @property
    def coalescing(self) -> float | None:
        """1.0 when every fetched sector was needed, 0.125 when a warp uses 4 bytes of each."""
        return self.ideal_sectors / self.sectors if self.sectors else None


def count(access: Access, traffic: Traffic) -> np.ndarray:
    """Add an access to an argument's totals; returns its distinct sectors, numbered over all."""
    rows = _warps(access)
    size = access.size
    change = rows[:, 1:] != rows[:, :-1]
    distinct = change.sum(axis=1)
    sector = rows // SECTOR_BYTES
    change = sector[:, 1:] != sector[:, :-1]
    if access.mask is None and rows.shape[0] * WARP == access.byte.size:
        distinct += 1
        first = np.ones(rows.shape[0], dtype=bool)
    else:
        first = rows[:, 0] >= 0
        distinct += first  # lanes that take no part are -1, sorted to the front
    traffic.accesses += 1
    traffic.bytes += access.byte.size * size
    traffic.sectors += int(change.sum()) + int(first.sum())
    traffic.ideal_sectors += int(((distinct * size + SECTOR_BYTES - 1) // SECTOR_BYTES).sum())
    touched = np.concatenate([sector[:, 1:][change], sector[:, 0][first]])
    argument = access.argument
    move = argument.first - argument.address  # a multiple of a sector
    byte = np.unique(touched) * SECTOR_BYTES + move
    return argument.storage.sectors(byte)


def _warps(access: Access) -> np.ndarray:
    """Addresses, 32 a row, ascending in each row, -1 for a lane that takes no part."""
    address, mask = access.address, access.mask
    axis = fastest_axis(address, access.size)
    if axis != address.ndim - 1:
        address = np.moveaxis(address, axis, -1)
        mask = None if mask is None else np.moveaxis(mask, axis, -1)
    flat = address.reshape(-1) if mask is None else np.where(mask, address, -1).reshape(-1)
    if flat.size % WARP:
        flat = np.concatenate([flat, np.full(-flat.size % WARP, -1)])
    rows = flat.reshape(-1, WARP)
    if (rows[:, 1:] < rows[:, :-1]).any():
        rows = np.sort(rows, axis=1)
    return rows


def fastest_axis(address: np.ndarray, size: int) -> int:
    """The dimension along which neighbours lie `size` bytes apart; the last one without any."""
    last = address.ndim - 1
    for axis in range(last, -1, -1):
        if address.shape[axis] > 1:
            start = (0,) * axis
            step = int(address[(*start, 1)].flat[0]) - int(address[(*start, 0)].flat[0])
            if abs(step) == size:
                return axis
    return max(last, 0)
