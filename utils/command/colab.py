"""Make a Colab machine ready for the course: install what a chapter imports and Colab lacks.

Each chapter's first cell runs this file on Colab, after cloning the repository. Torch, Triton and
the notebook server that Colab brings stay as they are. Standard library only.
"""

import re
import subprocess
import sys
import tomllib
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

PYPROJECT = Path(__file__).resolve().parents[2] / "pyproject.toml"
KEPT = ("torch", "triton", "jupyterlab")


def missing(pyproject: Path) -> list[str]:
    """The requirements in pyproject.toml that are not installed at all, without those in KEPT."""
    settings = tomllib.loads(pyproject.read_text(encoding="utf-8"))
    result = []
    for requirement in settings["project"]["dependencies"]:
        name = re.match(r"[\w.-]+", requirement)[0]
        try:
            version(name)
        except PackageNotFoundError:
            if name not in KEPT:
                result.append(requirement)
    return result


def main(pyproject: Path = PYPROJECT) -> int:
    """Install what is missing. Returns 0, or 1 after one sentence when pip could not."""
    wanted = missing(pyproject)
    if not wanted:
        return 0
    print("Installing", ", ".join(wanted), flush=True)
    done = subprocess.run([sys.executable, "-m", "pip", "install", "--quiet", *wanted])
    if done.returncode:
        print("pip could not install them; run this cell again when the network is back.")
    return min(done.returncode, 1)


if __name__ == "__main__":
    sys.exit(main())
