"""Where pointers may go: each pointer argument lives in an address window of its own.

The seam is the address itself. A kernel gets, instead of a tensor's real address, a made-up one:
the number of the argument in the upper bits, a position in the middle of its window in the lower
bits. Whatever the kernel computes with it (broadcasts, selects, casts, goes through an integer),
the upper bits still say which argument the pointer came from. So an address that strays into
another tensor is out of bounds too, and a bad address is found before any memory is touched.

Memory itself is a numpy array over the tensor's storage. Storages are placed as CUDA's allocator
places them, at multiples of 512 bytes, so that sectors are the same on every machine.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

WINDOW_BITS = 44
MIDDLE = 1 << (WINDOW_BITS - 1)
PLACED_BYTES = 512
SECTOR_BYTES = 32


def shift(size: int) -> int:
    """Element sizes are powers of two, and numpy shifts faster than it divides."""
    return size.bit_length() - 1


@dataclass
class Storage:
    """One piece of memory that arguments are views of. Offsets count from its first byte.

    low, high: the bytes that arguments can reach. unit: bytes of its smallest element.
    first_sector: the number of the sector at `low`, in one numbering over all storages.
    """

    data: np.ndarray
    address: int
    low: int
    high: int
    unit: int
    first_sector: int = 0
    shadows: dict[str, np.ndarray] = field(default_factory=dict)

    @property
    def n_sectors(self) -> int:
        if self.high <= self.low:
            return 0
        return (self.high - 1) // SECTOR_BYTES - self.low // SECTOR_BYTES + 1

    def view(self, size: int) -> np.ndarray:
        """The storage as unsigned integers of `size` bytes."""
        whole = self.data.size // size * size
        return self.data[:whole].view(f"u{size}")

    def sectors(self, byte: np.ndarray) -> np.ndarray:
        return (byte >> shift(SECTOR_BYTES)) + (self.first_sector - self.low // SECTOR_BYTES)


@dataclass
class Argument:
    """One pointer argument. first, end: its bytes in the storage; inside: None when every element
    from first to end belongs to it, else a boolean for each."""

    name: str
    shape: tuple[int, ...]
    stride: tuple[int, ...]
    dtype: str
    itemsize: int
    storage: Storage
    first: int
    end: int
    inside: np.ndarray | None
    number: int
    is_output: bool = False
    how: str = "pointer"

    @property
    def address(self) -> int:
        """The made-up address that the kernel gets."""
        return (self.number << WINDOW_BITS) + MIDDLE + self.first % PLACED_BYTES

    @property
    def n_elements(self) -> int:
        return int(np.prod(self.shape, dtype=np.int64))

    @property
    def n_span(self) -> int:
        return (self.end - self.first) // self.itemsize

    def index(self, byte: Any) -> Any:
        """Element index, counted from the argument's first element, of a byte of its storage."""
        return (byte - self.first) // self.itemsize

    def overlaps(self, other: Argument) -> bool:
        """Have the two an element in common? Interleaved views of one memory have none."""
        low, high = max(self.first, other.first), min(self.end, other.end)
        if self.storage is not other.storage or low >= high:
            return False
        both = (self.covers(low, high), other.covers(low, high))
        return bool((both[0] & both[1]).any())

    def covers(self, low: int, high: int) -> np.ndarray:
        """Which bytes of the storage from low to high belong to this argument."""
        inside = np.ones(self.n_span, dtype=bool) if self.inside is None else self.inside
        return np.repeat(inside, self.itemsize)[low - self.first : high - self.first]

    def __str__(self) -> str:
        size = " x ".join(map(str, self.shape)) or "scalar"
        return f"{self.name} ({size}, {self.dtype})"


@dataclass
class Access:
    """What one load, store or atomic touches of one argument.

    address: the whole block's made-up addresses, mask: its lanes that take part (None: all)
    byte: offsets in the storage, one for each lane that takes part. size: bytes of an element
    """

    argument: Argument
    address: np.ndarray
    mask: np.ndarray | None
    byte: np.ndarray
    size: int

    @cached_property
    def place(self) -> np.ndarray:
        """Positions in storage.view(size)."""
        return self.byte >> shift(self.size)

    @cached_property
    def element(self) -> np.ndarray:
        """Elements of the argument, counted from its first."""
        return (self.byte - self.argument.first) >> shift(self.argument.itemsize)


class OutOfBounds(Exception):
    """A bad address. argument is None when it came from no pointer argument at all."""

    def __init__(self, argument: Argument | None, byte: int, size: int, bad: int, lanes: int):
        self.argument, self.byte, self.size, self.bad, self.lanes = argument, byte, size, bad, lanes


class Memory:
    """All pointer arguments of one launch."""

    def __init__(self) -> None:
        self.arguments: dict[int, Argument] = {}
        self.storages: dict[int, Storage] = {}

    def add(self, name: str, tensor: Any) -> Argument:
        """A CPU tensor becomes an argument. Two views of one storage share its Storage."""
        import torch

        held = tensor.untyped_storage()
        itemsize = tensor.element_size()
        sizes, strides = tuple(tensor.shape), tuple(tensor.stride())
        span = sum((n - 1) * s for n, s in zip(sizes, strides, strict=True)) + 1
        span = span if tensor.numel() else 0
        first = tensor.storage_offset() * itemsize
        end = first + span * itemsize
        key = held.data_ptr() or -1 - len(self.storages)
        storage = self.storages.get(key)
        if storage is None:
            data = torch.empty(0, dtype=torch.uint8).set_(held).numpy()
            storage = self.storages[key] = Storage(data, held.data_ptr(), first, end, itemsize)
        storage.low, storage.high = min(storage.low, first), max(storage.high, end)
        storage.unit = min(storage.unit, itemsize)
        argument = Argument(
            name, sizes, strides, str(tensor.dtype).removeprefix("torch."), itemsize, storage,
            first, end, _inside(tensor, span), len(self.arguments) + 1,
        )  # fmt: skip
        self.arguments[argument.number] = argument
        return argument

    def number_sectors(self) -> int:
        """Give each storage its sectors; returns how many there are in all."""
        total = 0
        for storage in self.storages.values():
            storage.first_sector = total
            total += storage.n_sectors
        return total

    def resolve(self, pointers: np.ndarray, mask: np.ndarray | None, size: int) -> list[Access]:
        """The accesses of one block of pointers, one for each argument it reaches.

        Raises OutOfBounds before anything is touched.
        """
        address = np.ascontiguousarray(pointers).view(np.int64)
        lanes = address.reshape(-1) if mask is None else address[mask]
        if not lanes.size:
            return []
        low, high = int(lanes.min()), int(lanes.max())
        number = low >> WINDOW_BITS
        if number == high >> WINDOW_BITS:
            return [self._access(number, address, mask, lanes, low, high, size)]
        accesses = []
        for number in np.unique(lanes >> WINDOW_BITS).tolist():
            mine = (address >> WINDOW_BITS) == number
            mine = mine if mask is None else mine & mask
            part = address[mine]
            low, high = int(part.min()), int(part.max())
            accesses.append(self._access(number, address, mine, part, low, high, size))
        return accesses

    def _access(self, number, address, mask, lanes, low, high, size) -> Access:
        argument = self.arguments.get(number)
        if argument is None:
            raise OutOfBounds(None, int(lanes[0]), size, lanes.size, lanes.size)
        move = argument.first - argument.address
        byte = lanes + move
        inside = low + move >= argument.first and high + move + size <= argument.end
        if not inside:
            good = (byte >= argument.first) & (byte + size <= argument.end)
        elif argument.inside is not None:
            good = argument.inside[(byte - argument.first) // argument.itemsize]
            inside = bool(good.all())
        if inside and size != argument.itemsize and (byte % size).any():
            good = byte % size == 0
            inside = False
        if not inside:
            first = int(byte[np.argmin(good)])
            raise OutOfBounds(argument, first, size, int((~good).sum()), lanes.size)
        return Access(argument, address, mask, byte, size)


def _inside(tensor: Any, span: int) -> np.ndarray | None:
    """Which elements between the first and the last belong to the view; None when all do."""
    import torch

    if tensor.is_contiguous() or not span:
        return None
    belongs = torch.zeros(span, dtype=torch.bool)
    # A dimension of stride 0 repeats elements: once is enough, and torch refuses to write twice.
    sizes = [n if s else min(n, 1) for n, s in zip(tensor.shape, tensor.stride(), strict=True)]
    belongs.as_strided(sizes, tensor.stride()).fill_(True)
    return None if bool(belongs.all()) else belongs.numpy()
