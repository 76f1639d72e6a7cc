# ---
# jupyter:
#   course:
#     title: "3. Is it bytes or FLOPs?"
#     minutes: 90
#     hardware: "no GPU; with one, the same cells measure it"
#     needs: "chapter 0's profile of your machine"
#     leaves_with: "the roof of your own machine, and where decoding, training and softmax sit under it"
# ---

# %% [markdown] key="title"
# # 3. Is it bytes or FLOPs?
#
# Your machine can do hundreds of billions of multiplications a second. Most of the time it does not: it waits for
# numbers to arrive. This chapter gives you one picture, the roofline, that says when it waits and for how long.
#
# At the end you can say how fast a 70-billion-parameter model can possibly write, how many GPUs that takes, and
# which of two upgrades would help. None of it needs a GPU.

# %% key="setup" tags=["setup"]
import itertools
import math
import statistics
import time

import torch
from torch.nn.functional import linear, scaled_dot_product_attention

from utils import show
from utils.arithmetic import count_parameters, kv_cache_bytes, model
from utils.course import against_prediction, check, hint, predict, quiz
from utils.course import progress, reveal, start
from utils.hardware import accelerator, system, time_samples, torch_dtype
from utils.show import Choice, Point, Roof, Series, Slider

machine = start("03")

# %% key="recall"
quiz("03.recall")

# %% [markdown] key="one-matrix-many-rows"
# ## One matrix, more and more rows
#
# A language model that writes one token multiplies one row of numbers by each of its weight matrices. If it writes for
# 64 people at once, it multiplies 64 rows by the same matrices. That is 64 times the arithmetic.
#
# Before you run the next cells: how many times longer will 64 rows take than one?

# %% key="predict-rows"
predict("03.rows", "64 rows take how many times as long as 1?", unit="times")

# %% [markdown] key="how-measured"
# Each matrix has 4096 x 4096 weights (on a CUDA GPU 8192 x 8192, so that reading takes longer than a launch). There are eight of
# them, used in turn, as a model has many layers: when a matrix is needed again, the others have pushed it out of the caches.
#
# Other programs only make calls slower, and they come and go. So the sizes are timed in turn, round after round, and a point
# is the median of the fastest fifth of its samples: not what you will get, as in chapter 0, but what the hardware can do.
# Its line reaches from the fastest sample to the median of all. Where that is long, your machine was busy.

# %% key="sweep"
def in_turn(calls: dict, seconds: float, timer=time_samples) -> dict:
    """Time named calls in turn: {name: (fast, fastest, median)}."""
    samples = {name: [] for name in calls}
    end = time.perf_counter() + seconds
    done = 0
    while done < 3 or time.perf_counter() < end:
        done += 1
        for name, call in calls.items():
            samples[name] += timer(call, repeats=5)
    timed = {}
    for name, each in samples.items():
        each.sort()
        fast = statistics.median(each[: max(1, len(each) // 5)])
        timed[name] = (fast, each[0], statistics.median(each))
    return timed


# %% [markdown] key="what-is-timed"
# The next cell times the product for 1 to 512 rows (4096 on a CUDA GPU). It also times a plain copy of one matrix into another and one large
# square product, in the same rounds. You will need both: they are the two things this machine can do, bytes and FLOPs,
# measured at the same moment as the curve.
#
# One precaution. If other programs hold the cores of your CPU, the threads of a product wait for the slowest of them. Then the sweep
# uses one core, and a clock that stops while another program has it. The output says so.

# %% key="measure-rows"
def core_seconds(call, repeats: int) -> list:
    """Seconds that this thread's core worked on each call."""
    samples = []
    for _ in range(repeats):
        start = time.thread_time()
        call()
        samples.append(time.thread_time() - start)
    return samples


threads, who, timer = torch.get_num_threads(), "this machine", time_samples
if machine.device == "cpu" and (system.load() or 0) > 0.75:
    torch.set_num_threads(1)
    who, timer = "one core", core_seconds
    print("Other programs are running: this sweep uses one core.")

d, dtype = 8192 if machine.device == "cuda" else 4096, machine.best_dtype
size = torch_dtype(dtype).itemsize
options = {"dtype": torch_dtype(dtype), "device": machine.device}
weights = [torch.randn(d, d, **options) for _ in range(8)]
turn = itertools.cycle(weights)
spare = torch.empty_like(weights[0])
square = [torch.randn(2048, 2048, **options) for _ in range(2)]

rows = [2**i for i in range(13 if machine.device == "cuda" else 10)]
inputs = {n: torch.randn(n, d, **options) for n in rows}
calls = {n: lambda x=x: linear(x, next(turn)) for n, x in inputs.items()}
calls["copy"] = lambda: spare.copy_(next(turn))
calls["square"] = lambda: torch.mm(*square)
timed = in_turn(calls, 8, timer)
seconds = [timed[n][0] for n in rows]

ratio = seconds[rows.index(64)] / seconds[0]
against_prediction("03.rows", ratio, "times")

# %% key="plot-rows"
show.line(
    rows,
    seconds,
    x="rows in the batch",
    y="time of one product (seconds)",
    kind="measured",
    log=True,
    label=dtype,
    spread=[timed[n][1:] for n in rows],
    title=f"64 times the arithmetic takes {ratio:.1f} times as long",
)

# %% [markdown] key="why-flat"
# The left part of the curve is nearly flat, because there the time is not spent on arithmetic. To multiply **one** row, the
# machine must still read every weight once. For 4096 x 4096 weights of two bytes that is
#
# $$4096 \times 4096 \times 2\ \text{bytes} = 33.6\ \text{MB}.$$
#
# The arithmetic of a few rows hides behind that reading. With more rows there is more to hide, until the reading hides
# behind the arithmetic and the curve rises in step with the rows. In between it bends.
#
# Everything that follows is about where it bends, and on which side of the bend your work is.

# %% [markdown] key="intensity-intro"
# ## Exercise: arithmetic intensity
#
# ●○○○ · 6 minutes · 2 points
#
# A ratio decides it: how many FLOPs does each byte feed that had to move? It is called **arithmetic intensity**, in FLOP per
# byte. For a matrix product of `m x k` by `k x n`, with each of the three matrices read or written exactly once, return the
# FLOPs divided by the bytes. A multiplication and an addition are two FLOPs. All elements have `bytes_per_element` bytes.
#
# Example: 64 rows against 4096 x 4096 weights in bf16 give about 62.

# %% key="arithmetic_intensity" tags=["exercise"]
def arithmetic_intensity(
    m: int, n: int, k: int, bytes_per_element: int
) -> float:
    """FLOP per byte of (m, k) @ (k, n) when each matrix is touched once.

    >>> round(arithmetic_intensity(64, 4096, 4096, 2), 1)
    62.1
    """
    ### BEGIN SOLUTION
    flops = 2 * m * n * k
    moved = (m * k + k * n + m * n) * bytes_per_element
    return flops / moved
    ### END SOLUTION


# %% key="arithmetic_intensity-check" tags=["check"]
arithmetic_intensity = check("03.arithmetic_intensity", arithmetic_intensity)

# %% [markdown] key="intensity-rows"
# Apply it to the sweep. With few rows, the intensity in bf16 is nearly the number of rows: the weights are all that moves,
# each has two bytes, and each takes part in two FLOPs a row. With many rows the activations count too, and it falls behind.

# %% key="intensity-table"
def flops_of(n_rows: int) -> int:
    """FLOPs of n_rows rows against one d x d matrix."""
    return 2 * n_rows * d * d


intensities = [arithmetic_intensity(n, d, d, size) for n in rows]
rates = [flops_of(n) / timed[n][0] for n in rows]
show.table(
    [
        {
            "rows": n,
            "FLOP per byte": round(i, 1),
            "reached": show.si(rate, "FLOP/s"),
        }
        for n, i, rate in zip(rows, intensities, rates, strict=True)
    ],
    caption=f"{d} x {d} weights in {dtype}",
    kinds={"FLOP per byte": "modelled", "reached": "measured"},
)

# %% [markdown] key="attainable-intro"
# ## Exercise: the roof
#
# ●○○○ · 4 minutes · 1 point
#
# Call the intensity $I$, the machine's peak $P$ in FLOP/s, its bandwidth $\beta$ in bytes/s. Bytes that arrive at the rate $\beta$
# can feed $I \cdot \beta$ FLOP/s. The arithmetic units can do $P$. Reading and arithmetic overlap, so the lower of the two
# limits is the one that holds.
#
# Return the highest rate, in FLOP/s, that this machine allows at this intensity. On the H100, 62 FLOP per byte allow 208
# TFLOP/s, a fifth of its peak.

# %% key="attainable" tags=["exercise"]
def attainable(
    intensity: float, peak_flops_per_s: float, bytes_per_s: float
) -> float:
    """Height of the roof in FLOP/s at an intensity in FLOP per byte.

    >>> round(attainable(62, 989.4e12, 3.35e12) / 1e12)
    208
    """
    ### BEGIN SOLUTION
    return min(peak_flops_per_s, intensity * bytes_per_s)
    ### END SOLUTION


# %% key="attainable-check" tags=["check"]
attainable = check("03.attainable", attainable)

# %% [markdown] key="roofline-intro"
# ## The roofline
#
# Draw that height over every intensity, both axes logarithmic, and you get a roof: a slope where bytes limit, a flat part
# where arithmetic does. The corner is the **ridge point**, $P / \beta$ in FLOP per byte. Left of it a kernel waits for
# memory, however clever it is. Right of it the arithmetic units are the limit.
#
# Here is the roof from the copy and the square product you just timed, with the sweep under it.

# %% key="roofline"
bytes_per_s = 2 * d * d * size / timed["copy"][0]
peak = 2 * 2048**3 / timed["square"][0]
ridge = peak / bytes_per_s
marked = [1, 8, 64, 512]
show.roofline(
    roofs=[Roof(f"{who}, {dtype}", peak, bytes_per_s, "measured")],
    points=[
        Point(f"rows: {n}", i, rate, "measured")
        for n, i, rate in zip(rows, intensities, rates, strict=True)
        if n in marked
    ],
    title=f"Below {ridge:.0f} FLOP per byte {who} waits for bytes",
)

# %% [markdown] key="above-the-roof"
# A point a little above the slope is no mistake. The roof is a measurement too: it is the rate of a copy. A product that only
# reads can beat it, and data left in a cache can beat it by more. You will see both below.

# %% [markdown] key="crossover-intro"
# ## Exercise: the crossover batch
#
# ●●●○ · 10 minutes · 3 points
#
# Turn the ridge into rows. A batch of $B$ rows is multiplied by `k x n` weights. What moves: the weights, once,
# `bytes_per_weight` each; and for each row `k` inputs and `n` outputs, `bytes_per_activation` each. What is computed:
# $2 \cdot B \cdot k \cdot n$ FLOPs.
#
# Return the smallest whole $B$ for which the arithmetic takes at least as long as the bytes. If none does, return `None`:
# a small matrix never feeds a large chip. Example: 4096 x 4096 in bf16 crosses on an H100 at 346 rows.

# %% key="crossover_batch" tags=["exercise"]
def crossover_batch(
    k: int,
    n: int,
    bytes_per_weight: float,
    bytes_per_activation: float,
    peak_flops_per_s: float,
    bytes_per_s: float,
) -> int | None:
    """Least rows for which 2*B*k*n FLOPs take as long as their bytes.

    >>> crossover_batch(4096, 4096, 2, 2, 989.4e12, 3.35e12)
    346
    """
    ### BEGIN SOLUTION
    weights_take = k * n * bytes_per_weight / bytes_per_s
    row_takes = (k + n) * bytes_per_activation / bytes_per_s
    row_computes = 2 * k * n / peak_flops_per_s
    if row_computes <= row_takes:
        return None
    return math.ceil(weights_take / (row_computes - row_takes))
    ### END SOLUTION


# %% key="crossover_batch-check" tags=["check"]
crossover_batch = check("03.crossover_batch", crossover_batch)

# %% key="modelled-crossover"
expected = crossover_batch(d, d, size, size, peak, bytes_per_s)
if expected is None:
    print("No batch of this matrix reaches the ridge of this machine.")
else:
    show.number(expected, "rows", "modelled")

# %% [markdown] key="before-the-fit"
# That is what the copy and the square product say. The curve you measured has its own opinion.

# %% key="predict-crossover"
predict("03.crossover", "At how many rows does your curve bend?", unit="rows")

# %% [markdown] key="fit-intro"
# ## Find the bend
#
# A bend is not a point you can read off a noisy curve. Fit it. Call `flat` the seconds to bring the weights and `slope` the seconds of
# arithmetic for each row. If one hid perfectly behind the other, the time would be $\max(\text{flat}, \text{slope} \cdot n)$ for
# $n$ rows. If nothing hid, it would be their sum. Real products lie between, and one number $p$ says where:
#
# $$\text{time}^p = \text{flat}^p + (\text{slope} \cdot n)^p.$$
#
# $p = 1$ is the sum, a large $p$ is the maximum. Both sides are equal at flat / slope rows: the crossover. The next cell tries a grid
# of crossovers and of $p$ and keeps the pair with the smallest error.

# %% key="bend"
def bend(rows: list, seconds: list) -> tuple[float, float, float]:
    """(flat, crossover, p) with the least squared error of log time."""
    fits = []
    for crossover in (2 ** (i / 16) for i in range(16 * 12 + 1)):
        for p in (1, 1.5, 2, 3, 4, 6, 8):
            shape = [math.log(1 + (n / crossover) ** p) / p for n in rows]
            log_flat = [
                math.log(s) - x for s, x in zip(seconds, shape, strict=True)
            ]
            error = statistics.pvariance(log_flat)
            flat = math.exp(statistics.fmean(log_flat))
            fits.append((error, flat, crossover, p))
    return min(fits)[1:]


flat, crossover, p = bend(rows, seconds)
slope = flat / crossover
from_medians = bend(rows, [timed[n][2] for n in rows])[1]
against_prediction("03.crossover", crossover, "rows")
show.lines(
    [
        Series(rows, seconds, dtype, "measured", [timed[n][1:] for n in rows]),
        Series(
            rows,
            [(flat**p + (slope * n) ** p) ** (1 / p) for n in rows],
            "fit",
            "modelled",
        ),
        Series(
            rows,
            [max(flat, slope * n) for n in rows],
            "perfect overlap",
            "modelled",
        ),
    ],
    x="rows in the batch",
    y="time of one product (seconds)",
    log=True,
    title=f"The curve bends at about {crossover:.0f} rows",
)
print(
    f"From the fastest fifth: {crossover:.0f} rows. From the medians of"
    f" all samples: {from_medians:.0f} rows."
)
print(f"p = {p}: at the bend {2 ** (1 / p):.2f} times flat.")

# %% [markdown] key="two-crossovers"
# If the first two numbers differ much, other programs disturbed the measurement: run the sweep again on a quiet machine. One core has a bend of its own: it has its share of the arithmetic, but often more than its share of the bandwidth, so
# it usually bends at fewer rows than the whole chip.
#
# Look at $p$ too. The roofline assumes perfect overlap, a large $p$. A core that first fetches and rearranges weights and then
# multiplies by them is near 1: at the bend it needs almost twice the time that the roofline allows. That is why a real bend is
# round, and why the best kernels work hard to fetch the next tile while they multiply the last.

# %% [markdown] key="two-factors"
# ## Why it bends there
#
# The bend has two parents, and so have its errors. Call what the product really reached on the flat part `read rate` (weights
# divided by `flat`) and on the rising part `FLOP rate` (FLOPs of a row divided by `slope`). The measured bend is to the
# modelled one, for weights alone, exactly as
#
# $$\frac{\text{FLOP rate}}{\text{peak}} \cdot \frac{\text{bandwidth of the copy}}{\text{read rate}}.$$
#
# So compute both factors.

# %% key="decompose"
read_rate = d * d * size / flat
flop_rate = flops_of(1) / slope
weights_only = peak / bytes_per_s * size / 2
show.table(
    [
        {
            "side": "arithmetic",
            "in the product": show.si(flop_rate, "FLOP/s"),
            "alone": show.si(peak, "FLOP/s"),
            "moves the bend by": round(flop_rate / peak, 2),
        },
        {
            "side": "reading",
            "in the product": show.si(read_rate, "bytes/s"),
            "alone": show.si(bytes_per_s, "bytes/s"),
            "moves the bend by": round(bytes_per_s / read_rate, 2),
        },
    ],
    caption=f"Bend for weights alone: {weights_only:.0f} rows modelled,"
    f" {crossover:.0f} rows measured,"
    f" {crossover / weights_only:.2f} times as many",
    kinds=dict.fromkeys(
        ("in the product", "alone", "moves the bend by"), "measured"
    ),
)

# %% [markdown] key="cancel"
# Look at the two factors before you look at their product. A kernel that reaches 70% on both sides would bend exactly where the model
# says, and the model would be wrong twice. The arithmetic may even exceed the square product, which is not the best this machine
# can do, only what it did.

# %% [markdown] key="suspects"
# ### Three suspects
#
# A product rarely reads weights as fast as a copy moves bytes. Three reasons are plausible, and each can be tried:
#
# 1. **Caches.** One matrix used again and again may stay in a cache. Eight in turn do not, or less so.
# 2. **Layout.** `x @ w` and `linear(x, w)` do the same arithmetic, but the weights lie in memory the other way round.
# 3. **Packing.** Matrix units want weights in small tiles. On a CPU, oneDNN, the library below PyTorch, rearranges them at
#    every call. That is traffic which no formula above counted. They can also be packed once, ahead of time.
#
# Eight rows, in turn:

# %% key="try-suspects"
x = inputs[8]
tries = {
    "eight matrices in turn": lambda: linear(x, next(turn)),
    "one matrix again and again": lambda: linear(x, weights[0]),
    "the other layout, in turn": lambda: x @ next(turn),
}
if machine.device == "cpu":
    try:  # what PyTorch's compiler does when it freezes a model
        ops = torch.ops.mkldnn
        packed = [ops._reorder_linear_weight(w, 8) for w in weights]
        packs = itertools.cycle(packed)
        run = ops._linear_pointwise
        run(x, packed[0], None, "none", [], "")
        tries["packed once, in turn"] = lambda: run(
            x, next(packs), None, "none", [], ""
        )
    except (AttributeError, RuntimeError):
        print("This build of PyTorch cannot pack weights ahead of time.")
tried = in_turn(tries, 4, timer)
show.bars(
    list(tried),
    [d * d * size / fast for fast, _, _ in tried.values()],
    unit="bytes/s",
    kind="measured",
    title=f"Eight rows: how fast {dtype} weights are read,"
    f" copy {show.si(bytes_per_s, 'bytes/s')}",
    spread=[
        (d * d * size / slow, d * d * size / fastest)
        for _, fastest, slow in tried.values()
    ],
)

# %% key="suspects-verdict"
base = tried["eight matrices in turn"][0]
for name, (fast, _, _) in list(tried.items())[1:]:
    print(f"{name}: {fast / base:.2f} times as long as eight in turn")

# %% [markdown] key="suspects-meaning"
# A number well below 1 convicts, one well above 1 acquits. If one matrix again and again is quicker, a cache still held part of it. If packing once is
# quicker, the difference is what packing at every call costs: the weights are read, written in tiles, and read again. On a
# GPU nothing is packed: its kernels were written for the layout as it is.
#
# The copy itself is no neutral judge either. A CPU usually reads the target of a write before it overwrites it (the term is
# write-allocate), so a copy moves three bytes where two are counted. Something that only reads can beat it.

# %% [markdown] key="h100-beside"
# ## The same bend on an H100
#
# An H100 does nearly a thousand TFLOP/s and reads 3.35 TB/s to feed them. Both numbers are large. Their ratio is not: it lies in
# the same region as that of chips a thousand times slower, because designers balance the two.
#
# For large models people quote "about 256" rows. Where does it come from? Below is the crossover for one of Llama 70B's
# matrices (8192 x 28672) under different assumptions.

# %% key="about-256"
h100 = accelerator("H100 SXM")
bf16, fp8 = h100.peak("bf16"), h100.peak("fp8")
hbm = h100.bytes_per_s
reached = 794.5e12  # ml-engineering, "maximum achievable matmul", H100
cases = [
    ("weights only, data sheet", 2, 0, bf16, hbm),
    ("weights and activations", 2, 2, bf16, hbm),
    ("measured peak, full bandwidth", 2, 0, reached, hbm),
    ("measured peak, 90% of bandwidth", 2, 0, reached, 0.9 * hbm),
    ("one byte a weight, bf16 arithmetic", 1, 0, bf16, hbm),
    ("one byte a weight, fp8 arithmetic", 1, 0, fp8, hbm),
]
table = [
    {
        "H100 SXM": what,
        "peak": show.si(p, "FLOP/s"),
        "bandwidth": show.si(b, "bytes/s"),
        "rows": crossover_batch(8192, 28672, weight, activation, p, b),
    }
    for what, weight, activation, p, b in cases
]
caption = "Crossover of 8192 x 28672 weights"
kinds = {"peak": "published", "bandwidth": "published", "rows": "modelled"}
show.table(table, caption=caption, kinds=kinds)

# %% [markdown] key="what-256-assumes"
# So 256 is a round number in the middle. It assumes two bytes a weight and bf16 arithmetic, or one byte and fp8 arithmetic; a
# dense model, where every row meets every weight; the dense peak, not the sparse one that is twice as high; and that the weights
# are all that moves. The measured peak is published by the ml-engineering project; the 90% is an assumption.
#
# Two of these break often. Weights of one byte with bf16 arithmetic halve it. And in decoding the weights are **not** all
# that moves, as the cache will show below.

# %% key="beside"
chips = ["T4", "RTX 4090", "A100 80GB SXM", "H100 SXM", "H200 SXM"]
chips += ["B200 SXM (HGX)", "MI300X", "TPU v5e"]
found = []
for chip in map(accelerator, chips):
    kind = "bf16" if chip.native("bf16") else "fp16"
    ends = chip.peak(kind), chip.bytes_per_s
    found.append((f"{chip.name}, {kind}", crossover_batch(d, d, 2, 0, *ends)))
found.insert(0, (f"{who}, {dtype}, roof", weights_only))
show.bars(
    [f"{who}, {dtype}, bend", *(name for name, _ in found)],
    [crossover, *(n for _, n in found)],
    unit="rows",
    kind=["measured", *["modelled"] * len(found)],
    title=f"Weights stop being the limit: {who} {crossover:.0f} rows,"
    f" H100 {dict(found)['H100 SXM, bf16']}",
)

# %% [markdown] key="play-intro"
# ## Drag it along the roof
#
# Move the batch and watch the point climb the slope and stop at the flat part. Then change the dtype: it moves the peak
# and the intensity, but not the bandwidth. Then change the chip.
#
# The dot is modelled: the height of the roof above that intensity.

# %% key="play" tags=["figure"]
BYTES = {"fp32": 4, "tf32": 4, "bf16": 2, "fp16": 2, "fp8": 1, "int8": 1}


def draw(batch, dtype, chip):
    if chip == "this machine":
        ends = machine.peak(dtype), machine.bytes_per_s
        kind = "measured"
    else:
        found = accelerator(chip)
        ends = found.peak(dtype), found.bytes_per_s
        kind = "published"
    intensity = arithmetic_intensity(batch, d, d, BYTES[dtype])
    rate = attainable(intensity, *ends)
    takes = flops_of(batch) / rate
    side = "bytes" if intensity < ends[0] / ends[1] else "FLOPs"
    picture = show.make.roofline(
        [Roof(f"{chip}, {dtype}", *ends, kind)],
        [Point(f"batch {batch}", intensity, rate, "modelled")],
        f"Batch {batch} in {dtype} on {chip}: {side} limit it",
    )
    feeds = show.si(intensity, "FLOP per byte")
    return picture, (
        f"{feeds}, {rate / ends[0]:.0%} of the peak;"
        f" {show.si(takes, 's')} a product,"
        f" {show.si(takes / batch, 's')} a row."
    )


show.explore(
    draw,
    batch=Slider(1, 4096, start=16, log2=True, unit="rows"),
    dtype=Choice(["bf16", "fp16", "fp32", "fp8"], start=dtype),
    chip=Choice(["this machine", "T4", "A100 80GB SXM", "H100 SXM"]),
)

# %% [markdown] key="other-ops"
# ## What is not a matrix product
#
# A transformer also adds, scales, normalises and exponentiates. Those operations touch each number once or twice and do almost
# nothing with it. No batch can help them: twice the elements are twice the bytes **and** twice the FLOPs.

# %% [markdown] key="elementwise-intro"
# ### Exercise: elementwise
#
# ●○○○ · 4 minutes · 1 point
#
# An elementwise op reads `n_inputs` arrays of equal shape and writes one array of that shape. For each element of the result it
# does `flops_per_element` FLOPs. Every element has `bytes_per_element` bytes. Return FLOP per byte.
#
# Example: adding two fp32 arrays is one FLOP for twelve bytes.

# %% key="elementwise_intensity" tags=["exercise"]
def elementwise_intensity(
    n_inputs: int, flops_per_element: int, bytes_per_element: int
) -> float:
    """FLOP per byte of an op that reads n_inputs arrays and writes one.

    >>> round(elementwise_intensity(2, 1, 4), 4)
    0.0833
    """
    ### BEGIN SOLUTION
    return flops_per_element / ((n_inputs + 1) * bytes_per_element)
    ### END SOLUTION


# %% key="elementwise_intensity-check" tags=["check"]
elementwise_intensity = check(
    "03.elementwise_intensity", elementwise_intensity
)

# %% [markdown] key="softmax-intro"
# ### Exercise: softmax
#
# ●●○○ · 8 minutes · 2 points
#
# Softmax of each row of a `rows x columns` array takes five steps: **max** of the row; **subtract** it; **exp**; **sum**
# of the row; **divide** by it. A max or sum over a row is `columns - 1` FLOPs. The other three are one FLOP an element (by
# convention, exp too).
#
# `fused=True`: one kernel reads the input once and writes the result once. `fused=False`: five kernels, each reads its inputs
# from memory and writes its result there. Max and sum write one number a row; subtract and divide read it back, besides the
# array. Return FLOP per byte.

# %% key="softmax_intensity" tags=["exercise"]
def softmax_intensity(
    rows: int, columns: int, bytes_per_element: int, fused: bool
) -> float:
    """FLOP per byte of a row-wise softmax in one kernel or in five.

    >>> softmax_intensity(1, 2, 4, True), softmax_intensity(1, 2, 4, False)
    (0.5, 0.1)
    """
    ### BEGIN SOLUTION
    flops = rows * (5 * columns - 2)
    unfused = 8 * rows * columns + 4 * rows
    elements = 2 * rows * columns if fused else unfused
    return flops / (elements * bytes_per_element)
    ### END SOLUTION


# %% key="softmax_intensity-check" tags=["check"]
softmax_intensity = check("03.softmax_intensity", softmax_intensity)

# %% [markdown] key="softmax-question"
# The FLOPs are the same, the bytes are not. If bytes decide, you know the ratio of the two times already.

# %% key="predict-softmax"
predict("03.softmax", "Five steps take how many times one call?", unit="times")

# %% key="measure-softmax"
scores = torch.randn(2048, 8192, **options)
wide = (*scores.shape, size)


def five_steps(x: torch.Tensor) -> torch.Tensor:
    shifted = x - x.amax(-1, keepdim=True)
    raised = shifted.exp()
    return raised / raised.sum(-1, keepdim=True)


softmaxes = in_turn(
    {
        "one call": lambda: torch.softmax(scores, -1),
        "five steps": lambda: five_steps(scores),
    },
    2,
    timer,
)
one, five = softmaxes["one call"][0], softmaxes["five steps"][0]
against_prediction("03.softmax", five / one, "times")
by_bytes = softmax_intensity(*wide, True) / softmax_intensity(*wide, False)
show.number(by_bytes, "times the bytes", "modelled")

# %% [markdown] key="softmax-why"
# Where the two numbers agree, nothing but bytes mattered. Where they do not, one of two things did. An exponential costs a CPU
# more than the one FLOP that convention gives it, so its softmax can wait for arithmetic at an intensity this low. And each
# of the five steps allocates its result; fresh memory costs time when the operating system first hands it out.
#
# The lesson survives both: merging steps saves bytes, and below the ridge bytes are the time. That is why people write kernels
# (chapter 7).

# %% [markdown] key="decode-attention-intro"
# ### Exercise: attention while decoding
#
# ●●●○ · 8 minutes · 3 points
#
# One new token per sequence attends to `seq_len` cached positions. Each of `n_head` heads multiplies its query with `seq_len` keys,
# then the resulting weights with `seq_len` values; every one of these vectors has `head_dim` elements. The softmax is ignored.
#
# Keys and values are cached for `n_kv_head` heads (several heads may share one). Each of `batch` sequences has its own
# cache. What moves: keys and values once, and for each of the `n_head` heads one query that is read and one output that is
# written. Return FLOP per byte. Example: 32 heads that share nothing, in bf16, long sequence: almost 1.

# %% key="decode_attention_intensity" tags=["exercise"]
def decode_attention_intensity(
    n_head: int,
    n_kv_head: int,
    head_dim: int,
    seq_len: int,
    batch: int,
    bytes_per_element: int,
) -> float:
    """FLOP per byte of one decoding step's attention, softmax ignored.

    >>> round(decode_attention_intensity(32, 32, 128, 2048, 1, 2), 4)
    0.9995
    """
    ### BEGIN SOLUTION
    flops = 4 * batch * n_head * seq_len * head_dim
    cache = 2 * batch * n_kv_head * seq_len * head_dim
    in_and_out = 2 * batch * n_head * head_dim
    return flops / ((cache + in_and_out) * bytes_per_element)
    ### END SOLUTION


# %% key="decode_attention_intensity-check" tags=["check"]
decode_attention_intensity = check(
    "03.decode_attention_intensity", decode_attention_intensity
)

# %% key="attention-table"
show.table(
    [
        {
            "64 heads share": f"{64 // kv} to 1",
            "batch 1": decode_attention_intensity(64, kv, 128, 4096, 1, 2),
            "batch 64": decode_attention_intensity(64, kv, 128, 4096, 64, 2),
        }
        for kv in (64, 8, 1)
    ],
    caption="FLOP per byte of attention while decoding, 4096 positions, bf16",
    kinds={"batch 1": "modelled", "batch 64": "modelled"},
)

# %% [markdown] key="batch-does-not-help"
# Batching, which rescued the weights, does nothing here: every sequence brings its own cache. Sharing heads does help, because
# a key that is read once then serves several queries. That is the point of grouped-query attention.

# %% [markdown] key="levels-intro"
# ## More than one roof
#
# Chapter 0 copied arrays of many sizes. Small ones stay in a cache, and a cache is faster than memory. So your machine has one
# slope for each level, and which one counts depends on where the data is.

# %% key="copy-by-size"
sizes = [n for n, _ in machine.copy]
speeds = [rate.median for _, rate in machine.copy]
show.line(
    sizes,
    speeds,
    x="working set (bytes)",
    y="copy (bytes/s)",
    log=True,
    spread=[(rate.low, rate.high) for _, rate in machine.copy],
    title=f"A copy runs at {show.si(max(speeds), 'bytes/s')} in cache,"
    f" {show.si(speeds[-1], 'bytes/s')} past it",
)

# %% [markdown] key="levels-rule"
# A level gets the best rate among the working sets that fit in it and are four times as large as the level before (each core
# has its own). A level that is no faster than the next is left out: an array of a few kilobytes is copied sooner than the copy is launched, so you would see the
# launch of chapter 0 and not the cache.
#
# A warning about the last cache: a virtual machine may report one that it shares with strangers. Then its roof depends on
# what they do.

# %% key="levels"
def levels(machine) -> list[tuple[str, float]]:
    """(name, bytes/s) from memory to the fastest cache."""
    roofs, best = [("memory", machine.bytes_per_s)], machine.bytes_per_s
    caches = sorted(machine.caches.items(), key=lambda item: -item[1])
    caches = caches or [("cache", machine.copy[-1][0] // 4)]
    for i, (name, fits) in enumerate(caches):
        smaller = 4 * caches[i + 1][1] if i + 1 < len(caches) else 0
        inside = [r.median for n, r in machine.copy if smaller < n <= fits]
        if inside and max(inside) > 1.2 * best:
            best = max(inside)
            roofs.append((name, best))
    return roofs


# %% [markdown] key="real-ops"
# Now place real operations under these roofs. The addition appears twice, once with arrays that stay in a cache and once with
# arrays that cannot. It is the same code with the same intensity. (If your sweep used one core, so do these; the roofs are chapter
# 0's.)

# %% key="place-ops"
n_head, head_dim, seq_len = 32, 128, 4096
few, many = (torch.randn(2, n, **options) for n in (2**17, 2**25))
sums = [torch.empty_like(few[0]), torch.empty_like(many[0])]
query = torch.randn(1, n_head, 1, head_dim, **options)
cache = torch.randn(2, 1, n_head, seq_len, head_dim, **options)
heads = (n_head, n_head, head_dim, seq_len, 1, size)
ops = in_turn(
    {
        "add, small": lambda: torch.add(*few, out=sums[0]),
        "add, large": lambda: torch.add(*many, out=sums[1]),
        "attention, decode": lambda: scaled_dot_product_attention(
            query, *cache
        ),
        "decode, 1 row": calls[1],
        "decode, 64 rows": calls[64],
        "square product": calls["square"],
    },
    3,
    timer,
)
torch.set_num_threads(threads)
adding = elementwise_intensity(2, 1, size)
attending = decode_attention_intensity(*heads)
square_at = arithmetic_intensity(2048, 2048, 2048, size)
work = {  # FLOPs of each, and where it stands
    "add, small": (2**17, adding),
    "add, large": (2**25, adding),
    "attention, decode": (4 * n_head * seq_len * head_dim, attending),
    "decode, 1 row": (flops_of(1), intensities[0]),
    "decode, 64 rows": (flops_of(64), intensities[rows.index(64)]),
    "square product": (2 * 2048**3, square_at),
}
placed = [(name, i, n / ops[name][0]) for name, (n, i) in work.items()]
softmax_flops = scores.shape[0] * (5 * scores.shape[1] - 2)
for name, fused, took in (("softmax", True, one), ("five steps", False, five)):
    at = softmax_intensity(*wide, fused)
    placed.append((name, at, softmax_flops / took))

# %% key="roofline-levels"
small = show.si(3 * 2**17 * size / ops["add, small"][0], "bytes/s")
large = show.si(3 * 2**25 * size / ops["add, large"][0], "bytes/s")
show.roofline(
    [
        Roof(name, machine.peak(dtype), slope_of, "measured")
        for name, slope_of in levels(machine)
    ],
    [Point(name, i, rate, "measured") for name, i, rate in placed],
    f"The same addition moves {small} when small, {large} when large",
)

# %% [markdown] key="read-the-picture"
# Read it from left to right. Additions, softmax and attention while decoding live under a slope, whatever you do to their
# arithmetic. A decoding step with one row lives there too. Only products with many rows reach the flat part.
#
# A point between two slopes says which level fed it. A point far below **every** roof waits for neither bytes nor FLOPs. Then look
# for what the roofline does not know: launches, a slow exponential, one thread where there could be several, bad access
# order.

# %% [markdown] key="mbu-intro"
# ## Exercise: MBU
#
# ●○○○ · 5 minutes · 1 point
#
# Below the ridge, the share of the peak FLOPs (MFU, chapter 1) says little: it must be small. The honest measure there is **model
# bandwidth utilisation**, MBU: the bytes the model must read for one token, divided by the time of a token, over the
# bandwidth that all GPUs together have.
#
# A token reads `weight_bytes` and the whole cache, `kv_bytes`. `peak_bytes_per_s` belongs to one of `n_gpu` equal GPUs. Return a
# share from 0 to 1, and do not cap it: above 1, one of the figures is wrong.

# %% key="mbu" tags=["exercise"]
def mbu(
    weight_bytes: float,
    kv_bytes: float,
    seconds_per_token: float,
    peak_bytes_per_s: float,
    n_gpu: int,
) -> float:
    """Share, 0 to 1, of a named bandwidth that decoding uses.

    >>> round(mbu(14e9, 0, 0.014, 2e12, 1), 3)
    0.5
    """
    ### BEGIN SOLUTION
    read_per_s = (weight_bytes + kv_bytes) / seconds_per_token
    return read_per_s / (peak_bytes_per_s * n_gpu)
    ### END SOLUTION


# %% key="mbu-check" tags=["check"]
mbu = check("03.mbu", mbu)

# %% [markdown] key="llama-intro"
# ## Llama 70B, one token at a time
#
# Llama 2 70B has about 69 billion parameters. At one byte a weight it reads about 70 GB for each token. You want an answer
# that flows, and two specifications are in use: "30 ms a token" and "30 tokens a second". They sound alike and differ by a
# tenth. On eight A100 cards:

# %% key="llama-readings"
n_llama = count_parameters(model("Llama 2 70B"))
show.number(n_llama, "parameters", "modelled", "Llama 2 70B, from its shapes")
read = 70e9
a100 = accelerator("A100 80GB SXM")
asked = {"30 ms a token": 0.030, "30 tokens a second": 1 / 30}
show.table(
    [
        {
            "asked": words,
            "a token takes": show.si(each, "s"),
            "tokens/s": round(1 / each, 1),
            "must read": show.si(read / each, "bytes/s"),
            "MBU, 8 x A100": f"{mbu(read, 0, each, a100.bytes_per_s, 8):.1%}",
        }
        for words, each in asked.items()
    ],
    caption="70 GB a token",
    kinds=dict.fromkeys(
        ("a token takes", "tokens/s", "must read", "MBU, 8 x A100"),
        "modelled",
    ),
)

# %% [markdown] key="mbu-two-levels"
# The cards could do far better. Suppose you measure 15% MBU, and a colleague's server reaches 60% on the same eight
# cards. What does each of you see?

# %% key="mbu-levels"
whole = 8 * a100.bytes_per_s
show.table(
    [
        {
            "MBU": f"{share:.0%}",
            "a token takes": show.si(read / (whole * share), "s"),
            "tokens/s for one reader": round(whole * share / read),
        }
        for share in (0.15, 0.6, 1.0)
    ],
    caption="70 GB a token on 8 x A100 80GB SXM",
    kinds={
        "a token takes": "modelled",
        "tokens/s for one reader": "modelled",
    },
)

# %% [markdown] key="mbu-meaning"
# At 15% the eight cards barely keep the promise. At 60% they keep it with room to spare. The difference is not hardware: small
# kernels, launches that nobody hid, messages between the cards. It is worth as much as four times the GPUs.
#
# And your own machine? One row against one matrix is a decoding step in small, against the copy bandwidth of the same
# run.

# %% key="own-mbu"
own = mbu(d * d * size, 0, seconds[0], bytes_per_s, 1)
show.number(100 * own, "% MBU with one row", "measured")

# %% [markdown] key="gpus-intro"
# ## Exercise: how many GPUs
#
# ●●○○ · 7 minutes · 2 points
#
# Weights and cache are split evenly over equal GPUs, and each reads its part once for every token, all at the same time. A GPU
# has `memory_bytes`, and of its `bytes_per_s` it reaches the share `utilisation`. Messages are ignored.
#
# Return the smallest number of GPUs that hold `weight_bytes + kv_bytes` and read them within `seconds_per_token`. Example: 70 GB in
# 30 ms from A100 cards at 60% takes two.

# %% key="gpus_for_latency" tags=["exercise"]
def gpus_for_latency(
    weight_bytes: float,
    kv_bytes: float,
    seconds_per_token: float,
    bytes_per_s: float,
    memory_bytes: float,
    utilisation: float,
) -> int:
    """Least GPUs that hold a model and give each token in time.

    >>> gpus_for_latency(70e9, 0, 0.030, 2.039e12, 80e9, 0.6)
    2
    """
    ### BEGIN SOLUTION
    held = weight_bytes + kv_bytes
    in_time = held / (seconds_per_token * bytes_per_s * utilisation)
    return max(math.ceil(in_time), math.ceil(held / memory_bytes))
    ### END SOLUTION


# %% key="gpus_for_latency-check" tags=["check"]
gpus_for_latency = check("03.gpus_for_latency", gpus_for_latency)

# %% key="gpus-table"
card = a100.bytes_per_s, a100.memory_bytes
show.table(
    [
        {
            "asked": words,
            "at 15% MBU": gpus_for_latency(read, 0, each, *card, 0.15),
            "at 60% MBU": gpus_for_latency(read, 0, each, *card, 0.6),
        }
        for words, each in asked.items()
    ],
    caption="A100 80GB cards for a 70 GB model",
    kinds={"at 15% MBU": "modelled", "at 60% MBU": "modelled"},
)

# %% [markdown] key="gpus-meaning"
# Two well-fed cards do what eight starving ones do. And the two readings of "thirty" can differ by a whole card, so ask which
# one is meant before you order.

# %% [markdown] key="bound-intro"
# ## Exercise: tokens per second
#
# ●●○○ · 7 minutes · 2 points
#
# One reader pays for all the weights alone. A batch shares them. One decoding step gives each of `batch` sequences one token. It
# reads the weights once and one cache of `kv_bytes_per_sequence` for each sequence; it does `flops_per_token` FLOPs for each
# token. Bytes and FLOPs overlap.
#
# Return the upper bound on tokens per second of the **whole batch**, on hardware with this peak and this bandwidth. Example: 70 GB
# for one sequence on one H100, about 48.

# %% key="tokens_per_second_bound" tags=["exercise"]
def tokens_per_second_bound(
    weight_bytes: float,
    kv_bytes_per_sequence: float,
    flops_per_token: float,
    batch: int,
    peak_flops_per_s: float,
    bytes_per_s: float,
) -> float:
    """Most tokens per second that a batch can get, all sequences together.

    >>> bound = tokens_per_second_bound
    >>> round(bound(70e9, 0, 140e9, 1, 989.4e12, 3.35e12), 1)
    47.9
    """
    ### BEGIN SOLUTION
    step_bytes = weight_bytes + batch * kv_bytes_per_sequence
    step_flops = batch * flops_per_token
    step_seconds = max(step_bytes / bytes_per_s, step_flops / peak_flops_per_s)
    return batch / step_seconds
    ### END SOLUTION


# %% key="tokens_per_second_bound-check" tags=["check"]
tokens_per_second_bound = check(
    "03.tokens_per_second_bound", tokens_per_second_bound
)

# %% [markdown] key="batch-plot-intro"
# Eight A100 cards again, 70 GB of weights, arithmetic in bf16. Each sequence has 4096 positions in its cache, at two bytes an
# element. Llama 2 70B shares keys and values among its 64 heads, 8 to 1. What if it did not?

# %% key="batch-plot"
batches = [2**i for i in range(11)]
ends = 8 * a100.peak("bf16"), 8 * a100.bytes_per_s
caches = {
    "no cache": 0,
    "8 shared heads": kv_cache_bytes(80, 8, 128, seq_len=4096),
    "64 heads, own keys": kv_cache_bytes(80, 64, 128, seq_len=4096),
}
bounds = {
    name: [
        tokens_per_second_bound(read, kv, 2 * read, b, *ends) for b in batches
    ]
    for name, kv in caches.items()
}
lost = bounds["8 shared heads"][8] / bounds["no cache"][8]
show.lines(
    [Series(batches, y, name, "modelled") for name, y in bounds.items()],
    x="sequences in the batch",
    y="tokens per second",
    log=True,
    title=f"At batch 256 the shared cache leaves {lost:.0%} of the bound",
)

# %% key="batch-memory"
for name, kv in caches.items():
    if kv:
        room = (8 * a100.memory_bytes - read) / kv
        print(
            f"{name}: {show.si(kv, 'bytes')} a sequence,"
            f" {room:.0f} sequences fit"
        )

# %% [markdown] key="batch-meaning"
# Without a cache the bound rises with the batch and then meets the ceiling of arithmetic: the roofline again, lying on its
# side. With a cache it bends earlier and never gets there, because cache bytes grow with the batch. So a crossover batch says where
# **weights** stop being the limit. With long contexts the cache is the limit by then, and it may have filled the memory.
#
# Note what this curve is not: a promise. It is the line above which nobody can be.

# %% [markdown] key="upgrade-intro"
# ## Exercise: bigger, or better fed?
#
# ●●●○ · 8 minutes · 2 points
#
# You may replace your card. One offer is **bigger**: `peak_factor` times the FLOP/s, the same bandwidth. The other is **better
# fed**: `bandwidth_factor` times the bytes/s, the same peak.
#
# Your workload is a list of `steps`, one after another, each a pair `(flops, bytes)`. A step takes as long as its slower
# side. Return a dictionary: `"bigger"` and `"better_fed"` are the speedups of the whole workload (time before over time after),
# `"choose"` is the name of the larger one, or `"same"` when they are equal.

# %% key="bigger_or_better_fed" tags=["exercise"]
def bigger_or_better_fed(
    steps: list,
    peak_flops_per_s: float,
    bytes_per_s: float,
    peak_factor: float,
    bandwidth_factor: float,
) -> dict:
    """Speedups of a workload on a bigger and on a better fed card.

    >>> bigger_or_better_fed([(8, 1), (1, 4)], 1, 1, 2, 2)["choose"]
    'bigger'
    """
    ### BEGIN SOLUTION
    def total(peak, bandwidth):
        return sum(max(f / peak, b / bandwidth) for f, b in steps)

    now = total(peak_flops_per_s, bytes_per_s)
    bigger = now / total(peak_flops_per_s * peak_factor, bytes_per_s)
    fed = now / total(peak_flops_per_s, bytes_per_s * bandwidth_factor)
    choose = "same"
    if bigger != fed:
        choose = "bigger" if bigger > fed else "better_fed"
    return {"bigger": bigger, "better_fed": fed, "choose": choose}
    ### END SOLUTION


# %% key="bigger_or_better_fed-check" tags=["check"]
bigger_or_better_fed = check(
    "03.bigger_or_better_fed", bigger_or_better_fed
)

# %% [markdown] key="upgrade-use"
# Try it on a real choice. Take an H100. The better fed card is the H200, same arithmetic, more bandwidth. The bigger one is
# imaginary: the same factor on the peak. The workloads, for a model of 8 billion parameters in bf16, counting weights and
# nothing else that moves: training on 16,384 tokens, a long prompt with a short answer, and chat for few and for many.

# %% key="upgrade-table"
h200 = accelerator("H200 SXM")
factor = h200.bytes_per_s / hbm
n_params, moved = 8e9, 16e9


def forward(tokens: int) -> tuple[float, float]:
    """FLOPs and weight bytes of one forward pass over some tokens."""
    return 2 * n_params * tokens, moved


workloads = {
    "training, forward and backward": [forward(16_384)] * 3,
    "prompt of 8,000, answer of 20": [forward(8_000)] + [forward(1)] * 20,
    "answer of 200, batch 8": [forward(8)] * 200,
    "answer of 200, batch 512": [forward(512)] * 200,
}
table = []
for name, steps in workloads.items():
    gains = bigger_or_better_fed(steps, bf16, hbm, factor, factor)
    table.append({"workload": name, **gains})
show.table(
    table,
    caption=f"Speedup from {factor:.2f} times one side of an H100",
    kinds={"bigger": "modelled", "better_fed": "modelled"},
)

# %% [markdown] key="at-scale"
# ## At scale
#
# Everything here was one chip and its memory. Three things change with more of them.
#
# **Messages appear.** Split the weights over more GPUs and each reads less, but at every layer they must add up their partial
# results. The table assumes two messages a layer, 80 layers, 10 microseconds each. The 10 microseconds are an assumption, and
# an optimistic one between machines; chapter 13 measures yours.

# %% key="at-scale-table"
messages = 2 * 80 * 10e-6
rows_at_scale = []
for n_gpu in (2, 8, 64, 1_000, 20_000):
    reading = read / (n_gpu * hbm)
    rows_at_scale.append(
        {
            "H100 GPUs": n_gpu,
            "reading": show.si(reading, "s"),
            "messages": show.si(messages, "s"),
            "bound, tokens/s": round(1 / (reading + messages)),
            "MBU at best": f"{reading / (reading + messages):.1%}",
        }
    )
modelled = list(rows_at_scale[0])[1:]
show.table(
    rows_at_scale,
    caption="One reader, 70 GB split over n GPUs",
    kinds=dict.fromkeys(modelled, "modelled"),
)

# %% [markdown] key="at-scale-misleads"
# Past a few dozen GPUs one reader gains nothing: latency is a floor that bandwidth cannot lower. Big clusters serve many
# readers with many small groups.
#
# **The batch must exist.** A batch of 256 needs 256 people waiting at once, or a queue (chapter 11).

# %% [markdown] key="at-scale-training"
# **Training is on the other side.** Its batch is thousands of rows for each GPU, far right of the bend, so a trick that saves
# weight bytes buys nothing there. It can look like a triumph at batch 1 on one small card. But split one batch over 20,000
# GPUs and the rows for each shrink until you cross the bend from the right (chapter 15).
#
# What stays: the bend sits where FLOPs per byte meet, on every chip with a memory.

# %% [markdown] key="remember"
# ## What to remember
#
# - Arithmetic intensity is FLOPs over bytes moved; the ridge point is peak over bandwidth. Compare the two before you optimise.
# - Decoding reads every weight for every step: its time is flat in the batch up to the bend, some hundred rows on GPUs.
# - Elementwise work, softmax and attention while decoding stay under the slope at any batch. Only fewer bytes help.
# - Below the ridge use MBU, above it MFU, each against a named peak.
# - A measured bend differs from peak over bandwidth by two factors you can measure: what the arithmetic reached, and what the
#   reading reached.

# %% [markdown] key="sources"
# ## Sources
#
# - S. Williams, A. Waterman, D. Patterson, "Roofline: an insightful visual performance model for multicore architectures",
#   Communications of the ACM 52(4), 2009.
# - R. Pope and others, "Efficiently scaling transformer inference", 2022, arXiv 2211.05102.
# - N. Shazeer, "Fast transformer decoding: one write-head is all you need", 2019, arXiv 1911.02150.
# - J. Ainslie and others, "GQA: training generalized multi-query transformer models from multi-head checkpoints", 2023, arXiv
#   2305.13245.
# - H. Touvron and others, "Llama 2: open foundation and fine-tuned chat models", 2023, arXiv 2307.09288.
# - Databricks, "LLM inference performance engineering: best practices", 2023 (MBU).
# - S. Bekman, "Machine learning engineering", the accelerator chapter (measured peaks).
# - Cards: `utils/hardware/accelerators.csv`, with a source for each row.
