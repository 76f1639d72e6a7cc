"""A notebook's first code cell, run as a kernel runs it, and what it installs on Colab."""

import subprocess
import sys
from importlib.machinery import ModuleSpec
from importlib.metadata import PackageNotFoundError
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

from tests.test_build import ADDRESS, PYPROJECT
from utils import ROOT
from utils.command import colab, header

BOOTSTRAP = header.bootstrap(ADDRESS)


def make_root(folder: Path) -> Path:
    (folder / "utils" / "course").mkdir(parents=True)
    return folder


@pytest.fixture
def bare_path(monkeypatch):
    """A sys.path on which the course is not, put back afterwards."""
    bare = [x for x in sys.path if x and not (Path(x) / "utils" / "course").is_dir()]
    monkeypatch.setattr(sys, "path", bare)
    return bare


@pytest.fixture
def on_colab(monkeypatch):
    """A machine on which google.colab can be imported."""
    for name in ("google", "google.colab"):
        module = ModuleType(name)
        module.__spec__ = ModuleSpec(name, None)
        module.__path__ = []
        monkeypatch.setitem(sys.modules, name, module)


def test_bootstrap_is_short_and_fits_a_notebook():
    lines = BOOTSTRAP.split("\n")
    assert len(lines) <= 16 and max(map(len, lines)) < 80


@pytest.mark.parametrize("inside", ["chapters", "chapters/deeper", "."])
def test_bootstrap_finds_the_course_from_within(tmp_path, monkeypatch, bare_path, capsys, inside):
    root = make_root(tmp_path / "anywhere")
    (root / inside).mkdir(parents=True, exist_ok=True)
    monkeypatch.chdir(root / inside)
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: pytest.fail("ran a command"))
    exec(BOOTSTRAP, {})
    assert Path(sys.path[0]) == root
    assert capsys.readouterr() == ("", "")


def test_bootstrap_takes_a_course_already_on_the_path(tmp_path, monkeypatch, bare_path):
    root = make_root(tmp_path / "course")
    (tmp_path / "copy").mkdir()
    monkeypatch.chdir(tmp_path / "copy")
    bare_path.append(str(root))
    exec(BOOTSTRAP, {})
    assert Path(sys.path[0]) == root


def test_bootstrap_says_where_the_course_is_when_it_is_not_here(tmp_path, monkeypatch, bare_path):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit, match=f"Not inside the course. Clone {ADDRESS} and open"):
        exec(BOOTSTRAP, {})


def test_bootstrap_on_colab_clones_once_and_installs(tmp_path, monkeypatch, bare_path, on_colab):
    ran = []

    def run(command, **_):
        ran.append([str(x) for x in command])
        if command[0] == "git":
            make_root(Path(command[-1]))

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(subprocess, "run", run)
    exec(BOOTSTRAP, {})
    clone = tmp_path / "the-course"
    assert ran == [
        ["git", "clone", "--quiet", "--depth=1", ADDRESS, str(clone)],
        [sys.executable, str(clone / "utils" / "command" / "colab.py")],
    ]
    assert Path(sys.path[0]) == clone
    exec(BOOTSTRAP, {})
    assert len(ran) == 2


def test_bootstrap_on_colab_without_a_network(tmp_path, monkeypatch, bare_path, on_colab):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: SimpleNamespace(returncode=128))
    with pytest.raises(SystemExit, match="Not inside the course"):
        exec(BOOTSTRAP, {})


# What colab.py installs.


@pytest.fixture
def pyproject(tmp_path):
    path = tmp_path / "pyproject.toml"
    path.write_text(PYPROJECT, encoding="utf-8")
    return path


def pretend_installed(monkeypatch, *names):
    def version(name):
        if name not in names:
            raise PackageNotFoundError(name)
        return "1"

    monkeypatch.setattr(colab, "version", version)


@pytest.mark.parametrize(
    ("installed", "asked"), [((), ["numpy>=1.26"]), (("numpy",), None), (("numpy", "torch"), None)]
)
def test_colab_installs_what_is_missing_and_never_torch(pyproject, monkeypatch, installed, asked):
    ran = []

    def run(command, **_):
        ran.append(command)
        return SimpleNamespace(returncode=0)

    pretend_installed(monkeypatch, *installed)
    monkeypatch.setattr(subprocess, "run", run)
    assert colab.main(pyproject) == 0
    assert ran == ([[sys.executable, "-m", "pip", "install", "--quiet", *asked]] if asked else [])


def test_colab_says_it_when_pip_fails(pyproject, monkeypatch, capsys):
    pretend_installed(monkeypatch)
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: SimpleNamespace(returncode=2))
    assert colab.main(pyproject) == 1
    assert "pip could not install them" in capsys.readouterr().out


def test_colab_script_runs_alone_and_finds_nothing_missing_here():
    script = ROOT / "utils" / "command" / "colab.py"
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=60)
    assert (done.stdout, done.stderr, done.returncode) == ("", "", 0)
