"""How to train, as one value that a checkpoint can hold and compare."""

from dataclasses import dataclass

import torch

from utils.arithmetic import checks

DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}


@dataclass(frozen=True)
class Recipe:
    """How to train. Two runs with the same model, text and recipe do the same steps.

    steps: optimizer steps; batch: sequences a step; seq_len: tokens in each, None is the model's
    accumulate: parts that a batch is worked through in, to save memory; same gradients
    peak_lr, warmup_steps, final_share: see learning_rate
    weight_decay, beta1, beta2: see make_optimizer
    clip: largest norm of all gradients together (arXiv 1211.5063); None does not clip
    dtype: of the matrix products: "fp32", or "bf16" or "fp16" by autocast with fp32 weights.
      fp16 scales its loss (arXiv 1710.03740, section 3.2)
    compile: let torch.compile fuse the model; slow to start, needs a C++ compiler on a CPU
    seed: of the batches
    """

    steps: int = 1000
    batch: int = 16
    seq_len: int | None = None
    accumulate: int = 1
    peak_lr: float = 3e-3
    warmup_steps: int = 50
    final_share: float = 0.05
    weight_decay: float = 0.1
    beta1: float = 0.9
    beta2: float = 0.99
    clip: float | None = 1.0
    dtype: str = "fp32"
    compile: bool = False
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("steps", "batch", "accumulate"):
            checks.whole(name, getattr(self, name))
        for name in ("warmup_steps", "seed"):
            checks.whole(name, getattr(self, name), 0)
        if self.seq_len is not None:
            checks.whole("seq_len", self.seq_len)
        checks.positive("peak_lr", self.peak_lr)
        for name in ("final_share", "weight_decay"):
            checks.not_negative(name, getattr(self, name))
        if self.clip is not None:
            checks.positive("clip", self.clip)
        checks.choice("dtype", self.dtype, DTYPES)
        checks.flag("compile", self.compile)
        if self.batch % self.accumulate:
            raise checks.refuse("accumulate", self.accumulate, f"a divisor of batch={self.batch}")
