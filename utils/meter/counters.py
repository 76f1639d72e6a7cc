"""What is counted of one access: bytes asked for, and 32-byte sectors per warp.

A warp is 32 lanes. Lanes run along the dimension in which the block's addresses are contiguous,
as Triton's coalescing pass lays them out; without one, along the last dimension. A warp fetches
whole sectors of 32 bytes (CUDA C++ Best Practices Guide, "Coalesced Access to Global Memory").
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from utils.meter.memory import SECTOR_BYTES, Access, shift

WARP = 32
SHIFT = shift(SECTOR_BYTES)


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
    argument, size = access.argument, access.size
    starts = _full_warps(access)
    if starts is not None:
        sectors, ideal, touched = _of_full_warps(starts, size)
    else:
        sectors, ideal, touched = _of_any_warps(_warps(access), size)
    traffic.accesses += 1
    traffic.bytes += access.byte.size * size
    traffic.sectors += sectors
    traffic.ideal_sectors += ideal
    move = argument.first - argument.address  # a multiple of a sector
    return argument.storage.sectors(np.unique(touched) * SECTOR_BYTES + move)


def _full_warps(access: Access) -> np.ndarray | None:
    """The first address of each warp, if all are 32 lanes next to each other; else None.

    Most accesses are so, and then a thirty-second of the addresses tells the rest.
    """
    address = access.address
    if access.mask is not None or not address.ndim or address.shape[-1] % WARP:
        return None
    if not (address[..., 1:] - address[..., :-1] == access.size).all():
        return None
    return address[..., ::WARP].reshape(-1)


def _of_full_warps(starts: np.ndarray, size: int) -> tuple[int, int, np.ndarray]:
    first = starts >> SHIFT
    each = ((starts + (WARP * size - 1)) >> SHIFT) - first + 1
    most = int(each.max())
    touched = first[:, None] + np.arange(most)
    if most > int(each.min()):
        touched = touched[np.arange(most) < each[:, None]]
    return int(each.sum()), starts.size * max(1, WARP * size // SECTOR_BYTES), touched


def _of_any_warps(rows: np.ndarray, size: int) -> tuple[int, int, np.ndarray]:
    """(sectors, fewest sectors for the distinct bytes, the sectors) of warps as _warps gives."""
    first = rows[:, 0] >= 0  # lanes that take no part are -1, sorted to the front
    distinct = (rows[:, 1:] != rows[:, :-1]).sum(axis=1) + first
    sector = rows >> SHIFT
    change = sector[:, 1:] != sector[:, :-1]
    ideal = (distinct * size + SECTOR_BYTES - 1) >> SHIFT
    touched = np.concatenate([sector[:, 1:][change], sector[:, 0][first]])
    return touched.size, int(ideal.sum()), touched


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
