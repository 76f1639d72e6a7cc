# ---
# jupyter:
#   course:
#     title: "9. How few bits, and where?"
#     minutes: 100
#     hardware: "no GPU; one with fp8 multiplies in it for real"
#     needs: "chapters 2 and 3; chapter 5 helps"
#     leaves_with: "every number format down to 4 bits, decoded by you, and a recipe for the card you have"
# ---

# %% [markdown] key="title"
# # 9. How few bits, and where?
#
# Half the bits are half the bytes and, on matrix units, twice the rate. So everybody wants fewer. But a format with 8 bits has 256
# codes, and somewhere in your training a number needs one that is not there.
#
# You will take the formats apart bit by bit, find the three places where too few bits break training, mend each, and train one
# GPT in a dozen recipes to see which of them hold.

# %% key="setup" tags=["setup"]
import itertools
import math
from collections import namedtuple

import numpy as np
import torch
from torch.nn.functional import linear
from torch.overrides import TorchFunctionMode

from utils import show
from utils.arithmetic import ModelShape, count_parameters, state_bytes
from utils.arithmetic import formats
from utils.arithmetic.formats import BLOCK_FORMATS, FORMATS
from utils.course import against_prediction, check, hint, predict, quiz
from utils.course import reveal, start
from utils.hardware import accelerator, median_time, native_on_nvidia
from utils.lab import GPT, evaluate, get_batch, learning_rate
from utils.lab import make_optimizer, next_token_loss, stdlib_text
from utils.lab.rounding import cast, quantize_int8, quantize_per_block
from utils.lab.rounding import round_to_format
from utils.show import Choice, Series, Slider

machine = start("09")

# %% key="recall"
quiz("09.recall")

# %% [markdown] key="counting"
# ## Counting to three thousand
#
# Take a sum in fp16, start at 0, and add 1 three thousand times. Every single addition is rounded correctly, to the nearest
# number that fp16 has. Where do you end?

# %% key="predict-stall"
predict("09.stall", "Three thousand times 1, added in fp16, is?", unit="")

# %% key="measure-stall"
total = np.float16(0)
for _ in range(3000):
    total = np.float16(total + np.float16(1))
against_prediction("09.stall", float(total))

# %% [markdown] key="why-stall"
# The sum has stalled. In fp16 the next number after 2048 is 2050. So 2048 + 1 lies halfway between two numbers, the tie goes to 2048,
# and the sum never moves again.
#
# No error, no warning. This chapter is about such silences. To hear them you must know which numbers a format has.

# %% [markdown] key="bits-intro"
# ## Bit by bit
#
# A floating-point number is a sign, an exponent field $e$ of $E$ bits and a mantissa field $m$ of $M$ bits, in that order. The
# format fixes a **bias**, which is subtracted from $e$ so that small numbers have exponents too:
#
# $$(-1)^{\text{sign}} \cdot 2^{\,e - \text{bias}} \cdot \left(1 + \frac{m}{2^M}\right) \qquad e > 0$$
#
# The 1 is not stored. At $e = 0$ it is absent, and the exponent stays that of $e = 1$. These are the **subnormal** numbers, evenly spaced
# down to zero:
#
# $$(-1)^{\text{sign}} \cdot 2^{\,1 - \text{bias}} \cdot \frac{m}{2^M} \qquad e = 0$$

# %% [markdown] key="last-codes"
# What the last codes mean is a choice. In an **IEEE** format (FP32, FP16, BF16, E5M2) the top exponent, all its bits set, holds no numbers: infinity
# where $m = 0$, else NaN, "not a number". The fewer the codes, the dearer that is. E4M3, with 4 exponent and 3 mantissa bits, gives up
# infinity and keeps one NaN. E2M1, which has 4 bits, keeps neither.
#
# An exponent bit doubles how many powers of two there are. A mantissa bit halves the distance to your neighbour. That is the whole
# trade.

# %% [markdown] key="decode-intro"
# ## Exercise: decode
#
# ●●○○ · 10 minutes · 2 points
#
# `code` is a whole number whose bits are sign, exponent field and mantissa field, from the top. Return the number it stands for, as a float.
#
# With `ieee` True the top exponent means infinity (with its sign) or NaN: return `math.inf`, `-math.inf` or `math.nan`. With `ieee` False it is an
# exponent like the others. E4M3's one NaN is not asked for.
#
# Example: `0b0_0110_101` in E4M3, whose bias is 7, is 0.8125.

# %% key="decode_float" tags=["exercise"]
def decode_float(
    code: int, exp_bits: int, man_bits: int, bias: int, ieee: bool
) -> float:
    """The number that the bits of code stand for.

    >>> decode_float(0b0_0110_101, 4, 3, 7, False)
    0.8125
    """
    ### BEGIN SOLUTION
    mantissa = code % 2**man_bits
    exponent = (code >> man_bits) % 2**exp_bits
    sign = -1.0 if code >> (exp_bits + man_bits) else 1.0
    if ieee and exponent == 2**exp_bits - 1:
        return math.nan if mantissa else sign * math.inf
    if exponent == 0:
        return sign * 2.0 ** (1 - bias) * mantissa / 2**man_bits
    return sign * 2.0 ** (exponent - bias) * (1 + mantissa / 2**man_bits)
    ### END SOLUTION


# %% key="decode_float-check" tags=["check"]
decode_float = check("09.decode_float", decode_float)

# %% [markdown] key="formats-intro"
# ## The formats
#
# Now read all of them through your decoder: the largest finite number, the smallest above zero, and the step from 1 to its neighbour. The
# last column counts the powers of two between smallest and largest: the room that values of different sizes must share.

# %% key="formats-table"
def ends(form) -> dict:
    """What a format can hold, decoded from its codes."""
    if form.specials == "scale":  # E8M0 has no sign and no mantissa
        large, small = form.max_finite, form.min_subnormal
    else:
        fields = form.exp_bits, form.man_bits, form.bias
        ieee = form.specials == "ieee"
        large = decode_float(form.max_code, *fields, ieee)
        small = decode_float(1, *fields, ieee)
    return {
        "format": form.name,
        "bits": form.bits,
        "exponent": form.exp_bits,
        "mantissa": form.man_bits,
        "largest": f"{large:.5g}",
        "smallest": f"{small:.3g}",
        "step at 1": f"{form.eps:.3g}",
        "powers of two": math.floor(math.log2(large / small)) + 1,
    }


show.table(
    [ends(form) for form in FORMATS.values()],
    caption="Every format this course meets, from its codes",
    kinds={"largest": "modelled", "smallest": "modelled"},
)

# %% [markdown] key="formats-meaning"
# BF16 is FP32 cut in half: all its exponents, few of its digits. FP16 has eight times finer steps and far fewer powers of two: compare the
# last column. TF32 is what tensor cores take from FP32 inputs: 19 bits, stored in 32. E4M3 exists in three variants with different ends; AMD's
# MI300X has the FNUZ one. E8M0 is no number format to compute in. It holds scales.
#
# Play with the bits. Choose a format and a code, flip one bit, and see where it lands and who lives next door.

# %% key="flip-figure" tags=["figure"]
NARROW = ["E4M3", "E5M2", "FP16", "BF16", "E2M1", "E2M3", "E3M2"]
FLIPS = ["none", "sign", "top exponent", "last exponent", "top mantissa"]


def digits(code: int, form) -> str:
    """The bits, with a space after the sign and after the exponent."""
    text = f"{code:0{form.bits}b}"
    cut = 1 + form.exp_bits
    return f"{text[0]} {text[1:cut]} {text[cut:]}"


def draw_bits(name: str, top_bits: int, flip: str):
    """A code by its upper 8 bits, one bit flipped, and its neighbours."""
    form = FORMATS[name]
    shift = form.bits - 8
    code = top_bits << shift if shift > 0 else top_bits % 2**form.bits
    place = {
        "sign": form.bits - 1,
        "top exponent": form.bits - 2,
        "last exponent": form.man_bits,
        "top mantissa": form.man_bits - 1,
    }
    before = formats.decode(code, form)
    if flip != "none":
        code ^= 1 << place[flip]
    value = formats.decode(code, form)
    below, above = formats.neighbours(code, form)
    rows = [
        {
            "": label,
            "bits": digits(formats.encode(x, form), form),
            "number": f"{x:.6g}",
            "away": f"{abs(x - value):.3g}" if label != "this" else "",
        }
        for label, x in (("below", below), ("this", value), ("above", above))
        if x is not None and not (math.isnan(x) and label == "this")
    ] or [{"": "this", "bits": digits(code, form), "number": f"{value}"}]
    moved = "" if flip == "none" else f" Before the flip: {before:.6g}."
    said = f"{digits(code, form)} in {name} is {value:.6g}.{moved}"
    return show.make.table(rows, caption=f"{name} and its neighbours"), said


show.explore(
    draw_bits,
    name=Choice(NARROW, label="format"),
    top_bits=Slider(0, 255, start=56, label="upper 8 bits"),
    flip=Choice(FLIPS, label="flip"),
)

# %% [markdown] key="rounding-intro"
# ## Between two codes
#
# A result that falls between two codes must become one of them. The rule everywhere is **round to nearest, ties to even**: the nearer
# neighbour, and exactly halfway the one whose last bit is 0. Half of the ties go up and half down, so errors do not pile up on one side.
#
# The **spacing** at a value with $2^e \le |x| < 2^{e+1}$ is $2^{e-M}$. It doubles with every power of two, and below the smallest normal number it
# stays what it is there.
#
# Past the largest number there are two policies. **Saturate** returns the largest number. The other returns infinity, or NaN where there
# is none, so that somebody notices.

# %% [markdown] key="round-intro"
# ## Exercise: round
#
# ●●●○ · 15 minutes · 3 points
#
# Round the finite `value` to the nearest number of a format, ties to even. The format has `man_bits` mantissa bits. Its smallest normal number is
# `2**min_exponent`; below it the spacing does not shrink any more. Its largest number is `max_finite`.
#
# If the **rounded** value is above `max_finite` in size, return `max_finite` with its sign when `saturate` is True, else infinity with its sign.
#
# Example: 0.3952 in E4M3 (3 mantissa bits, `min_exponent` -6) is 0.40625. Python's own `round` takes ties to even.

# %% key="round_to" tags=["exercise"]
def round_to(
    value: float,
    man_bits: int,
    min_exponent: int,
    max_finite: float,
    saturate: bool,
) -> float:
    """The format's number nearest to value, ties to even.

    >>> round_to(0.3952, 3, -6, 448.0, True)
    0.40625
    """
    ### BEGIN SOLUTION
    if value == 0:
        return value
    exponent = max(math.frexp(value)[1] - 1, min_exponent)
    spacing = 2.0 ** (exponent - man_bits)
    rounded = round(value / spacing) * spacing
    if abs(rounded) > max_finite:
        end = max_finite if saturate else math.inf
        return math.copysign(end, value)
    return rounded
    ### END SOLUTION


# %% key="round_to-check" tags=["check"]
round_to = check("09.round_to", round_to)

# %% [markdown] key="error-intro"
# Use it to see what a format is good for: the largest relative error of rounding, at every size of number. Flat means floating point
# works. Where the line climbs to 1, everything becomes 0.

# %% key="error-plot"
def worst_error(form, size: float) -> float:
    """Largest |rounded - x| / x of 40 values from size to 2 * size."""
    fields = form.man_bits, form.min_exponent, form.max_finite
    values = [size * (1 + i / 40) for i in range(1, 40)]
    return max(abs(round_to(v, *fields, True) - v) / v for v in values)


powers = range(-34, 21)
sizes = [2.0**p for p in powers]
curves = []
for name in ("E5M2", "E4M3", "BF16", "FP16"):
    here = [worst_error(FORMATS[name], size) for size in sizes]
    curves.append(Series(sizes, here, name, "modelled"))
good = [s for s, e in zip(sizes, here, strict=True) if e < 0.01]
show.lines(
    curves,
    x="size of the number",
    y="largest relative error",
    log=True,
    title=f"FP16 is within 1% from {min(good):.1e} to {max(good):.0f}",
)

# %% [markdown] key="error-meaning"
# FP16 is precise inside its window and blind outside. BF16 is coarse and sees everything. The two E formats of 8 bits differ in the same way. So
# the question of this chapter is never "how many bits" alone. It is: which window do the numbers of **this** tensor fall into?

# %% [markdown] key="machine-rounds"
# ## Does your machine round like you?
#
# The course has your rounding as tensor code, so that you can try formats that your machine lacks. First test it where your machine can
# answer: a million random fp32 bit patterns, subnormals, infinities and NaN among them, against PyTorch's own casts. What your version of PyTorch
# does past the end is found out, not assumed: releases and devices differ.

# %% key="compare-casts"
bits = torch.randint(-(2**31), 2**31, (1_000_000,)).to(torch.int32)
patterns = bits.view(torch.float32)
rows = []
for name in ("FP16", "BF16", "E4M3", "E5M2"):
    past = cast(torch.tensor([1e30]), name).item()
    saturates = past == FORMATS[name].max_finite
    policy = "saturate" if saturates else "special"
    ours = round_to_format(patterns, name, overflow=policy)
    theirs = cast(patterns, name)
    same = (ours == theirs) | (ours.isnan() & theirs.isnan())
    rows.append(
        {
            "format": name,
            "1e30 becomes": f"{past:g}",
            "equal of 1,000,000": int(same.sum()),
        }
    )
show.table(
    rows,
    caption=f"Emulated against PyTorch {torch.__version__} on this CPU",
    kinds={"1e30 becomes": "measured", "equal of 1,000,000": "measured"},
)

# %% [markdown] key="stochastic-intro"
# ## Rounding by chance
#
# There is another way to round: up with probability $(x - \text{below}) / (\text{above} - \text{below})$, else down. One result is worse than
# the nearest. The **mean** is right, and that can matter more. Take the value 0.3 in E2M1, whose numbers near it are 0 and 0.5.

# %% key="stochastic"
x = torch.full((10_000,), 0.3)
chance = torch.Generator().manual_seed(9)
by_chance = round_to_format(x, "E2M1", rounding="stochastic", generator=chance)
nearest = round_to_format(x, "E2M1")
show.table(
    [
        {"rounding": "nearest", "mean of 10,000": nearest.mean().item()},
        {"rounding": "by chance", "mean of 10,000": by_chance.mean().item()},
    ],
    caption="0.3 in a format that has 0 and 0.5",
    kinds={"mean of 10,000": "measured"},
)

# %% [markdown] key="sums-intro"
# ## First place: sums
#
# A matrix product is a sum of thousands of terms. You saw what a narrow sum does. There are two cures. Either the accumulator is wide: tensor
# cores take fp16 or bf16 inputs and add in fp32. Or the sum is cut into short pieces: each is added up narrowly, and the pieces are added
# in a wide total.
#
# The second is no museum piece. The makers of DeepSeek-V3 found that fp8 products on H800 cards keep about 14 bits while adding, and moved the
# partial sums to fp32 after every 128 terms (arXiv 2412.19437, section 3.3.2).

# %% [markdown] key="accumulate-intro"
# ## Exercise: accumulate
#
# ●●○○ · 10 minutes · 2 points
#
# `values` is a float16 array. Add it up from left to right in a float16 accumulator, rounded after every addition. After every `chunk` values, add
# the accumulator to a float32 total and start it again at 0. The last chunk may be shorter.
#
# Return the total as a float. In NumPy, `np.float16(a + b)` rounds a sum to float16.
#
# Example: 3,000 ones give 2048 in one chunk, and 3000 in chunks of 128.

# %% key="accumulate" tags=["exercise"]
def accumulate(values: np.ndarray, chunk: int) -> float:
    """Sum of values: float16 inside a chunk, float32 between chunks.

    >>> accumulate(np.ones(3000, np.float16), 3000)
    2048.0
    """
    ### BEGIN SOLUTION
    total = np.float32(0)
    for first in range(0, len(values), chunk):
        running = np.float16(0)
        for value in values[first : first + chunk]:
            running = np.float16(running + value)
        total = np.float32(total + running)
    return float(total)
    ### END SOLUTION


# %% key="accumulate-check" tags=["check"]
accumulate = check("09.accumulate", accumulate)

# %% key="accumulate-plot"
terms = np.random.default_rng(0).uniform(0, 1, 8192).astype(np.float16)
exact = float(terms.astype(np.float64).sum())
chunks = [2**i for i in range(3, 14)]
off = [abs(accumulate(terms, c) - exact) / exact for c in chunks]
show.line(
    chunks,
    off,
    x="values in a chunk",
    y="relative error of the sum",
    kind="measured",
    log=True,
    title=f"One chunk of {len(terms)} is off by {off[-1]:.0%}",
)
narrow_sum = torch.from_numpy(terms).sum().item()
print(f"PyTorch, float16 in and out: off by {abs(narrow_sum / exact - 1):.1e}")

# %% [markdown] key="accumulate-meaning"
# PyTorch's own `sum` of a float16 tensor is right to the last bit of float16, because it adds in fp32 and rounds once. Matrix units do the same. So this
# place is mended in hardware, mostly. It comes back wherever **you** keep a running sum: a loss over many batches, gradients
# accumulated in bf16, Adam's averages.

# %% [markdown] key="autocast-intro"
# ## What autocast does
#
# `torch.autocast` is a mode. While it is on, PyTorch looks at each operation's name before it runs. On one list are matrix products: their inputs are
# cast down. On another are operations that need range or long sums: their inputs are cast up. All others take what they get. Weights stay in
# fp32; products get a cast copy.
#
# Ask your machine. Inputs here are fp32, `h` is a product.

# %% key="autocast-table"
kind = machine.device if machine.device == "cuda" else "cpu"
a, b = torch.randn(2, 64, 64, device=kind)
target = torch.zeros(64, dtype=torch.long, device=kind)
with torch.autocast(kind, torch.bfloat16):
    h = a @ b
    results = {
        "a @ b": h,
        "h + a": h + a,
        "gelu(h)": torch.nn.functional.gelu(h),
        "softmax(h)": h.softmax(-1),
        "layer_norm(h)": torch.nn.functional.layer_norm(h, (64,)),
        "cross_entropy(h)": torch.nn.functional.cross_entropy(h, target),
    }
show.table(
    [
        {"operation": name, "result": str(result.dtype).split(".")[-1]}
        for name, result in results.items()
    ],
    caption=f"Under autocast on {kind}",
    kinds={"result": "measured"},
)

# %% [markdown] key="autocast-lists"
# The lists differ between devices: on CUDA softmax and layer norm come out as fp32. And `h + a` is fp32 because PyTorch promotes to the wider
# input. This keeps the residual stream wide.
#
# You can write such a mode in ten lines. PyTorch has a hook for every function call, `TorchFunctionMode`. Catch `linear`, and round
# whatever you like.

# %% [markdown] key="product-intro"
# ## An autocast of your own
#
# A linear layer is three matrix products: the result, the gradient of its input, the gradient of its weights. A recipe says how to round
# each operand: inputs `x`, weights `w`, the incoming gradient `g`, and what comes `out`.
#
# The products themselves run in fp32, on operands that have been through the narrow format. That is what a tensor core does: a product of two
# narrow numbers is exact in fp32, and it adds in fp32. So this shows the **numbers** of fp16, fp8 and fp4 on any machine. It does not
# show their speed.

# %% key="narrow-mode"
Rounding = namedtuple("Rounding", "x w g out")


class Product(torch.autograd.Function):
    """linear(x, w) and its two gradients, all operands rounded."""

    @staticmethod
    def forward(ctx, x, w, how):
        x, w = how.x(x), how.w(w)
        ctx.how = how
        ctx.save_for_backward(x, w)
        return how.out(linear(x, w))

    @staticmethod
    def backward(ctx, g):
        x, w = ctx.saved_tensors
        g = ctx.how.g(g)
        to_x, to_w = g @ w, g.flatten(0, -2).T @ x.flatten(0, -2)
        return ctx.how.out(to_x), ctx.how.out(to_w), None


class Narrow(TorchFunctionMode):
    """While it is on, every linear layer is a Product."""

    def __init__(self, how: Rounding) -> None:
        super().__init__()
        self.how = how

    def __torch_function__(self, function, types, args=(), kwargs=None):
        if function is linear and self.how is not None:
            return Product.apply(*args[:2], self.how)
        return function(*args, **(kwargs or {}))


# %% [markdown] key="gradients-intro"
# ## Second place: gradients
#
# Put the mode over the course's GPT and let its `g` only listen: no rounding, but every gradient that reaches a linear layer is kept.
#
# The loss is a mean over all tokens of a batch, so each token's gradient is divided by their number. Here the batch has 512 tokens. Large models use
# half a million and more (GPT-3: 0.5 to 3.2 million, published), so their gradients are a thousand times smaller. The next cell takes yours and divides further.

# %% key="predict-vanish"
predict(
    "09.vanish",
    "Half a million tokens: which share becomes 0 in fp16?",
    unit="%",
)

# %% key="measure-vanish"
SHAPE = ModelShape(2, 64, 4, 256, seq_len=64, bias=False)
BATCH = 8
text = stdlib_text()
device = torch.device(machine.device)


def keep(t):
    """Leave a tensor as it is."""
    return t


heard = []


def listen(t):
    """Keep a copy of a gradient that passes."""
    heard.append(t.detach().flatten().clone())
    return t


model = GPT(SHAPE, seed=0).to(device)
pair = get_batch(text.train, BATCH, 64, torch.Generator().manual_seed(0))
with Narrow(Rounding(keep, keep, listen, keep)):
    logits = model(pair[0].to(device))
    next_token_loss(logits, pair[1].to(device)).backward()
seen = torch.cat(heard)
seen = seen[seen != 0]

tokens = [512 * 2**i for i in range(0, 13, 2)]
curves = []
for name in ("E5M2", "FP16", "BF16"):
    lost = [
        100 * (cast(seen * (512 / n), name) == 0).float().mean().item()
        for n in tokens
    ]
    curves.append(Series(tokens, lost, name, "modelled"))
half_a_million = curves[1].y_values[tokens.index(2**19)]
against_prediction("09.vanish", half_a_million, "%", kind="modelled")

# %% key="vanish-plot"
show.lines(
    curves,
    x="tokens in the batch",
    y="gradients that become 0 (%)",
    log="x",
    title=f"Half a million tokens: fp16 loses {half_a_million:.0f}%",
)

# %% [markdown] key="scaling-idea"
# BF16 loses nothing: it has FP32's exponents. FP16 loses most, and E5M2, with the same exponents and fewer subnormals, more.
#
# The large gradients use little of fp16's window, though: its top is empty. So shift everything. Multiply the **loss** by a scale $S$, and by the chain
# rule every gradient is multiplied by $S$. Divide the weights' gradients by $S$, in fp32, before the optimizer sees them. That is **loss scaling**
# (arXiv 1710.03740, section 3.2). Published example: in a detection network's fp16 gradients a scale of 8 was enough (NVIDIA's mixed-precision guide).

# %% [markdown] key="scaler-dynamic"
# Which $S$? Too small loses gradients, too large overflows, and the right one changes while you train. **Dynamic** scaling lets it find itself:
#
# - If any gradient is infinite or NaN, drop this step, halve $S$.
# - After `interval` good steps in a row, double $S$.
#
# An overflow now and then is not an accident. It is how the scaler knows that it is at the top. One lost step in two thousand is cheap.

# %% [markdown] key="scaler-intro"
# ## Exercise: the loss scaler
#
# ●●●○ · 15 minutes · 4 points
#
# `gradients` is a list of tensors, in fp16, of a loss that was multiplied by `scale`. `good_steps` counts the good steps since the scale last changed.
# Return a dictionary:
#
# - `"gradients"`: a list of fp32 tensors without the scale, or `None` if any element of any gradient is infinite or NaN.
# - `"scale"`: for the next step. Half after an overflow. Double when this step makes `interval` good ones; else as it is.
# - `"good_steps"`: one more, or 0 after an overflow and after a doubling.
#
# Do not change the tensors you were given.

# %% key="loss_scaler" tags=["exercise"]
def loss_scaler(
    gradients: list, scale: float, good_steps: int, interval: int
) -> dict:
    """Unscale gradients in fp32, or drop the step, and move the scale.

    >>> half = torch.tensor([8.0], dtype=torch.float16)
    >>> loss_scaler([half], 16.0, 0, 100)["gradients"]
    [tensor([0.5000])]
    >>> loss_scaler([half / 0], 16.0, 7, 100)
    {'gradients': None, 'scale': 8.0, 'good_steps': 0}
    """
    ### BEGIN SOLUTION
    if not all(g.isfinite().all() for g in gradients):
        return {"gradients": None, "scale": scale / 2, "good_steps": 0}
    unscaled = [g.float() / scale for g in gradients]
    good_steps += 1
    if good_steps == interval:
        scale, good_steps = scale * 2, 0
    return {"gradients": unscaled, "scale": scale, "good_steps": good_steps}
    ### END SOLUTION


# %% key="loss_scaler-check" tags=["check"]
loss_scaler = check("09.loss_scaler", loss_scaler)

# %% [markdown] key="scaler-later"
# It will drive a training run below, from a scale that is far too high, and you will watch it find its place.

# %% [markdown] key="updates-intro"
# ## Third place: weights
#
# A step changes a weight by the learning rate times something of size 1 (with Adam). Take a weight of 1 and a rate of 0.001. BF16's numbers next to 1 are 0.9961
# and 1.0078. The update is smaller than half of either gap, so the new weight rounds back to the old one. And the next step meets the same weight.
# A thousand steps in one direction move it nowhere.
#
# The cure is a second copy: **master weights** in fp32. Updates collect there. The copy that the products use is rounded from it anew at every
# step.

# %% [markdown] key="master-intro"
# ## Exercise: a step with master weights
#
# ●●○○ · 8 minutes · 2 points
#
# `master` is an fp32 tensor, `gradient` a bf16 tensor of the same shape. Take one step of plain gradient descent with rate `lr`, all of it in fp32. Return a
# pair: the new master in fp32, and its bf16 copy. Do not change the tensors you were given.

# %% key="master_weights_step" tags=["exercise"]
def master_weights_step(
    master: torch.Tensor, gradient: torch.Tensor, lr: float
) -> tuple[torch.Tensor, torch.Tensor]:
    """New fp32 master and the bf16 weights made from it.

    >>> one = torch.ones(1)
    >>> master_weights_step(one, one.bfloat16(), 0.001)
    (tensor([0.9990]), tensor([1.], dtype=torch.bfloat16))
    """
    ### BEGIN SOLUTION
    new = master - lr * gradient.float()
    return new, new.bfloat16()
    ### END SOLUTION


# %% key="master_weights_step-check" tags=["check"]
master_weights_step = check("09.master_weights_step", master_weights_step)

# %% key="master-plot"
steps = list(range(0, 41))
down = torch.ones(1, dtype=torch.bfloat16)
master, alone, lucky = torch.ones(1), torch.ones(1), torch.ones(1)
with_master, without, by_chance = [1.0], [1.0], [1.0]
chance = torch.Generator().manual_seed(1)
for _ in steps[1:]:
    master, weight = master_weights_step(master, down, 0.001)
    with_master.append(weight.item())
    alone = cast(alone - 0.001, "BF16")
    without.append(alone.item())
    lucky = round_to_format(
        lucky - 0.001, "BF16", rounding="stochastic", generator=chance
    )
    by_chance.append(lucky.item())
show.lines(
    [
        Series(steps, with_master, "bf16 copy of an fp32 master", "measured"),
        Series(steps, without, "bf16 only", "measured"),
        Series(steps, by_chance, "bf16 only, rounded by chance", "measured"),
    ],
    x="steps",
    y="the weight that is used",
    title=f"Without a master the weight ends at {without[-1]:g}",
)

# %% [markdown] key="master-meaning"
# The master's copy goes down in stairs: each step of the stairs is one number of bf16, and it waits there until the master has moved far enough. Rounding
# by chance goes down without any second copy, noisily, at the right rate on average. A master costs four bytes a parameter and has no noise.
#
# Master weights cost memory: chapter 2's recipes with and without them.

# %% key="master-bytes"
for recipe in ("bf16 + fp32 Adam", "bf16 + fp32 master"):
    show.number(
        state_bytes(7e9, recipe), "bytes", "modelled", f"{recipe}, 7 billion"
    )

# %% [markdown] key="eight-bits"
# ## Eight bits: a scale for everyone
#
# E4M3 spans 18 powers of two. Activations, weights and gradients do not share one such window, so one scale for the loss is not enough: each tensor
# gets its own. Find the largest magnitude, **amax**; choose a scale that brings it under the format's largest number; multiply, cast,
# compute, divide by the scale afterwards.
#
# Which tensor takes which format? Forward values need digits: E4M3. Gradients need range: E5M2. Recipes with a scale per block use E4M3 for
# all, because a block's values are of similar size.

# %% [markdown] key="amax-intro"
# ## Exercise: the scale of a tensor
#
# ●●○○ · 8 minutes · 2 points
#
# Return the largest power of two that `x` can be multiplied by so that no element's magnitude exceeds `max_finite`, as a float. It is a power of two, because
# multiplying by one changes only exponents and rounds nothing. If the largest magnitude is 0, infinite or NaN, return 1.0.
#
# Example: with a largest magnitude of 3 and E4M3's 448, the scale is 128.

# %% key="amax_scale" tags=["exercise"]
def amax_scale(x: torch.Tensor, max_finite: float) -> float:
    """Largest power of two s such that |x| * s fits under max_finite.

    >>> amax_scale(torch.tensor([1.0, -3.0]), 448.0)
    128.0
    """
    ### BEGIN SOLUTION
    amax = x.abs().max().item()
    if amax == 0 or not math.isfinite(amax):
        return 1.0
    return 2.0 ** math.floor(math.log2(max_finite / amax))
    ### END SOLUTION


# %% key="amax_scale-check" tags=["check"]
amax_scale = check("09.amax_scale", amax_scale)

# %% [markdown] key="real-fp8"
# ## A real fp8 product
#
# PyTorch multiplies fp8 tensors with `torch._scaled_mm`: fp8 in, fp32 sums, the two scales undone, bf16 out. On a GPU of compute capability 8.9 or more it runs
# on fp8 tensor cores, and the next cell times it against bf16. On a CPU it gives the arithmetic without the speed. The underscore is a warning: the
# function may change between releases.

# %% key="scaled-mm"
def fp8_product(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    """x @ w.T through fp8, one scale for each tensor. bf16."""
    scales = [amax_scale(t, 448.0) for t in (x, w)]
    narrow = [
        (t * s).to(torch.float8_e4m3fn)
        for t, s in zip((x, w), scales, strict=True)
    ]
    back = [torch.tensor(1 / s, device=x.device) for s in scales]
    return torch._scaled_mm(
        narrow[0],
        narrow[1].T,
        scale_a=back[0],
        scale_b=back[1],
        out_dtype=torch.bfloat16,
    )


x = torch.randn(256, 512, device=device)
w = torch.randn(128, 512, device=device) * 0.02
wide = x @ w.T


def error(y: torch.Tensor, reference: torch.Tensor = None) -> float:
    """Relative error, in the norm, against the fp32 product."""
    reference = wide if reference is None else reference
    return ((y.float() - reference).norm() / reference.norm()).item()


try:
    real = fp8_product(x, w)
except (RuntimeError, NotImplementedError, AttributeError, TypeError):
    real = None
    print("This PyTorch has no fp8 product for this device.")
if real is not None:
    show.number(100 * error(real), "% error of the fp8 product", "measured")
    show.number(
        100 * error(x.bfloat16() @ w.bfloat16().T),
        "% error of the bf16 product",
        "measured",
    )

# %% key="time-fp8"
fast = device.type == "cuda" and native_on_nvidia(
    "fp8", torch.cuda.get_device_capability()
)
if fast and real is not None:
    n = 8192
    left, right = torch.randn(2, n, n, device=device).bfloat16()
    left8, right8 = left.to(torch.float8_e4m3fn), right.to(torch.float8_e4m3fn)
    one = torch.ones((), device=device)
    in_bf16 = median_time(lambda: left @ right.T)
    in_fp8 = median_time(
        lambda: torch._scaled_mm(
            left8, right8.T, one, one, out_dtype=torch.bfloat16
        )
    )
    show.number(in_bf16 / in_fp8, "times the rate of bf16", "measured")
else:
    h100 = accelerator("H100 SXM")
    ratio = h100.peak("fp8") / h100.peak("bf16")
    print("No fp8 units here. By its data sheet, an H100:")
    show.number(ratio, "times the peak of bf16", "published", h100.name)

# %% [markdown] key="block-intro"
# ## One outlier
#
# A scale is set by the largest value and paid by all others. If one value is a thousand times larger than the rest, the rest moves ten powers of two
# towards zero. The cure is to share a scale among fewer: a **block** of 32, or 16, or 128 values. Every block pays with the bits of its scale.

# %% key="block-table"
show.table(
    [
        {
            "format": form.name,
            "element": " or ".join(form.element),
            "block": form.block or "tensor",
            "scale": form.scale + (" and FP32" if form.per_tensor else ""),
            "bits a value": round(form.bits_per_value, 3),
        }
        for form in BLOCK_FORMATS.values()
    ],
    caption="Element and scale together",
    kinds={"bits a value": "modelled"},
)

# %% [markdown] key="quantize-intro"
# ## Exercise: a scale for each block
#
# ●●●○ · 15 minutes · 3 points
#
# `x` is fp32 of shape `(rows, n)`. Every `block` neighbours in a row share a scale; `block` divides `n`. For each block: find the scale with `amax_scale` for E4M3, whose
# largest number is 448; multiply; cast to `torch.float8_e4m3fn`; come back to fp32; divide by the scale.
#
# Return a pair: the values, fp32 of shape `(rows, n)`, and the scales that you multiplied by, of shape `(rows, n // block)`.

# %% key="quantize_block" tags=["exercise"]
def quantize_block(
    x: torch.Tensor, block: int
) -> tuple[torch.Tensor, torch.Tensor]:
    """x through E4M3 and back, one power of two a block; and the scales.

    >>> values, scales = quantize_block(torch.tensor([[1.1, 300.0]]), 1)
    >>> values.tolist(), scales.tolist()
    ([[1.125, 288.0]], [[256.0, 1.0]])
    """
    ### BEGIN SOLUTION
    blocks = x.unflatten(1, (-1, block))
    scales = torch.tensor(
        [[amax_scale(b, 448.0) for b in row] for row in blocks],
        device=x.device,
    )
    s = scales.unsqueeze(2)
    values = (blocks * s).to(torch.float8_e4m3fn).float() / s
    return values.flatten(1), scales
    ### END SOLUTION


# %% key="quantize_block-check" tags=["check"]
quantize_block = check("09.quantize_block", quantize_block)

# %% [markdown] key="mx-note"
# > **Note.** Standards differ in the last detail. The OCP microscaling specification suggests a scale that lets the largest value saturate sometimes; NVIDIA's
# > NVFP4 has finer scales in E4M3. And real block formats cut blocks along the dimension that is summed over, so a tensor that takes part in two
# > products is quantised twice. The emulation below cuts along the last dimension only.

# %% [markdown] key="int8-intro"
# ## Whole numbers
#
# INT8 has no exponent at all: 255 evenly spaced steps from -127 to 127, times a scale. Inside a sum over $k$ only a factor that does not depend on $k$ can be pulled out:
#
# $$y_{ij} = \sum_k x_{ik} w_{jk} \approx s_i \, t_j \sum_k q_{ik} \, r_{jk}$$
#
# Here $q$ and $r$ are the whole numbers, $s_i$ is the scale of row $i$ of $x$, one token, and $t_j$ that of row $j$ of $w$, one output. The sum itself is exact in int32.

# %% [markdown] key="int8-exercise"
# ## Exercise: a linear layer in int8
#
# ●●●○ · 12 minutes · 3 points
#
# `x` is `(m, k)`, `w` is `(n, k)`, both fp32. Give each row of each a scale: its largest magnitude divided by 127, or 1 for a row of zeros. Divide by it and round to the
# nearest whole number. Multiply `x` by the transpose of `w` in whole numbers, adding in int32. Scale back.
#
# Return `(m, n)`, fp32.

# %% key="int8_linear" tags=["exercise"]
def int8_linear(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    """x @ w.T through int8, a scale for each row of both.

    >>> x = torch.tensor([[1.0, 127.0]])
    >>> int8_linear(x, 2 * x)
    tensor([[32260.]])
    """
    ### BEGIN SOLUTION
    def whole(t):
        amax = t.abs().amax(1, keepdim=True)
        scale = torch.where(amax > 0, amax / 127, 1.0)
        return (t / scale).round().to(torch.int8), scale

    x8, x_scale = whole(x)
    w8, w_scale = whole(w)
    product = x8.to(torch.int32) @ w8.to(torch.int32).T
    return product.float() * x_scale * w_scale.T
    ### END SOLUTION


# %% key="int8_linear-check" tags=["check"]
int8_linear = check("09.int8_linear", int8_linear)

# %% [markdown] key="outlier-experiment"
# ## Make one column loud
#
# Now the test. Multiply one column of `x` by a factor and divide the same column of `w` by it. The exact product does not change at all. Published: in language models of
# 6.7 billion parameters and more such columns appear by themselves, up to 20 times as large as the others (arXiv 2208.07339).
#
# How much error does each way to 8 bits make, as the column gets louder?

# %% key="outlier-plot"
def tensor_fp8(t: torch.Tensor) -> torch.Tensor:
    """Through E4M3 and back with one scale."""
    s = amax_scale(t, 448.0)
    return cast(t * s, "E4M3") / s


def tensor_int8(t: torch.Tensor) -> torch.Tensor:
    """Through int8 and back with one scale."""
    q, scale = quantize_int8(t)
    return q.float() * scale


small, few = x[:32].cpu(), w[:64].cpu()
calm = small @ few.T
ways = {
    "int8, one scale": lambda x, w: tensor_int8(x) @ tensor_int8(w).T,
    "int8, a scale a row": int8_linear,
    "fp8, one scale": lambda x, w: tensor_fp8(x) @ tensor_fp8(w).T,
    "fp8, blocks of 32": lambda x, w: (
        quantize_block(x, 32)[0] @ quantize_block(w, 32)[0].T
    ),
}
loud = [4.0**i for i in range(9)]
errors = {name: [] for name in ways}
for factor in loud:
    shift = torch.ones(512)
    shift[7] = factor
    for name, way in ways.items():
        errors[name].append(error(way(small * shift, few / shift), calm))
at_256 = {name: e[4] for name, e in errors.items()}
show.lines(
    [Series(loud, e, name, "measured") for name, e in errors.items()],
    x="how much louder one column is (times)",
    y="relative error of the product",
    log=True,
    title=f"At {loud[4]:.0f} times: int8 {at_256['int8, one scale']:.0%} off,"
    f" fp8 {at_256['fp8, one scale']:.0%}",
)

# %% [markdown] key="outlier-meaning"
# Without an outlier int8 is the **better** of the two: 127 even steps suit values of one size. It pays for the loud column at once, because its steps are
# even. fp8 does not care for a long while: moving down by powers of two costs a float nothing, until values fall below the normal numbers. Only there do blocks
# win.
#
# A scale for each row helps int8 only a little, because the loud column is in every row. That is why published int8 methods treat loud columns apart.

# %% [markdown] key="train-intro"
# ## The same GPT, a dozen times
#
# Now train. The model has two layers and is small, so that a dozen runs fit into minutes. Each recipe gets the same three seeds: the same initial weights, the same batches. So
# differences are taken seed by seed.
#
# The batch has 512 tokens. To see what half a million would do, the loss is divided by 1024 before the backward pass, as a loop does that accumulates 1024 micro-batches, and the
# gradients are multiplied by 1024 in fp32. Without rounding that changes nothing. With rounding it decides.

# %% key="train-function"
SEEDS, STEPS = (0, 1, 2), 100
Run = namedtuple("Run", "model losses held_out zeros scales")


def train(how, *, seed, parts=1024, scale=None, store=None) -> Run:
    """Train in one recipe. scale: where a dynamic loss scale starts.

    store: how weights are rounded after each step; None keeps masters.
    """
    model = GPT(SHAPE, seed=seed).to(device)
    optimizer = make_optimizer(model, peak_lr=3e-3)
    weights = list(model.parameters())
    batches = torch.Generator().manual_seed(seed)
    losses, zeros, scales, good = [], [], [], 0
    for step in range(STEPS):
        rate = learning_rate(step, steps=STEPS, peak_lr=3e-3, warmup_steps=20)
        for group in optimizer.param_groups:
            group["lr"] = rate
        batch = get_batch(text.train, BATCH, SHAPE.seq_len, batches)
        tokens, targets = (part.to(device) for part in batch)
        with Narrow(how):
            loss = next_token_loss(model(tokens), targets)
        (loss * (scale or 1) / parts).backward()
        gradients = [weight.grad for weight in weights]
        if scale:
            scales.append(scale)
            result = loss_scaler(gradients, scale, good, 20)
            scale, good = result["scale"], result["good_steps"]
            gradients = result["gradients"]
        if gradients:  # None: the scaler dropped this step
            for weight, gradient in zip(weights, gradients, strict=True):
                weight.grad = gradient * parts
            flat = torch.cat([g.flatten() for g in gradients])
            zeros.append((flat == 0).float().mean().item())
            torch.nn.utils.clip_grad_norm_(weights, 1.0)
            optimizer.step()
        optimizer.zero_grad()
        if store:
            with torch.no_grad():
                for weight in weights:
                    weight.copy_(store(weight.detach()))
        losses.append(loss.item())
    held_out = evaluate(model, text.val, windows=64)
    return Run(model, losses, held_out, sum(zeros[-20:]) / 20, scales)


# %% [markdown] key="recipes-intro"
# The recipes differ in four roundings, a loss scale and what becomes of the weights. FP16, BF16 and the FP8 formats are PyTorch's own casts. E2M1, which PyTorch cannot cast to, is
# emulated. Embedding, norms, softmax and attention's two products stay in fp32.

# %% key="recipes"
def to(name):
    """A plain cast to a format and back."""
    return lambda t: cast(t, name)


def one_scale(name):
    """A cast with the tensor's own scale."""
    end = FORMATS[name].max_finite

    def rounded(t):
        s = amax_scale(t, end)
        return cast(t * s, name) / s

    return rounded


def blocks(name):
    """A scale for each 32 neighbours, all blocks at once."""
    return lambda t: quantize_per_block(t, name, 32)[0]


def fp4_by_luck(t):
    """FP4 in blocks, rounded by chance."""
    return quantize_per_block(
        t, "E2M1", 32, rounding="stochastic", generator=luck
    )[0]


def int8_rows(w):
    """Weights as int8 with a scale for each output."""
    q, scale = quantize_int8(w, -1)
    return q.float() * scale


luck = torch.Generator(device).manual_seed(7)


def by_luck(t):
    """BF16, rounded by chance."""
    return round_to_format(t, "BF16", rounding="stochastic", generator=luck)


fp16, bf16 = to("FP16"), to("BF16")
in_fp16 = Rounding(fp16, fp16, fp16, fp16)
in_bf16 = Rounding(bf16, bf16, bf16, bf16)
e4m3, e5m2 = one_scale("E4M3"), one_scale("E5M2")
RECIPES = {
    "fp32": {"how": None},
    "bf16": {"how": in_bf16},
    "fp16, no scaling": {"how": in_fp16},
    "fp16, 512 tokens": {"how": in_fp16, "parts": 1},
    "fp16, dynamic scaling": {"how": in_fp16, "scale": 2.0**34},
    "fp8, no scales": {
        "how": Rounding(to("E4M3"), to("E4M3"), to("E5M2"), bf16)
    },
    "fp8, a scale a tensor": {"how": Rounding(e4m3, e4m3, e5m2, bf16)},
    "fp8, the same, all E4M3": {"how": Rounding(e4m3, e4m3, e4m3, bf16)},
    "fp8, a scale a block": {"how": Rounding(*[blocks("E4M3")] * 3, bf16)},
    "int8 weights": {"how": Rounding(bf16, int8_rows, bf16, bf16)},
    "fp4, a scale a block": {"how": Rounding(*[blocks("E2M1")] * 3, bf16)},
    "fp4, gradients by chance": {
        "how": Rounding(blocks("E2M1"), blocks("E2M1"), fp4_by_luck, bf16)
    },
    "bf16, no master": {"how": in_bf16, "store": bf16},
    "bf16, no master, by chance": {"how": in_bf16, "store": by_luck},
}

# %% [markdown] key="train-predict"
# Before you run them: how many of these recipes end worse than fp32 in every one of the three seeds, by 0.02 nats or more? The nat is chapter 5's unit of loss.

# %% key="predict-worse"
others = len(RECIPES) - 1
predict("09.worse", f"How many of the {others} end worse?", unit="recipes")

# %% key="train-16"
runs = {}


def train_all(*names) -> None:
    """Train these recipes on every seed, and say where they ended."""
    for name in names:
        runs[name] = [train(seed=seed, **RECIPES[name]) for seed in SEEDS]
        ends = ", ".join(f"{run.held_out:.3f}" for run in runs[name])
        print(f"{name}: {ends} nats a byte (measured)")


train_all("fp32", "bf16")

# %% key="train-fp16"
train_all("fp16, no scaling", "fp16, 512 tokens")

# %% key="train-scaled"
train_all("fp16, dynamic scaling", "fp8, no scales", "fp8, a scale a tensor")

# %% key="train-blocks"
train_all("fp8, the same, all E4M3", "fp8, a scale a block", "int8 weights")

# %% key="train-fp4"
train_all("fp4, a scale a block")

# %% key="train-fp4-luck"
train_all("fp4, gradients by chance")

# %% key="train-store"
train_all("bf16, no master", "bf16, no master, by chance")

# %% key="verdict"
def behind(name: str) -> list[float]:
    """Held-out loss minus that of fp32, seed by seed."""
    pairs = zip(runs[name], runs["fp32"], strict=True)
    return [run.held_out - base.held_out for run, base in pairs]


def word(gaps: list[float]) -> str:
    """What three differences allow to say."""
    if not all(math.isfinite(gap) for gap in gaps):
        return "diverged"
    if min(gaps) >= 0.02:
        return "worse"
    return "as fp32" if max(gaps) <= 0.02 else "unclear"


verdicts = {name: word(behind(name)) for name in runs if name != "fp32"}
n_worse = sum(v in ("worse", "diverged") for v in verdicts.values())
against_prediction("09.worse", n_worse, "recipes")
rows = []
for name, verdict in verdicts.items():
    gaps = behind(name)
    rows.append(
        {
            "recipe": name,
            "behind fp32 (nats)": f"{sum(gaps) / len(gaps):+.3f}",
            "three seeds": f"{min(gaps):+.3f} to {max(gaps):+.3f}",
            "gradients that are 0": f"{runs[name][0].zeros:.1%}",
            "verdict": verdict,
        }
    )
show.table(
    rows,
    caption=f"{STEPS} steps, batch as of half a million tokens",
    kinds=dict.fromkeys(
        ("behind fp32 (nats)", "three seeds", "gradients that are 0"),
        "measured",
    ),
)

# %% key="loss-curves"
def smooth(losses: list) -> list:
    """Means of ten steps each."""
    return [sum(losses[i : i + 10]) / 10 for i in range(0, len(losses), 10)]


tens = [10 * (i + 1) for i in range(STEPS // 10)]
shown = ["fp32", "fp16, no scaling", "fp8, no scales", "fp4, a scale a block"]
show.lines(
    [
        Series(tens, smooth(runs[name][0].losses), name, "measured")
        for name in shown
        if all(map(math.isfinite, runs[name][0].losses))
    ],
    x="steps",
    y="training loss (nats a byte)",
    title=f"{n_worse} of {len(verdicts)} recipes end clearly worse",
)

# %% [markdown] key="scale-plot-intro"
# And the loss scale? It started at $2^{34}$, far too high. PyTorch's own scaler starts at $2^{16}$ and waits for 2,000 good steps, this one for 20, so that you see it move.

# %% key="scale-plot"
scales = runs["fp16, dynamic scaling"][0].scales
drops = sum(b < a for a, b in itertools.pairwise(scales))
show.line(
    list(range(len(scales))),
    scales,
    x="steps",
    y="loss scale",
    kind="measured",
    log="y",
    title=f"{drops} steps overflowed, were dropped, and halved the scale",
)

# %% [markdown] key="scale-meaning"
# The first steps were dropped, until nothing overflowed. Then the scale felt its way up, overflowed, and stepped back, and training went on as if nothing had happened. Dropped steps are not free, though. These fell into the warm-up, so the
# optimizer began at a higher rate, and in our runs that alone moved the final loss by a few hundredths of a nat, for better or worse. Hold differences of that size against the spread of the seeds before you believe them.

# %% [markdown] key="why-each"
# Read the table by the three places.
#
# **Gradients.** Three recipes have the same fp16 products: unscaled, with 512 tokens, with a scale. They differ only in how many gradients become 0, so the column of zeros is the
# reason for their verdicts. Did anything diverge with a bang? Where not, too few bits starved the model quietly, and a loss that merely falls slowly is easy to blame on the learning rate.
#
# **Weights.** Without a master the late, small steps vanish. Rounding by chance keeps them on average, with no extra memory. Compare the last two rows, and expect a small gap: the rate is high and the run is short.

# %% [markdown] key="why-each-2"
# **Sums** were wide everywhere.
#
# FP8 with scales is close to fp32: 2 or 3 mantissa bits are noise of several percent on each operand, and most of it averages out over long sums. Compare the three fp8 rows with scales. In our runs the first, whose
# gradients are E5M2, trails in every seed. The other two cannot be told from fp32 with three seeds.
#
# If your rows agree, one more digit for the gradients counted, and blocks did not: one scale a tensor was wide enough, because this model has no loud columns. You made one above, and saw how loud it must be.

# %% [markdown] key="why-fp4"
# FP4 has one mantissa bit. Rounding to
# nearest sends the same small gradients to 0 again and again, and that is a bias, which no long sum averages out. The row below it changes one thing: its gradients are rounded by chance. Their mean is right
# again. How much of the loss comes back? Published recipes that train in FP4 do this, mix columns before they quantise, and keep some layers wider (arXiv 2509.25149).

# %% [markdown] key="vanishing-updates"
# ## How many updates vanish?
#
# The weights' own story can be counted. For a trained weight $w$ in bf16 and a step of Adam, about the learning rate in size, the update survives if it is at least half the spacing at $w$.
# Take the last model of the fp32 recipe, with all its weights, and try rates.

# %% key="vanish-updates"
def survive(weights: torch.Tensor, rate: float) -> float:
    """Share of bf16 weights that a step of this size changes (%)."""
    narrow = cast(weights, "BF16")
    return 100 * (cast(narrow + rate, "BF16") != narrow).float().mean().item()


trained = runs["fp32"][0].model
groups = {
    "matrices": torch.cat(
        [p.detach().flatten() for p in trained.parameters() if p.ndim > 1]
    ),
    "norms": torch.cat(
        [p.detach().flatten() for p in trained.parameters() if p.ndim == 1]
    ),
}
rates = [10.0**-i for i in range(6, 1, -1)]
at = rates.index(min(rates, key=lambda r: abs(r - 1e-4)))
moved = {
    name: [survive(group, rate) for rate in rates]
    for name, group in groups.items()
}
show.lines(
    [Series(rates, y, name, "measured") for name, y in moved.items()],
    x="size of the update",
    y="weights that change (%)",
    log="x",
    title=f"At 1e-4, {moved['matrices'][at]:.0f}% of matrices' weights"
    f" and {moved['norms'][at]:.0f}% of norms' change",
)

# %% [markdown] key="size-matters"
# This run is kind to bf16: its rate peaks at 0.003, and small weights have fine spacing. At what size would it show? Published peak rates fall with size: 0.0006 for GPT-3's smallest model,
# 0.00006 for its largest (arXiv 2005.14165, table 2.1). Find both on your curve. Norms near 1 move at neither.

# %% [markdown] key="recipe-intro"
# ## Exercise: choose a recipe
#
# ●●○○ · 8 minutes · 2 points
#
# Master weights in fp32 and wide sums are given. For the card called `name` decide on the rest. `accelerator(name).native(dtype)` says True if the hardware computes in that dtype, False
# if it cannot or only by emulation, None if the table does not know. Count None as no.
#
# Return `{"products": ..., "scaling": ...}`:
#
# - `"fp8"` where it is native and `fp8_is_fine`, with `"tensor"` scaling;
# - else `"bf16"` where it is native, scaling `"none"`;
# - else `"fp16"` where it is native, scaling `"loss"`;
# - else `"fp32"`, scaling `"none"`.

# %% key="choose_recipe" tags=["exercise"]
def choose_recipe(name: str, fp8_is_fine: bool) -> dict:
    """Format of the products and kind of scaling for a named card.

    >>> choose_recipe("T4", fp8_is_fine=True)
    {'products': 'fp16', 'scaling': 'loss'}
    """
    ### BEGIN SOLUTION
    card = accelerator(name)
    if fp8_is_fine and card.native("fp8"):
        return {"products": "fp8", "scaling": "tensor"}
    if card.native("bf16"):
        return {"products": "bf16", "scaling": "none"}
    if card.native("fp16"):
        return {"products": "fp16", "scaling": "loss"}
    return {"products": "fp32", "scaling": "none"}
    ### END SOLUTION


# %% key="choose_recipe-check" tags=["check"]
choose_recipe = check("09.choose_recipe", choose_recipe)

# %% key="recipe-table"
cards = ["T4", "RTX 3090", "RTX 4090", "A100 80GB SXM", "H100 SXM", "MI300X"]
rows = []
for name in cards:
    card, recipe = accelerator(name), choose_recipe(name, True)
    gain = card.peak(recipe["products"]) / card.peak("fp32")
    rows.append({"card": name, **recipe, "peak over fp32": f"{gain:.1f}"})
show.table(
    rows,
    caption="Where fp8 is fine",
    kinds={"peak over fp32": "published"},
)

# %% [markdown] key="recipe-meaning"
# `torch.cuda.is_bf16_supported()` says True on a T4. Believe it, and you train by emulation, which its matrix units do not take part in. The T4 is the last common card on which you need your loss scaler.

# %% [markdown] key="at-scale"
# ## At scale
#
# **A faster product is not a faster run.** Norms, softmax, the optimizer and messages do not speed up with the products. If products take the share $p$ of a step and become $f$ times as fast, the step becomes
# $1 / (1 - p + p / f)$ times as fast.

# %% key="at-scale-table"
rows = []
for share_of_step in (0.5, 0.7, 0.9):
    rows.append(
        {
            "products take": f"{share_of_step:.0%}",
            "fp8, 2 times": 1 / (1 - share_of_step / 2),
            "fp4, 4 times": 1 / (1 - share_of_step * 3 / 4),
        }
    )
show.table(
    rows,
    caption="Speedup of a whole step",
    kinds={"fp8, 2 times": "modelled", "fp4, 4 times": "modelled"},
)

# %% [markdown] key="at-scale-messages"
# **Gradients travel.** On 8 or 1,000 GPUs they are summed over all of them, and that sum has a format too. bf16 halves the bytes; a sum over a thousand ranks in bf16 can stall as yours did, so
# large runs often add in fp32.
#
# **What misleads on one small model.** Here one scale a tensor was enough for fp8. Loud columns come with size, and in a long run small biases have time. Published at size: DeepSeek-V3, 671 billion parameters,
# trained in fp8 with blocks, its loss within 0.25% of bf16 in tests on smaller models (arXiv 2412.19437). Where OPT-175B's loss diverged, in fp16, its loss scale crashed to 0; it was restarted with a lower rate (arXiv 2205.01068).

# %% [markdown] key="at-scale-20000"
# **At 20,000 GPUs** one overflow stops a step for everyone: all ranks must agree to drop it, or weights drift apart. That is a message more for a loss scaler, and one reason why bf16 won.
#
# What stays at every size: three places, sums, gradients, weights; and one question, which window does this tensor need.

# %% [markdown] key="remember"
# ## What to remember
#
# - Exponent bits buy range, mantissa bits buy precision. Ask which window the tensor needs.
# - Products may be narrow. Sums, weights and small gradients must not be: wide accumulator, master copy, scale.
# - Too few bits fail in silence: sums stall, gradients become 0, updates vanish. Count zeros.
# - fp16 needs a dynamic loss scale, fp8 a scale for each tensor or block, bf16 none.
# - Native is what counts: T4 fp16, A100 bf16, H100 and RTX 4090 fp8.

# %% [markdown] key="sources"
# ## Sources
#
# - P. Micikevicius and others, "Mixed precision training", 2018, arXiv 1710.03740.
# - P. Micikevicius and others, "FP8 formats for deep learning", 2022, arXiv 2209.05433.
# - Open Compute Project, "8-bit floating point (OFP8) 1.0" and "Microscaling formats (MX) 1.0", 2023.
# - T. Dettmers and others, "LLM.int8(): 8-bit matrix multiplication for transformers at scale", 2022, arXiv 2208.07339.
# - S. Gupta and others, "Deep learning with limited numerical precision", 2015, arXiv 1502.02551 (rounding by chance).
# - DeepSeek-AI, "DeepSeek-V3 technical report", 2024, arXiv 2412.19437.
# - NVIDIA, "Pretraining large language models with NVFP4", 2025, arXiv 2509.25149.
# - S. Zhang and others, "OPT: open pre-trained transformer language models", 2022, arXiv 2205.01068.
# - T. Brown and others, "Language models are few-shot learners", 2020, arXiv 2005.14165.
# - NVIDIA, "Train with mixed precision".
