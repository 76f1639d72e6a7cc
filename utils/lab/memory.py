"""Keep the memory of one step for the next."""

import ctypes
import platform

# Parameters of mallopt in glibc's malloc.h, and the largest mmap threshold every version takes.
M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3
TRIM_ABOVE_BYTES = 2**30
MMAP_ABOVE_BYTES = 32 * 2**20


def keep_freed_memory() -> bool:
    """Ask the C library to keep what a step frees, up to 1 GiB, for this whole process.

    A training step frees its activations and asks for as many again. If they went back to the
    system in between, the first touch of every page would stop the program once more while the
    system clears it. Returns whether the C library was asked: only glibc on Linux can be.
    Source: man 3 mallopt.
    """
    if platform.system() != "Linux" or platform.libc_ver()[0] != "glibc":
        return False
    mallopt = ctypes.CDLL(None).mallopt
    asked = (M_TRIM_THRESHOLD, TRIM_ABOVE_BYTES), (M_MMAP_THRESHOLD, MMAP_ABOVE_BYTES)
    return all(mallopt(parameter, value) == 1 for parameter, value in asked)
