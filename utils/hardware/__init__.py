"""Accelerators as published, and this machine as measured. Importing it loads no torch."""

from utils.hardware.machine import Machine, Measured
from utils.hardware.measures import torch_dtype
from utils.hardware.probing import load_machine, probe
from utils.hardware.table import Accelerator, accelerator, accelerators, native_on_nvidia
from utils.hardware.timing import median_time, synchronise, time_samples
from utils.hardware.today import features

__all__ = [
    "Accelerator",
    "Machine",
    "Measured",
    "accelerator",
    "accelerators",
    "features",
    "load_machine",
    "median_time",
    "native_on_nvidia",
    "probe",
    "synchronise",
    "time_samples",
    "torch_dtype",
]
