"""Text that every reader already has: the source of Python's standard library, byte by byte.

One token is one byte. Files are kept apart: each ends with a zero byte, which Python source never
contains, and no training window runs past it. About one file in ten is held out for validation,
chosen by a hash of its path, so that the split is the same wherever the same Python is.
"""

import hashlib
import platform
import sys
import sysconfig
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import torch

from utils import answers_folder
from utils.arithmetic.checks import refuse, whole
from utils.files import whole_file

END_OF_FILE = 0

# Some systems pack these apart, so not every reader has them.
PACKED_APART = {"distutils", "ensurepip", "idlelib", "lib2to3", "tkinter", "turtle", "turtledemo"}
# Tables that a program wrote: they are Python only in name.
TABLES = {"encodings", "pydoc_data"}
TESTS = {"test", "tests", "idle_test"}


@dataclass(frozen=True, eq=False)
class Split:
    """Some files, one after the other.

    tokens: (n_bytes,) uint8, each file closed by END_OF_FILE; memory-mapped where it has a file
    files: their paths inside the library, in the order of tokens
    """

    tokens: torch.Tensor
    files: tuple[str, ...]

    @cached_property
    def ends(self) -> torch.Tensor:
        """(n_files,) int64: where each file's closing zero is."""
        return torch.nonzero(self.tokens == END_OF_FILE).flatten()

    @cached_property
    def starts(self) -> torch.Tensor:
        """(n_files,) int64: where each file begins."""
        return torch.cat([torch.zeros(1, dtype=torch.long), self.ends[:-1] + 1])

    def file(self, number: int) -> bytes:
        """The bytes of one file, without its closing zero."""
        return bytes(self.tokens[self.starts[number] : self.ends[number]].numpy())


@dataclass(frozen=True, eq=False)
class Text:
    """What a model is trained on (train), what it never sees in training (val), and its name."""

    train: Split
    val: Split
    name: str


def is_held_out(path: str) -> bool:
    """Whether a file is for validation. path: inside the library, with forward slashes.

    >>> is_held_out("json/decoder.py"), is_held_out("heapq.py")
    (False, False)
    """
    return hashlib.sha256(path.encode()).digest()[0] % 10 == 0


def stdlib_text() -> Text:
    """The standard library of the Python that runs, split in two. Quick from the second call on.

    The bytes are written once to the answers folder and memory-mapped from there. What a reader or
    a distribution added to the library's folder is left out, and line ends are made the same.
    Raises ValueError when this Python came without its source.
    """
    root = Path(sysconfig.get_path("stdlib"))
    files = _library_files(root)
    if not files:
        raise ValueError(
            f"The standard library's source is not at {root}: this Python came without it. "
            "Run the course with a Python from python.org, conda or your system."
        )
    train = {path: file for path, file in files.items() if not is_held_out(path)}
    val = {path: file for path, file in files.items() if is_held_out(path)}
    name = f"standard library of Python {platform.python_version()}"
    return Text(_cached("train", train), _cached("val", val), name)


def text_from_files(train: dict[str, bytes], val: dict[str, bytes], name: str) -> Text:
    """The same from bytes in memory, for text of your own. Raises ValueError for an empty split."""
    return Text(_in_memory("train", train), _in_memory("val", val), name)


def get_batch(
    split: Split, batch: int, seq_len: int, generator: torch.Generator
) -> tuple[torch.Tensor, torch.Tensor]:
    """Random windows: x and the y that follows it, both (batch, seq_len) int64.

    y is x moved on by one byte. Each window lies inside one file, every window of the split is
    equally likely, and only y can hold END_OF_FILE, as its last byte. Files too short for one
    window are never drawn. generator: a torch.Generator on the CPU, which alone decides.
    Raises ValueError naming a wrong argument.
    """
    whole("batch", batch)
    windows = (split.ends - split.starts - whole("seq_len", seq_len) + 1).clamp(min=0)
    up_to = windows.cumsum(0)
    if not up_to[-1]:
        longest = int((split.ends - split.starts).max())
        raise refuse("seq_len", seq_len, f"at most {longest}, the longest file of this split")
    drawn = torch.randint(int(up_to[-1]), (batch,), generator=generator)
    file = torch.searchsorted(up_to, drawn, right=True)
    first = split.starts[file] + drawn - (up_to - windows)[file]
    rows = split.tokens[first[:, None] + torch.arange(seq_len + 1)].long()
    return rows[:, :-1].contiguous(), rows[:, 1:].contiguous()


def _library_files(root: Path) -> dict[str, Path]:
    """Path inside the library -> file, sorted, of the modules that Python itself lists."""
    wanted = sys.stdlib_module_names - PACKED_APART - TABLES
    found = {}
    for module in wanted:
        for file in [root / f"{module}.py", *(root / module).rglob("*.py")]:
            path = file.relative_to(root)
            if file.is_file() and not TESTS & set(path.parts):
                found[path.as_posix()] = file
    return dict(sorted(found.items()))


def _joined(contents: Iterable[bytes]) -> bytes:
    """The files in a row, each closed by a zero; a stray zero inside one is dropped."""
    closing = bytes([END_OF_FILE])
    clean = (content.replace(b"\r\n", b"\n").replace(closing, b"") for content in contents)
    return b"".join(content + closing for content in clean)


def _in_memory(name: str, files: dict[str, bytes]) -> Split:
    if not files:
        raise refuse(name, files, "at least one file")
    joined = np.frombuffer(bytearray(_joined(files.values())), dtype=np.uint8)
    return Split(torch.from_numpy(joined), tuple(files))


def _cached(name: str, files: dict[str, Path]) -> Split:
    """The split from its cache file, which is written first where it is missing or damaged."""
    sizes = "".join(f"{path}\0{file.stat().st_size}\0" for path, file in files.items())
    key = hashlib.sha256(sizes.encode()).hexdigest()[:12]
    cache = answers_folder() / "text" / f"stdlib-{platform.python_version()}-{name}-{key}.bin"
    split = _mapped(cache, files)
    if split is None:
        with whole_file(cache) as out:
            out.write(_joined(file.read_bytes() for file in files.values()))
        split = _mapped(cache, files)
    return split


def _mapped(cache: Path, files: dict[str, Path]) -> Split | None:
    """None when there is no cache file, or one that does not hold these files to the end."""
    if not cache.exists() or not cache.stat().st_size:
        return None
    mapped = np.memmap(cache, dtype=np.uint8, mode="c")  # "c": torch wants it writable; it isn't
    split = Split(torch.from_numpy(mapped), tuple(files))
    complete = mapped[-1] == END_OF_FILE and len(split.ends) == len(files)
    return split if complete else None
