"""What a training run was like: a row now and then, and the line that shows it."""

import statistics
from dataclasses import asdict, dataclass, field


@dataclass(frozen=True)
class Row:
    """The run after `step` steps.

    loss: nats a token in training, the mean over the steps since the row before
    val_loss: nats a token on held-out text; None in a row where it was not measured
    learning_rate, grad_norm: of the last step, the norm before it was clipped
    tokens_per_s: since the row before; validation and checkpoints do not count
    mfu: share of the named peak, 0 to 1; None where no peak was given
    seconds: of training so far, over all sittings, without validation and checkpoints
    """

    step: int
    loss: float
    val_loss: float | None
    learning_rate: float
    grad_norm: float
    tokens_per_s: float
    mfu: float | None
    seconds: float


@dataclass
class History:
    """A run so far. `peak` names what MFU is measured against."""

    n_steps: int
    peak: str = ""
    rows: list[Row] = field(default_factory=list)
    interrupted: bool = False

    @property
    def steps(self) -> list[int]:
        return [row.step for row in self.rows]

    @property
    def losses(self) -> list[float]:
        return [row.loss for row in self.rows]

    @property
    def val_steps(self) -> list[int]:
        return [row.step for row in self.rows if row.val_loss is not None]

    @property
    def val_losses(self) -> list[float]:
        return [row.val_loss for row in self.rows if row.val_loss is not None]

    @property
    def tokens_per_s(self) -> list[float]:
        return [row.tokens_per_s for row in self.rows]

    @property
    def mfu(self) -> list[float]:
        return [row.mfu for row in self.rows if row.mfu is not None]

    @property
    def seconds(self) -> float:
        return self.rows[-1].seconds if self.rows else 0.0

    @property
    def median_tokens_per_s(self) -> float:
        """The middle of all rows but the first, which warms up. Raises ValueError without rows."""
        if not self.rows:
            raise ValueError("This history has no rows yet: train for at least one step.")
        return statistics.median(self.tokens_per_s[1:] or self.tokens_per_s)

    def line(self) -> str:
        """The last row in words, for a screen or a log."""
        row = self.rows[-1]
        parts = [f"step {row.step:>{len(str(self.n_steps))}} of {self.n_steps}"]
        parts.append(f"loss {row.loss:.3f}")
        parts.append(" " * 14 if row.val_loss is None else f"held out {row.val_loss:.3f}")
        parts.append(f"{row.tokens_per_s:,.0f} tokens/s")
        if row.mfu is not None:
            parts.append(f"MFU {100 * row.mfu:.0f}% of {self.peak}")
        return " · ".join(parts)

    def to_lists(self) -> list[dict]:
        """The rows as plain dicts, for a checkpoint or a table."""
        return [asdict(row) for row in self.rows]


def print_line(history: History) -> None:
    """Show a run as lines of text: the default of train(report=...)."""
    print(history.line(), flush=True)
