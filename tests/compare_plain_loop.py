"""Tokens per second of the lab's trainer beside a plain loop: same size, dtype, batch and CPU."""

import statistics
import time
from collections.abc import Callable

from tests.plain_gpt import PlainGPT, PlainLoop
from utils.lab import GPT, Recipe, Text, Trainer, configuration, stdlib_text

BATCH = 16
FEWEST_ROUNDS = 5


def compare(
    seconds: float = 30.0,
    *,
    name: str = "1M",
    dtypes: tuple[str, ...] = ("fp32", "bf16"),
    text: Text | None = None,
) -> list[dict]:
    """One row a dtype: median tokens per second of both, with the middle half, and their ratio.

    seconds: of measuring, for each dtype. Steps take turns, the first of each round as well, so
    that a busy moment meets both; the ratio is the median over rounds of plain time over ours.
    """
    text = text or stdlib_text()
    return [_compare(seconds, name, dtype, text) for dtype in dtypes]


def _compare(seconds: float, name: str, dtype: str, text: Text) -> dict:
    shape = configuration(name)
    plain_model = PlainGPT(
        shape.n_layer, shape.d_model, shape.n_head, shape.vocab_size, shape.seq_len, shape.bias
    )
    plain = PlainLoop(plain_model, text.train.tokens.numpy(), BATCH, shape.seq_len, dtype)
    ours = Trainer(GPT(shape), text, Recipe(steps=1_000_000, batch=BATCH, dtype=dtype))
    turns: list[tuple[str, Callable]] = [
        ("plain", plain.step),
        ("ours", lambda: ours.step()[0].item()),
    ]
    for _, step in turns * 3:
        step()
    taken: dict[str, list[float]] = {"plain": [], "ours": []}
    end = time.perf_counter() + seconds
    while time.perf_counter() < end or len(taken["ours"]) < FEWEST_ROUNDS:
        for who, step in turns:
            start = time.perf_counter()
            step()
            taken[who].append(time.perf_counter() - start)
        turns.reverse()
    tokens = BATCH * shape.seq_len
    row = {"model": name, "dtype": dtype, "rounds": len(taken["ours"])}
    for who, times in taken.items():
        row[f"{who} tokens/s"] = _spread([tokens / each for each in times])
    row["ratio"] = _spread([a / b for a, b in zip(taken["plain"], taken["ours"], strict=True)])
    return row


def _spread(values: list[float]) -> tuple[float, float, float]:
    """Median, lower quartile, upper quartile."""
    low, middle, high = statistics.quantiles(values, n=4)
    return middle, low, high


if __name__ == "__main__":
    for row in compare():
        print(row)
