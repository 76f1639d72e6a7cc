"""Files that are whole or not there, and damaged ones that are kept. Standard library only."""

import os
import time
from pathlib import Path


def write_whole(path: Path, text: str) -> None:
    """Replace a file's text in one step: whoever reads it gets the old text or the new, no mixture.

    UTF-8, with "\\n" at line ends on every system. The folder is made where it is missing.
    Raises OSError where the file cannot be written; then the old one is as it was.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        beside.write_text(text, encoding="utf-8", newline="\n")
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
