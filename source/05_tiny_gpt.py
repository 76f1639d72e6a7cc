# ---
# jupyter:
#   course:
#     title: "5. Does it learn, and is it fast?"
#     minutes: 110
#     hardware: "no GPU; with one, the same cells train 10M to 124M parameters"
#     needs: "chapters 0 to 4; your own attention is used if it passed"
#     leaves_with: "a GPT that you wrote and trained, where its time went, and two claims about training put to the test"
# ---

# %% [markdown] key="title"
# # 5. Does it learn, and is it fast?
#
# A model that knows nothing needs 5.5 nats for each byte of Python that it reads. In this chapter you write a GPT around your
# own attention, train it for 1,000 steps, and watch it learn to write Python. Every part of it is yours: the batches, the model,
# the loss, the optimizer.
#
# Then two harder questions. Where did the time go? And when you change something and the loss falls, how do you know that it
# fell because of you?

# %% key="setup" tags=["setup"]
import math
import statistics
import time
import zlib

import torch
import torch.nn.functional as F

from utils import lab, show
from utils.arithmetic import ModelShape, count_parameters
from utils.arithmetic import matmul_parameters, mfu_from_throughput
from utils.arithmetic import training_flops
from utils.course import against_prediction, check, hint, mine, predict
from utils.course import progress, quiz, reveal, start
from utils.hardware import accelerator, synchronise, time_samples
from utils.hardware import torch_dtype
from utils.lab.interrupt import deferred_interrupt
from utils.meter import meter
from utils.show import Choice, Series, Slider

machine = start("05")
device = machine.device

# %% key="recall"
quiz("05.recall")

# %% [markdown] key="text-intro"
# ## Text that you already have
#
# The course trains on the source of Python's standard library, which came with your Python. One token is one byte, so the
# vocabulary has 256 entries and there is no tokenizer to explain.
#
# About one file in ten is **held out**: never trained on, only measured on. A hash of the file's path decides which, so the
# split is the same wherever the same Python is.

# %% key="text"
text = lab.stdlib_text()
show.table(
    [
        {
            "split": name,
            "files": len(split.files),
            "bytes": show.si(len(split.tokens), "bytes"),
            "for example": split.files[len(split.files) // 2],
        }
        for name, split in (("train", text.train), ("held out", text.val))
    ],
    caption=text.name,
)
print(text.val.file(len(text.val.files) // 2)[:300].decode())

# %% [markdown] key="nats"
# ## What a loss means
#
# A model gives each possible next byte a probability. The loss of one byte is $-\ln p$, where $p$ is the probability that it gave
# to the byte that came. The unit of a natural logarithm is the **nat**; one nat is 1.44 bits. The loss of a text is the mean over
# its bytes.
#
# A loss $L$ is as good as guessing fairly among $e^L$ bytes. Knowing nothing means 256 equal chances, $\ln 256 = 5.55$ nats. What do
# simpler things than a GPT reach on the held-out files?

# %% key="baselines"
train, held_out = text.train.tokens.long(), text.val.tokens.long()
ones = torch.bincount(train, minlength=256).double() + 1
pairs = torch.bincount(train[:-1] * 256 + train[1:], minlength=256**2)
pairs = pairs.view(256, 256).double() + 0.01
alone = -(ones / ones.sum()).log()[held_out].mean()
after = (pairs / pairs.sum(1, keepdim=True)).log()
after_one = -after[held_out[:-1], held_out[1:]].mean()
packed = zlib.compress(bytes(text.val.tokens.numpy()), 9)
nats = {
    "256 equal chances": math.log(256),
    "how often each byte occurs": float(alone),
    "the same, after each byte": float(after_one),
    "zlib, which copies what it saw": 8
    * math.log(2)
    * len(packed)
    / len(held_out),
}
show.table(
    [
        {"what is known": k, "nats a byte": v, "as good as 1 of": math.exp(v)}
        for k, v in nats.items()
    ],
    caption="Held-out files without a neural network",
    kinds={"nats a byte": "measured", "as good as 1 of": "measured"},
)

# %% [markdown] key="ask-loss"
# These are the marks to beat. The last is hard: zlib looks back over 32,000 bytes and copies. The GPT of this chapter has under a million parameters and sees 128 bytes at a time. It trains
# for about two minutes on two quiet cores.

# %% key="predict-loss"
predict("05.loss", "Held-out loss after 1,000 steps?", unit="nats a byte")

# %% [markdown] key="get_batch-intro"
# ## Exercise: a batch
#
# ●●●○ · 12 minutes · 3 points
#
# `tokens` (n,) uint8 holds all files, each closed by a zero byte; `ends` (n_files,) int64 says where those zeros are. A **window**
# is `seq_len` bytes `x` and, as targets, the `seq_len` bytes `y` that come one later: `y[i]` is the byte after `x[i]`. It lies inside
# one file. The closing zero belongs to its file and may be the last target.
#
# Number all windows of all files in order, from 0. For each `u[i]` in [0, 1), float64, take window number floor(`u[i]` x number of
# windows). Return `x` and `y`, both (len(u), seq_len) int64. A file too short for a window has none.

# %% key="get_batch" tags=["exercise"]
def get_batch(
    tokens: torch.Tensor, ends: torch.Tensor, seq_len: int, u: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """Windows x and their targets y, one row for each u.

    >>> tokens = torch.tensor([7, 8, 9, 0, 5, 6, 0], dtype=torch.uint8)
    >>> u = torch.tensor([0.0, 0.9], dtype=torch.float64)
    >>> x, y = get_batch(tokens, torch.tensor([3, 6]), 2, u)
    >>> x.tolist(), y.tolist()
    ([[7, 8], [5, 6]], [[8, 9], [6, 0]])
    """
    ### BEGIN SOLUTION
    starts = torch.cat([torch.zeros_like(ends[:1]), ends[:-1] + 1])
    windows = (ends - starts - seq_len + 1).clamp(min=0)
    up_to = windows.cumsum(0)
    drawn = (u * up_to[-1]).long()
    file = torch.searchsorted(up_to, drawn, right=True)
    first = starts[file] + drawn - (up_to - windows)[file]
    rows = tokens[first[:, None] + torch.arange(seq_len + 1)].long()
    return rows[:, :-1], rows[:, 1:]
    ### END SOLUTION


# %% key="get_batch-check" tags=["check"]
get_batch = check("05.get_batch", get_batch)

# %% key="get_batch-use"
generator = torch.Generator().manual_seed(1)
u = torch.rand(3, dtype=torch.float64, generator=generator)
x, y = get_batch(text.train.tokens, text.train.ends, 40, u)
for inputs, targets in zip(x, y, strict=True):
    print("x ", repr(bytes(inputs.tolist()).decode(errors="replace")))
    print("y ", repr(bytes(targets.tolist()).decode(errors="replace")), "\n")

# %% [markdown] key="get_batch-meaning"
# Each row trains `seq_len` predictions at once: from its first byte, from its first two, and so on. Causal attention
# makes that honest. The two mistakes that cost most never raise an error. Without the shift the loss falls to zero and the model
# has learned to copy. Across files it learns that `import os` may follow the last line of anything.

# %% [markdown] key="block-intro"
# ## Exercise: the block
#
# ●●○○ · 12 minutes · 3 points
#
# A token's vector flows through the model; each block adds to it twice. First attention mixes tokens, then a feed-forward
# works on each token alone. Both read a normalised copy:
#
# $$x \leftarrow x + \text{mix}(\text{norm}_1(x)), \qquad x \leftarrow x + \text{feed}(\text{norm}_2(x)).$$
#
# `norm`: LayerNorm over the last axis, with its weight, no bias, epsilon 1e-5. `mix`: one product for q, k and v (all rows of q, then
# k, then v); cut into `n_head` heads; `attention(q, k, v, True)` on (batch, n_head, seq_len, head_dim); join; the `out` product. `feed`: `up`,
# exact GELU, `down`. No biases. Matrices are (out, in), as `F.linear` wants them.

# %% key="block" tags=["exercise"]
def block(x: torch.Tensor, weights: dict, n_head: int, attention):
    """x (batch, seq_len, d_model) -> the same shape. Keys of weights:
    norm_1.weight, attention.qkv.weight, attention.out.weight,
    norm_2.weight, feed_forward.up.weight, feed_forward.down.weight.

    >>> sizes = {"norm_1": (8,), "norm_2": (8,), "attention.qkv": (24, 8),
    ...          "attention.out": (8, 8), "feed_forward.up": (32, 8),
    ...          "feed_forward.down": (8, 32)}
    >>> zero = {f"{k}.weight": torch.zeros(s) for k, s in sizes.items()}
    >>> x = torch.ones(2, 5, 8)
    >>> torch.equal(block(x, zero, 2, lambda q, k, v, causal: v), x)
    True
    """
    ### BEGIN SOLUTION
    batch, seq_len, d_model = x.shape
    h = F.layer_norm(x, (d_model,), weights["norm_1.weight"])
    qkv = F.linear(h, weights["attention.qkv.weight"])
    q, k, v = (
        part.view(batch, seq_len, n_head, -1).transpose(1, 2)
        for part in qkv.chunk(3, dim=-1)
    )
    mixed = attention(q, k, v, True).transpose(1, 2).reshape(x.shape)
    x = x + F.linear(mixed, weights["attention.out.weight"])
    h = F.layer_norm(x, (d_model,), weights["norm_2.weight"])
    h = F.gelu(F.linear(h, weights["feed_forward.up.weight"]))
    return x + F.linear(h, weights["feed_forward.down.weight"])
    ### END SOLUTION


# %% key="block-check" tags=["check"]
block = check("05.block", block)

# %% [markdown] key="gpt-intro"
# ## Exercise: the GPT
#
# ●●○○ · 10 minutes · 3 points
#
# Around the blocks: a row of `token_embedding.weight` for each byte, plus a row of `position_embedding.weight` for its place in the
# window, counted from 0. Then `n_layer` blocks; the weights of layer `i` have names that begin with `blocks.i.`, such as
# `blocks.0.norm_1.weight`. Then a last LayerNorm with `norm.weight`.
#
# The head is **tied**: its matrix is the token embedding once more, so a logit is the dot product of the final vector with that
# byte's embedding. Return the logits, (batch, seq_len, vocab_size). Windows may be shorter than the position table. Use your `block`.

# %% key="gpt" tags=["exercise"]
def gpt(
    tokens: torch.Tensor, weights: dict, n_layer: int, n_head: int, attention
) -> torch.Tensor:
    """tokens (batch, seq_len) int64 -> logits (batch, seq_len, vocab_size).

    >>> weights = {"token_embedding.weight": torch.eye(4),
    ...            "position_embedding.weight": torch.zeros(3, 4),
    ...            "norm.weight": torch.ones(4)}
    >>> gpt(torch.tensor([[2, 0]]), weights, 0, 1, None).argmax(-1)
    tensor([[2, 0]])
    """
    ### BEGIN SOLUTION
    table = weights["token_embedding.weight"]
    x = table[tokens]
    x = x + weights["position_embedding.weight"][: tokens.shape[1]]
    for layer in range(n_layer):
        prefix = f"blocks.{layer}."
        inner = {
            name.removeprefix(prefix): weight
            for name, weight in weights.items()
            if name.startswith(prefix)
        }
        x = block(x, inner, n_head, attention)
    x = F.layer_norm(x, x.shape[-1:], weights["norm.weight"])
    return F.linear(x, table)
    ### END SOLUTION


# %% key="gpt-check" tags=["check"]
gpt = check("05.gpt", gpt)

# %% [markdown] key="attention-intro"
# ### Your attention goes in
#
# The model takes any attention. Here is yours from [chapter 4](04_attention.ipynb), if it passed there. A correct attention may
# still be unfit for training: written as a loop it is too slow, and working in place on its own buffers it may stop PyTorch's
# backward pass. The next cell tries.

# %% key="attention"
attention = mine("04.attention")


def seconds_of(mix) -> float:
    """Best time of one forward and backward pass, 16 x 4 heads."""
    q, k, v = (
        torch.randn(16, 4, 128, 32, device=device).requires_grad_()
        for _ in "qkv"
    )
    samples = time_samples(
        lambda: mix(q, k, v, True).sum().backward(), repeats=5
    )
    return min(samples)


fused = lab.scaled_dot_product_attention
try:
    slower = seconds_of(attention) / seconds_of(fused)
    print(f"Forward and backward take {slower:.1f} times as long as fused.")
except RuntimeError as error:
    slower = math.inf
    print(f"It has no backward pass: {str(error).splitlines()[0]}")
if slower > 20:
    attention = fused
    print("This chapter goes on with PyTorch's fused attention.")

# %% [markdown] key="same-model-intro"
# The course has a GPT of the same architecture as a PyTorch module, in `utils/lab/gpt.py`. It is short; read it once. Give both
# the same weights: do they agree?

# %% key="same-model"
tiny = lab.configuration("1M")
model = lab.GPT(tiny, attention)
weights = model.state_dict()
del weights["head.weight"]  # tied: the token embedding again
heads = tiny.n_layer, tiny.n_head, attention
u = torch.rand(16, dtype=torch.float64, generator=generator)
x, y = get_batch(text.train.tokens, text.train.ends, 128, u)
with torch.no_grad():
    apart = (gpt(x, weights, *heads) - model(x)).abs().max()
show.number(
    count_parameters(tiny),
    "parameters",
    "modelled",
    f"{tiny.n_layer} layers of width {tiny.d_model}, {tiny.n_head} heads",
)
print(f"Largest difference of a logit: {apart:.1g}")

# %% [markdown] key="cross_entropy-intro"
# ## Exercise: the loss
#
# ●●○○ · 10 minutes · 3 points
#
# Turn logits into probabilities with a softmax over the vocabulary, and take the mean of $-\ln p$ over all targets. `logits`
# (batch, seq_len, vocab_size), `targets` (batch, seq_len) int64. Return a scalar, in nats.
#
# The logits may be in the hundreds; $e^{800}$ overflows even in float64, and a probability that is rounded to 0 has no
# logarithm. Your loss must be exact there too, and its gradient. `F.cross_entropy` and `F.nll_loss` are what you are writing: leave them
# aside.

# %% key="cross_entropy" tags=["exercise"]
def cross_entropy(
    logits: torch.Tensor, targets: torch.Tensor
) -> torch.Tensor:
    """Mean loss in nats a target.

    >>> logits = torch.tensor([[[0.0, 0.0], [1000.0, 0.0]]])
    >>> round(cross_entropy(logits, torch.tensor([[1, 0]])).item(), 4)
    0.3466
    """
    ### BEGIN SOLUTION
    picked = logits.gather(-1, targets[..., None])[..., 0]
    return (logits.logsumexp(-1) - picked).mean()
    ### END SOLUTION


# %% key="cross_entropy-check" tags=["check"]
cross_entropy = check("05.cross_entropy", cross_entropy)

# %% key="first-loss"
with torch.no_grad():
    first = float(cross_entropy(gpt(x, weights, *heads), y))
show.number(first, "nats a byte", "measured", "before any training")
print(f"256 equal chances: {math.log(256):.3f} nats.")
print(repr(lab.generate(model, "def ", 60)))

# %% [markdown] key="first-loss-meaning"
# This is the first test of any training code, and it costs nothing: **the first loss must be near the logarithm of the vocabulary.** Well
# above it, the initial weights are too large. Well below it, the model sees its targets.
#
# Yours is a little below. Does it see anything? Look at the targets that repeat the byte before, and at the rest.

# %% key="first-loss-repeats"
with torch.no_grad():
    logits = gpt(x, weights, *heads)
    one_by_one = -logits.log_softmax(-1).gather(-1, y[..., None]).flatten()
repeats = (x == y).flatten()
show.table(
    [
        {
            "the next byte": name,
            "share of targets": f"{float(chosen.float().mean()):.0%}",
            "loss": float(one_by_one[chosen].mean()),
        }
        for name, chosen in (
            ("repeats the last", repeats),
            ("is another", ~repeats),
        )
    ],
    caption="Before any training, nats a byte",
    kinds={"loss": "measured"},
)

# %% [markdown] key="first-loss-why"
# No leak. The head is the embedding again, so the untrained model finds each byte most like itself and bets that it repeats. In indented code
# that is a good bet. On all other bytes it loses a little more than $\ln 256$.

# %% [markdown] key="adamw-intro"
# ## Exercise: AdamW
#
# ●●●○ · 12 minutes · 4 points
#
# Of each weight $w$ with gradient $g$, AdamW keeps two running averages: $m \leftarrow \beta_1 m + (1-\beta_1) g$ and
# $v \leftarrow \beta_2 v + (1-\beta_2) g^2$. Both start at 0 and are too small at first, so they are corrected:
# $\hat m = m / (1-\beta_1^t)$, $\hat v = v / (1-\beta_2^t)$ at step $t = 1, 2, \dots$ Then
#
# $$w \leftarrow w - \eta \lambda w - \eta\, \hat m / (\sqrt{\hat v} + \epsilon)$$
#
# with the learning rate $\eta$ (`lr`) and the decay $\lambda$ (`weight_decay`). Both terms use the $w$ from before the step. Only tensors with **two or
# more axes** decay. Return the new `w`, and `m` and `v` uncorrected. In place or not, as you like.

# %% key="adamw" tags=["exercise"]
def adamw(w, g, m, v, step, lr, beta1, beta2, eps, weight_decay):
    """One step for one tensor; step counts from 1. Returns w, m, v.

    >>> zero = torch.zeros(2, 1)
    >>> w, g = torch.ones(2, 1), torch.tensor([[1e-3], [-50.0]])
    >>> adamw(w, g, zero, zero, 1, 0.1, 0.9, 0.99, 1e-8, 0.0)[0].flatten()
    tensor([0.9000, 1.1000])
    """
    ### BEGIN SOLUTION
    m = beta1 * m + (1 - beta1) * g
    v = beta2 * v + (1 - beta2) * g * g
    m_hat, v_hat = m / (1 - beta1**step), v / (1 - beta2**step)
    decay = weight_decay if w.ndim >= 2 else 0.0
    w = w * (1 - lr * decay) - lr * m_hat / (v_hat.sqrt() + eps)
    return w, m, v
    ### END SOLUTION


# %% key="adamw-check" tags=["check"]
adamw = check("05.adamw", adamw)

# %% key="adamw-use"
g = torch.tensor([[1e-4], [-0.02], [3.0], [-50.0]])
w, m, v = torch.zeros(4, 1), torch.zeros(4, 1), torch.zeros(4, 1)
moved = adamw(w, g.clone(), m, v, 1, 0.003, 0.9, 0.99, 1e-8, 0.1)[0]
show.table(
    [
        {"gradient": float(a), "the weight moves by": float(b)}
        for a, b in zip(g, moved, strict=True)
    ],
    caption="The first step, learning rate 0.003",
    kinds={"the weight moves by": "measured"},
)

# %% [markdown] key="adamw-meaning"
# In the first step every weight moves by the whole learning rate, whether its gradient is tiny or huge: $\hat m / \sqrt{\hat v}$ is the sign of the
# only gradient seen so far. One batch decides, at full speed. That is the reason to start slowly.

# %% [markdown] key="lr_schedule-intro"
# ## Exercise: warm-up, then a cosine
#
# ●●○○ · 8 minutes · 2 points
#
# Steps are numbered 0 to `steps` - 1. In the first `warmup_steps` steps the rate rises in a straight line: step 0 has
# `peak_lr / warmup_steps`, step `warmup_steps - 1` has `peak_lr`. From step `warmup_steps` on, let $p$ be the share of the remaining
# `steps - warmup_steps` steps that is done, so $p = 0$ at step `warmup_steps`. The rate falls along half a cosine from `peak_lr`
# towards `low = final_share * peak_lr`, which it would reach at $p = 1$:
#
# $$\text{low} + (\text{peak} - \text{low}) \cdot \tfrac{1}{2}(1 + \cos \pi p).$$
#
# There may be no warm-up, or nothing but warm-up.

# %% key="lr_schedule" tags=["exercise"]
def lr_schedule(
    step: int,
    steps: int,
    peak_lr: float,
    warmup_steps: int,
    final_share: float,
) -> float:
    """Learning rate of a step.

    >>> [round(lr_schedule(i, 100, 1.0, 10, 0.1), 3) for i in (0, 10, 55)]
    [0.1, 1.0, 0.55]
    """
    ### BEGIN SOLUTION
    if step < warmup_steps:
        return peak_lr * (step + 1) / warmup_steps
    done = (step - warmup_steps) / (steps - warmup_steps)
    low = final_share * peak_lr
    return low + (peak_lr - low) * (1 + math.cos(math.pi * done)) / 2
    ### END SOLUTION


# %% key="lr_schedule-check" tags=["check"]
lr_schedule = check("05.lr_schedule", lr_schedule)

# %% key="lr_schedule-use"
steps = [*range(0, 1000, 5), 999]
show.line(
    steps,
    [lr_schedule(step, 1000, 3e-3, 50, 0.05) for step in steps],
    x="step",
    y="learning rate",
    kind="modelled",
    title="Up in 50 steps, down in 950",
)

# %% [markdown] key="own-loop-intro"
# ## All of it, running
#
# You have every part of a training loop. Here it is, made of your functions and nothing else. One line is new: **clipping.** If
# the gradients of all weights together are longer than 1, they are all scaled down to length 1, so that one odd batch cannot throw
# the weights far away.
#
# Beside it runs the course's trainer on the same batches, with PyTorch's own loss and optimizer. Same seed, so the losses must
# agree, step by step.

# %% key="own-loop"
recipe = lab.Recipe(steps=12, batch=8, warmup_steps=4)
split, seq_len = text.train, 128
starts = torch.cat([torch.zeros(1).long(), split.ends[:-1] + 1])
n_windows = int((split.ends - starts - seq_len + 1).clamp(min=0).sum())
generator = torch.Generator().manual_seed(recipe.seed)
own = {name: w.clone().requires_grad_() for name, w in weights.items()}
averages = {name: [torch.zeros_like(w)] * 2 for name, w in own.items()}
own_losses = []
for step in range(recipe.steps):
    drawn = torch.randint(n_windows, (recipe.batch,), generator=generator)
    u = (drawn.double() + 0.5) / n_windows
    x, y = get_batch(split.tokens, split.ends, seq_len, u)
    loss = cross_entropy(gpt(x, own, *heads), y)
    gradients = torch.autograd.grad(loss, list(own.values()))
    norm = math.sqrt(sum(float(g.square().sum()) for g in gradients))
    lr = lr_schedule(step, recipe.steps, recipe.peak_lr, 4, 0.05)
    with torch.no_grad():
        for name, g in zip(list(own), gradients, strict=True):
            g = g * min(1.0, 1.0 / norm)
            m, v = (average.clone() for average in averages[name])
            numbers = step + 1, lr, 0.9, 0.99, 1e-8, 0.1
            w, m, v = adamw(own[name].detach(), g, m, v, *numbers)
            own[name], averages[name] = w.requires_grad_(), [m, v]
    own_losses.append(loss.item())

# %% key="own-beside-lab"
beside = lab.Trainer(lab.GPT(tiny, attention), text, recipe)
lab_losses = [float(beside.step()[0]) for _ in range(recipe.steps)]
show.table(
    [
        {"step": i + 1, "yours": own_losses[i], "the course's": lab_losses[i]}
        for i in (0, 1, 3, 7, 11)
    ],
    caption="Loss in nats a byte",
    kinds={"yours": "measured", "the course's": "measured"},
)
apart = max(abs(a - b) for a, b in zip(own_losses, lab_losses, strict=True))
print(f"Never further apart than {apart:.1g} nats.")

# %% [markdown] key="own-meaning"
# The differences that are left are rounding: fp32 has seven digits, and the two add in different orders. Nothing in the
# course's trainer is different from what you wrote. It only does a few more errands: autocast, checkpoints, a GPU. From here on it
# does the running, with your attention inside.
#
# This test is worth remembering. Whoever rewrites a training loop, for speed or for more GPUs, runs old and new side by side on
# the same batches first.

# %% [markdown] key="accumulate-intro"
# ## Exercise: a batch in parts
#
# ●●●○ · 10 minutes · 3 points
#
# The activations of a large batch may not fit ([chapter 2](02_memory.ipynb)). Gradients add up, so a batch can be worked through in
# **micro-batches**: forward, backward, forget, next. The result must equal that of the whole batch.
#
# `micro_batches` is a list of pairs `(x, y)`; they may differ in rows and in seq_len. `loss_of(weights, x, y)` returns the mean loss over **that
# micro-batch's** targets. Return a dictionary `name -> gradient` of the mean loss over **all** targets. Never hold more than one
# micro-batch's graph: its backward pass comes before the next forward pass. The weights are leaves with `requires_grad`, their
# `.grad` is None; you may use it.

# %% key="accumulate_gradients" tags=["exercise"]
def accumulate_gradients(loss_of, weights: dict, micro_batches: list) -> dict:
    """name -> gradient of the mean loss over all targets.

    >>> weights = {"w": torch.tensor(2.0, requires_grad=True)}
    >>> loss_of = lambda weights, x, y: (weights["w"] * x).mean()
    >>> one, three = torch.tensor([5.0]), torch.tensor([1.0, 1.0, 1.0])
    >>> accumulate_gradients(loss_of, weights, [(one, one), (three, three)])
    {'w': tensor(2.)}
    """
    ### BEGIN SOLUTION
    n_targets = sum(y.numel() for _, y in micro_batches)
    total = {name: torch.zeros_like(w) for name, w in weights.items()}
    for x, y in micro_batches:
        loss = loss_of(weights, x, y) * (y.numel() / n_targets)
        gradients = torch.autograd.grad(loss, list(weights.values()))
        for name, gradient in zip(weights, gradients, strict=True):
            total[name] += gradient
    return total
    ### END SOLUTION


# %% key="accumulate_gradients-check" tags=["check"]
accumulate_gradients = check(
    "05.accumulate_gradients", accumulate_gradients
)

# %% [markdown] key="accumulate-use-intro"
# What does it save? The meter of `utils/meter` counts the bytes of all tensors alive at once. Sixteen rows, whole and in parts:

# %% key="accumulate-use"
def loss_of(weights, x, y):
    return cross_entropy(gpt(x, weights, *heads), y)


u = torch.rand(16, dtype=torch.float64, generator=generator)
x, y = get_batch(text.train.tokens, text.train.ends, 128, u)
rows, reference = [], None
for size in (16, 4, 1):
    fresh = {k: w.clone().requires_grad_() for k, w in weights.items()}
    parts = list(zip(x.split(size), y.split(size), strict=True))
    with meter() as counted:
        found = accumulate_gradients(loss_of, fresh, parts)
    flat = torch.cat([found[name].flatten() for name in fresh])
    reference = flat if reference is None else reference
    rows.append(
        {
            "rows at once": size,
            "most bytes alive": show.si(counted.peak_bytes, "bytes"),
            "launches": counted.launches,
            "gradient differs by": f"{(flat - reference).norm():.1g}",
        }
    )
show.table(
    rows,
    caption="The gradient of 16 windows",
    kinds=dict.fromkeys(list(rows[0])[1:], "measured"),
)

# %% [markdown] key="accumulate-meaning"
# The memory of activations shrinks with the part, and what stays is weights and gradients. The price is launches: the same
# arithmetic in more and smaller pieces. It buys room; do not expect speed.

# %% [markdown] key="step-time-intro"
# ## How long should a step take?
#
# You can say it before you run it. Chapter 1 counts the FLOPs of a step, chapter 0 measured what your machine can do. Their
# quotient is the time of a step that wastes nothing.
#
# On a GPU choose a larger model: the next cell takes 10M parameters there, and you may set `size` to "30M" or "124M".

# %% key="choose"
RUNS = {
    "1M": {"batch": 12, "peak_lr": 3e-3},
    "10M": {"batch": 64, "peak_lr": 1e-3},
    "30M": {"batch": 32, "peak_lr": 6e-4},
    "124M": {"batch": 16, "peak_lr": 6e-4, "accumulate": 2},
}
size = "10M" if device == "cuda" else "1M"
shape = lab.configuration(size)
dtype = machine.best_dtype
if dtype == "fp16" and device != "cuda":
    dtype = "fp32"
run = lab.Recipe(dtype=dtype, **RUNS[size])
seq_len = shape.seq_len
peak, peak_name = machine.peak(dtype), f"this machine's {dtype} peak"
step_flops = training_flops(shape, batch=run.batch)
ideal = step_flops / peak
show.table(
    [
        {"what": what, "value": value, "kind": kind}
        for what, value, kind in (
            ("parameters", f"{count_parameters(shape):,}", "modelled"),
            ("bytes of text a step", f"{run.batch} x {seq_len}", "chosen"),
            ("FLOPs a step", show.si(step_flops, "FLOP"), "modelled"),
            (f"peak in {dtype}", show.si(peak, "FLOP/s"), "measured"),
            ("time that wastes nothing", show.si(ideal, "s"), "modelled"),
        )
    ],
    caption=f"The {size} model on {machine.name}",
)

# %% key="predict-step"
predict("05.step", "A real step takes how many times that?", unit="times")

# %% key="measure-step"
def new_trainer(attention, recipe=run) -> lab.Trainer:
    """A fresh model on this device, ready to train."""
    return lab.Trainer(lab.GPT(shape, attention).to(device), text, recipe)


probe = new_trainer(attention)
samples = time_samples(probe.step, repeats=7, max_seconds=6)
step_seconds = statistics.median(samples)
show.number(step_seconds, "s", "measured", "one training step")
against_prediction("05.step", step_seconds / ideal, "times")
show.number(
    100 * ideal / step_seconds, "% MFU", "measured", f"of {peak_name}"
)

# %% [markdown] key="mfu-meaning"
# The quotient is **MFU** ([chapter 1](01_flops.ipynb)): the share of the peak that does the model's own arithmetic. Why it is not 100% is the
# subject of a section below. First let it learn.

# %% [markdown] key="train-intro"
# ## Train it
#
# The loop below trains in stretches, so that you can look in between. The figure is redrawn while it runs: the loss in training, the loss
# on held-out files, and the speed. In the first stretch, watch how fast the loss passes the marks from the beginning of the
# chapter.
#
# A stretch ends after 55 seconds even if its steps are not done, and the stop button of Jupyter ends it too, between two steps. In both cases
# the next stretch goes on from there.

# %% key="go-on"
history = lab.History(run.steps, peak_name)
trainer = new_trainer(attention)


def draw(history):
    """Two figures: what it has learned, and how fast it goes."""
    kinds = ("in training", history.steps, history.losses), (
        "held out",
        history.val_steps,
        history.val_losses,
    )
    series = [Series(x, y, name) for name, x, y in kinds if x]
    last = history.rows[-1]
    loss = show.make.lines(
        series,
        x="step",
        y="loss (nats a byte)",
        title=f"Step {last.step}: {last.loss:.2f} nats a byte in training",
    )
    rates = history.tokens_per_s[1:] or history.tokens_per_s
    speed = show.make.line(
        history.steps[-len(rates) :],
        rates,
        x="step",
        y="bytes of text a second",
        kind="measured",
        title=f"{rates[-1]:,.0f} bytes a second, MFU {last.mfu:.0%}",
    )
    return loss, speed


live = show.Live(draw, lab.History.line)


# %% [markdown] key="go-on-why"
# Losses stay on the device for ten steps before they are read: reading one makes the CPU wait for a GPU. Held-out loss is measured
# every 125 steps, always on the same windows, so that its changes are changes of the model.

# %% key="train-loop"
def go_on(until: int, seconds: float = 55) -> None:
    """Train to a step, or until the time is up; then a held-out loss."""
    per_token = training_flops(shape, seq_len=seq_len, tokens=1)
    end = time.perf_counter() + seconds
    with deferred_interrupt() as stopped:
        while trainer.done < until:
            began, losses = time.perf_counter(), []
            while len(losses) < 10 and trainer.done < until:
                loss, norm = trainer.step()
                losses.append(loss)
            loss = float(torch.stack(losses).mean())
            spent = time.perf_counter() - began
            rate = len(losses) * run.batch * seq_len / spent
            over = stopped() or time.perf_counter() > end
            last = over or trainer.done >= until
            held = None
            if last or trainer.done % 125 < 10:
                held = lab.evaluate(trainer.model, text.val, dtype=dtype)
            history.rows.append(
                lab.Row(
                    trainer.done,
                    loss,
                    held,
                    trainer.optimizer.param_groups[0]["lr"],
                    float(norm),
                    rate,
                    mfu_from_throughput(rate, per_token, peak),
                    history.seconds + spent,
                )
            )
            live(history, last=last)
            if over:
                break


# %% key="train-1"
go_on(250)

# %% key="sample-1"
print(lab.generate(trainer.model, "def ", 160))

# %% key="train-2"
go_on(500)

# %% key="train-3"
go_on(750)

# %% key="train-4"
go_on(1000)

# %% key="trained"
final = history.val_losses[-1]
if trainer.done == run.steps:
    against_prediction("05.loss", final, "nats a byte")
else:
    print(f"{trainer.done} of {run.steps} steps done. Run go_on(1000) again.")
show.table(
    [
        {"what is known": k, "nats a byte": v}
        for k, v in (nats | {f"this GPT, {trainer.done} steps": final}).items()
    ],
    caption=f"Held-out files; {show.si(history.seconds, 's')} of training",
    kinds={"nats a byte": "measured"},
)

# %% [markdown] key="sample-intro"
# ### Read what it writes
#
# The model gives probabilities; writing is drawing from them, byte by byte. The logits are divided by a **temperature** first: near 0 the
# likeliest byte always wins, at 1 the draw follows the probabilities as they are. A low temperature is safe and dull: after some spaces the
# likeliest byte is one more space.

# %% key="sample-2"
for temperature in (0.5, 0.8):
    print(f"--- temperature {temperature}")
    prompt = "class Reader:\n    def __init__(self, "
    print(lab.generate(trainer.model, prompt, 200, temperature=temperature))

# %% [markdown] key="sample-meaning"
# It has never been told what a line is, or an indent, or a keyword. All of that lowers the loss, so all of that is learned in time, the frequent first. What needs
# more than 128 bytes of context, or more than a few minutes, is missing: names that mean something, code that runs.
#
# Most of the fall came in the first stretch. What is easy is learned first, and each further tenth of a nat costs more than the one before.
# How much more has a law, and you will measure it below.

# %% [markdown] key="time-intro"
# ## Where did the time go?
#
# A step took longer than its FLOPs need. Three models of a step, each with more in it:
#
# 1. the FLOPs over the peak, as above;
# 2. the meter: every operation by itself, with its FLOPs, the bytes it reads from and writes to memory, and the cost of its launch as
#    chapter 0 measured it;
# 3. the step itself.

# %% key="three-models"
with meter(machine) as counted:
    probe.step()
modelled = counted.time()
show.table(
    [
        {
            "a step as": "FLOPs over the peak",
            "seconds": show.si(ideal, "s"),
            "kind": "modelled",
        },
        {
            "a step as": f"{counted.launches:,} operations one by one",
            "seconds": show.si(modelled.seconds, "s"),
            "kind": "modelled",
        },
        {
            "a step as": "what happens",
            "seconds": show.si(step_seconds, "s"),
            "kind": "measured",
        },
    ],
    caption="One training step",
)
for name, part in modelled.parts.items():
    if part:
        print(f"In the second, {name}: {show.si(part, 's')}, modelled.")

# %% [markdown] key="three-models-meaning"
# The first is too kind: it knows only products. The second charges for every byte as if no cache existed, and still assumes that each
# operation reaches the full bandwidth or the full peak. Reality need not lie between the two. To know, take the step apart.

# %% [markdown] key="parts-intro"
# ### Take it apart
#
# The next cell times the parts of a step alone, each forward and backward, at the sizes of this model: the products with weights,
# attention, the small operations, the loss, the optimizer, the batch. They are timed in turn, round after round, beside the whole step,
# so that whatever else your machine does hits them all. The first round warms up and does not count.

# %% key="parts"
n, d, d_ff = run.batch * seq_len, shape.d_model, shape.d_ff
options = {"device": device, "dtype": torch_dtype(dtype)}


def products(sizes):
    """x @ w.T and its two products of the backward pass, for each (k, m)."""
    sets = [
        [torch.randn(*s, **options) for s in ((n, k), (m, k), (n, m))]
        for k, m in sizes
    ]

    def call():
        for x, w, dy in sets:
            torch.mm(x, w.T), torch.mm(dy, w), torch.mm(dy.T, x)

    return call


def both(function, *sizes, dtype=options["dtype"]):
    """Forward and backward of a function of random tensors."""
    inputs = [
        torch.randn(s, device=device, dtype=dtype).requires_grad_()
        for s in sizes
    ]
    with torch.no_grad():
        ones = torch.ones_like(function(*inputs))
    return lambda: torch.autograd.grad(function(*inputs), inputs, ones)


def small_ops(x, h):
    """What a block does beside products: two norms, two sums, one GELU."""
    y = F.layer_norm(x, (d,)) + x
    y = F.layer_norm(y, (d,)) + y
    return y.sum() + F.gelu(h).sum()


# %% [markdown] key="in-turn-intro"
# The optimizer gets gradients of its own to work on, and one more trainer runs with PyTorch's fused attention in place of yours. That
# comparison is the first cure you might try.

# %% key="in-turn"
by_head = run.batch, shape.n_head, seq_len, shape.head_dim
idle, with_fused = new_trainer(attention), new_trainer(fused)
parameters = list(idle.model.parameters())
for p in parameters:
    p.grad = torch.randn_like(p) * 1e-4


def update():
    torch.nn.utils.clip_grad_norm_(parameters, 1.0)
    idle.optimizer.step()


targets = torch.randint(256, (n,), device=device)
layer = [(d, 3 * d), (d, d), (d, d_ff), (d_ff, d)]
calls = {
    "step": probe.step,
    "step, fused attention": with_fused.step,
    "weights": products(layer),
    "head": products([(d, shape.vocab_size)]),
    "attention": both(
        lambda q, k, v: attention(q, k, v, True), by_head, by_head, by_head
    ),
    "small": both(small_ops, (n, d), (n, d_ff), dtype=torch.float32),
    "loss": both(
        lambda z: F.cross_entropy(z, targets),
        (n, shape.vocab_size),
        dtype=torch.float32,
    ),
    "update": update,
    "batch": lambda: lab.get_batch(text.train, run.batch, seq_len, generator),
}
timed = {name: [] for name in calls}
for _ in range(5):
    for name, call in calls.items():
        synchronise()
        began = time.perf_counter()
        call()
        synchronise()
        timed[name].append(time.perf_counter() - began)
fast = {name: statistics.median(each[1:]) for name, each in timed.items()}

# %% key="parts-plot"
each = shape.n_layer
parts = {
    "products with weights": each * fast["weights"] + fast["head"],
    "attention": each * fast["attention"],
    "norms, sums, GELU": each * fast["small"],
    "loss": fast["loss"],
    "clipping and AdamW": fast["update"],
    "the batch": fast["batch"],
}
whole, explained = fast["step"], sum(parts.values())
share = parts["products with weights"] / whole
names = ["FLOPs over the peak", *parts, "whole step"]
show.bars(
    names,
    [ideal, *parts.values(), whole],
    unit="s",
    kind=["modelled"] + ["measured"] * (len(names) - 1),
    title=f"Products with weights take {share:.0%} of a step",
)
print(f"The parts add up to {explained / whole:.0%} of the step.")

# %% [markdown] key="parts-meaning"
# If the sum is well below 100%, the rest is what no part has alone: conversions between dtypes, Python between the operations, and caches
# that another part has emptied. If it is above, parts overlap in the step, or alone they were disturbed.
#
# The gap between ideal and real has two factors, and they ask for different cures:

# %% key="two-factors"
product_flops = 6 * matmul_parameters(shape) * n
product_seconds = parts["products with weights"]
reached = product_flops / product_seconds / peak
not_products = 1 - product_seconds / whole
others = {name: s for name, s in parts.items() if "products" not in name}
largest = max(others, key=others.get)
show.table(
    [
        {
            "factor": "the products, of the peak",
            "here": f"{reached:.0%}",
            "cure": "larger matrices: more width, more rows",
        },
        {
            "factor": "the step, not in products with weights",
            "here": f"{not_products:.0%}",
            "cure": "fewer, larger, fused operations",
        },
        {
            "factor": f"of that, most: {largest}",
            "here": f"{others[largest] / whole:.0%} of the step",
            "cure": "begin here",
        },
        {
            "factor": "fused attention shortens the step by",
            "here": f"{1 - fast['step, fused attention'] / whole:.0%}",
            "cure": "done: pass lab.scaled_dot_product_attention",
        },
    ],
    caption=f"MFU {ideal / whole:.0%} of {peak_name}, and why",
    kinds={"here": "measured"},
)

# %% [markdown] key="width-intro"
# ### Would a wider model be faster?
#
# Not in seconds, but in FLOPs a second. The products of a layer at twice and four times the width, on the same rows, each again and again, so
# that caches help. Compare the bars with each other, not with the table above.

# %% key="width"
rates = {}
for factor in (1, 2, 4):
    wide = [(factor * k, factor * m) for k, m in layer]
    seconds = min(time_samples(products(wide), repeats=4, max_seconds=6))
    flops = sum(6 * n * k * m for k, m in wide)
    rates[factor * d] = flops / seconds
show.bars(
    [f"d_model {width}" for width in rates],
    [100 * rate / peak for rate in rates.values()],
    unit="% of the peak",
    kind="measured",
    title=f"Products of width {d} reach {rates[d] / peak:.0%} of the peak,"
    f" of width {4 * d} {rates[4 * d] / peak:.0%}",
)

# %% [markdown] key="width-meaning"
# Where the bars rise with the width, you see one reason why MFU grows with the size of a model, until it no longer fits one device. A number above 100% means that the peak was
# measured while your machine was busier.
#
# So: FLOPs tell you what a step must cost. MFU tells you that it costs more. Only taking it apart tells you why.
# Chapter 10 does this with a profiler.

# %% [markdown] key="discipline"
# ## Is any of it true?
#
# You will read a paper that says: do this, and the loss falls. Before you spend GPUs on it, five steps:
#
# 1. **The paper.** What exactly is claimed, against what?
# 2. **A small reproduction.** Minutes, not days. Does the effect appear at all?
# 3. **An ablation.** Change that one thing, keep all else, repeat with several seeds. Is the effect larger than the noise?
# 4. **The bottleneck.** What does it cost, and where? You have just done this.
# 5. **Scale.** Does it hold for the next size, and the next?

# %% [markdown] key="two-claims"
# Two published claims, on a model of 0.1M parameters. **Rotary positions** turn q and k by an angle that grows with the position, instead of
# adding a learned row to the embedding ([chapter 4](04_attention.ipynb)); a model with them is said to converge faster (RoFormer, 2021). **RMSNorm**
# leaves out LayerNorm's subtraction of the mean; it is said to do as well for less work (Zhang and Sennrich, 2019).

# %% key="predict-rope"
predict(
    "05.rope", "Rotary positions change the loss by how much?", unit="nats"
)

# %% [markdown] key="ablation-intro"
# Each variant runs with three seeds. A **seed** decides the initial weights and the batches; runs of two variants with one seed read the
# same bytes in the same order. Every run is measured twice, halfway and at the end.

# %% key="ablation-run"
base = ModelShape(2, 64, 4, 256, seq_len=64, bias=False)
rope = ModelShape(2, 64, 4, 256, seq_len=64, bias=False, positions="rope")
rms = ModelShape(2, 64, 4, 256, seq_len=64, bias=False, norm="rmsnorm")


def losses_of(shape, seed: int, steps: int = 120) -> tuple[float, float]:
    """Held-out loss of a fresh model halfway and at the end of its run."""
    recipe = lab.Recipe(steps=steps, batch=8, warmup_steps=20, seed=seed)
    model = lab.GPT(shape, attention, seed=seed).to(device)
    trainer, found = lab.Trainer(model, text, recipe), []
    for _ in range(2):
        for _ in range(steps // 2):
            trainer.step()
        found.append(lab.evaluate(model, text.val))
    return tuple(found)


seeds = (0, 1, 2)
runs = {"base": [losses_of(base, seed) for seed in seeds]}

# %% key="ablation-rope"
runs["rotary positions"] = [losses_of(rope, seed) for seed in seeds]

# %% key="ablation-rms"
runs["RMSNorm"] = [losses_of(rms, seed) for seed in seeds]

# %% key="ablation-table"
ends = {name: [end for _, end in pairs] for name, pairs in runs.items()}
show.table(
    [
        {
            "variant": name,
            **{f"seed {s}": losses[s] for s in seeds},
            "mean": statistics.fmean(losses),
            "spread": max(losses) - min(losses),
        }
        for name, losses in ends.items()
    ],
    caption="Held-out loss after 120 steps, nats a byte",
    kinds=dict.fromkeys(
        [*(f"seed {s}" for s in seeds), "mean", "spread"], "measured"
    ),
)

# %% [markdown] key="is_it_real-intro"
# ## Exercise: is it real?
#
# ●●●○ · 10 minutes · 3 points
#
# `losses_a[i]` and `losses_b[i]` come from the same seed, so look at their **differences** $d_i = b_i - a_i$: what a seed does to both cancels. Let
# $\bar d$ be their mean, $s$ their standard deviation (divided by $n - 1$), $n$ their number. The mean of so few differences is itself uncertain,
# by
#
# $$\bar d \pm t \cdot s / \sqrt{n}.$$
#
# $t$ comes from Student's table: with 95% confidence, 4.303 for $n = 3$. It is given to you. The difference is **real** when the interval
# excludes 0. Return a dictionary with `"difference"` ($\bar d$, negative when b is better), `"low"`, `"high"` and `"real"`.

# %% key="is_it_real" tags=["exercise"]
def is_it_real(losses_a: list, losses_b: list, t: float) -> dict:
    """The interval of b minus a over paired seeds, and a verdict.

    >>> found = is_it_real([2.0, 2.2, 2.1], [1.9, 2.1, 2.03], 4.303)
    >>> [round(found[key], 3) for key in ("difference", "low", "high")]
    [-0.09, -0.133, -0.047]
    >>> found["real"]
    True
    """
    ### BEGIN SOLUTION
    d = [b - a for a, b in zip(losses_a, losses_b, strict=True)]
    mean = statistics.fmean(d)
    half = t * statistics.stdev(d) / math.sqrt(len(d))
    low, high = mean - half, mean + half
    real = low > 0 or high < 0
    return {"difference": mean, "low": low, "high": high, "real": real}
    ### END SOLUTION


# %% key="is_it_real-check" tags=["check"]
is_it_real = check("05.is_it_real", is_it_real)

# %% key="is_it_real-use"
# Student's table, 95%: by the number of values less the number fitted
T95 = {1: 12.706, 2: 4.303, 3: 3.182, 4: 2.776, 6: 2.447}
rows = []
for name in ("rotary positions", "RMSNorm"):
    for when, half in (("halfway", 0), ("at the end", 1)):
        a = [pair[half] for pair in runs["base"]]
        b = [pair[half] for pair in runs[name]]
        found = is_it_real(a, b, T95[len(a) - 1])
        verdict = "real" if found["real"] else "could be noise"
        rows.append({"variant": name, "when": when, **found})
        rows[-1]["real"] = verdict
show.table(
    rows,
    caption="Loss minus that of the base, nats; 95% intervals",
    kinds=dict.fromkeys(("difference", "low", "high"), "measured"),
)
against_prediction("05.rope", abs(rows[1]["difference"]), "nats")

# %% [markdown] key="is_it_real-meaning"
# Read the last column with care. "Could be noise" is no proof of equality: it says that an effect, if there is one, is smaller than this interval, which
# three seeds make wide. With two seeds $t$ is 12.7, and hardly anything is real. And with twenty variants, one will look real by
# luck.
#
# Compare halfway with the end as well. An effect that shrinks while training goes on is a head start, not a better model, and a longer run may
# swallow it.

# %% [markdown] key="seeds-intro"
# How many seeds do you need? Take the spread of the differences that you just measured for RMSNorm, and ask how small an effect each number of
# seeds could show.

# %% key="seeds"
pairs = zip(ends["base"], ends["RMSNorm"], strict=True)
spread = statistics.stdev(b - a for a, b in pairs)
counts = [2, 3, 4, 5]
least = [T95[n - 1] * spread / math.sqrt(n) for n in counts]
show.bars(
    [f"{n} seeds" for n in counts],
    least,
    unit="nats",
    kind="modelled",
    title=f"Two seeds see {least[0]:.2g} nats, five see {least[-1]:.2g}",
)

# %% [markdown] key="law-intro"
# ## What would a larger model reach?
#
# Train small models of four sizes on the same text for the same number of steps, each size with two seeds, so that their scatter shows. Their losses fall with size, and over a range of sizes they follow a **power
# law** closely (Kaplan and others, 2020):
#
# $$L(N) = a \cdot N^{-b}, \qquad \ln L = \ln a - b \ln N.$$
#
# $N$ counts the parameters that take part in products. In logarithms it is a line, and a line can be prolonged. How far may you trust it?

# %% key="law-runs"
def sized(d_model: int) -> ModelShape:
    """A GPT of two layers, two heads and this width."""
    return ModelShape(2, d_model, 2, 256, seq_len=64, bias=False)


widths, next_width = [12, 20, 32, 48], 72
new_size = matmul_parameters(sized(next_width))
law_runs = [(w, losses_of(sized(w), 3, steps=200)[1]) for w in widths]

# %% key="law-runs-again"
law_runs += [(w, losses_of(sized(w), 4, steps=200)[1]) for w in widths]
sizes = [matmul_parameters(sized(width)) for width, _ in law_runs]
law_losses = [loss for _, loss in law_runs]
show.table(
    [
        {
            "d_model": width,
            "N": size,
            "one seed": law_losses[i],
            "another": law_losses[i + len(widths)],
        }
        for i, (width, size) in enumerate(zip(widths, sizes, strict=False))
    ],
    caption="Held-out loss after 200 steps, nats a byte",
    kinds={"one seed": "measured", "another": "measured"},
)

# %% [markdown] key="fit_scaling_law-intro"
# ## Exercise: fit it, and say how sure you are
#
# ●●●● · 14 minutes · 4 points
#
# Let $x_i = \ln N_i$, $y_i = \ln L_i$. Fit $y = \alpha - b x$ by least squares over $n$ runs. With $S = \sum (x_i - \bar x)^2$, and with $s^2$ the sum of the squared
# residuals divided by $n - 2$ (two numbers were fitted), a **new run** of size $x$ lies, with the given $t$, in
#
# $$\hat y(x) \pm t\, s \sqrt{1 + \tfrac{1}{n} + (x - \bar x)^2 / S}.$$
#
# The 1 is the scatter of the new run itself; the rest is the doubt about the line, which grows away from the data.
#
# Return a dictionary: `"exponent"` ($b$), `"prediction"`, `"low"` and `"high"`: the last three are losses at `new_size`, not their
# logarithms.

# %% key="fit_scaling_law" tags=["exercise"]
def fit_scaling_law(
    sizes: list, losses: list, t: float, new_size: float
) -> dict:
    """Exponent of L = a N^-b; the loss at new_size and its interval.

    >>> law = fit_scaling_law([1e4, 1e5, 1e6], [4.0, 2.0, 1.0], 12.7, 1e7)
    >>> round(law["exponent"], 3), round(law["prediction"], 3)
    (0.301, 0.5)
    """
    ### BEGIN SOLUTION
    n = len(sizes)
    x, y = [math.log(size) for size in sizes], [math.log(z) for z in losses]
    x_mean, y_mean = statistics.fmean(x), statistics.fmean(y)
    sxx = sum((a - x_mean) ** 2 for a in x)
    pairs = list(zip(x, y, strict=True))
    slope = sum((a - x_mean) * (c - y_mean) for a, c in pairs) / sxx
    residuals = [c - y_mean - slope * (a - x_mean) for a, c in pairs]
    s = math.sqrt(sum(r * r for r in residuals) / (n - 2))
    away = math.log(new_size) - x_mean
    middle = y_mean + slope * away
    half = t * s * math.sqrt(1 + 1 / n + away**2 / sxx)
    return {
        "exponent": -slope,
        "prediction": math.exp(middle),
        "low": math.exp(middle - half),
        "high": math.exp(middle + half),
    }
    ### END SOLUTION


# %% key="fit_scaling_law-check" tags=["check"]
fit_scaling_law = check("05.fit_scaling_law", fit_scaling_law)

# %% [markdown] key="state-first"
# Now the discipline: state the interval **before** the run. Afterwards everyone is wise.

# %% key="law-predict"
t = T95[len(sizes) - 2]
law = fit_scaling_law(sizes, law_losses, t, new_size)
print(f"Exponent {law['exponent']:.3f}: ten times the parameters leave")
print(f"{10 ** -law['exponent']:.0%} of the loss.")
show.number(law["prediction"], "nats a byte", "modelled", f"N = {new_size:,}")
print(f"95% interval: {law['low']:.3f} to {law['high']:.3f} nats a byte.")

# %% key="law-test"
reached = losses_of(sized(next_width), 5, steps=200)[1]
inside = law["low"] <= reached <= law["high"]
show.number(reached, "nats a byte", "measured", "a fifth size")
print(
    f"{'Inside' if inside else 'Outside'} the interval; off by"
    f" {abs(reached - law['prediction']):.3f} nats"
    f" ({abs(reached / law['prediction'] - 1):.1%})."
)
if not inside:
    print(
        "The law missed. The line was too sure: either these runs scatter"
        f" more than {len(sizes)} residuals showed, or the line bends."
    )

# %% key="law-plot"
ratio = (4 * new_size / sizes[0]) ** (1 / 12)
line = [sizes[0] * ratio**i for i in range(13)]
fits = [fit_scaling_law(sizes, law_losses, t, size) for size in line]
half = len(widths)
seeds_of = list(zip(law_losses[:half], law_losses[half:], strict=True))
show.lines(
    [
        Series(
            line,
            [fit["prediction"] for fit in fits],
            "law, 95%",
            "modelled",
            [(fit["low"], fit["high"]) for fit in fits],
        ),
        Series(
            sizes[:half],
            [statistics.fmean(pair) for pair in seeds_of],
            "two seeds",
            spread=[(min(pair), max(pair)) for pair in seeds_of],
        ),
        Series([new_size], [reached], "fifth size"),
    ],
    x="parameters in products",
    y="held-out loss (nats a byte)",
    log=True,
    title=f"The fifth size: {'inside' if inside else 'outside'} the interval",
)

# %% [markdown] key="law-meaning"
# One hit proves little, one miss too: a 95% interval misses once in twenty, if the line is the truth. And that is the assumption to worry about. All
# runs had the same number of steps and the same learning rate. A larger model wants other values of both, so at some size this line must bend up, and no
# interval from four sizes on it knows that.
#
# Published laws vary both: for each budget of FLOPs they search the best size, and find that parameters and tokens should grow
# together, about 20 tokens for each parameter (Hoffmann and others, 2022).

# %% [markdown] key="explore-intro"
# ## What would you train where?
#
# Play with it: a size, a device, an MFU such as you measured. The tokens are 20 for each parameter. The bars are FLOPs over a peak that is used to that
# share, so they are modelled. On a GPU, set `size` in the cell above ("How long should a step take?") and measure.

# %% key="explore" tags=["figure"]
devices = {"this machine": peak}
for name in ("T4", "RTX 4090", "A100 80GB SXM", "H100 SXM"):
    card = accelerator(name)
    devices[name] = card.peak("bf16" if card.native("bf16") else "fp16")


def run_seconds(size: str, where: str, share: float) -> float:
    """Modelled time to train a size on 20 tokens a parameter."""
    shape = lab.configuration(size)
    flops = training_flops(shape, tokens=20 * count_parameters(shape))
    return flops / (devices[where] * share / 100)


def plan(size, where, share):
    every = {name: run_seconds(name, where, share) for name in lab.CONFIGS}
    picture = show.make.bars(
        list(every),
        list(every.values()),
        unit="s",
        kind="modelled",
        log=True,
        title=f"{size} on {where}: {show.si(every[size], 's')}",
    )
    tokens = 20 * count_parameters(lab.configuration(size))
    said = f"{size}: {show.si(tokens, 'tokens')}, "
    return picture, said + f"{show.si(every[size], 's')} on {where}."


show.explore(
    plan,
    size=Choice(list(lab.CONFIGS)),
    where=Choice(list(devices), label="device"),
    share=Slider(5, 60, 30, step=5, label="MFU", unit="%"),
)

# %% [markdown] key="at-scale"
# ## At scale
#
# **What survives.** FLOPs over peak, then MFU, then the parts: a run on 20,000 GPUs is planned and judged the same way, with messages as one more
# part. The first loss, the same batches through old and new code, an interval stated before the run: all of it costs
# next to nothing there and saves weeks.
#
# **What changes.** The batch. Each GPU needs some rows to stay busy, so the batch grows with the GPUs, whether learning can use it or not.

# %% key="at-scale-table"
rows = []
for n_gpu in (1, 8, 1_000, 20_000):
    tokens = n_gpu * 4 * 4096
    rows.append(
        {
            "GPUs": n_gpu,
            "tokens a step": show.si(tokens, "tokens"),
            "steps for 100 billion tokens": round(100e9 / tokens),
        }
    )
show.table(
    rows,
    caption="4 sequences of 4,096 tokens on each GPU",
    kinds=dict.fromkeys(list(rows[0])[1:], "modelled"),
)

# %% [markdown] key="at-scale-misleads"
# A few hundred steps are too few to learn much, so in the last row the batch is larger than learning can use (chapter 15). And
# nobody repeats such a run with three seeds.

# %% [markdown] key="at-scale-small"
# **What misleads.** A gain at 0.1M parameters and a hundred steps is a hypothesis about 1.5B, no more. Small models forgive a high learning rate that makes large ones
# diverge; tricks that help early vanish later. Try it: a constant rate without warm-up against warm-up and cosine, here and in 400 steps of the 1M model. Is the
# winner the same? Whoever scales tests at several sizes and follows the trend of the **difference**. And an
# interval prolonged far enough says something silly. Here is yours at the size of GPT-2:

# %% key="far-away"
far = fit_scaling_law(sizes, law_losses, t, 124e6)
show.number(far["prediction"], "nats a byte", "modelled", "N = 124 million")
print(f"95% interval: {far['low']:.2f} to {far['high']:.2f} nats a byte,")
print("if the line stayed a line for three more powers of ten.")

# %% [markdown] key="longer-runs"
# ### On your own GPU
#
# `lab.train(model, text, recipe, checkpoint="run.pt")` is the loop of this chapter with checkpoints. Stopped or crashed, it goes on from the last one
# with the same bits. Give it `lab.GPT(lab.configuration("30M"), attention)` and an evening. The standard library is small: a model of
# 10M parameters has read all of it many times after a few thousand steps. Watch the two curves of the figure part.

# %% [markdown] key="remember"
# ## What to remember
#
# - The first loss is the logarithm of the vocabulary. New code and old code must agree on the same batches, step by step.
# - Predict a step from FLOPs and peak, measure it, then take it apart: products below the peak, and time that is not products.
# - A loss belongs to a schedule, a batch and a number of steps. Change one thing, and pair the seeds.
# - A difference without an interval is an anecdote. With three seeds the interval is wide.
# - A scaling law is a line in logarithms. State its interval before the run, and distrust it far from the data.

# %% [markdown] key="sources"
# ## Sources
#
# - A. Vaswani and others, "Attention is all you need", 2017, arXiv 1706.03762.
# - A. Radford and others, "Language models are unsupervised multitask learners" (GPT-2), OpenAI, 2019.
# - D. Kingma, J. Ba, "Adam: a method for stochastic optimization", 2014, arXiv 1412.6980.
# - I. Loshchilov, F. Hutter, "Decoupled weight decay regularization" (AdamW), 2017, arXiv 1711.05101; "SGDR" (the cosine), 2016, arXiv 1608.03983.
# - O. Press, L. Wolf, "Using the output embedding to improve language models" (tied head), 2016, arXiv 1608.05859.

# %% [markdown] key="sources-claims"
# The claims and the laws:
#
# - J. Su and others, "RoFormer", 2021, arXiv 2104.09864. B. Zhang, R. Sennrich, "Root mean square layer normalization", 2019, arXiv 1910.07467.
# - J. Kaplan and others, "Scaling laws for neural language models", 2020, arXiv 2001.08361.
# - J. Hoffmann and others, "Training compute-optimal large language models", 2022, arXiv 2203.15556.
# - A. Chowdhery and others, "PaLM", 2022, arXiv 2204.02311 (MFU).
# - Student, "The probable error of a mean", Biometrika 6(1), 1908.
