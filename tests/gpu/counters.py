"""Hardware counters through ncu, where it is installed and the machine lets one read them."""

from __future__ import annotations

import csv
import io
import os
import shutil
import subprocess
import sys

METRICS = {
    "dram_bytes_read": "dram__bytes_read.sum",
    "dram_bytes_written": "dram__bytes_write.sum",
    "load_sectors": "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum",
    "store_sectors": "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum",
}
UNITS = {"byte": 1, "Kbyte": 1e3, "Mbyte": 1e6, "Gbyte": 1e9, "sector": 1, "": 1}


def count(workload: str, kernel: str, seconds: float) -> dict:
    """The counters of one launch of `kernel`, as {name: number}, or {"why_not": sentence}.

    The launch happens in a process of its own: python -m tests.gpu --one WORKLOAD.
    """
    ncu = shutil.which("ncu")
    if not ncu:
        return {"why_not": "ncu is not installed"}
    command = [
        ncu, "--clock-control", "none", "--csv", "--kernel-name", kernel, "--launch-count", "1",
        "--metrics", ",".join(METRICS.values()),
        sys.executable, "-m", "tests.gpu", "--one", workload,
    ]  # fmt: skip
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=seconds, env=os.environ
        )
    except subprocess.TimeoutExpired:
        return {"why_not": f"ncu was not done in {seconds:.0f} s"}
    return read(done.stdout)


def read(output: str) -> dict:
    """The counters in ncu's output, or {"why_not": what it said instead}."""
    lines = output.splitlines()
    start = next((i for i, line in enumerate(lines) if line.startswith('"ID"')), None)
    if start is None:
        said = [line for line in lines if line.startswith("==ERROR==")] or lines[-1:]
        return {"why_not": said[0].removeprefix("==ERROR== ") if said else "ncu printed nothing"}
    rows = csv.DictReader(io.StringIO("\n".join(lines[start:])))
    found = {}
    for row in rows:
        for name, metric in METRICS.items():
            if row["Metric Name"] == metric:
                value = float(row["Metric Value"].replace(",", ""))
                found[name] = int(value * UNITS[row["Metric Unit"]])
    return found or {"why_not": "ncu reported none of the counters asked for"}
