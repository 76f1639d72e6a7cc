"""The project's own promises: dependencies in one place, layers, cheap imports, no stray paths."""

import ast
import re
import subprocess
import sys
import tomllib
from importlib.metadata import PackageNotFoundError, metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

from utils import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
EXTRAS = PROJECT["optional-dependencies"]
REQUIREMENTS = [*PROJECT["dependencies"], *EXTRAS["build"], *EXTRAS["test"]]


def read(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def test_conda_environment_repeats_pyproject():
    text = read("environment.yml")
    python, pip = re.search(r"- python(\S+)\n", text)[1], text.partition("- pip:\n")[2]
    assert python == PROJECT["requires-python"]
    assert [line.strip()[2:] for line in pip.splitlines()] == REQUIREMENTS


PINS = [Requirement(line) for line in read("constraints.txt").splitlines() if line[0] != "#"]


def test_every_dependency_has_a_tested_version_in_its_range():
    tested = {canonicalize_name(pin.name): pin for pin in PINS}
    for requirement in map(Requirement, REQUIREMENTS):
        (pin,) = tested[canonicalize_name(requirement.name)].specifier
        assert pin.operator == "=="
        assert requirement.specifier.contains(pin.version), f"{requirement} but tested {pin}"


def test_every_pin_can_be_installed_on_the_oldest_pythons_the_course_takes():
    seen = 0
    for pin in PINS:
        try:
            needs = SpecifierSet(metadata(pin.name).get("Requires-Python") or "")
        except PackageNotFoundError:  # of another system
            continue
        for python in ("3.11.0", "3.12.0", "3.13.0"):
            if not pin.marker or pin.marker.evaluate({"python_full_version": python}):
                assert needs.contains(python), f"{pin} needs Python {needs}, not {python}"
                seen += 1
    assert seen > 100


# --- layers ----------------------------------------------------------------------------------

LAYERS = re.findall(r"\w+", (ROOT / "utils/__init__.py").read_text("utf-8").split(":\n", 1)[1])
LAYERS = LAYERS[: LAYERS.index("command") + 1]


def imported_layers(path: Path, root: Path = ROOT) -> set[str]:
    """The packages directly under utils/ that a file imports, anywhere in it."""
    package = path.relative_to(root).with_suffix("").parts[:-1]
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else ()
            module = ".".join([*base, *([node.module] if node.module else [])])
            names = [f"{module}.{alias.name}" for alias in node.names]
        else:
            continue
        found |= {name.split(".")[1] for name in names if name.startswith("utils.")}
    return found & set(LAYERS)


def test_the_list_of_layers_is_the_folders():
    there = {path.parent.name for path in (ROOT / "utils").glob("*/__init__.py")}
    assert there <= set(LAYERS)
    assert LAYERS[0] == "arithmetic" and LAYERS[-1] == "command"


@pytest.mark.parametrize("layer", LAYERS)
def test_a_layer_imports_only_from_those_above_it(layer):
    allowed = set(LAYERS[: LAYERS.index(layer) + 1])
    for path in (ROOT / "utils" / layer).rglob("*.py"):
        wrong = imported_layers(path) - allowed
        assert not wrong, f"{path.relative_to(ROOT)} imports {', '.join(sorted(wrong))}"


def test_what_serves_every_layer_imports_from_none():
    for path in (ROOT / "utils").glob("*.py"):
        assert not imported_layers(path), path.name


def test_an_upward_import_is_noticed(tmp_path):
    path = tmp_path / "utils" / "hardware" / "bad.py"
    path.parent.mkdir(parents=True)
    for line in (
        "from utils import show",
        "from ..course import check",
        "import utils.command.run",
    ):
        path.write_text(f"def late():\n    {line}\n", encoding="utf-8")
        assert imported_layers(path, tmp_path) - {"arithmetic", "hardware"}


@pytest.mark.parametrize("module", ["utils", "utils.arithmetic", "utils.command.install"])
def test_import_is_cheap(module):
    code = f"import {module}, sys; print(*{{'torch', 'numpy', 'matplotlib'}} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert (done.returncode, done.stdout.strip()) == (0, ""), done.stderr


BEFORE_AN_INSTALL = ["arithmetic", "command.colab", "command.doctor", "command.install"]


@pytest.mark.parametrize("module", BEFORE_AN_INSTALL)
def test_what_runs_before_an_install_needs_nothing_installed(module):
    command = [sys.executable, "-S", "-c", f"import utils.{module}"]  # -S: no site-packages
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


# --- the front door --------------------------------------------------------------------------


def test_continuous_integration_runs_the_readmes_test_command():
    commands = re.findall(r"`(python3 course.py test)`", read("README.md"))
    assert commands == [read(".ci/run").rstrip().splitlines()[-1]]


def test_readme_links_lead_somewhere():
    for target in re.findall(r"\]\(([^)#]+)[^)]*\)", read("README.md")):
        assert target.startswith("https://") or (ROOT / target).exists(), target


def tracked_files() -> list[Path]:
    done = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True)
    if done.returncode:
        pytest.skip("this copy of the project is not a git repository")
    return [ROOT / name for name in done.stdout.split("\0") if name]


def test_no_tracked_file_names_a_place_on_one_machine():
    places = ("work", "root", "tmp", "opt", "home", "Users")
    pattern = re.compile(rf"(?<![\w.~/])/({'|'.join(places)})/\w")
    for path in tracked_files():
        if path.exists() and path.suffix not in (".png", ".ico"):
            found = pattern.search(path.read_text(encoding="utf-8"))
            assert not found, f"{path.relative_to(ROOT)}: {found[0]}..."
