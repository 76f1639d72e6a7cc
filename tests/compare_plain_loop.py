"""Tokens per second of the lab's trainer beside a plain loop: same size, dtype, batch and CPU.

Each runs in a process of its own, because what the trainer asks of the memory allocator holds for
a whole process. They take turns, one step each, so that a busy moment of the machine meets both.
"""

import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable

from utils import ROOT

BATCH = 16
WARM_UP = 4
FEWEST_ROUNDS = 5
WHO = ("plain", "lab")


def compare(
    seconds: float = 30.0, *, name: str = "1M", dtypes: tuple[str, ...] = ("fp32", "bf16")
) -> list[dict]:
    """One row a dtype: tokens per second of both, and the lab's over the plain loop's.

    seconds: of measuring, for each dtype. name: of CONFIGS
    Each figure is (median, lower quartile, upper quartile) over rounds. A round is one step of
    each; they change places every round. The ratio is taken within a round.
    """
    return [_compare(seconds, name, dtype) for dtype in dtypes]


def _compare(seconds: float, name: str, dtype: str) -> dict:
    command = [sys.executable, "-m", "tests.compare_plain_loop"]
    # Threads that spin while their process waits would take the cores from whose turn it is.
    environment = os.environ | {"OMP_WAIT_POLICY": "PASSIVE", "KMP_BLOCKTIME": "0"}
    options = {"cwd": ROOT, "env": environment, "text": True}
    options |= {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    turns = [(who, subprocess.Popen([*command, who, name, dtype], **options)) for who in WHO]
    try:
        tokens = {who: _ask(process) for who, process in turns}  # ready: says tokens a step
        taken: dict[str, list[float]] = {who: [] for who in WHO}
        end = time.perf_counter() + seconds
        while time.perf_counter() < end or len(taken["lab"]) < FEWEST_ROUNDS:
            for who, process in turns:
                taken[who].append(_ask(process))
            turns.reverse()
    finally:
        for _, process in turns:
            process.stdin.close()
            process.wait()
    row = {"model": name, "dtype": dtype, "rounds": len(taken["lab"])}
    for who in WHO:
        row[f"{who} tokens/s"] = _spread([tokens[who] / each for each in taken[who]])
    row["ratio"] = _spread([a / b for a, b in zip(*(taken[who] for who in WHO), strict=True)])
    return row


def _ask(process: subprocess.Popen) -> float:
    process.stdin.write("\n")
    process.stdin.flush()
    return float(process.stdout.readline())


def _spread(values: list[float]) -> tuple[float, float, float]:
    low, middle, high = statistics.quantiles(values, n=4)
    return middle, low, high


def make_step(who: str, name: str, dtype: str) -> Callable[[], float]:
    """A function that trains one step and returns its loss."""
    from tests.plain_gpt import PlainGPT, PlainLoop
    from utils.lab import GPT, Recipe, Trainer, configuration, stdlib_text

    text, shape = stdlib_text(), configuration(name)
    if who == "plain":
        model = PlainGPT(
            shape.n_layer, shape.d_model, shape.n_head, shape.vocab_size, shape.seq_len, shape.bias
        )
        return PlainLoop(model, text.train.tokens.numpy(), BATCH, shape.seq_len, dtype).step
    trainer = Trainer(GPT(shape), text, Recipe(steps=10**6, batch=BATCH, dtype=dtype))
    return lambda: trainer.step()[0].item()


def _serve(who: str, name: str, dtype: str) -> None:
    """Answer each line: the first with the tokens of a step, the others with a step's seconds."""
    from utils.lab import configuration

    step = make_step(who, name, dtype)
    for _ in range(WARM_UP):
        step()
    sys.stdin.readline()
    print(BATCH * configuration(name).seq_len, flush=True)
    while sys.stdin.readline():
        start = time.perf_counter()
        step()
        print(time.perf_counter() - start, flush=True)


if __name__ == "__main__":
    if sys.argv[1:]:
        _serve(*sys.argv[1:])
    else:
        for row in compare():
            print(row)
