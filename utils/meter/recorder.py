"""What one metered launch writes down: every access of every program, and what is wrong with it.

The seams (seams.py) call load, store and atomic in the interpreter's place. Each first resolves
addresses (memory.py), which raises before a bad one is touched, then reads or writes through
numpy, then counts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import numpy as np

from utils.meter.counters import Traffic, count
from utils.meter.l2 import L2
from utils.meter.memory import Access, Memory, OutOfBounds
from utils.meter.races import Clash, Races
from utils.meter.undefined import Effects, rubbish

NO_MASK, MASK = "no mask was given", "the mask lets this lane through"


class Recorder:
    """One launch. `say(kind, access, clash)` turns what is wrong into a sentence, once each."""

    def __init__(self, memory: Memory, l2: L2, say: Callable[..., None]):
        self.memory, self.l2, self.say = memory, l2, say
        self.races = Races()
        self.reads = {number: Traffic() for number in memory.arguments}
        self.writes = {number: Traffic() for number in memory.arguments}
        spans = {number: argument.n_span for number, argument in memory.arguments.items()}
        self.was_read = {number: np.zeros(n, dtype=bool) for number, n in spans.items()}
        self.was_written = {number: np.zeros(n, dtype=bool) for number, n in spans.items()}
        self.flops: Counter[str] = Counter()
        self.n_atomics = 0
        self.program = (0, 0, 0)
        self.programs_done = 0
        self.n_programs = 0
        self.effects = Effects()
        self.undefined_argument: str | None = None
        self.again = False  # this program runs a second time, and counts nothing
        self.how = ""  # what the access goes through, when that is no plain pointer
        self.synchronises = False  # an atomic load or store: ordered, no race

    def start_program(self, program: tuple[int, int, int]) -> None:
        self.program = program
        self.effects, self.undefined_argument = Effects(), None
        self.races.start_program(program)
        self.l2.start_program()

    def add_flops(self, precision: str, flops: int) -> None:
        if not self.again:
            self.flops[precision] += flops

    def load(self, pointers: np.ndarray, mask: np.ndarray | None, other: np.ndarray | None,
             dtype: np.dtype) -> np.ndarray:  # fmt: skip
        """The block of values of `dtype` at `pointers`; `other` where the mask is off."""
        partial = mask is not None and not mask.all()
        accesses = self._resolve(pointers, mask, partial, dtype.itemsize)
        if not self.again:
            for access in accesses:
                self._count(access, "load")
        if not partial and len(accesses) == 1:
            access = accesses[0]
            values = access.argument.storage.view(access.size)[access.place]
            return values.view(dtype).reshape(pointers.shape)
        if partial and other is None and accesses:
            self.undefined_argument = self.undefined_argument or accesses[0].argument.name
        if partial and other is not None:
            block = np.array(np.broadcast_to(other, pointers.shape), dtype=dtype)
        elif partial and self.again:
            block = np.zeros(pointers.shape, dtype)
            block[~mask] = rubbish(dtype, int((~mask).sum()))
        else:
            block = np.zeros(pointers.shape, dtype)
        for access in accesses:
            values = access.argument.storage.view(access.size)[access.place].view(dtype)
            block[... if access.mask is None else access.mask] = values
        return block

    def store(self, pointers: np.ndarray, values: np.ndarray, mask: np.ndarray | None) -> None:
        """Write the bits of `values` where the mask is on."""
        partial = mask is not None and not mask.all()
        size = values.dtype.itemsize
        bits = np.ascontiguousarray(np.broadcast_to(values, pointers.shape)).view(f"u{size}")
        for access in self._resolve(pointers, mask, partial, size):
            memory = access.argument.storage.view(size)
            new = (bits if access.mask is None else bits[access.mask]).reshape(-1)
            old = memory[access.place]
            self.effects.note(access, old, new)
            if not self.again:
                self._report(access, None if self.synchronises else
                             self.races.store(access, old, new))  # fmt: skip
                self._count(access, "store")
            memory[access.place] = new
            if not self.again and not np.array_equal(memory[access.place], new):
                lane = int(np.argmax(memory[access.place] != new))
                element = int(access.argument.index(access.byte[lane]))
                self._report(access, Clash("lanes", element, None))

    def atomic(self, pointers: np.ndarray, operand: np.ndarray, mask: np.ndarray | None,
               orders: bool, do: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:  # fmt: skip
        """Check and count an atomic, then let `do` carry it out at real addresses."""
        partial = mask is not None and not mask.all()
        size = operand.dtype.itemsize
        real = np.zeros(pointers.shape, dtype=np.uint64)
        bits = np.ascontiguousarray(np.broadcast_to(operand, pointers.shape)).view(f"u{size}")
        for access in self._resolve(pointers, mask, partial, size):
            where = ... if access.mask is None else access.mask
            base = access.argument.storage.address
            real[where] = (access.byte + base).reshape(real[where].shape)
            old = access.argument.storage.view(size)[access.place]
            self.effects.note(access, old, bits[where].reshape(-1))
            if not self.again:
                alone = access.byte.size == 1
                self._report(access, self.races.update(access, orders and alone))
                self._count(access, "atomic")
        return do(real)

    def _resolve(self, pointers: np.ndarray, mask: np.ndarray | None, partial: bool,
                 size: int) -> list[Access]:  # fmt: skip
        if not self.how:
            self.how = NO_MASK if mask is None else MASK
        try:
            accesses = self.memory.resolve(pointers, mask if partial else None, size)
        except OutOfBounds as error:
            error.how = self.how
            raise
        self.how = ""
        return accesses

    def _count(self, access: Access, kind: str) -> None:
        number = access.argument.number
        if kind == "load":
            if not self.synchronises:
                self._report(access, self.races.load(access))
            sectors = count(access, self.reads[number])
            self.was_read[number][access.element] = True
        else:
            sectors = count(access, self.writes[number])
            self.was_written[number][access.element] = True
            self.n_atomics += access.byte.size if kind == "atomic" else 0
        self.l2.access(sectors, kind)

    def _report(self, access: Access, clash: Clash | None) -> None:
        if clash is not None:
            self.say(access, clash)
