"""Files that are whole or not there, and damaged ones that are kept. Standard library only."""

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO


def write_whole(path: Path, text: str) -> None:
    """Replace a file's text in one step: whoever reads it gets the old text or the new, no mixture.

    UTF-8, with "\\n" at line ends on every system. The folder is made where it is missing.
    Raises OSError where the file cannot be written; then the old one is as it was.
    """
    with whole_file(path) as file:
        file.write(text.encode())


@contextmanager
def whole_file(path: Path) -> Iterator[BinaryIO]:
    """The same for bytes: what the `with` writes takes the place of path when it ends.

    After an error inside it, or where the file cannot be written, the old one is as it was.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        with open(beside, "wb") as file:
            yield file
        _replace(beside, path)
    finally:
        beside.unlink(missing_ok=True)


def _replace(beside: Path, path: Path) -> None:
    """os.replace, patient: Windows refuses for as long as another program has `path` open."""
    for pause_seconds in (0.05, 0.2, 0.5):
        try:
            os.replace(beside, path)
            return
        except PermissionError:
            time.sleep(pause_seconds)
    os.replace(beside, path)


def set_aside(path: Path) -> Path:
    """Rename a damaged file, to a name that is free, so that nothing overwrites it.

    Returns the new path, such as progress.damaged-1.json.
    """
    number = 1
    while (aside := path.with_name(f"{path.stem}.damaged-{number}{path.suffix}")).exists():
        number += 1
    os.replace(path, aside)
    return aside
