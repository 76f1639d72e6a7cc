"""Keep the memory of one step for the next, and in large pages."""

import ctypes
import platform

# Parameters of mallopt in glibc's malloc.h, and the largest mmap threshold every version takes.
M_TRIM_THRESHOLD, M_TOP_PAD, M_MMAP_THRESHOLD = -1, -2, -3
TRIM_ABOVE_BYTES = 2**30
MMAP_ABOVE_BYTES = 32 * 2**20
TOP_PAD_BYTES = 128 * 2**10  # glibc's own
ROOM_BYTES = 2**29  # below TRIM_ABOVE_BYTES, or it would be given back at once
LARGE_PAGE_BYTES = 2**21
MADV_HUGEPAGE = 14  # asm-generic/mman-common.h


def keep_freed_memory() -> bool:
    """Ask the C library to keep what a step frees, up to 1 GiB, for this whole process.

    A training step frees its activations and asks for as many again. If they went back to the
    system in between, the first touch of every page would stop the program once more while the
    system clears it. Returns whether the C library was asked: only glibc on Linux can be.
    Source: man 3 mallopt.
    """
    if platform.system() != "Linux" or platform.libc_ver()[0] != "glibc":
        return False
    libc = ctypes.CDLL(None)
    asked = (M_TRIM_THRESHOLD, TRIM_ABOVE_BYTES), (M_MMAP_THRESHOLD, MMAP_ABOVE_BYTES)
    taken = all(libc.mallopt(parameter, value) == 1 for parameter, value in asked)
    _make_room_in_large_pages(libc)
    return taken


def _make_room_in_large_pages(libc: ctypes.CDLL) -> None:
    """Let the heap grow by 512 MiB, and ask the system for pages of 2 MiB there (man 2 madvise).

    Activations of megabytes spread over so many pages of 4 KiB that the processor cannot keep all
    their addresses at hand. Room that nobody touches takes no memory. Where the heap still has
    room, or the system has no large pages, nothing changes.
    """
    libc.sbrk.restype = libc.malloc.restype = ctypes.c_void_p
    begin = -(-libc.sbrk(0) // LARGE_PAGE_BYTES) * LARGE_PAGE_BYTES
    libc.mallopt(M_TOP_PAD, ROOM_BYTES)
    libc.free(ctypes.c_void_p(libc.malloc(ctypes.c_size_t(MMAP_ABOVE_BYTES // 2))))
    libc.mallopt(M_TOP_PAD, TOP_PAD_BYTES)
    size = libc.sbrk(0) - begin
    if size > 0:
        libc.madvise(ctypes.c_void_p(begin), ctypes.c_size_t(size), MADV_HUGEPAGE)
