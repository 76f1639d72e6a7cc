"""The one command of the course: python3 course.py lab

It needs Python 3.11 to 3.13 and pip. The first start makes .venv and installs what pyproject.toml
lists, at the versions of constraints.txt. Then the verb runs in .venv, by utils/command/.
"""

# Down to the imports this file must parse on any Python 3, so that an old one hears a sentence.
import shutil
import sys

if not (3, 11) <= sys.version_info[:2] <= (3, 13):
    found = [name for name in ("python3.13", "python3.12", "python3.11") if shutil.which(name)]
    way_out = f"run: {found[0]} course.py" if found else "install Python 3.12 and use that"
    version = f"{sys.version_info[0]}.{sys.version_info[1]}"
    sys.exit(f"The course runs on Python 3.11 to 3.13, and this is {version}: {way_out}.")

import argparse
import contextlib
import difflib
import errno
import importlib
import os
import re
import subprocess

from utils import ROOT
from utils.command import install

CONDA_NAME = "feed-the-gpu"  # the environment's name in environment.yml

# verb: (what it does, the dependency groups of pyproject.toml that it needs)
VERBS = {
    "lab": ("open the course in JupyterLab", ["runtime"]),
    "test": ("run every test", ["runtime", "build", "test"]),
    "doctor": ("say what this machine can do, and what to fix", []),
    "build": ("make the notebooks from source/", ["runtime", "build"]),
    "run": ("run one chapter without a browser, with the time of each cell", ["runtime"]),
    "progress": ("say how far you are", ["runtime"]),
    "bench": ("measure the course's own speed", ["runtime"]),
}


class Parser(argparse.ArgumentParser):
    """Says what is wrong in one sentence, where argparse prints a block of usage."""

    def error(self, message):
        wrong = re.search(r"argument verb: invalid choice: '([^']*)'", message)
        if not wrong:
            sys.exit(f"{self.prog}: {message}. For its options: {self.prog} --help")
        near = difflib.get_close_matches(wrong[1], VERBS, n=2, cutoff=0.5)
        way_out = f"Did you mean {' or '.join(near)}?" if near else f"There are {', '.join(VERBS)}."
        sys.exit(f"There is no verb {wrong[1]!r}. {way_out}")


def port_number(text: str) -> int:
    if not text.isdigit() or not 1 <= int(text) <= 65535:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from 1 to 65535")
    return int(text)


def parser() -> Parser:
    """Every verb and its options."""
    parser = Parser(prog="course.py", description="Feed the GPU, an interactive textbook.")
    verbs = parser.add_subparsers(dest="verb", metavar="verb")
    verb = {name: verbs.add_parser(name, help=VERBS[name][0]) for name in VERBS}
    for name in ("lab", "test"):
        verb[name].add_argument(
            "--torch-index", metavar="URL", help="take PyTorch from here, such as its CPU wheels"
        )
    lab = verb["lab"]
    lab.add_argument("--no-browser", action="store_true", help="start the server, open nothing")
    lab.add_argument("--port", type=port_number, help="default: the first free one from 8888")
    lab.add_argument("--install-only", action="store_true", help="install, start nothing")
    verb["test"].add_argument("--fast", action="store_true", help="no notebooks, no browser")
    verb["doctor"].add_argument("--json", action="store_true", help="for programs")
    verb["build"].add_argument("--check", action="store_true", help="compare, write nothing")
    verb["build"].add_argument("chapters", nargs="*", metavar="NN", help="only these chapters")
    verb["run"].add_argument("chapter", metavar="NN", help="the chapter's number, such as 03")
    verb["run"].add_argument("--solved", action="store_true", help="the solved notebook")
    return parser


def runs_in_course_python() -> bool:
    """Whether this is .venv's Python, or that of the conda environment of environment.yml."""
    conda = os.environ.get("CONDA_DEFAULT_ENV") == CONDA_NAME
    return install.in_venv() or (conda and sys.prefix == os.environ.get("CONDA_PREFIX"))


def hand_over(arguments: list[str]) -> None:
    """Run the same command with .venv's Python. Does not return."""
    os.environ["PATH"] = os.pathsep.join([str(install.PYTHON.parent), os.environ.get("PATH", "")])
    command = [str(install.PYTHON), str(ROOT / "course.py"), *arguments]
    sys.stdout.flush()
    if os.name != "nt":
        os.execv(command[0], command)
    child = subprocess.Popen(command)
    while child.poll() is None:
        with contextlib.suppress(KeyboardInterrupt):  # the child got it as well
            child.wait()
    sys.exit(child.returncode)


def main(arguments: list[str]) -> int:
    options = parser().parse_args(arguments)
    if options.verb is None:
        parser().print_help()
        return 0
    groups = VERBS[options.verb][1]
    if not runs_in_course_python():
        if options.verb != "doctor":
            install.ensure(groups, getattr(options, "torch_index", None))
            hand_over(arguments)
        elif install.is_complete(["runtime"]):
            hand_over(arguments)
    elif install.in_venv():
        install.ensure(groups, getattr(options, "torch_index", None))
    if getattr(options, "install_only", False):
        return 0
    module = importlib.import_module(f"utils.command.{options.verb}")
    return module.main(arguments[1:] if options.verb == "build" else options)


if __name__ == "__main__":
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(errors="replace")  # for consoles that lack a character
    try:
        sys.exit(main(sys.argv[1:]))
    except KeyboardInterrupt:
        print("\nStopped. Nothing is broken: the same command goes on from here.", file=sys.stderr)
        sys.exit(130)
    except BrokenPipeError:  # what this was piped into has read enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    except OSError as problem:
        if problem.errno != errno.ENOSPC:
            raise
        sys.exit(install.full_disk())
