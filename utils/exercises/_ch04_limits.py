"""What an answer holds and computes while it runs: its tensors in bytes, its products in FLOPs.

Imported only where an answer runs, because it imports torch.
"""

from __future__ import annotations

from torch.utils._python_dispatch import TorchDispatchMode

from utils.meter.ops_flops import product_formula
from utils.meter.ops_memory import LiveBytes
from utils.meter.ops_traffic import tensors


class Watched(TorchDispatchMode):
    """Watches what runs inside the `with`. Its inputs are left out; a view holds nothing new.

    largest: bytes of the largest tensor that was made. flops: of matrix products. longest: of the
    last two axes of their results. peak: most bytes of made tensors alive at once.
    """

    def __init__(self, inputs: list) -> None:
        super().__init__()
        self._inputs = {tensor.untyped_storage()._cdata for tensor in inputs}
        self._live = LiveBytes()
        self.largest = self.flops = self.longest = 0

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """PyTorch would import its compiler, which takes seconds of a check that has five."""
        return False

    @property
    def peak(self) -> int:
        return self._live.peak

    def __exit__(self, *error) -> None:
        self._live.stop()
        super().__exit__(*error)

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        result = func(*args, **kwargs)
        formula = product_formula(func)
        if formula is not None:
            self.flops += formula(*args, **kwargs, out_val=result)
            shapes = [tensor.shape[-2:] for tensor in tensors(result)]
            self.longest = max([self.longest, *(size for shape in shapes for size in shape)])
        storages = [tensor.untyped_storage() for tensor in tensors(result)]
        made = [storage for storage in storages if storage._cdata not in self._inputs]
        self._live.make(made)
        self.largest = max([self.largest, *(storage.nbytes() for storage in made)])
        return result
