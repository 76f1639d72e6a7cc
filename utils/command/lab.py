"""course.py lab: JupyterLab on the course, with the README rendered as its landing page."""

import argparse
import json
import os
import socket
import sys
from pathlib import Path

from utils import ROOT
from utils.command.environment import kernel_environment

FIRST_PORT = 8888
LANDING_PAGE = "/lab/tree/README.md"
SETTINGS = {
    "@jupyterlab/docmanager-extension:plugin": {"defaultViewers": {"markdown": "Markdown Preview"}},
    "@jupyterlab/apputils-extension:notification": {
        "fetchNews": "false",
        "checkForUpdates": False,
    },
}


def main(options: argparse.Namespace) -> int:
    """Start the server; returns when the reader stops it."""
    port = choose_port(options.port)
    write_settings()
    os.environ.update(kernel_environment())
    print(f"Starting JupyterLab on port {port}. Ctrl-C here stops it.", flush=True)

    from jupyterlab.labapp import main as start_jupyterlab

    start_jupyterlab(server_arguments(port, browser=not options.no_browser))
    return 0


def choose_port(port: int | None) -> int:
    """The asked one, or the first free one from 8888. Exits when the asked one is taken."""
    if port is None:
        return next_free_port(FIRST_PORT)
    if not is_free(port):
        other = next_free_port(port + 1)
        sys.exit(f"Port {port} is taken. This one is free: python3 course.py lab --port {other}")
    return port


def is_free(port: int) -> bool:
    with socket.socket() as probe:
        if os.name != "nt":  # on Windows this option would let two servers share a port
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


def next_free_port(first: int) -> int:
    for port in range(first, min(first + 200, 65536)):
        if is_free(port):
            return port
    sys.exit(f"No port from {first} on is free. Name one: python3 course.py lab --port N")


def write_settings() -> None:
    """Defaults of this Python's JupyterLab; what a reader changes in its menus goes before them."""
    folder = Path(sys.prefix) / "share" / "jupyter" / "lab" / "settings"
    folder.mkdir(parents=True, exist_ok=True)
    text = json.dumps(SETTINGS, indent=1) + "\n"
    path = folder / "overrides.json"
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8")


def server_arguments(port: int, *, browser: bool) -> list[str]:
    arguments = [
        f"--ServerApp.root_dir={ROOT}",
        f"--LabApp.default_url={LANDING_PAGE}",
        f"--ServerApp.port={port}",
        "--ServerApp.port_retries=0",
        "--Application.log_level=ERROR",
        "--KernelManager.transport_encryption=auto",  # else each kernel warns that it has none
    ]
    if not browser:
        arguments.append("--no-browser")
    if hasattr(os, "geteuid") and os.geteuid() == 0:  # in a container
        arguments.append("--allow-root")
    return arguments
