"""The course's own library. Importing it is cheap: no torch, no numpy, no matplotlib.

A package here imports only from packages above it in this list:
arithmetic, hardware, meter, lab, cluster, show, exercises, course, grading, command.
Below them all is files.py, which imports from none.
"""

import os
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def answers_folder() -> Path:
    """The reader's folder: answers, predictions, progress, this machine's profile.

    It is `answers/` beside the chapters. The environment variable FEED_THE_GPU_ANSWERS moves it.
    """
    folder = Path(os.environ.get("FEED_THE_GPU_ANSWERS") or ROOT / "answers")
    folder.mkdir(parents=True, exist_ok=True)
    return folder
