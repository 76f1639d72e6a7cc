"""course.py on a fresh copy: installing, and every way in which it can go wrong.

The copy depends on one tiny package, a wheel made here, so nothing comes from a network.
"""

import json
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from utils import ROOT
from utils.command import install

pytestmark = pytest.mark.slow

PYPROJECT = """
[project]
dependencies = ["tiny>=1"]
[project.optional-dependencies]
build = ["tiny"]
test = ["tiny"]
"""


def wheel(folder: Path) -> None:
    with zipfile.ZipFile(folder / "tiny-1.0-py3-none-any.whl", "w") as file:
        info = "tiny-1.0.dist-info"
        file.writestr("tiny.py", "")
        file.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\nName: tiny\nVersion: 1.0\n")
        file.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any\n")
        file.writestr(f"{info}/RECORD", "")


class Copy:
    """A copy of the command in a folder of its own."""

    def __init__(self, folder: Path) -> None:
        self.root, self.wheels = folder / "course", folder / "wheels"
        self.wheels.mkdir()
        wheel(self.wheels)
        skip = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / "utils/command", self.root / "utils/command", ignore=skip)
        shutil.copy(ROOT / "utils/__init__.py", self.root / "utils")
        shutil.copy(ROOT / "course.py", self.root)
        (self.root / "pyproject.toml").write_text(PYPROJECT, encoding="utf-8")
        (self.root / "constraints.txt").write_text("tiny==1.0\n", encoding="utf-8")
        self.stamp = self.root / ".venv/installed.json"
        self.python = self.root / install.PYTHON.relative_to(ROOT)

    def run(self, *arguments: str, **variables: str) -> subprocess.CompletedProcess:
        offline = {"PIP_CONFIG_FILE": os.devnull, "PIP_FIND_LINKS": str(self.wheels)}
        offline |= {"PIP_NO_INDEX": "1", "PYTHONPATH": "", "CONDA_DEFAULT_ENV": ""} | variables
        return subprocess.run(
            [sys.executable, str(self.root / "course.py"), *arguments],
            env=os.environ | offline,
            capture_output=True,
            text=True,
            timeout=120,
        )

    def install(self, **variables: str) -> subprocess.CompletedProcess:
        return self.run("lab", "--install-only", **variables)

    def holds_tiny(self) -> bool:
        command = [self.python, "-c", "import tiny"]
        return subprocess.run(command, capture_output=True).returncode == 0


@pytest.fixture(scope="module")
def copy(tmp_path_factory):
    """One copy for the module: each test begins by breaking what the one before it left."""
    return Copy(tmp_path_factory.mktemp("fresh"))


def sentence(done: subprocess.CompletedProcess) -> str:
    """The one line on stderr of a command that failed."""
    assert done.returncode != 0
    lines = done.stderr.strip().splitlines()
    assert len(lines) == 1, done.stderr
    return lines[0]


def test_no_network_then_a_network(copy):
    shutil.rmtree(copy.root / ".venv", ignore_errors=True)
    nowhere = {"PIP_NO_INDEX": "", "PIP_FIND_LINKS": "", "PIP_INDEX_URL": "http://127.0.0.1:9/"}
    done = copy.install(**nowhere, PIP_RETRIES="0")
    assert "network" in sentence(done) and not copy.stamp.exists()
    done = copy.install()
    assert done.returncode == 0, done.stderr
    assert copy.holds_tiny() and "Installed in" in done.stdout


def test_the_second_start_installs_nothing(copy):
    assert copy.install().returncode == 0
    done = copy.install(PIP_FIND_LINKS="")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_a_changed_requirement_is_installed(copy):
    assert copy.install().returncode == 0
    constraints = copy.root / "constraints.txt"
    constraints.write_text("# tested again\ntiny==1.0\n", encoding="utf-8")
    assert "Installed in" in copy.install().stdout


def test_a_half_made_venv_is_repaired(copy):
    assert copy.install().returncode == 0
    kept = copy.python.stat().st_mtime
    remove = [copy.python, "-m", "pip", "uninstall", "-qy", "tiny", "pip"]
    subprocess.run(remove, check=True, capture_output=True)
    copy.stamp.unlink()
    done = copy.install()
    assert done.returncode == 0, done.stderr
    assert copy.holds_tiny() and copy.python.stat().st_mtime == kept


def test_a_package_that_was_half_copied_is_installed_again(copy):
    assert copy.install().returncode == 0
    (installer,) = (copy.root / ".venv").rglob("tiny-1.0.dist-info/INSTALLER")
    installer.unlink()
    (installer.parent.parent / "tiny.py").unlink()
    copy.stamp.unlink()
    assert copy.install().returncode == 0 and copy.holds_tiny()


def test_a_package_that_went_away_comes_back(copy):
    assert copy.install().returncode == 0
    subprocess.run([copy.python, "-m", "pip", "uninstall", "-qy", "tiny"], check=True)
    assert copy.install().returncode == 0 and copy.holds_tiny()


def test_a_venv_whose_python_is_gone_is_made_anew(copy):
    assert copy.install().returncode == 0
    copy.python.unlink()
    done = copy.install()
    assert done.returncode == 0, done.stderr
    assert "anew" in done.stdout and copy.holds_tiny()


def test_groups_are_kept_when_one_is_added(copy):
    copy.install()
    before = json.loads(copy.stamp.read_text(encoding="utf-8"))
    copy.run("build")  # the copy has nothing to build, but it gets the group
    after = json.loads(copy.stamp.read_text(encoding="utf-8"))
    assert after["runtime"] == before["runtime"] and after["build"]


def test_a_version_that_does_not_exist(copy):
    (copy.root / "constraints.txt").write_text("tiny==2.0\n", encoding="utf-8")
    assert "tiny" in sentence(copy.install()) and not copy.stamp.exists()
    (copy.root / "constraints.txt").write_text("tiny==1.0\n", encoding="utf-8")
