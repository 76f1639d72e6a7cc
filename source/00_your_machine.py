# ---
# jupyter:
#   course:
#     title: "0. What can this machine do?"
#     minutes: 80
#     hardware: "no GPU; with one, the same cells measure it"
#     needs: "Python; that a matrix product is sums of products"
#     leaves_with: "a measured profile of your machine, and a clock you can trust"
# ---

# %% [markdown] key="title"
# # 0. What can this machine do?
#
# Your machine can do far more arithmetic than you have ever seen it do. Run the next cells: they do the same two billion
# operations in two ways. Compare the times.

# %% key="setup" tags=["setup"]
import statistics
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import torch

from utils import show
from utils.arithmetic import days_to_train
from utils.course import against_prediction, check, hint, predict
from utils.course import progress, quiz, reveal, start
from utils.hardware import accelerator, features, synchronise
from utils.hardware import time_samples, torch_dtype

facts = features()
my_device = facts["device"]
my_chip = facts["gpu"] if my_device != "cpu" else facts["cpu"]
print(f"{my_chip}, {facts['cores']} CPU cores, {facts['memory_gb']} GB memory")

# %% [markdown] key="two-billion"
# ## Two billion operations
#
# The product of two matrices of 1024 x 1024 numbers takes $2 \times 1024^3$, about two billion, multiplications and
# additions. PyTorch will do it in one line.
#
# Commit to a number first: how many milliseconds will that line take here? A wrong guess is worth more than none,
# because you will remember by how much. You can also run on without one.

# %% key="predict-two-billion"
predict(
    "00.two_billion",
    "How many milliseconds do two billion operations take here?",
    unit="ms",
)

# %% key="measure-two-billion"
def python_loop(count):
    """Seconds that a plain Python loop takes for `count` multiply-adds."""
    total, x, y = 0.0, 1.1, 0.9
    begin = time.perf_counter()
    for _ in range(count):
        total = total + x * y
    return time.perf_counter() - begin


big_square = torch.randn(1024, 1024, device=my_device)
mm_samples = time_samples(torch.mm, big_square, big_square)
mm_seconds = statistics.median(mm_samples)
loop_seconds = python_loop(300_000) / 300_000 * 1024**3

against_prediction("00.two_billion", 1000 * mm_seconds, "ms")
show.bars(
    ["a Python loop", "one line of PyTorch"],
    [loop_seconds, mm_seconds],
    unit="seconds",
    kind=["modelled", "measured"],
    log=True,
    title=f"{loop_seconds / mm_seconds:,.0f} times apart, on one machine",
)

# %% [markdown] key="why-apart"
# The arithmetic is the same. What differs is how numbers reach the circuits that multiply. The loop fetches,
# unpacks and checks every pair on its own. The one line hands over whole blocks, to many circuits at once.
#
# That is the thesis of this course: **compute is rarely the bottleneck; understanding what feeds it is.** Every chapter
# takes such a gap, measures it, and closes part of it. This one asks the first question: how fast *could* this
# machine go?

# %% [markdown] key="kinds"
# ## How to read
#
# You have used two of the four tools already.
#
# - **Predictions.** You commit, then measure.
# - **Kinds of numbers.** Each number is ● *measured* here and now, □ *modelled* from a formula, or ▲ *published* by
#   others. They look different in every plot. The loop's bar is modelled: 300,000 rounds were timed, the rest is
#   proportion.
# - **Quizzes.** Three questions open each chapter. Answers are instant, nothing is graded. The next cell is one.
# - **Exercises with a check.** The first comes right after.

# %% key="recall"
quiz("00.recall")

# %% [markdown] key="matmul_rate-intro"
# ## Exercise: operations per second
#
# ●○○○ · 5 minutes · 1 point
#
# A FLOP is one floating-point operation; FLOP/s is how many are done in a second. One number of an (m, k) by (k, n) product is a sum
# of k products. Each costs two FLOPs, a multiplication and an addition, and there are m·n such numbers.
#
# Return the FLOP/s of a product that took `seconds`. So two billion operations in 0.02 s are $10^{11}$ FLOP/s.
#
# First run both cells as they are. The check will say *not attempted* and the chapter goes on with the course's
# version: **you can skip any exercise and still read on.** Then replace the `raise` and run both again. Try a wrong answer, too.

# %% key="matmul_rate" tags=["exercise"]
def matmul_rate(m: int, n: int, k: int, seconds: float) -> float:
    """FLOP/s of an (m, k) @ (k, n) product, two FLOPs a multiply-add.

    >>> matmul_rate(100, 200, 50, 0.001)
    2000000000.0
    """
    ### BEGIN SOLUTION
    return 2 * m * n * k / seconds
    ### END SOLUTION


# %% key="matmul_rate-check" tags=["check"]
matmul_rate = check("00.matmul_rate", matmul_rate)

# %% [markdown] key="stuck"
# Stuck? In a new cell, `hint("00.matmul_rate")` shows the first of three hints, then the next; `reveal("00.matmul_rate")`
# shows the solution. Passing answers are saved, and later chapters build on them. `progress()` lists all exercises
# and your points. After a restart of the kernel, run the cells again from the top: your answers are still there.

# %% [markdown] key="bf16-question"
# ## Do fewer bits go faster?
#
# The numbers above were **fp32**: 4 bytes each. Models are trained in **bf16** or **fp16**, 2 bytes each, because half the bytes
# travel in half the time. So a bf16 product should be twice as fast as an fp32 one. Is it, here?

# %% key="predict-bf16"
predict(
    "00.bf16",
    "How many times as fast as fp32 is a bf16 product here?",
    unit="times",
)

# %% key="measure-bf16"
def ratio(value):
    """A ratio as people say it: 1,240 or 4.4."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.2g}"


def product_rates(n, dtypes=("fp32", "bf16", "fp16"), rounds=5):
    """{dtype: FLOP/s samples} of an (n, n) product, where it runs at all."""
    found = {}
    for dtype in dtypes * rounds:  # in turns: a busy moment hits all alike
        try:
            x = torch.randn(n, n, device=my_device).to(torch_dtype(dtype))
            times = time_samples(torch.mm, x, x, repeats=3, max_seconds=0.5)
        except (RuntimeError, TypeError):
            continue  # this device has no product in this dtype
        found.setdefault(dtype, []).extend(
            matmul_rate(n, n, n, t) for t in times
        )
    return found


rate_samples = product_rates(512 if my_device == "cpu" else 4096)
rate_medians = {d: statistics.median(r) for d, r in rate_samples.items()}
times_fp32 = {d: r / rate_medians["fp32"] for d, r in rate_medians.items()}

if "bf16" in times_fp32:
    against_prediction("00.bf16", times_fp32["bf16"], "times")
show.bars(
    list(rate_medians),
    list(rate_medians.values()),
    unit="FLOP/s",
    kind="measured",
    spread=[(min(r), max(r)) for r in rate_samples.values()],
    log=True,
    title="As fast as fp32: "
    + ", ".join(
        f"{d} {ratio(times)} times"
        for d, times in times_fp32.items()
        if d != "fp32"
    ),
)

# %% [markdown] key="why-dtypes"
# The thin line on a bar runs from the slowest to the fastest sample. Where it is long, something else was running, and the
# ratio in the title is worth little. Run the cell again.

# %% [markdown] key="why-circuits"
# Half the bytes can explain a factor of two and no more. What lies beyond comes from circuits. A chip is as fast in a
# dtype as the circuits it has for it: tensor cores on a GPU, tile or dot-product units in some CPUs. Where there are
# none, the library converts number by number, and the "cheaper" dtype is slower than fp32.
#
# So *the* speed of a machine does not exist. There is one for each dtype, and it has to be measured. But can you trust the
# clock? Not yet.

# %% [markdown] key="four-traps"
# ## Four ways to fool yourself
#
# You want to know how long an operation takes. You read the clock, do it, read the clock again. Four things go wrong
# with that. You will see each of them on this machine, then write a timer that falls for none.
#
# ### One: the first call is another animal
#
# Here are twelve calls of the same product, in order, each timed. The shape is new to this process.

# %% key="first-call"
def call_by_call(function, count):
    """Seconds of each of `count` calls, the first included."""
    found = []
    for _ in range(count):
        begin = time.perf_counter()
        function()
        synchronise()
        found.append(time.perf_counter() - begin)
    return found


new_dtype = torch_dtype("bf16" if "bf16" in rate_medians else "fp32")
new_shape = torch.randn(331, 331, device=my_device).to(new_dtype)
twelve = call_by_call(lambda: torch.mm(new_shape, new_shape), 12)
first_ratio = twelve[0] / statistics.median(twelve[1:])

show.line(
    list(range(1, 13)),
    twelve,
    x="call",
    y="time (seconds)",
    log="y",
    title=f"The first call took {ratio(first_ratio)} times the rest",
)

# %% [markdown] key="why-first"
# The first call also chooses an algorithm for this shape, generates or loads its code, asks the system for memory and
# fills the caches. None of that happens again: run the cell once more, and the first call looks like the others,
# because this process remembers.
#
# Time the first call and you measure the preparation. So **warm up**: call once, throw the time away. (When
# a job is short, the preparation is part of its price. Then say so.)

# %% [markdown] key="beside"
# ### Two: the device that answers before it has worked
#
# A GPU works *beside* the CPU that commands it. `x @ y` on a GPU returns as soon as the request is in the queue; the
# work happens later. This is called **asynchronous**.
#
# You may have no GPU, so here is a device of the same kind: a thread that works off requests in order. `run` returns at
# once. `synchronize` waits until the queue is empty, as `torch.cuda.synchronize` does.

# %% key="beside-device"
class Beside:
    """Works off requests in order, beside the caller, as a GPU does."""

    def __init__(self):
        self.queue = ThreadPoolExecutor(1)
        self.last = self.queue.submit(int)

    def run(self, function):
        self.last = self.queue.submit(function)

    def synchronize(self):
        self.last.result()


beside = Beside()
huge = torch.randn(2048, 2048, device=my_device)


def huge_product():
    torch.mm(huge, huge)
    synchronise()


# %% key="predict-beside"
predict(
    "00.beside",
    "17 billion operations, clock read right after `run` returns: "
    "how many TFLOP/s will it claim?",
    unit="TFLOP/s",
)

# %% key="measure-beside"
too_early, waited = [], []
for _ in range(4):
    beside.synchronize()
    begin_run = time.perf_counter()
    beside.run(huge_product)
    too_early.append(time.perf_counter() - begin_run)
    beside.synchronize()
    waited.append(time.perf_counter() - begin_run)

n_huge = len(huge)
claimed = matmul_rate(n_huge, n_huge, n_huge, statistics.median(too_early))
real = matmul_rate(n_huge, n_huge, n_huge, statistics.median(waited))
h100_bf16 = accelerator("H100 SXM").peak("bf16")

against_prediction("00.beside", claimed / 1e12, "TFLOP/s")
show.bars(
    ["clock read too early", "clock read after waiting", "H100, bf16 peak"],
    [claimed, real, h100_bf16],
    unit="FLOP/s",
    kind=["measured", "measured", "published"],
    log=True,
    title=f"Read too early, the clock claims {ratio(claimed / real)} times "
    "the real rate",
)

# %% [markdown] key="why-beside"
# The first bar is no rate at all. It is the time to *ask*. On a GPU such a number is easily reported, because nothing looks
# wrong: no error, and a wonderful result.
#
# So **synchronise** before each reading of the clock. After the work, so that it is in. Before it too, so that nothing older is.
# And be suspicious of any rate above the peak. You will compute that ratio below.

# %% [markdown] key="zeros"
# ### Three: zeros are not data
#
# `torch.zeros` is the quickest way to get something to multiply. Does a product of zeros take as long as a
# product of random numbers? Does sorting them? Measured in turns, so that a busy moment hits both.

# %% key="measure-zeros"
def in_turns(functions, rounds):
    """Median seconds of each function, measured in turns."""
    found = [[] for _ in functions]
    for _ in range(rounds):
        for function, times in zip(functions, found, strict=True):
            times += time_samples(function, repeats=3)
    return [statistics.median(each) for each in found]


random_data = torch.randn(768, 768, device=my_device)
zero_data = torch.zeros_like(random_data)
mm_random, mm_zeros, sort_random, sort_zeros = in_turns(
    [
        lambda: torch.mm(random_data, random_data),
        lambda: torch.mm(zero_data, zero_data),
        lambda: torch.sort(random_data),
        lambda: torch.sort(zero_data),
    ],
    rounds=5,
)
show.table(
    [
        {
            "operation": "product",
            "random": show.si(mm_random, "s"),
            "zeros": show.si(mm_zeros, "s"),
            "random over zeros": round(mm_random / mm_zeros, 2),
        },
        {
            "operation": "sort of each row",
            "random": show.si(sort_random, "s"),
            "zeros": show.si(sort_zeros, "s"),
            "random over zeros": round(sort_random / sort_zeros, 2),
        },
    ],
    kinds=dict.fromkeys(
        ("random", "zeros", "random over zeros"), "measured"
    ),
    caption="The same operation on 768 x 768 numbers",
)

# %% [markdown] key="why-zeros"
# A ratio near 1 means that this operation does not look at its numbers. Sorting has to. A product on a CPU mostly has
# not.
#
# On a large GPU even a product does: flipping bits takes power, zeros flip none, and a chip that runs at its power limit
# clocks higher when its numbers are dull (He, 2024). No instruction changed, only the data.
#
# So **use random data**, or better, real data. Every measurement in this course does.

# %% [markdown] key="noise"
# ### Four: no two calls agree
#
# Now 200 calls of one small product: warmed up, synchronised, on random data. Nothing changes from call to call. Look at
# what the clock says.

# %% key="measure-noise"
small_square = torch.randn(192, 192, device=my_device)
noise_samples = call_by_call(
    lambda: torch.mm(small_square, small_square), 210
)[10:]
noise_median = statistics.median(noise_samples)
slowest_ratio = max(noise_samples) / noise_median

show.line(
    list(range(1, 201)),
    noise_samples,
    x="call",
    y="time (seconds)",
    log="y",
    title=f"The slowest of 200 equal calls took {ratio(slowest_ratio)} times "
    "the median",
)

# %% [markdown] key="statistics"
# Other programs, interrupts, a processor that changes its pace: nearly all of them add time. So which one number
# stands for these 200? Cut them into ten groups of 20, summarise each group in four ways, and see how much each
# summary moves from group to group.

# %% key="measure-statistics"
groups = [noise_samples[i : i + 20] for i in range(0, 200, 20)]
summaries = {"min": min, "median": statistics.median}
summaries |= {"mean": statistics.fmean, "max": max}
moves = {}
for name_of_it, summary in summaries.items():
    by_group = [summary(group) for group in groups]
    moves[name_of_it] = max(by_group) / min(by_group)

show.bars(
    list(moves),
    list(moves.values()),
    unit="times",
    kind="measured",
    title="Largest group over smallest: "
    f"{moves['mean']:.3g} times for the mean, "
    f"{moves['median']:.3g} for the median",
)

# %% [markdown] key="why-median"
# One interrupted call is enough to move a mean. The median does not notice until half the calls are disturbed. The
# minimum can be steady too, but it answers another question: what luck allows, not what you will get.
#
# So **repeat, take the median, show the spread**.

# %% [markdown] key="median_time-intro"
# ## Exercise: a timer you can trust
#
# ●●○○ · 15 minutes · 3 points
#
# Put it together. You get three functions and a number:
#
# - `run()` asks for the work once; it may return before the work is done;
# - `synchronize()` waits until all work asked for is done;
# - `clock()` returns seconds, like `time.perf_counter`;
# - `repeats` is how many samples to take, an odd number.
#
# Warm up with at least one call. Then take exactly `repeats` samples, each from an idle device to finished work, and return their
# median in seconds. Use only the three functions: the check runs your code on a made-up device with a made-up clock, so
# that its verdict is exact.

# %% key="median_time" tags=["exercise"]
def median_time(run, synchronize, clock, repeats: int) -> float:
    """Median seconds of run() on a device that may be asynchronous.

    >>> ticks = iter([0.0, 2.0, 5.0, 8.0, 9.0, 10.0])  # 2, 3, 1 seconds
    >>> median_time(lambda: None, lambda: None, lambda: next(ticks), 3)
    2.0
    """
    ### BEGIN SOLUTION
    run()
    synchronize()
    samples = []
    for _ in range(repeats):
        begin = clock()
        run()
        synchronize()
        samples.append(clock() - begin)
    return statistics.median(samples)
    ### END SOLUTION


# %% key="median_time-check" tags=["check"]
median_time = check("00.median_time", median_time)

# %% [markdown] key="use-median_time"
# Point it at the device that answered too early. If your timer is right, the wonderful rate is gone.

# %% key="honest-beside"
honest_seconds = median_time(
    lambda: beside.run(huge_product),
    beside.synchronize,
    time.perf_counter,
    5,
)
honest = matmul_rate(n_huge, n_huge, n_huge, honest_seconds)
show.bars(
    ["clock read too early", "median_time"],
    [claimed, honest],
    unit="FLOP/s",
    kind="measured",
    log=True,
    title=f"An honest clock takes {1 - honest / claimed:.2%} of the rate away",
)

# %% [markdown] key="memory"
# ## How fast do numbers arrive?
#
# Circuits are half of a machine. The other half is the memory that feeds them. Its speed is called **bandwidth**, in
# bytes per second, and the plainest way to measure it is a copy: no arithmetic, only bytes.

# %% [markdown] key="copy_bandwidth-intro"
# ## Exercise: the bandwidth of a copy
#
# ●○○○ · 6 minutes · 1 point
#
# A copy took `seconds`. It had `n_elements` of `bytes_per_element` each. Return the bandwidth in GB/s, where a GB is $10^9$
# bytes. Count every byte that the copy asks the memory to move, in either direction. Half a billion fp32 numbers in one second are
# 4 GB/s.

# %% key="copy_bandwidth" tags=["exercise"]
def copy_bandwidth(
    n_elements: int, bytes_per_element: int, seconds: float
) -> float:
    """GB/s (10^9 bytes) that a copy moves: what it reads and what it writes.

    >>> copy_bandwidth(500_000_000, 4, 1.0)
    4.0
    """
    ### BEGIN SOLUTION
    moved = 2 * n_elements * bytes_per_element
    return moved / seconds / 1e9
    ### END SOLUTION


# %% key="copy_bandwidth-check" tags=["check"]
copy_bandwidth = check("00.copy_bandwidth", copy_bandwidth)

# %% [markdown] key="predict-memory-intro"
# Try it on 16 million numbers, with your own timer. Then predict: 16 **thousand** numbers fit into a small, fast memory beside the
# circuits, a **cache**. Sixteen million do not. How many times as fast is the best copy in cache, byte for byte?

# %% key="copy-once"
copy_from = torch.randn(16_000_000, device=my_device)
copy_to = copy_from.clone()
copy_seconds = median_time(
    lambda: copy_to.copy_(copy_from), synchronise, time.perf_counter, 7
)
show.number(
    1e9 * copy_bandwidth(copy_from.numel(), 4, copy_seconds),
    "bytes/s",
    "measured",
    source="copy of 16 million fp32 numbers",
)
predict(
    "00.cache",
    "The fastest copy in cache over the copy past the caches?",
    unit="times",
)

# %% [markdown] key="profile"
# ## Your machine's profile
#
# The next cell measures everything, once: products in each dtype, copies from tiny to large, the smallest operation. It
# takes less than half a minute and saves the result in `answers/machine.json`. Every later chapter opens with the same line
# and finds the profile there.
#
# Close what else is running, if you can.

# %% key="start"
machine = start("00")

# %% key="profile-print"
print(machine)

# %% key="profile-copy"
copy_sizes = [size for size, _ in machine.copy]
copy_rates = [rate.median for _, rate in machine.copy]
best_copy = max(copy_rates)
cache_ratio = best_copy / machine.bytes_per_s

against_prediction("00.cache", cache_ratio, "times")
show.line(
    copy_sizes,
    copy_rates,
    x="read and written by one copy (bytes)",
    y="bandwidth (bytes/s)",
    log=True,
    spread=[(rate.low, rate.high) for _, rate in machine.copy],
    title=f"{show.si(best_copy, 'bytes/s')} in cache, "
    f"{show.si(machine.bytes_per_s, 'bytes/s')} past it: "
    f"{cache_ratio:.2g} times",
)
if machine.caches:
    show.table(
        [
            {"cache": level, "size": f"{size / 2**10:,.0f} KiB"}
            for level, size in machine.caches.items()
        ],
        caption="Caches, as reported",
    )

# %% [markdown] key="why-steps"
# Read the curve from left to right. The smallest copies are slow although they fit everywhere: asking costs more than
# copying. Then comes a hill, where all data stays in a cache. Each step down lies near the size of a cache, summed over
# the cores that help. On the right nothing fits any more: this is main memory.
#
# A system may report the caches of one core. A virtual machine may name a last cache that it shares with others. Believe the
# curve.
#
# The right end counts for a model: its weights fit no cache. The left end is the reason why
# good kernels touch a number once and use it many times (chapters 3, 7 and 8).

# %% key="profile-matmul"
profile_dtypes = list(machine.matmul)
fastest_dtype = max(profile_dtypes, key=machine.peak)
show.bars(
    [f"{d}, n = {machine.matmul_size[d]}" for d in profile_dtypes],
    [machine.peak(d) for d in profile_dtypes],
    unit="FLOP/s",
    kind="measured",
    spread=[(machine.matmul[d].low, machine.matmul[d].high)
            for d in profile_dtypes],
    log=True,
    title=f"The peak of this machine: {fastest_dtype}, "
    f"{show.si(machine.peak(fastest_dtype), 'FLOP/s')}",
)

# %% [markdown] key="peaks-moved"
# Compare with the bars at the beginning. The profile tries several sizes and keeps the best, so its rates can be higher: a small
# product does not fill the machine. It comes back to each several times, shows the spread, and says above if something
# else was running. Then measure again on a quieter day: `from utils.hardware import probe`, `probe(force=True)`.

# %% [markdown] key="launch"
# ## What does it cost to ask?
#
# The left end of the copy curve was slow because each request costs something, however small the work: Python calls PyTorch, PyTorch
# looks up types and shapes, picks a kernel, and on a GPU sends it across. This is the **launch overhead**.
#
# It hides in every timing. For an addition of n numbers, say the time is
#
# $$t(n) = \text{overhead} + \frac{n}{\text{rate}},$$
#
# a straight line. `overhead` is in seconds, `rate` in numbers per second. How many numbers could your machine add in the time that it takes
# to ask?

# %% key="predict-launch"
predict(
    "00.launch",
    "How many additions fit into the time of one request?",
    unit="additions",
)

# %% [markdown] key="launch_overhead-intro"
# ## Exercise: separate the request from the work
#
# ●●○○ · 12 minutes · 2 points
#
# You get `sizes` (numbers added) and `seconds` (the time of each), two lists of equal length with at least two different
# sizes. Fit the line by least squares, all points with the same weight. Return two numbers: the overhead in seconds and the rate
# in numbers per second. Noise may put the line's start below zero: return it as it is.
#
# With sizes 1000 and 3000 and times 4 µs and 6 µs, the overhead is 3 µs and the rate $10^9$ a second.

# %% key="launch_overhead" tags=["exercise"]
def launch_overhead(
    sizes: list[int], seconds: list[float]
) -> tuple[float, float]:
    """(overhead in seconds, rate in 1/s) of seconds = overhead + n / rate.

    >>> overhead, rate = launch_overhead([1000, 3000], [4e-6, 6e-6])
    >>> round(overhead * 1e6, 3), round(rate / 1e9, 3)
    (3.0, 1.0)
    """
    ### BEGIN SOLUTION
    slope, intercept = np.polyfit(sizes, seconds, 1)
    return float(intercept), float(1 / slope)
    ### END SOLUTION


# %% key="launch_overhead-check" tags=["check"]
launch_overhead = check("00.launch_overhead", launch_overhead)

# %% key="measure-launch"
def seconds_of_add(n, calls=20):
    """Median seconds of one addition of n numbers, by your own timer."""
    x = torch.randn(n, device=my_device)
    out = torch.empty_like(x)

    def several():
        for _ in range(calls):
            torch.add(x, x, out=out)

    return median_time(several, synchronise, time.perf_counter, 501) / calls


add_step = 2_000 if my_device == "cpu" else 400_000
add_sizes = [add_step * i for i in range(1, 11)]
add_times = [seconds_of_add(n) for n in add_sizes]
fitted_overhead, fitted_rate = launch_overhead(add_sizes, add_times)
break_even = fitted_overhead * fitted_rate

against_prediction("00.launch", break_even, "additions")
show.lines(
    [
        show.Series(add_sizes, add_times, "additions", "measured"),
        show.Series(
            [0, *add_sizes],
            [fitted_overhead + n / fitted_rate for n in [0, *add_sizes]],
            "fitted line",
            "modelled",
        ),
    ],
    x="numbers added",
    y="time (seconds)",
    title=f"Asking costs {show.si(fitted_overhead, 's')}, "
    f"as much as {break_even:,.0f} additions",
)

# %% [markdown] key="why-launch"
# Below that many numbers the machine is busy being asked. Making the work smaller saves nothing there; making fewer
# requests does. That is why a model of a thousand tiny operations crawls on the fastest GPU, and why fusing them (chapters
# 6 and 7) pays.
#
# The profile has the same cost from the other side: one addition of two single numbers, which also asks for memory
# to put its result in.

# %% key="launch-profile"
show.number(
    machine.launch.median,
    "seconds",
    "measured",
    source="one addition of two numbers, from the profile",
)

# %% [markdown] key="utilisation-why"
# ## Is that good?
#
# Say you measured 400 TFLOP/s in bf16 on an H100. Good? That depends on what you divide by. Its data sheet has many rates:
#
# - **vector**: the general circuits, one number at a time each;
# - **tensor**: the matrix units, where products run;
# - **tensor sparse**: twice the dense rate, if half of the weights are zeros in a fixed pattern. Yours are not.
#
# The share of the peak you reach is your **utilisation**. It is honest only against the rate that your work could have had.

# %% [markdown] key="utilisation-intro"
# ## Exercise: utilisation
#
# ●●○○ · 10 minutes · 2 points
#
# A dense product in `dtype` ran at `flops_per_s`. `peaks` is a data sheet: a dictionary from labels such as
# `"bf16 tensor"`, `"bf16 tensor sparse"` and `"fp32 vector"` to FLOP/s. Return the fraction of the right peak:
#
# - the dense tensor rate of that dtype;
# - if the sheet prints only the sparse tensor rate of that dtype, half of it;
# - if it prints no tensor rate of that dtype, its vector rate.
#
# Do not cap it: a result above 1 says that the rate or the sheet is wrong.

# %% key="utilisation" tags=["exercise"]
def utilisation(
    flops_per_s: float, dtype: str, peaks: dict[str, float]
) -> float:
    """The fraction of the dense peak in `dtype` that flops_per_s reaches.

    >>> sheet = {"fp32 vector": 67e12, "bf16 tensor sparse": 1978e12}
    >>> utilisation(494.5e12, "bf16", sheet)
    0.5
    """
    ### BEGIN SOLUTION
    if f"{dtype} tensor" in peaks:
        peak = peaks[f"{dtype} tensor"]
    elif f"{dtype} tensor sparse" in peaks:
        peak = peaks[f"{dtype} tensor sparse"] / 2
    else:
        peak = peaks[f"{dtype} vector"]
    return flops_per_s / peak
    ### END SOLUTION


# %% key="utilisation-check" tags=["check"]
utilisation = check("00.utilisation", utilisation)

# %% key="utilisation-use"
h100 = accelerator("H100 SXM")
h100_sheet = {"fp32 vector": h100.peak("fp32")}
for h100_dtype in ("tf32", "bf16", "fp8"):
    h100_dense = h100.peak(h100_dtype)
    h100_sheet[f"{h100_dtype} tensor"] = h100_dense
    h100_sheet[f"{h100_dtype} tensor sparse"] = 2 * h100_dense

show.table(
    [
        {
            "divided by": label,
            "peak": show.si(peak, "FLOP/s"),
            "utilisation": f"{400e12 / peak:.0%}",
        }
        for label, peak in h100_sheet.items()
    ],
    kinds={"peak": "published", "utilisation": "modelled"},
    caption="400 TFLOP/s in bf16 on an H100",
)
show.number(
    100 * utilisation(400e12, "bf16", h100_sheet),
    "%",
    "modelled",
    source="against the right one, bf16 tensor",
)

# %% [markdown] key="own-utilisation"
# The same measurement, and every answer from poor to impossible. The sparse rows make a good kernel look bad. The vector row
# gives more than 100%: whenever you see that, the peak is wrong or the clock is.
#
# Now your own machine. Its data sheet is the one you have just measured. How much of its peak does a product reach when the first
# matrix has few rows?

# %% key="rows-utilisation"
own_dtype = machine.best_dtype
own_sheet = {f"{d} tensor": machine.peak(d) for d in machine.matmul}
row_counts = [1, 4, 16, 64, 256, 1024]
row_weights = torch.randn(2048, 2048, device=my_device)
row_weights = row_weights.to(torch_dtype(own_dtype))
row_inputs = [row_weights[:rows].clone() for rows in row_counts]
row_times = in_turns(
    [lambda x=x: torch.mm(x, row_weights) for x in row_inputs], rounds=3
)
row_shares = [
    utilisation(matmul_rate(rows, 2048, 2048, t), own_dtype, own_sheet)
    for rows, t in zip(row_counts, row_times, strict=True)
]
show.line(
    row_counts,
    [100 * share for share in row_shares],
    x="rows",
    y="utilisation (%)",
    log=True,
    title=f"One row reaches {row_shares[0]:.2%} of the {own_dtype} peak, "
    f"1024 rows {row_shares[-1]:.0%}",
)

# %% [markdown] key="own-why"
# One row is what a language model multiplies when it writes one token for one person. The circuits wait: the whole
# weight matrix has to arrive for a handful of operations on each number. Chapter 3 turns this curve into a law that
# predicts it from two numbers of your profile.

# %% [markdown] key="native_bf16-intro"
# ## Exercise: does it really do bf16?
#
# ●○○○ · 8 minutes · 2 points
#
# PyTorch answers `torch.cuda.is_bf16_supported()` with True on a T4. A T4 has no circuits for bf16: it emulates, slowly. What counts on
# NVIDIA is the **compute capability**, a version number of the hardware such as 7.5 (T4) or 8.0 (A100). From 8.0 on the tensor
# cores take bf16.
#
# `vendor` and `capability` are texts, `says_supported` is what PyTorch said. For NVIDIA return True when bf16 is native, else
# False. For any other vendor return None: this rule does not know, and unknown is not no.

# %% key="native_bf16" tags=["exercise"]
def native_bf16(
    vendor: str, capability: str, says_supported: bool
) -> bool | None:
    """Is bf16 native, by NVIDIA's compute capability? None for others.

    >>> native_bf16("NVIDIA", "7.5", True), native_bf16("NVIDIA", "8.6", True)
    (False, True)
    >>> native_bf16("AMD", "gfx942", True) is None
    True
    """
    ### BEGIN SOLUTION
    if vendor != "NVIDIA":
        return None
    major, minor = capability.split(".")
    return (int(major), int(minor)) >= (8, 0)
    ### END SOLUTION


# %% key="native_bf16-check" tags=["check"]
native_bf16 = check("00.native_bf16", native_bf16)

# %% key="native-table"
NAMES_TO_TRY = [
    "T4", "V100-SXM2-32GB", "RTX 3090", "A100 80GB SXM", "RTX 4090",
    "H100 SXM", "B200 SXM (HGX)", "RTX 5090", "MI300X", "Gaudi 3",
    "TPU v5e", "Apple M2 Max", "Apple M3 Max 40c", "Cerebras WSE-2",
]  # fmt: skip
show.table(
    [
        {
            "accelerator": chip.name,
            "year": str(chip.year),
            "capability": chip.capability or None,
            "your rule": native_bf16(chip.vendor, chip.capability, True),
            "its maker": chip.native("bf16"),
        }
        for chip in map(accelerator, NAMES_TO_TRY)
    ],
    kinds={"your rule": "modelled", "its maker": "published"},
    caption="Native bf16. A dash is unknown",
)

# %% [markdown] key="measure-decides"
# Where the rule is silent, makers publish, and where makers are silent, you measure. You already did: a dtype with circuits of
# its own beats fp32, an emulated one loses.

# %% key="native-here"
emulated = [d for d in times_fp32 if times_fp32[d] < 0.8]
with_circuits = [d for d in times_fp32 if times_fp32[d] > 1.25]
print(f"On {my_chip}, in a product of this chapter:")
print("  clearly faster than fp32:", ", ".join(with_circuits) or "none")
print("  clearly slower than fp32:", ", ".join(emulated) or "none")

# %% [markdown] key="among-others"
# ## Your machine among others
#
# Now place it. Your numbers are measured: what a real product and a real copy reached. The others are published peaks,
# which real programs do not reach. The axis is logarithmic: each step multiplies.
#
# Try the **ridge point** last. It is peak over bandwidth: how many operations the machine can do for each byte that arrives.
# A chip with a high one is easily starved. That is why this course exists.

# %% key="figure" tags=["figure"]
OTHERS = [
    accelerator(name_of_chip)
    for name_of_chip in (
        "T4", "RTX 4090", "A100 80GB SXM", "H100 SXM",
        "H200 SXM", "B200 SXM (HGX)", "MI300X", "TPU v5e",
    )
]  # fmt: skip


def quantity_of(chip, wanted):
    """(value, unit) of a published accelerator or of this machine, or None."""
    what, _, dtype = wanted.partition(", ")
    try:
        if what == "matmul rate":
            return chip.peak(dtype), "FLOP/s"
        if what == "ridge point":
            return chip.ridge_point(dtype), "FLOP/byte"
    except ValueError:
        return None  # this chip has no native circuits, or nobody says
    if what == "memory bandwidth":
        return chip.bytes_per_s, "bytes/s"
    if chip is machine:
        gb = facts["gpu_memory_gb"] or facts["memory_gb"]
        return gb and (gb * 1e9, "bytes")
    return chip.memory_bytes, "bytes"


def among_others(quantity):
    """Bars of one quantity, this machine first, and a sentence."""
    chips = {"this machine": machine} | {c.name: c for c in OTHERS}
    known = {name: quantity_of(chip, quantity) for name, chip in chips.items()}
    missing = [name for name, value in known.items() if not value]
    known = {name: value for name, value in known.items() if value}
    kinds = ["published" if n != "this machine" else "measured" for n in known]
    values = [value for value, _ in known.values()]
    unit = next(iter(known.values()))[1]
    largest = max(known, key=lambda name: known[name][0])
    said = f"Largest {quantity}: {largest}, {show.si(max(values), unit)}."
    if "this machine" in known and largest != "this machine":
        times = max(values) / known["this machine"][0]
        said += f" That is {ratio(times)} times this machine."
    if missing:
        said += f" Left out, not native or not known: {', '.join(missing)}."
    picture = show.make.bars(
        list(known), values, unit=unit, kind=kinds, log=True,
        title=f"{quantity[0].upper() + quantity[1:]}: {largest} leads",
    )  # fmt: skip
    return picture, said


show.explore(
    among_others,
    quantity=show.Choice(
        [
            "matmul rate, bf16",
            "matmul rate, fp32",
            "matmul rate, fp16",
            "matmul rate, fp8",
            "memory bandwidth",
            "memory",
            "ridge point, bf16",
            "ridge point, fp32",
        ]
    ),
)

# %% [markdown] key="at-scale"
# ## At scale
#
# Your noise is a nuisance on one machine. With many it becomes the bill. When N machines take a step together, all wait for
# the slowest, so the step takes the *largest* of N samples. Draw N from your own 200 and see. With one machine you get the
# mean of the 200: even alone, a long run pays for its tail.

# %% key="noise-at-scale"
def expected_largest(values, n):
    """Mean of the largest of n draws from `values`, exactly."""
    ordered, count = sorted(values), len(values)
    chance = [((i + 1) / count) ** n - (i / count) ** n for i in range(count)]
    return float(np.dot(chance, ordered))


show.table(
    [
        {
            "machines": n_machines,
            "step, in medians of one machine": round(
                expected_largest(noise_samples, n_machines) / noise_median, 2
            ),
        }
        for n_machines in (1, 8, 64, 1000)
    ],
    kinds={"step, in medians of one machine": "modelled"},
    caption="The same noise on more machines, all waiting for the slowest",
)

# %% [markdown] key="at-scale-years"
# And what would it take to train a large model? GPT-3's training took $3.14 \times 10^{23}$ FLOPs (Brown and others, 2020). Model it: your
# machine at the peak you measured, which no real training run reaches, against H100s at 40% of theirs.

# %% key="years"
GPT3_FLOPS = 3.14e23
gpt3_days = {
    "this machine, at its peak": days_to_train(
        GPT3_FLOPS, 1, machine.peak(machine.best_dtype), 1.0
    )
}
for n_h100 in (8, 1000, 20000):
    gpt3_days[f"{n_h100:,} H100, at 40%"] = days_to_train(
        GPT3_FLOPS, n_h100, h100_bf16, 0.4
    )
show.table(
    [
        {"who": who, "time": show.si(86400 * d, "s")}
        for who, d in gpt3_days.items()
    ],
    kinds={"time": "modelled"},
    caption="One training run of GPT-3's size",
)

# %% [markdown] key="at-scale-list"
# What survives on 8, 1,000 or 20,000 GPUs, and what misleads:
#
# - **Survives:** warm up, synchronise, repeat, median; peaks by dtype; the dense rate. Every log of every cluster needs them.
# - **Misleads: the median.** A job that waits for its slowest member lives at the other end of the distribution. Plot the tail.
# - **Misleads: a cold chip.** A few seconds of products run at clocks that a day at the power limit does not keep. Measure long,
#   too.
# - **Misleads: one chip's peak times 20,000.** The last row above assumes that messages cost nothing beyond the 40%. Chapters 13 to 15 put them in.

# %% [markdown] key="remember"
# ## What to remember
#
# - A machine has no single speed: one peak for each dtype, one bandwidth for each size of data.
# - Warm up, synchronise, repeat, take the median, show the spread, on random data.
# - A copy moves each byte twice. A multiply-add is two FLOPs. A GB is $10^9$ bytes.
# - Asking has a fixed price. Below some size you pay for nothing else.
# - Utilisation is against the dense peak, in your dtype, of the unit you used. Above 100% means a mistake.

# %% [markdown] key="sources"
# ## Sources
#
# - NVIDIA, *CUDA C++ Programming Guide*: asynchronous execution; compute capabilities.
# - PyTorch documentation, *CUDA semantics*, section on asynchronous execution.
# - J. D. McCalpin, *Memory Bandwidth and Machine Balance in Current High Performance Computers*, 1995: counting a copy as a
#   read and a write.
# - H. He, *Strangely, Matrix Multiplications on GPUs Run Faster When Given "Predictable" Data*, 2024 (article on thonking.ai).
# - T. Brown and others, *Language Models are Few-Shot Learners*, 2020, arXiv 2005.14165: training compute, appendix D.
# - Published figures of accelerators: `utils/hardware/accelerators.csv`, a source in every row.
#
# Next: [How much work is a transformer?](01_flops.ipynb)
