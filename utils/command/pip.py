"""Run pip and show what it does, a line a package. Standard library only."""

import queue
import re
import subprocess
import threading
import time

OPTIONS = ["--disable-pip-version-check", "--no-input", "--progress-bar", "off", "--retries", "2"]
QUIET_SECONDS = 10
NO_NETWORK = re.compile(
    r"retrying \(|connection(error| refused| reset| broken)|name resolution|timed out|"
    r"network is unreachable|proxyerror|getaddrinfo failed",
    re.IGNORECASE,
)
FULL_DISK = re.compile(r"no space left|errno 28\b|not enough space|disk quota", re.IGNORECASE)


def install(python: str, arguments: list[str]) -> tuple[int, str]:
    """`python -m pip install arguments`. Returns pip's exit code and all that it printed."""
    process = subprocess.Popen(
        [python, "-m", "pip", "install", *OPTIONS, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        errors="replace",
    )
    lines: queue.Queue = queue.Queue()
    threading.Thread(target=_forward, args=(process.stdout, lines), daemon=True).start()
    try:
        output = _show(lines)
    except BaseException:  # Ctrl-C too: pip must not go on alone
        process.terminate()
        process.wait()
        raise
    return process.wait(), output


def _forward(stream, lines: queue.Queue) -> None:
    for line in stream:
        lines.put(line)
    lines.put(None)


def _show(lines: queue.Queue) -> str:
    """Condense pip's lines as they come, and never be silent for long."""
    output = []
    doing, since = "looking for packages", time.monotonic()
    while True:
        try:
            line = lines.get(timeout=QUIET_SECONDS)
        except queue.Empty:
            print(f"    {doing}, {time.monotonic() - since:.0f} s so far", flush=True)
            continue
        if line is None:
            return "".join(output)
        output.append(line)
        shown = _condense(line)
        if shown:
            print(shown, flush=True)
            doing, since = shown.strip(), time.monotonic()


def _condense(line: str) -> str:
    """What a reader wants of a line of pip's; "" when nothing."""
    if found := re.match(r"Collecting ([\w.-]+)", line):
        return f"  {found[1]}"
    if found := re.match(r"\s+Downloading (\S+) (\([\d.]+ [MG]B\))", line):
        return f"    downloading {found[1].rsplit('/')[-1]} {found[2]}"
    if line.startswith("Installing collected packages: "):
        packages = line.count(",") + 1
        return f"  installing {packages} package{'s' if packages > 1 else ''}, a minute or two"
    if "Retrying (" in line:
        return "    the network does not answer, trying again"
    return ""


def disk_is_full(output: str) -> bool:
    return bool(FULL_DISK.search(output))


def why_it_failed(output: str) -> str:
    """A sentence for the reader, with the way out where one is known."""
    if NO_NETWORK.search(output):
        return "The network did not answer: connect, or set your proxy, and run this again."
    if found := re.search(r"No matching distribution found for (\S+)", output):
        return f"There is no {found[1]} for this Python on this system."
    errors = [line[7:].strip() for line in output.splitlines() if line.startswith("ERROR: ")]
    return f"pip stopped: {errors[0] if errors else 'it gave no reason'}."
