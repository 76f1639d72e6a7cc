"""The environment in which the verbs start servers, kernels and tests. Standard library only."""

import os
import shutil
from pathlib import Path

from utils import ROOT

BROWSERS = (
    "chromium",
    "chromium-browser",
    "google-chrome",
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
    "C:/Program Files/Google/Chrome/Application/chrome.exe",
)


def kernel_environment(answers: Path | None = None) -> dict[str, str]:
    """The variables for a process whose kernels import utils and are this Python's, no other's.

    answers, where given, is used in place of the reader's answers/.
    """
    paths = [str(ROOT), os.environ.get("PYTHONPATH", "")]
    variables = dict(os.environ, JUPYTER_PREFER_ENV_PATH="1")
    variables["PYTHONPATH"] = os.pathsep.join(path for path in paths if path)
    if answers:
        variables["FEED_THE_GPU_ANSWERS"] = str(answers)
    return variables


def find_browser() -> str | None:
    """The Chromium or Chrome on this machine that the browser tests can drive."""
    return next((path for name in BROWSERS if (path := shutil.which(name))), None)
