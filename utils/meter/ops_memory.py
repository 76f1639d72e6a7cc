"""How many bytes of tensors are alive at once, from their storages. Works on fake tensors too."""

import weakref
from collections.abc import Iterable


class LiveBytes:
    """Follows storages from when they are first seen until they are freed.

    A storage counts once, however many views share it. Storages that were there before (parameters,
    inputs) are known only when an operator first uses them. They were alive from the start, so they
    then raise the past as well as the present: the peak is exact, not a sum of two peaks.

    peak: most bytes alive at once. existing: bytes of storages that were there before.
    """

    def __init__(self):
        self.peak = self.existing = self._live = 0
        self._known: dict[int, tuple[weakref.ref, int]] = {}

    def use(self, storages: Iterable) -> None:
        """Storages that an operator is about to read. Unknown ones were there before."""
        for storage in storages:
            if storage._cdata not in self._known:
                size = self._follow(storage)
                self.existing += size
                self._live += size
                self.peak += size

    def make(self, storages: Iterable) -> bool:
        """Storages that an operator returned. Says whether this is a new peak."""
        for storage in storages:
            known = self._known.get(storage._cdata)
            if known is None:
                self._live += self._follow(storage)
            elif known[1] != (size := storage.nbytes()):  # resized since
                self._live += size - known[1]
                self._known[storage._cdata] = (known[0], size)
        if self._live <= self.peak:
            return False
        self.peak = self._live
        return True

    def stop(self) -> None:
        """Follow nothing any more."""
        self._known.clear()

    def _follow(self, storage) -> int:
        key, size = storage._cdata, storage.nbytes()

        def freed(reference, self=self, key=key):
            known = self._known.get(key)
            if known is not None and known[0] is reference:
                self._live -= known[1]
                del self._known[key]

        self._known[key] = (weakref.ref(storage, freed), size)
        return size
