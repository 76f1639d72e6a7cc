"""Installing: what it says when the disk, the machine's Python or its age is in the way."""

import ast
import subprocess
import sys
from collections import namedtuple

import pytest

from utils import ROOT
from utils.command import install, pip

Disk = namedtuple("Disk", "total used free")


def test_a_full_disk_is_noticed_before_the_install(monkeypatch, tmp_path):
    monkeypatch.setattr(install.shutil, "disk_usage", lambda path: Disk(9, 9, 10**9))
    monkeypatch.setattr(install, "VENV", tmp_path / "none")
    with pytest.raises(SystemExit, match=r"disk is full: 1\.0 GB are free"):
        install.check_disk(with_cuda=False)


@pytest.mark.parametrize("says", ["[Errno 28] No space left on device", "not enough space on the"])
def test_a_disk_that_fills_up_during_the_install(monkeypatch, says):
    monkeypatch.setattr(pip, "install", lambda python, arguments: (1, f"ERROR: {says}"))
    with pytest.raises(SystemExit, match="disk is full"):
        install.pip_install(["tiny"])


def test_a_python_without_venv(monkeypatch):
    monkeypatch.setattr(install.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(SystemExit, match=r"sudo apt install python3\.\d+-venv"):
        install.make_venv()


def test_a_venv_that_fails_leaves_nothing(monkeypatch, tmp_path):
    def half_made(command, problem):
        (tmp_path / ".venv" / "bin").mkdir(parents=True)
        raise KeyboardInterrupt

    monkeypatch.setattr(install, "VENV", tmp_path / ".venv")
    monkeypatch.setattr(install, "run_or_exit", half_made)
    with pytest.raises(KeyboardInterrupt):
        install.make_venv()
    assert not (tmp_path / ".venv").exists()


def test_an_old_python_hears_a_sentence():
    text = (ROOT / "course.py").read_text(encoding="utf-8")
    tree = ast.parse(text, feature_version=(3, 6))
    first = [
        node for node in tree.body if isinstance(node, ast.If | ast.FunctionDef | ast.ClassDef)
    ]
    assert isinstance(first[0], ast.If)  # the version test, before anything an old one lacks
    code = (
        "import runpy, sys; sys.version_info = (3, 8, 18, 'final', 0)\n"
        f"runpy.run_path({str(ROOT / 'course.py')!r}, run_name='__main__')"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 1 and len(done.stderr.splitlines()) == 1
    assert "runs on Python 3.11 to 3.13, and this is 3.8" in done.stderr


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        ("Collecting torch>=2.6 (from -r x)", "  torch"),
        ("  Downloading http://x/y/a-1.whl (7.1 MB)", "    downloading a-1.whl (7.1 MB)"),
        ("  Downloading a-1.whl.metadata (5 kB)", ""),
        ("Installing collected packages: a, b, c", "  installing 3 packages, a minute or two"),
        ("Requirement already satisfied: a", ""),
    ],
)
def test_pips_lines_are_condensed(line, shown):
    assert pip._condense(line) == shown


def test_other_trouble_of_pips_keeps_its_own_words():
    assert (
        pip.why_it_failed("x\nERROR: bad metadata\nERROR: more\n") == "pip stopped: bad metadata."
    )
