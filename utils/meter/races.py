"""Programs that disturb each other, and outputs that nobody wrote.

Every element has a shadow: who wrote it last, who read it first and last, who updated it
atomically last. "Who" is a segment: a new one begins with each program and after each atomic by
which programs can wait for each other, so order made by locks and counters is respected:
an atomic on one address hands on everything its program did, to whoever does an atomic on that
address later and looks at what it returned (acquire and release; a "relaxed" one does not). Whoever
ignores the result has waited for nobody. Only atomics on a single element count as such: those on a
block of elements are sums, not locks.
Programs run one after another here, so what a program sees of an earlier one, without such an
order, is luck on a GPU. Two programs that write the same value are no race: both orders agree.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from utils.meter.memory import Access, Storage, shift

WRITER, FIRST_READER, LAST_READER, UPDATER = "writer", "first reader", "last reader", "updater"


@dataclass
class Clash:
    """kind "write": both write, different values. "read": one reads what the other writes.
    "unwritten": an output element is read before anything wrote it. other: the earlier program."""

    kind: str
    element: int
    other: tuple[int, int, int] | None
    values: tuple[str, str] | None = None


class Races:
    """Happens-before, in the small: segments, and which of them each program has waited for."""

    def __init__(self) -> None:
        self.programs: list[tuple[int, int, int]] = [(-1, -1, -1)]
        self.program_of = [0]  # by segment; segment 0 is "nobody"
        self.first_segment = 0
        self.seen: dict[int, int] = {}  # program -> its last segment that happened before this
        self.released: dict[int, dict[int, int]] = {}  # address -> what was handed on there
        self.handed: dict[int, int] = {}

    def start_program(self, program: tuple[int, int, int]) -> None:
        self.programs.append(program)
        self.seen = {}
        self.first_segment = len(self.program_of)
        self._new_segment()

    def load(self, access: Access) -> Clash | None:
        """Note a read; returns what is wrong with it."""
        storage, units = access.argument.storage, _units(access)
        clash = None
        if UPDATER in storage.shadows or WRITER in storage.shadows:
            clash = self._foreign(storage, WRITER, units, access, "read")
            clash = clash or self._foreign(storage, UPDATER, units, access, "read")
            if clash is None and access.argument.is_output:
                clash = _unwritten(storage, units, access)
        first = _shadow(storage, FIRST_READER)
        fresh = units[first[units] == 0]
        if fresh.size:
            first[fresh] = self.segment
        _shadow(storage, LAST_READER)[units] = self.segment
        return clash

    def store(self, access: Access, old: np.ndarray, new: np.ndarray) -> Clash | None:
        """Note a write of the bits `new` over `old` (one of each a lane)."""
        storage, units = access.argument.storage, _units(access)
        clash = None
        for shadow, kind in ((WRITER, "write"), (UPDATER, "write"), (FIRST_READER, "read"),
                             (LAST_READER, "read")):  # fmt: skip
            if clash is None and shadow in storage.shadows:
                clash = self._foreign(storage, shadow, units, access, kind, old, new)
        _shadow(storage, WRITER)[units] = self.segment
        return clash

    def update(self, access: Access, orders: bool) -> Clash | None:
        """Note an atomic. orders: it is one by which programs wait for each other. What it hands
        to this program lies in `handed`, until acquire() says that its result was looked at."""
        storage, units = access.argument.storage, _units(access)
        address = storage.address + int(access.byte[0])
        self.handed = dict(self.released.get(address, {})) if orders else {}
        clash = self._foreign(storage, WRITER, units, access, "read")
        if clash is None and access.argument.is_output:
            clash = _unwritten(storage, units, access)
        _shadow(storage, UPDATER)[units] = self.segment
        if orders:
            self._release(address)
        return clash

    def acquire(self, handed: dict[int, int]) -> None:
        """This program looked at the result of an atomic that handed it all this."""
        for program, segment in handed.items():
            self.seen[program] = max(segment, self.seen.get(program, 0))

    @property
    def segment(self) -> int:
        return len(self.program_of) - 1

    def _new_segment(self) -> None:
        self.program_of.append(len(self.programs) - 1)

    def _release(self, address: int) -> None:
        handed = self.released.setdefault(address, {})
        handed.update(self.seen)
        handed[len(self.programs) - 1] = self.segment
        self._new_segment()

    def _foreign(self, storage: Storage, shadow: str, units: np.ndarray, access: Access,
                 kind: str, old: np.ndarray | None = None, new: np.ndarray | None = None,
                 ) -> Clash | None:  # fmt: skip
        if shadow not in storage.shadows:
            return None
        who = storage.shadows[shadow][units]
        clash = (who > 0) & (who < self.first_segment)
        if not clash.any() or access.size < storage.unit:  # elements share a shadow: no verdict
            return None
        if new is not None:  # to write what is there already changes nothing, in either order
            lanes = np.repeat(old != new, units.size // old.size)
            clash &= lanes
        for segment in np.unique(who[clash]).tolist():
            program = self.program_of[segment]
            if self.seen.get(program, 0) < segment:
                lane = int(np.argmax(clash & (who == segment)))
                values = None
                if kind == "write":
                    step = units.size // old.size
                    values = tuple(_value(b[lane // step], access) for b in (old, new))
                element = _element(storage, units[lane], access)
                return Clash(kind, element, self.programs[program], values)
        return None


def poison_shadow(storage: Storage) -> None:
    """Make an output's shadow exist, so that a read before the first write is noticed."""
    _shadow(storage, WRITER)


def _unwritten(storage: Storage, units: np.ndarray, access: Access) -> Clash | None:
    touched = storage.shadows[WRITER][units] > 0
    if UPDATER in storage.shadows:
        touched |= storage.shadows[UPDATER][units] > 0
    if touched.all():
        return None
    return Clash("unwritten", _element(storage, units[int(np.argmin(touched))], access), None)


def _shadow(storage: Storage, name: str) -> np.ndarray:
    if name not in storage.shadows:
        n_units = (storage.high - storage.low) // storage.unit
        storage.shadows[name] = np.zeros(n_units, dtype=np.int32)
    return storage.shadows[name]


def _units(access: Access) -> np.ndarray:
    storage = access.argument.storage
    units = (access.byte - storage.low) >> shift(storage.unit)
    each = access.size // storage.unit
    if each > 1:
        units = (units[:, None] + np.arange(each)).reshape(-1)
    return units


def _element(storage: Storage, unit: int, access: Access) -> int:
    return int(access.argument.index(int(unit) * storage.unit + storage.low))


def _value(bits: np.unsignedinteger, access: Access) -> str:
    import torch

    dtype = getattr(torch, access.argument.dtype)
    if dtype.itemsize != access.size:
        return hex(int(bits))
    raw = torch.frombuffer(bytearray(bits.tobytes()), dtype=torch.uint8)
    value = raw.view(dtype)[0].item()
    return f"{value:.6g}" if isinstance(value, float) else str(value)
