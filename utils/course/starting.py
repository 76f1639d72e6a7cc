"""start: the first line of every chapter. What this machine is, and what will be modelled."""

from __future__ import annotations

from typing import TYPE_CHECKING

from utils.exercises.runner import worker
from utils.exercises.source import chapter
from utils.meter.without_triton import WHERE, has_triton

from . import skipping
from .output import Message, show

if TYPE_CHECKING:
    from utils.hardware import Machine


def start(number: str) -> Machine:
    """Open chapter `number`, such as '03': say what this machine is, return its measured profile.

    The profile is chapter 0's. Where there is none yet, it is measured now, in under 30 seconds.
    """
    from utils.hardware import load_machine, probe

    this = chapter(number)
    if not has_triton():
        skipping.skip_kernel_cells()
    worker()  # starts beside the reading, so that the first check need not wait
    machine = load_machine()
    if machine is None:
        show(Message("note", ["Measuring this machine first. It takes less than half a minute."]))
        machine = probe()
    gpu = machine.device != "cpu"
    here = "Timings are measured on it." if gpu else "No GPU here: what needs one is modelled."
    lines = [this.meta["title"], f"This machine: {machine.name}. {here}"]
    if not has_triton() and skipping.launches_kernels(this):
        lines.append(WHERE)
    if machine.noise:
        lines.append(f"{machine.noise} To have it: from utils.hardware import probe.")
    show(Message("note", lines))
    return machine
