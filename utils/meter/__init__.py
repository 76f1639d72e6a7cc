"""Count what code does, and model its time on an accelerator. Importing it loads no torch.

meter() counts the PyTorch code inside a `with`, on real tensors or fake ones.
measure(kernel, grid, *args) runs a Triton kernel on paper: safe, checked for races, counted.
"""

from utils.meter.kernel_report import ArgumentReport, KernelReport, Problem
from utils.meter.measure import measure
from utils.meter.ops import Meter, meter
from utils.meter.report import LAUNCH_SECONDS, Cost, Modelled, amount

__all__ = [
    "LAUNCH_SECONDS",
    "ArgumentReport",
    "Cost",
    "KernelReport",
    "Meter",
    "Modelled",
    "Problem",
    "amount",
    "measure",
    "meter",
]
