"""A GPU on paper: bytes, FLOPs and launches, counted without a GPU."""

from utils.meter.ops import Meter, meter

__all__ = ["Meter", "meter"]
