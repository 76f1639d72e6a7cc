"""What an answer holds and computes while it runs: its tensors in bytes, its products in FLOPs.

Imported only where an answer runs, because it imports torch.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from utils.meter.ops_dispatch import Recorder
from utils.meter.ops_memory import LiveBytes


class Held(LiveBytes):
    """Bytes of the tensors that an answer makes, its inputs left out.

    largest: of the largest one. peak: most alive at once. flops: of matrix products.
    """

    def __init__(self, inputs: list) -> None:
        super().__init__()
        self._inputs = {tensor.untyped_storage()._cdata for tensor in inputs}
        self.largest = self.flops = 0

    def use(self, storages: Iterable) -> None:
        """Tensors made out of sight of the dispatcher, such as by torch.tensor, count too."""
        self.make(storages)

    def make(self, storages: Iterable) -> bool:
        """Storages that an operator returned."""
        made = [storage for storage in storages if storage._cdata not in self._inputs]
        self.largest = max([self.largest, *(storage.nbytes() for storage in made)])
        return super().make(made)


@contextmanager
def watched(held: Held) -> Iterator[None]:
    """Watch what runs inside the `with`."""

    def record(call, new_peak: bool) -> None:
        held.flops += call.flops

    try:
        with Recorder(record, held):
            yield
    finally:
        held.stop()
