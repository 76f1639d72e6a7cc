"""A checkpoint that is whole or refused: one file, written beside and renamed, with its checksum.

The file is a line of text that names the format, the SHA-256 of the rest, and the rest: what
torch.save wrote. Reading it runs no code that the file might hold (weights_only).
"""

import hashlib
import io
import os
from pathlib import Path

import torch

from utils.files import whole_file

FIRST_LINE = b"feed-the-gpu checkpoint 1\n"
DIGEST_BYTES = hashlib.sha256().digest_size
WAY_OUT = "Delete it to start the run again, or copy back a good one."


def save_checkpoint(file: str | os.PathLike, state: dict) -> None:
    """Write state (tensors, numbers, text, lists and dicts of them). All of it or nothing.

    A run that is stopped while it writes leaves the checkpoint before this one as it was.
    """
    buffer = io.BytesIO()
    torch.save(state, buffer)
    content = buffer.getbuffer()
    with whole_file(Path(file)) as out:
        out.write(FIRST_LINE + hashlib.sha256(content).digest())
        out.write(content)
        out.flush()
        os.fsync(out.fileno())  # on the disk before it takes the old one's place


def load_checkpoint(file: str | os.PathLike) -> dict:
    """What save_checkpoint was given, its tensors on the CPU.

    Raises ValueError, in a sentence, when the file is missing, is no checkpoint, or was cut short
    or altered since it was written.
    """
    file = Path(file)
    if not file.is_file():
        raise ValueError(f"There is no checkpoint at {file}. Give the path of one that is there.")
    with open(file, "rb") as read:
        first = read.read(len(FIRST_LINE))
        if first != FIRST_LINE and not FIRST_LINE.startswith(first):
            raise ValueError(f"{file} is not a checkpoint of this course. Give another path.")
        digest, content = read.read(DIGEST_BYTES), read.read()
    if hashlib.sha256(content).digest() != digest:
        raise ValueError(
            f"The checkpoint {file} was cut short or altered: its checksum does not fit. {WAY_OUT}"
        )
    return torch.load(io.BytesIO(content), map_location="cpu", weights_only=True)
