"""Traffic past the last cache: least recently used, of the accelerator's size, 32-byte sectors.

Programs run in launch order, x fastest, in waves of one program on each core. The programs of a
wave run side by side: their first accesses come first, then their second, and so on. A written
sector stays until it is pushed out or the kernel ends, and then costs a write.
"""

from __future__ import annotations

from collections import deque
from itertools import zip_longest

import numpy as np

from utils.meter.memory import SECTOR_BYTES


class L2:
    """Counts misses and write-backs. capacity_bytes=None: a cache that nothing leaves."""

    def __init__(self, n_sectors: int, capacity_bytes: int | None, programs_per_wave: int):
        room = n_sectors if capacity_bytes is None else capacity_bytes // SECTOR_BYTES
        self.capacity, self.overflows = room, n_sectors > room
        self.programs_per_wave = programs_per_wave
        self.last_use = np.zeros(n_sectors, dtype=np.int64)  # 0: not in the cache
        self.dirty = np.zeros(n_sectors, dtype=bool)
        self.resident = self.time = self.requests = self.misses = self.written_back = 0
        self.uses: deque[tuple[int, np.ndarray]] = deque()  # oldest first, some of them stale
        self.queued = 0
        self.wave: list[list[tuple[np.ndarray, str]]] = []

    def start_program(self) -> None:
        if len(self.wave) == self.programs_per_wave:
            self._run_wave()
        self.wave.append([])

    def access(self, sectors: np.ndarray, kind: str) -> None:
        """kind: "load", "store" or "atomic", which reads and writes."""
        self.wave[-1].append((sectors, kind))

    def finish(self) -> None:
        self._run_wave()
        self.written_back += int(self.dirty.sum())

    @property
    def bytes_read(self) -> int:
        return self.misses * SECTOR_BYTES

    @property
    def bytes_written(self) -> int:
        return self.written_back * SECTOR_BYTES

    @property
    def hit_rate(self) -> float | None:
        """Share of loaded sectors that were in the cache."""
        return 1 - self.misses / self.requests if self.requests else None

    def _run_wave(self) -> None:
        for step in zip_longest(*self.wave):
            for access in step:
                if access is not None:
                    self._use(*access)
        self.wave = []

    def _use(self, sectors: np.ndarray, kind: str) -> None:
        self.time += 1
        absent = int(np.count_nonzero(self.last_use[sectors] == 0))
        if kind != "store":  # a store of whole sectors need not fetch them first
            self.requests += sectors.size
            self.misses += absent
        if kind != "load":
            self.dirty[sectors] = True
        self.last_use[sectors] = self.time
        self.resident += absent
        if self.overflows:
            self.uses.append((self.time, sectors))
            self.queued += sectors.size
            self._evict()

    def _evict(self) -> None:
        while self.resident > self.capacity:
            time, sectors = self.uses.popleft()
            self.queued -= sectors.size
            old = sectors[self.last_use[sectors] == time]
            surplus = self.resident - self.capacity
            if old.size > surplus:
                self.uses.appendleft((time, old[surplus:]))
                self.queued += old.size - surplus
                old = old[:surplus]
            self.last_use[old] = 0
            self.resident -= old.size
            self.written_back += int(np.count_nonzero(self.dirty[old]))
            self.dirty[old] = False
        if self.queued > 4 * self.capacity + 2**20:  # drop what was used again since
            fresh = [(time, s[self.last_use[s] == time]) for time, s in self.uses]
            self.uses = deque(use for use in fresh if use[1].size)
            self.queued = sum(s.size for _, s in self.uses)
