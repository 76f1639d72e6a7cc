"""The training loop: it reports, measures held-out loss, keeps checkpoints, and can be stopped."""

import os
import time
from collections.abc import Callable
from pathlib import Path

import torch

from utils.arithmetic import checks, mfu_from_throughput, training_flops
from utils.lab.checkpoint import load_checkpoint, save_checkpoint
from utils.lab.data import Text
from utils.lab.evaluate import evaluate
from utils.lab.gpt import GPT
from utils.lab.history import History, Row, print_line
from utils.lab.interrupt import deferred_interrupt
from utils.lab.recipe import Recipe
from utils.lab.trainer import Trainer


def train(
    model: GPT,
    text: Text,
    recipe: Recipe | None = None,
    *,
    checkpoint: str | os.PathLike | None = None,
    every: int = 50,
    validate_every: int = 250,
    checkpoint_every: int = 500,
    peak_flops_per_s: float | None = None,
    peak: str = "",
    report: Callable[[History], None] = print_line,
    say: Callable[[str], None] = print,
) -> History:
    """Train model in place on text.train, and return how it went.

    recipe: default Recipe()
    checkpoint: a file to keep the run in. If it is there, the run goes on from it, on a CPU with
      the same bits as if it had never stopped. It is written every checkpoint_every steps, at
      the end, and when you interrupt the run, which stops after the step it is in.
    every, validate_every: steps between rows, and between rows that measure held-out loss
    peak_flops_per_s, peak: what MFU is measured against, and its name
    report: called with the History after each new row. The default prints the row as a line; a
      chapter can draw instead. say: shows a sentence, such as where the run was kept.
    Raises ValueError for a wrong argument, or a checkpoint that is damaged or of another run.
    """
    every = checks.whole("every", every)
    validate_every = checks.whole("validate_every", validate_every)
    checkpoint_every = checks.whole("checkpoint_every", checkpoint_every)
    if (peak_flops_per_s is None) != (not peak):
        raise checks.refuse("peak", peak, "a name, together with peak_flops_per_s, or neither")
    trainer = Trainer(model, text, recipe or Recipe())
    run = _Run(trainer, History(trainer.recipe.steps, peak), checkpoint, say)
    run.resume()
    flops_per_token = training_flops(model.shape, seq_len=trainer.seq_len, tokens=1)

    with deferred_interrupt() as interrupted:
        stretch = _Stretch()
        while trainer.done < trainer.recipe.steps and not run.history.interrupted:
            stretch.add(*trainer.step())
            run.history.interrupted = interrupted()
            last = trainer.done == trainer.recipe.steps
            stop = last or run.history.interrupted
            validate = last or trainer.done % validate_every == 0
            save = stop or trainer.done % checkpoint_every == 0
            if not (stop or validate or save or trainer.done % every == 0):
                continue
            loss, norm, seconds = stretch.end()
            tokens_per_s = stretch.n_steps * trainer.recipe.batch * trainer.seq_len / seconds
            val_loss = evaluate(model, text.val, dtype=trainer.recipe.dtype) if validate else None
            mfu = None
            if peak_flops_per_s is not None:
                mfu = mfu_from_throughput(tokens_per_s, flops_per_token, peak_flops_per_s)
            run.history.rows.append(
                Row(
                    step=trainer.done,
                    loss=loss,
                    val_loss=val_loss,
                    learning_rate=trainer.optimizer.param_groups[0]["lr"],
                    grad_norm=norm,
                    tokens_per_s=tokens_per_s,
                    mfu=mfu,
                    seconds=run.history.seconds + seconds,
                )
            )
            if save:
                run.save()
            report(run.history)
            stretch = _Stretch()
    if run.history.interrupted:
        run.say_where_it_is()
    return run.history


class _Stretch:
    """The steps since the last row. Losses stay on the device until the end: reading one waits."""

    def __init__(self) -> None:
        self.losses: list[torch.Tensor] = []
        self.norm = torch.zeros(())
        self.began = time.perf_counter()

    @property
    def n_steps(self) -> int:
        return len(self.losses)

    def add(self, loss: torch.Tensor, norm: torch.Tensor) -> None:
        self.losses.append(loss)
        self.norm = norm

    def end(self) -> tuple[float, float, float]:
        """Mean loss, last norm, seconds: until the device has done all of it."""
        loss, norm = float(torch.stack(self.losses).mean()), float(self.norm)
        return loss, norm, time.perf_counter() - self.began


class _Run:
    """A trainer and its history, and the file that keeps them both."""

    def __init__(self, trainer: Trainer, history: History, file, say: Callable) -> None:
        self.trainer, self.history, self.say = trainer, history, say
        self.file = None if file is None else Path(file)

    def resume(self) -> None:
        if self.file is None or not self.file.exists():
            return
        state = load_checkpoint(self.file)
        try:
            self.trainer.load(state)
        except ValueError as error:
            raise ValueError(f"{self.file}: {error}") from None
        self.history.rows = [Row(**row) for row in state["rows"]]
        self.say(f"Going on from step {self.trainer.done}, kept in {self.file}.")

    def save(self) -> None:
        if self.file is not None:
            save_checkpoint(self.file, self.trainer.state() | {"rows": self.history.to_lists()})

    def say_where_it_is(self) -> None:
        step = f"Stopped after step {self.trainer.done} of {self.trainer.recipe.steps}."
        if self.file is None:
            self.say(f"{step} The model keeps what it has learned; no checkpoint was asked for.")
        else:
            self.say(f"{step} The run is kept in {self.file}: run this again to go on.")
