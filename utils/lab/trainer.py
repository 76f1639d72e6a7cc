"""One training step at a time, and all the state it depends on."""

import shutil
from dataclasses import asdict

import torch

from utils.arithmetic import checks
from utils.lab.data import Text, get_batch
from utils.lab.evaluate import autocast
from utils.lab.gpt import GPT, next_token_loss
from utils.lab.memory import keep_freed_memory
from utils.lab.optimizer import learning_rate, make_optimizer
from utils.lab.recipe import Recipe


class Trainer:
    """A model, its optimizer, its source of batches, and how many steps they have done.

    One step at a time, for whoever wants the loop in their own hands; train() is the loop.
    """

    def __init__(self, model: GPT, text: Text, recipe: Recipe) -> None:
        longest = model.shape.seq_len
        self.seq_len = checks.whole("seq_len", recipe.seq_len or longest, 1, longest)
        self.model, self.text, self.recipe = model, text, recipe
        self.device = next(model.parameters()).device
        if self.device.type == "cpu":
            keep_freed_memory()
        self.optimizer = make_optimizer(
            model,
            peak_lr=recipe.peak_lr,
            weight_decay=recipe.weight_decay,
            beta1=recipe.beta1,
            beta2=recipe.beta2,
        )
        self.scaler = torch.amp.GradScaler(self.device.type, enabled=recipe.dtype == "fp16")
        self.generator = torch.Generator().manual_seed(recipe.seed)
        self.done = 0
        self._forward = self._loss
        if recipe.compile:
            _need_compiler(self.device)
            self._forward = torch.compile(self._loss)

    def step(self) -> tuple[torch.Tensor, torch.Tensor]:
        """One optimizer step: the loss before it (nats a token) and the gradients' norm.

        Both are scalars on the model's device: reading one waits for the device, so don't in a
        hurry. The norm is that before clipping.
        """
        recipe = self.recipe
        rate = learning_rate(
            self.done,
            steps=recipe.steps,
            peak_lr=recipe.peak_lr,
            warmup_steps=recipe.warmup_steps,
            final_share=recipe.final_share,
        )
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        total = 0.0
        for x, y in self._parts():
            loss = self._forward(x, y) / recipe.accumulate
            self.scaler.scale(loss).backward()
            total = total + loss.detach()
        self.scaler.unscale_(self.optimizer)
        largest = recipe.clip or float("inf")
        norm = torch.nn.utils.clip_grad_norm_(
            self.model.parameters(), largest, foreach=self.optimizer.defaults["fused"] or None
        )
        self.scaler.step(self.optimizer)
        self.scaler.update()
        self.optimizer.zero_grad(set_to_none=True)
        self.done += 1
        return total, norm

    def state(self) -> dict:
        """All that the next step depends on. load() in a new Trainer goes on with the same bits."""
        return {
            "recipe": asdict(self.recipe),
            "shape": asdict(self.model.shape),
            "text": self.text.name,
            "done": self.done,
            "model": self.model.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "scaler": self.scaler.state_dict(),
            "generator": self.generator.get_state(),
        }

    def load(self, state: dict) -> None:
        """Go on from what state() gave. Raises ValueError when it is that of another run."""
        ours = {"shape": asdict(self.model.shape), "recipe": asdict(self.recipe)}
        for part, values in ours.items():
            for name, value in values.items():
                if state[part].get(name) != value:
                    theirs = state[part].get(name)
                    raise ValueError(
                        f"The checkpoint is of another run: its {name} is {theirs!r}, here it is "
                        f"{value!r}. Give this run another checkpoint, or delete that one."
                    )
        if state["text"] != self.text.name:
            raise ValueError(
                f"The checkpoint was trained on the {state['text']}, not on the {self.text.name}. "
                "Give this run another checkpoint, or delete that one."
            )
        self.model.load_state_dict(state["model"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.scaler.load_state_dict(state["scaler"])
        self.generator.set_state(state["generator"])
        self.done = state["done"]

    def _parts(self):
        x, y = get_batch(self.text.train, self.recipe.batch, self.seq_len, self.generator)
        if self.device.type == "cuda":  # pinned memory lets the copy overlap with the GPU's work
            x, y = x.pin_memory(), y.pin_memory()
        x, y = (part.to(self.device, non_blocking=True) for part in (x, y))
        n = self.recipe.accumulate
        return zip(x.chunk(n), y.chunk(n), strict=True)

    def _loss(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        with autocast(self.device, self.recipe.dtype):
            return next_token_loss(self.model(x), y)


def _need_compiler(device: torch.device) -> None:
    if device.type == "cpu" and not any(map(shutil.which, ("g++", "clang++", "cl"))):
        allowed = "False here: torch.compile needs a C++ compiler on a CPU and there is none"
        raise checks.refuse("compile", True, allowed)
