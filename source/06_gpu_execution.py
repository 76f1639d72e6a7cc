# ---
# jupyter:
#   course:
#     title: "6. What happens under one line of PyTorch?"
#     minutes: 90
#     hardware: "no GPU; with one, the profile, the timings and the CUDA kernel run on it"
#     needs: "chapters 0 and 3; chapter 4 helps"
#     leaves_with: "the way of one line from Python to memory, and six numbers that say where it loses time"
# ---

# %% [markdown] key="title"
# # 6. What happens under one line of PyTorch?
#
# `y = torch.relu(x + b)`. One line, two operations, and between it and the memory lie a dozen layers: a dispatcher, a queue, a scheduler,
# thousands of threads, three caches. Most of the time nobody needs to know them.
#
# Then a model with 30 small operations a layer runs as slowly on an H100 as on a card of a tenth its price, and the monitor shows a busy GPU.
# To understand that you must have followed one line all the way down, once. Here it is.

# %% key="setup" tags=["setup"]
import ctypes
import math
import os
import platform
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

import numpy as np
import torch
from torch.profiler import ProfilerActivity, profile
from torch.utils._python_dispatch import TorchDispatchMode

from utils import show
from utils.course import against_prediction, check, hint, predict, quiz
from utils.course import progress, reveal, start
from utils.hardware import accelerator, median_time, time_samples
from utils.meter import LAUNCH_SECONDS, Cost, measure, meter
from utils.meter.compiled import compile_for
from utils.meter.interpreter import has_triton
from utils.show import Choice, Series, Slider

torch.manual_seed(0)
machine = start("06")
device = "cuda" if machine.device == "cuda" else "cpu"
no_triton = "Triton is not installed here; it exists for Linux."

# %% key="recall"
quiz("06.recall")

# %% [markdown] key="a-thousand-for-one"
# ## A thousand for the price of one?
#
# Add two arrays of one number each. Then two of a thousand. That is a thousand times the work, and a thousand times the bytes.

# %% key="predict-thousand"
predict(
    "06.thousand",
    "1,000 additions take how many times as long as one?",
    unit="times",
)

# %% key="measure-thousand"
one, thousand = (torch.randn(2, n, device=device) for n in (1, 1000))
samples = {n: [] for n in (1, 1000)}
for _ in range(5):  # in turn, so that a busy moment hits both
    for pair in (one, thousand):
        taken = median_time(torch.add, *pair, min_seconds=0.02)
        samples[pair.shape[1]].append(taken)
medians = {n: sorted(taken)[2] for n, taken in samples.items()}
ratio = medians[1000] / medians[1]
against_prediction("06.thousand", ratio, "times")
show.number(medians[1], "s for one addition", "measured")

# %% [markdown] key="thousand-why"
# Nearly the same. What you timed is not the addition. It is everything that happens before the first number is touched, and that does
# not depend on how many there are. So: what happens?

# %% [markdown] key="way-down"
# ## The way down
#
# **Python** evaluates `x + b`, which calls `torch.add`. From there C++ takes over.
#
# **The dispatcher** finds out which of many implementations is meant. It looks at the tensors: on which device, of which dtype, is a gradient
# to be recorded, does autocast want another dtype, is someone listening? One table lookup a question.
#
# **The operator** checks shapes, works out the result's shape, and asks the allocator for its memory.
#
# Below that point stands a loop, on a CPU, or a **kernel**, on a GPU: the program that does the additions.
#
# You can listen at the dispatcher's last floor.

# %% key="listen"
class Listen(TorchDispatchMode):
    """Prints every operator that reaches its implementation."""

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        result = function(*args, **(kwargs or {}))
        shapes = [tuple(a.shape) for a in args if isinstance(a, torch.Tensor)]
        print(f"{function}: {shapes} -> {tuple(result.shape)}")
        return result


x = torch.randn(64, 1000, device=device)
b = torch.randn(64, 1000, device=device)
with Listen():
    y = torch.relu(x + b)

# %% [markdown] key="profiler-intro"
# Two operators, each with its own result. Nothing told PyTorch that the sum is needed only for a moment. Now the same line under the profiler. With
# a GPU you also see `cudaLaunchKernel`, on the CPU's side, and the kernels, on the other.

# %% key="profiler"
os.environ.setdefault("KINETO_LOG_LEVEL", "99")  # the profiler's own words
torch.relu(x + b)  # what happens only the first time is not wanted
activities = [ProfilerActivity.CPU]
if device == "cuda":
    activities.append(ProfilerActivity.CUDA)
with profile(activities=activities) as trace:
    for _ in range(20):
        torch.relu(x + b)
rows = []
for event in trace.key_averages():
    if event.count >= 20:
        row = {"event": event.key[:44], "calls": event.count // 20}
        own = event.self_cpu_time_total / 20
        row["own time, CPU"] = show.si(own * 1e-6, "s")
        if device == "cuda":
            busy = event.self_device_time_total / 20
            row["own time, GPU"] = show.si(busy * 1e-6, "s")
        rows.append(row)
show.table(
    rows,
    caption="One run of relu(x + b), 64,000 numbers, the mean of 20",
    kinds=dict.fromkeys(list(rows[0])[1:], "measured"),
)

# %% [markdown] key="ladder-intro"
# The profiler's clock costs time itself, so use it to see **what** runs, and a stopwatch to see how long. Here is the ladder, each rung timed alone on
# tensors of one number.

# %% key="ladder"
def nothing(x, y):
    """A Python function that does not do anything."""


one, other = torch.ones(1, device=device), torch.ones(1, device=device)
tracked = torch.ones(1, device=device, requires_grad=True)
rungs = {
    "call a Python function": lambda: nothing(one, other),
    "make a view": lambda: one.view(1),
    "x + b": lambda: one + other,
    "x + b, gradient recorded": lambda: tracked + other,
    "relu(x + b)": lambda: torch.relu(one + other),
}
taken = {name: time_samples(rung, repeats=9) for name, rung in rungs.items()}
medians = {name: sorted(samples)[4] for name, samples in taken.items()}
steps = medians["relu(x + b)"] / medians["x + b"]
show.bars(
    list(medians),
    list(medians.values()),
    unit="s",
    kind="measured",
    spread=[(sorted(s)[1], sorted(s)[7]) for s in taken.values()],
    title="On one number, two operators take"
    f" {steps:.1f} times as long as one",
)

# %% [markdown] key="launch"
# ### The launch
#
# A GPU does not return from a call. The CPU writes an order into a queue: this kernel, so many threads, these arguments. Then it goes on. The GPU takes
# orders from the queue, one after the other. Writing and starting one order costs a few microseconds: the **launch**.
#
# If a kernel runs longer than a launch takes, the queue fills up and the launches hide behind the work. If it is shorter, the GPU is done before the
# next order arrives. Then it waits, and your program runs at the speed of its launches. It is **launch-bound**.
#
# A CPU launches nothing, but each call has its overhead, which plays the same part. [Chapter 0](00_your_machine.ipynb) measured yours.

# %% [markdown] key="launch_bound_below-intro"
# ## Exercise: where the launch ends and the work begins
#
# ●○○○ · 5 minutes · 2 points
#
# An elementwise operator reads `n_inputs` arrays of $n$ elements and writes one. It runs at the speed of memory, `bytes_per_s`. Return the smallest
# $n$, a whole number, for which moving the bytes takes at least as long as the launch.

# %% key="launch_bound_below" tags=["exercise"]
def launch_bound_below(
    launch_seconds: float,
    n_inputs: int,
    bytes_per_element: int,
    bytes_per_s: float,
) -> int:
    """Elements from which on an elementwise op takes longer than its launch.

    >>> launch_bound_below(2.0**-18, 1, 4, 2.0**41)
    1048576
    """
    ### BEGIN SOLUTION
    moved = (n_inputs + 1) * bytes_per_element
    return math.ceil(launch_seconds * bytes_per_s / moved)
    ### END SOLUTION


# %% key="launch_bound_below-check" tags=["check"]
launch_bound_below = check("06.launch_bound_below", launch_bound_below)

# %% key="launch-table"
rows = []
here = machine.launch.median, machine.bytes_per_s
chips = [accelerator(name) for name in ("T4", "A100 80GB SXM", "H100 SXM")]
for name, (launch, bandwidth) in {
    "this machine": here,
    **{chip.name: (LAUNCH_SECONDS, chip.bytes_per_s) for chip in chips},
}.items():
    n = launch_bound_below(launch, 2, 4, bandwidth)
    rows.append(
        {
            "chip": name,
            "launch": show.si(launch, "s"),
            "memory": show.si(bandwidth, "B/s"),
            "launch-bound below": f"{n:,}",
            "as a matrix": f"{math.isqrt(n)} x {math.isqrt(n)}",
        }
    )
show.table(
    rows,
    caption=f"x + b in fp32. GPUs: a launch of"
    f" {show.si(LAUNCH_SECONDS, 's')} is assumed",
    kinds=dict.fromkeys(("launch-bound below", "as a matrix"), "modelled"),
)

# %% [markdown] key="launch-table-read"
# The better the GPU, the larger the tensors that it does **not** speed up. The launch is the same, the memory is faster, so the bend moves right. Buy a card
# with twice the bandwidth, and whatever lies left of the bend gains nothing.
#
# Now look for the bend on your machine.

# %% key="bend"
sizes = [8**k for k in range(1, 8)]
taken = []
for n in sizes:
    pair = torch.randn(2, n, device=device)
    taken.append(sorted(time_samples(torch.add, *pair, repeats=7)))
medians = [samples[3] for samples in taken]
model = [here[0] + 12 * n / here[1] for n in sizes]
flat = max(
    n for n, t in zip(sizes, medians, strict=True) if t < 2 * medians[0]
)
show.lines(
    [
        Series(
            sizes,
            medians,
            "x + b",
            "measured",
            [(samples[1], samples[5]) for samples in taken],
        ),
        Series(sizes, model, "launch + bytes / bandwidth", "modelled"),
    ],
    x="elements",
    y="time (seconds)",
    log=True,
    title=f"Up to {flat:,} elements an addition takes less than twice"
    f" the time of {sizes[0]}",
)

# %% [markdown] key="bend-read"
# Two straight pieces and a bend. The model knows only chapter 0's launch and the bandwidth past all caches. In between, your machine
# may be faster than the model, because arrays that fit a cache never see the memory. Or it may pause at the size where PyTorch wakes a
# second thread.

# %% [markdown] key="fusion"
# ## One kernel for many operators
#
# `relu(x + b)` is two kernels. The first reads `x` and `b` and writes the sum. The second reads the sum and writes the result. The sum goes to memory and comes
# back, and nobody ever wanted it.
#
# A kernel that reads an element of `x` and one of `b`, adds, compares with zero and writes **once** does both. Between the steps the number stays in a
# register, the storage right beside the arithmetic. That is **fusion**. It saves launches and it saves bytes.

# %% [markdown] key="fusion_bytes-intro"
# ## Exercise: what fusion saves
#
# ●●○○ · 6 minutes · 2 points
#
# A chain of elementwise operators. The first one takes an input array; each next one takes the result of the one before. Besides, operator $i$ reads
# `other_inputs[i]` further arrays, all different. All arrays have `n_elements` elements.
#
# Return a dictionary: bytes moved when each operator is its own kernel (`"unfused"`), and when one kernel does all (`"fused"`).
#
# For `relu(x + b)`, `other_inputs` is `[1, 0]`.

# %% key="fusion_bytes" tags=["exercise"]
def fusion_bytes(
    n_elements: int, other_inputs: list[int], bytes_per_element: int
) -> dict[str, int]:
    """Bytes that a chain of elementwise ops moves, unfused and fused.

    >>> fusion_bytes(10, [1, 0], 4)
    {'unfused': 200, 'fused': 120}
    """
    ### BEGIN SOLUTION
    array = n_elements * bytes_per_element
    return {
        "unfused": sum(other + 2 for other in other_inputs) * array,
        "fused": (sum(other_inputs) + 2) * array,
    }
    ### END SOLUTION


# %% key="fusion_bytes-check" tags=["check"]
fusion_bytes = check("06.fusion_bytes", fusion_bytes)

# %% [markdown] key="fusion-meter-intro"
# The meter counts the same from the outside, operator by operator.

# %% key="fusion-meter"
with meter("H100 SXM") as m:
    torch.relu(x + b)
show.table(
    [
        {
            "operator": row.name,
            "launches": row.launches,
            "read": show.si(row.bytes_read, "B"),
            "written": show.si(row.bytes_written, "B"),
        }
        for row in m.rows()
    ],
    kinds=dict.fromkeys(("launches", "read", "written"), "modelled"),
    caption="relu(x + b), 64 x 1,000, fp32",
)
yours = fusion_bytes(x.numel(), [1, 0], x.element_size())
show.number(m.bytes, "bytes by the meter", "modelled")
show.number(yours["unfused"], "bytes, your count unfused", "modelled")
show.number(yours["fused"], "bytes, your count fused", "modelled")
print(m.time())

# %% [markdown] key="chunks-intro"
# You can feel the effect without a compiler. Take ten operators on a large array. Done one after the other, each walks through memory. Done **piece by piece**,
# all ten on a piece that fits the cache before the next piece, nine of ten walks end in the cache. The arithmetic is the same.
#
# The price: more calls, each with its overhead. So a piece must not be too small.

# %% key="chunks"
def ten_operators(x: torch.Tensor) -> None:
    """Five times halve and add a half, in place."""
    for _ in range(5):
        x.mul_(0.5)
        x.add_(0.5)


def in_pieces(x: torch.Tensor, size: int) -> None:
    for piece in x.split(size):
        ten_operators(piece)


n = 2**24
whole = torch.rand(n, device=device)
pieces = [n, 2**21, 2**18, 2**15, 2**12]
samples = {size: [] for size in pieces}
for _ in range(3):
    for size in pieces:
        samples[size] += time_samples(in_pieces, whole, size, repeats=1)
medians = {size: sorted(s)[1] for size, s in samples.items()}
best = min(medians, key=medians.get)
show.bars(
    [f"pieces of {show.si(4 * size, 'B')}" for size in pieces],
    list(medians.values()),
    unit="s",
    kind="measured",
    spread=[(min(s), max(s)) for s in samples.values()],
    title=f"Ten operators on {show.si(4 * n, 'B')}: pieces of"
    f" {show.si(4 * best, 'B')} take {medians[best] / medians[n]:.2f}"
    " of the whole's time",
)

# %% [markdown] key="chunks-read"
# Both ends of this chapter are in that plot. At the top the time is bytes. At the bottom it is calls. A fused kernel has the best of both: its pieces
# are as small as a register, and it is called once.
#
# To see how, go below the launch.

# %% [markdown] key="inside"
# ## Below the launch
#
# A launch names a kernel and a **grid** of **blocks**. A block is a group of threads, up to 1,024. The GPU hands each block to one of its **streaming
# multiprocessors** (SM), the GPU's cores, where it stays until it is done. When one leaves, the next block moves in.
#
# Inside an SM, a block's threads run in groups of 32, called **warps**. The 32 threads of a warp, its **lanes**, execute one instruction together, each
# on its own numbers. Where lanes want different things (an `if`), the warp does both, with some lanes asleep.
#
# So there are three sizes to choose, and the hardware only knows the warp.

# %% key="inside-table"
LIMITS = {  # by compute capability; an SM of each has 65,536 registers
    "7.5": {"threads": 1024, "blocks": 16, "shared_bytes": 64 * 1024},
    "8.0": {"threads": 2048, "blocks": 32, "shared_bytes": 164 * 1024},
    "8.9": {"threads": 1536, "blocks": 24, "shared_bytes": 100 * 1024},
    "9.0": {"threads": 2048, "blocks": 32, "shared_bytes": 228 * 1024},
}
for capability, limits in LIMITS.items():
    limits["registers"] = 65536
    limits["shared_reserved"] = 0 if capability == "7.5" else 1024
    limits["shared_unit"] = 256 if capability == "7.5" else 128
rows = []
for name in ("T4", "A100 80GB SXM", "RTX 4090", "H100 SXM"):
    chip = accelerator(name)
    limits = LIMITS[chip.capability]
    rows.append(
        {
            "chip": chip.name,
            "capability": chip.capability,
            "SMs": chip.cores,
            "threads at once": f"{chip.cores * limits['threads']:,}",
            "registers": show.si(chip.cores * 65536 * 4, "B"),
            "shared memory": show.si(chip.cores * limits["shared_bytes"], "B"),
            "L2": show.si(chip.onchip_bytes, "B"),
            "memory": show.si(chip.memory_bytes, "B"),
            "at": show.si(chip.bytes_per_s, "B/s"),
        }
    )
show.table(
    rows,
    caption="Storage of whole chips, from the fastest to the largest",
    kinds=dict.fromkeys(list(rows[0])[1:], "published"),
)

# %% [markdown] key="inside-read"
# Read a row from left to right and you walk away from the arithmetic. **Registers** belong to one thread. **Shared memory** belongs to a block; its threads exchange
# numbers there. The same silicon also serves as the L1 cache. **L2** serves the whole chip. **HBM**, or GDDR on cheaper cards, is what we call the memory.
#
# An odd thing: on each of these chips the registers hold more than all shared memory together. On a CPU they are by far the smallest level. A CPU has few threads and large
# caches, and hides slow memory by guessing what comes next. A GPU hides it by having something else to do, and whatever waits keeps its registers.

# %% [markdown] key="latency"
# ### Why so many threads
#
# A load from memory takes some 600 nanoseconds to come back (an assumed round figure; published measurements differ by chip). Meanwhile the SM runs
# other warps. To keep the memory busy all the time, enough bytes must be **in flight**:
#
# $$\text{bytes in flight} = \text{bandwidth} \times \text{latency}.$$

# %% key="latency-run"
latency = 600e-9
h100 = accelerator("H100 SXM")
in_flight = h100.bytes_per_s * latency
threads = h100.cores * LIMITS["9.0"]["threads"]
show.number(in_flight, "bytes in flight on an H100", "modelled")
show.number(in_flight / threads, "of them for each of its threads", "modelled")
show.number(threads, "threads at once", "published")

# %% [markdown] key="latency-read"
# With every place taken, each thread needs about two loads of four bytes on their way. With a quarter of the places taken it needs about eight, or the memory idles. Remember
# that; it is what occupancy is about.

# %% [markdown] key="cuda"
# ## A kernel, line by line
#
# Here is our line, fused, in CUDA C++. It is written for **one** thread, and every thread runs it.

# %% key="cuda-source"
CUDA = """
extern "C" __global__ void add_relu(
    const float *x, const float *b, float *out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        float sum = x[i] + b[i];
        out[i] = fmaxf(sum, 0.0f);
    }
}

extern "C" int launch(
    const float *x, const float *b, float *out, int n, void *stream)
{
    int threads = 256, blocks = (n + threads - 1) / threads;
    add_relu<<<blocks, threads, 0, (cudaStream_t)stream>>>(x, b, out, n);
    return cudaGetLastError();
}
"""

# %% [markdown] key="cuda-read"
# | line | what it says |
# |---|---|
# | `__global__` | a kernel: called from the CPU, run on the GPU |
# | `const float *x` | an address, nothing more: no shape, no length |
# | `blockIdx.x * blockDim.x + threadIdx.x` | my number among all threads, so neighbours in a warp get neighbours in memory |
# | `if (i < n)` | the last block may reach past the end; without this it would write there |
# | `float sum` | a register |
# | `(n + threads - 1) / threads` | enough blocks, rounded up |
# | `<<<blocks, threads, 0, stream>>>` | the launch: grid, block, shared memory, which queue |
#
# If your machine has CUDA's compiler, `nvcc`, the next cell shows what it makes of the kernel, in PTX, NVIDIA's portable assembly.

# %% key="cuda-ptx"
WORTH_SEEING = re.compile(
    r"(@%p\d+ )?(setp|bra|ld\.global|st\.global|add\.f|max\.f|ctaid|mov\.u32"
    r".*%(ctaid|tid)|mad\.lo)"
)


def telling_lines(ptx: str) -> list[str]:
    """The lines of PTX that touch memory, do arithmetic, or decide."""
    lines = [" ".join(line.split()) for line in ptx.split("\n")]
    return [line for line in lines if WORTH_SEEING.match(line)]


def run_nvcc(*arguments) -> bool:
    done = subprocess.run(
        [nvcc, *map(str, arguments)], capture_output=True, text=True
    )
    if done.returncode:
        print(f"nvcc is here but failed: {done.stderr.strip()[:200]}")
    return done.returncode == 0


nvcc = shutil.which("nvcc")
folder = tempfile.TemporaryDirectory()
cuda_file = Path(folder.name) / "add_relu.cu"
cuda_file.write_text(CUDA, encoding="utf-8")
ptx_file = cuda_file.with_suffix(".ptx")
if nvcc is None:
    print("nvcc is not installed here: nothing to compile.")
elif run_nvcc("-ptx", "-arch=sm_80", cuda_file, "-o", ptx_file):
    print("\n".join(telling_lines(ptx_file.read_text(encoding="utf-8"))))

# %% [markdown] key="cuda-ptx-read"
# Where it is shown, read it from top to bottom. `%ctaid` is the block, `%tid` the thread. `mad.lo` makes `i` of them. `setp.ge` compares it with `n` and keeps the answer in a
# **predicate**, `%p1`. `@%p1 bra` jumps to the end where it is true. Then two loads, an addition, a maximum, a store. No sum in memory: it was `%f3`, a register.
#
# With a GPU, the next cell runs it and compares it with PyTorch.

# %% key="cuda-run"
if device == "cuda" and nvcc and platform.system() == "Linux":
    major, minor = torch.cuda.get_device_capability()
    library = cuda_file.with_suffix(".so")
    shared = ("-shared", "-Xcompiler", "-fPIC")
    arch = f"-arch=sm_{major}{minor}"
    if run_nvcc(*shared, arch, cuda_file, "-o", library):
        launch = ctypes.CDLL(str(library)).launch
        pointers = [ctypes.c_void_p(t.data_ptr()) for t in (x, b, y)]
        y.zero_()
        queue = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
        error = launch(*pointers, ctypes.c_int(x.numel()), queue)
        same = torch.equal(y, torch.relu(x + b))
        print(f"CUDA error {error}. Equal to PyTorch's result: {same}.")
else:
    print("A GPU and nvcc, on Linux: not here, so the kernel is not run.")

# %% [markdown] key="triton"
# ### Its twin in Triton
#
# Triton is Python, and written for one **block**. `i` is not a number but all numbers of the block at once. You say what the block loads,
# computes and stores; the compiler decides which thread does what. The `if` has become a mask.

# %% key="triton-source"
if has_triton():
    import triton
    import triton.language as tl

    @triton.jit
    def add_relu(x_ptr, b_ptr, out_ptr, n, BLOCK: tl.constexpr):
        i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        inside = i < n
        x = tl.load(x_ptr + i, mask=inside)
        b = tl.load(b_ptr + i, mask=inside)
        tl.store(out_ptr + i, tl.maximum(x + b, 0.0), mask=inside)

    POINTERS = {"x_ptr": "*fp32", "b_ptr": "*fp32", "out_ptr": "*fp32"}
    made = compile_for(
        add_relu, POINTERS | {"n": "i32"}, {"BLOCK": 128}, "8.0"
    )
    print("\n".join(telling_lines(made.ptx)))
    show.number(made.registers, "registers a thread", "measured")
else:
    print(no_triton)

# %% [markdown] key="triton-read"
# This was compiled for an A100, and your machine needed none: a compiler only writes text. A thread of nvcc's version jumps over the body; Triton puts the predicate
# on each load and store, `@%p1 ld.global`: a lane that is outside does nothing in that instruction.
#
# The registers come from NVIDIA's assembler, which Triton brings along. They are what a real A100 would use. That will matter soon.
#
# On paper it can also **run**. The meter executes the blocks one after the other, checks every address, and counts.

# %% key="triton-measure"
if has_triton():
    n = 5000
    small, bias = torch.randn(2, n)
    out = torch.empty(n)
    grid = (triton.cdiv(n, 1024),)
    report = measure(
        add_relu, grid, small, bias, out, n, BLOCK=1024, outputs=["out_ptr"]
    )
    print(f"Nothing wrong: {report.ok}. Programs: {report.programs}.")
    same = torch.equal(out, torch.relu(small + bias))
    print(f"Equal to PyTorch's result: {same}.")
    show.table(report.rows(), caption="add_relu on 5,000 numbers")
else:
    print(no_triton)

# %% [markdown] key="sectors-title"
# ## Which bytes come along
#
# The last column said **coalescing**. This is what it means.
#
# One load instruction is executed by 32 lanes, so it is 32 addresses. The memory does not deliver single bytes. It delivers **sectors**: aligned pieces of 32 bytes, at the addresses
# 0, 32, 64 and so on. For one instruction the hardware collects the sectors that its lanes touch, and fetches each once.
#
# Neighbouring lanes with neighbouring addresses share sectors. Then every byte that comes was wanted. Scattered lanes get a sector each, 32 bytes for four.

# %% [markdown] key="sectors-intro"
# ## Exercise: sectors
#
# ●●○○ · 8 minutes · 3 points
#
# A warp loads from an array that starts at byte address 0 and has elements of `size` bytes. Lane $i$ wants element `offset + i * stride`, for $i$ from
# 0 to `lanes - 1`; the other lanes are masked. `stride` may be negative or zero; no element lies before the start.
#
# Return how many different 32-byte sectors they touch. An element lies within one sector (`size` is 1, 2, 4 or 8).

# %% key="sectors" tags=["exercise"]
def sectors(offset: int, stride: int, size: int, lanes: int) -> int:
    """Sectors that a warp touches when lane i reads offset + i * stride.

    >>> sectors(0, 1, 4, 32), sectors(1, 1, 4, 32), sectors(0, 8, 4, 32)
    (4, 5, 32)
    """
    ### BEGIN SOLUTION
    addresses = [(offset + lane * stride) * size for lane in range(lanes)]
    return len({address // 32 for address in addresses})
    ### END SOLUTION


# %% key="sectors-check" tags=["check"]
sectors = check("06.sectors", sectors)

# %% [markdown] key="sectors-explore"
# **Coalescing** is the fewest sectors that the wanted bytes could fill, over the sectors touched. Move the stride, the offset and the size. A full square is a wanted
# pair of bytes, a dot comes along unasked.

# %% key="sectors-figure" tags=["figure"]
def coalescing(offset: int, stride: int, size: int) -> float:
    wanted = 32 * size if stride else size
    return math.ceil(wanted / 32) / sectors(offset, stride, size, 32)


def draw(offset, stride, size):
    at = [(offset + lane * stride) * size for lane in range(32)]
    wanted = {byte // 2 for a in at for byte in range(a, a + size)}
    rows = []
    for line in sorted({a // 128 for a in at})[:10]:
        row = {"bytes": f"{128 * line} to {128 * line + 127}"}
        for s in range(4 * line, 4 * line + 4):
            halves = range(16 * s, 16 * s + 16)
            marks = "".join("■" if h in wanted else "·" for h in halves)
            row[f"sector {s % 4}"] = marks if "■" in marks else "not fetched"
        rows.append(row)
    n = sectors(offset, stride, size, 32)
    lines = len({a // 128 for a in at})
    more = f"; {lines - 10} more lines not drawn" if lines > 10 else ""
    said = (
        f"Sectors: {n}, so {32 * n} bytes fetched. Coalescing"
        f" {coalescing(offset, stride, size):.0%}{more}."
    )
    return show.make.table(rows, caption="One load of 32 lanes"), said


show.explore(
    draw,
    stride=Slider(1, 16, 2, unit="elements"),
    offset=Slider(0, 16, 1, unit="elements"),
    size=Choice([1, 2, 4, 8], 4, label="bytes an element"),
)

# %% [markdown] key="stride-intro"
# From a stride of 32 bytes on, nothing is shared and it cannot get worse. Is that theory? Your CPU has the same law with another constant: it fetches **lines** of 64
# bytes (128 on some). Copy four million floats that lie apart, with a growing stride.

# %% key="stride"
n, strides = 2**22, [1, 2, 4, 8, 16]
field = torch.rand(n * strides[-1], device=device)
apart = {s: field[: n * s : s] for s in strides}
samples = {s: [] for s in strides}
for _ in range(5):
    for s in strides:
        samples[s] += time_samples(apart[s].clone, repeats=1)
medians = [sorted(samples[s])[2] for s in strides]
relative = [t / medians[0] for t in medians]
# the copy also writes 4 bytes in a row for each element
by_sector = [(sectors(0, s, 4, 32) + 4) / 8 for s in strides]
by_line = [(min(4 * s, 64) + 4) / 8 for s in strides]
show.lines(
    [
        Series(strides, relative, f"this machine ({device})", "measured"),
        Series(strides, by_sector, "sectors of 32 bytes", "modelled"),
        Series(strides, by_line, "lines of 64 bytes", "modelled"),
    ],
    x="stride (elements)",
    y="time or bytes, times those of stride 1",
    log="x",
    title=f"The same {n:,} numbers, {relative[-1]:.1f} times the time"
    f" when they lie {4 * strides[-1]} bytes apart",
)

# %% [markdown] key="stride-read"
# Both models count only bytes. Your machine may pay more than that: a copy with gaps cannot use wide instructions, and beyond a line come pages, each of which has to be looked up. Or it pays
# less, where caches hold part of the field.

# %% [markdown] key="transpose"
# ## A transpose has two sides
#
# Rows of a matrix lie one after the other. A transpose reads along rows and writes along columns, or the other way around. Whatever side the lanes run along, on the other
# side each of them touches its own sector. Before you think about a remedy, what does that cost on your machine?

# %% key="predict-transpose"
predict(
    "06.transpose",
    "Copying a matrix transposed takes how many times a plain copy?",
    unit="times",
)

# %% key="measure-transpose"
matrix = torch.rand(2048, 2048, device=device)
plain, turned = [], []
for _ in range(5):
    plain += time_samples(matrix.clone, repeats=1)
    turned += time_samples(matrix.T.contiguous, repeats=1)
ratio = sorted(turned)[2] / sorted(plain)[2]
against_prediction("06.transpose", ratio, "times")
per_tile = {
    "both along rows": 2 * 32 * sectors(0, 1, 4, 32),
    "one side down a column": 32
    * (sectors(0, 1, 4, 32) + sectors(0, 2048, 4, 32)),
}
for name, count in per_tile.items():
    show.number(count, f"sectors for a 32 x 32 tile, {name}", "modelled")

# %% [markdown] key="transpose-idea"
# The remedy is a stop on the way. A block loads a tile of 32 x 32 along **rows**, puts it into shared memory, waits until the whole tile is there, takes it out in the **other** order, and
# stores along rows again. Shared memory has no sectors to waste.
#
# It has another rule. Its words of 4 bytes lie in 32 **banks**: word $w$ in bank $w \bmod 32$. Each bank answers one word a turn. If several lanes want different words
# of one bank, they wait for each other.

# %% [markdown] key="coalesced_transpose_order-intro"
# ## Exercise: coalesced on both sides
#
# ●●●● · 12 minutes · 4 points
#
# One warp turns a tile of 32 x 32 fp32 numbers, in 32 steps of loading, then a barrier, then 32 steps of storing. Say what `lane` does in `step` of both halves. Return a dictionary:
#
# - `"load"`: (row, column) of the input that it loads, and `"put"`: the word of shared memory, 0 to 1,055, where it puts it;
# - `"take"`: the word that it takes after the barrier, and `"store"`: (row, column) of the output where it stores that.
#
# Every step must be coalesced, and no two lanes of a step may meet in a bank. Output (row, column) is input (column, row).

# %% key="coalesced_transpose_order" tags=["exercise"]
def coalesced_transpose_order(step: int, lane: int) -> dict:
    """Where a lane loads, puts, takes and stores, to transpose a tile.

    >>> plan = coalesced_transpose_order(0, 0)
    >>> plan["load"], plan["store"]
    ((0, 0), (0, 0))
    """
    ### BEGIN SOLUTION
    words = 33  # in a row of the shared tile: one more than there are banks
    return {
        "load": (step, lane),
        "put": step * words + lane,
        "take": lane * words + step,
        "store": (step, lane),
    }
    ### END SOLUTION


# %% key="coalesced_transpose_order-check" tags=["check"]
coalesced_transpose_order = check(
    "06.coalesced_transpose_order", coalesced_transpose_order
)

# %% [markdown] key="transpose-play"
# Play it on a real tile.

# %% key="transpose-play-run"
tile, shared, out = torch.rand(32, 32), {}, torch.zeros(32, 32)
plans = [coalesced_transpose_order(s, k) for s in range(32) for k in range(32)]
for plan in plans:
    shared[plan["put"]] = tile[plan["load"]]
for plan in plans:
    out[plan["store"]] = shared[plan["take"]]
print(f"Transposed: {torch.equal(out, tile.T)}.")
rows = []
for pitch in (32, 33):
    column = [lane * pitch % 32 for lane in range(32)]
    busiest = max(column.count(bank) for bank in column)
    rows.append({"words a row": pitch, "turns to take a column": busiest})
show.table(
    rows,
    caption="Why 33: a column of the shared tile, and its busiest bank",
    kinds={"turns to take a column": "modelled"},
)

# %% [markdown] key="transpose-after"
# One unused word a row turns 32 waits into one. You will write this kernel in chapter 7, in Triton, where the compiler chooses the layout in shared memory. Now you know what it
# is choosing.

# %% [markdown] key="occupancy-title"
# ## How many blocks fit
#
# An SM needs many warps to hide the latency of memory. How many it gets, your kernel decides without saying so. Four things run out:
#
# - places for threads;
# - registers, of which every thread holds its own from start to end;
# - shared memory, which every block holds;
# - places for blocks.
#
# The first to run out sets the limit. **Occupancy** is the warps that are there, over the most that an SM can hold.

# %% [markdown] key="occupancy-rules"
# Each resource is handed out in its own units.
#
# - *Threads*: whole warps. A block of 48 threads takes two. An SM holds `limits["threads"] / 32` warps.
# - *Registers*: a warp takes 32 times the registers of a thread, rounded up to a multiple of 256. An SM is built in four quarters, each with a quarter of `limits["registers"]`; a warp's registers lie in one quarter.
#   So count the warps of a quarter, rounded down, times four. A block needs room for all its warps, in any quarters.
# - *Shared memory*: a block takes its bytes plus `limits["shared_reserved"]`, rounded up to a multiple of `limits["shared_unit"]`.
# - *Blocks*: at most `limits["blocks"]`.

# %% [markdown] key="occupancy-intro"
# ## Exercise: occupancy
#
# ●●●○ · 12 minutes · 4 points
#
# `registers` is per thread, `threads` and `shared_bytes` are per block. `limits` is a row of `LIMITS` above. Return a dictionary with
#
# - `"blocks"`: how many blocks an SM holds;
# - `"occupancy"`: their warps over the most warps, 0 to 1;
# - `"limited_by"`: the resource that allows the fewest blocks, `"threads"`, `"registers"`, `"shared_bytes"` or `"blocks"`. If several tie, the first of them in this order.

# %% key="occupancy" tags=["exercise"]
def occupancy(
    registers: int, threads: int, shared_bytes: int, limits: dict[str, int]
) -> dict:
    """Blocks that fit on an SM, their share of its warps, and what runs out.

    >>> a100 = {"threads": 2048, "registers": 65536, "blocks": 32}
    >>> a100 |= {"shared_bytes": 167936, "shared_reserved": 1024}
    >>> occupancy(64, 256, 0, a100 | {"shared_unit": 128})
    {'blocks': 4, 'occupancy': 0.5, 'limited_by': 'registers'}
    """
    ### BEGIN SOLUTION
    warps, most_warps = -(-threads // 32), limits["threads"] // 32
    per_warp = -(-32 * registers // 256) * 256
    held = 4 * (limits["registers"] // 4 // per_warp)
    unit = limits["shared_unit"]
    shared = -(-(shared_bytes + limits["shared_reserved"]) // unit) * unit
    fits = {
        "threads": most_warps // warps,
        "registers": held // warps,
        "shared_bytes": limits["shared_bytes"] // max(shared, 1),
        "blocks": limits["blocks"],
    }
    scarcest = min(fits, key=fits.get)  # the first of those that tie
    blocks = fits[scarcest]
    return {
        "blocks": blocks,
        "occupancy": blocks * warps / most_warps,
        "limited_by": scarcest,
    }
    ### END SOLUTION


# %% key="occupancy-check" tags=["check"]
occupancy = check("06.occupancy", occupancy)

# %% [markdown] key="occupancy-curve-intro"
# The same kernel on three chips, 256 threads a block, with more and more registers a thread. In threads and registers an H100 is like an A100.

# %% key="occupancy-curve"
registers = list(range(16, 256, 8))
shares = {
    name: [
        occupancy(r, 256, 0, LIMITS[accelerator(name).capability])["occupancy"]
        for r in registers
    ]
    for name in ("T4", "A100 80GB SXM", "RTX 4090")
}
a100 = shares["A100 80GB SXM"]
full = max(r for r, s in zip(registers, a100, strict=True) if s == 1)
show.lines(
    [Series(registers, y, name, "modelled") for name, y in shares.items()],
    x="registers a thread",
    y="occupancy",
    title=f"An A100 is full up to {full} registers a thread,"
    " then it falls in steps",
)

# %% [markdown] key="real-registers"
# ### Real registers
#
# Now with numbers that a compiler produced. The Triton kernel above with 4 warps and a growing `BLOCK`: each thread handles more elements, so it holds more of them at once.

# %% key="real-registers-run"
if has_triton():
    rows = []
    for block in (128, 1024, 4096, 8192):
        made = compile_for(
            add_relu, POINTERS | {"n": "i32"}, {"BLOCK": block}, "9.0"
        )
        fits = occupancy(made.registers, 128, made.shared_bytes, LIMITS["9.0"])
        rows.append(
            {
                "BLOCK": block,
                "elements a thread": block // 128,
                "registers": made.registers,
                "blocks an SM": fits["blocks"],
                "occupancy": f"{fits['occupancy']:.0%}",
                "limited by": fits["limited_by"],
                "loads in flight": f"{fits['blocks'] * 2 * block:,}",
            }
        )
    kinds = dict.fromkeys(list(rows[0])[2:], "modelled")
    show.table(
        rows,
        caption="add_relu compiled for an H100, 4 warps a block",
        kinds=kinds | {"registers": "measured"},
    )
else:
    print(no_triton)

# %% [markdown] key="occupancy-moral"
# Occupancy falls from the second row to the last. The last column, the most loads that an SM can have on their way at once, hardly moves. A thread with 64 elements issues 128 loads before it waits.
# Few threads with much to do hide latency as well as many with little.
#
# So occupancy is a means. A kernel at 25% can be at the limit of its memory, and fast matrix products often run with few warps because their tiles fill the registers. Look at occupancy when a
# kernel is slow **and** its loads are few.

# %% [markdown] key="spill"
# What if a thread needs more than 255 registers? The compiler **spills**: it stores some to memory and loads them back. `compile_for` tells you that too. In chapter 8 a tile that is
# too large will show it.

# %% [markdown] key="vector-loads"
# One more thing that only the compiled kernel shows. Promise the compiler that 16 divides `n`, and count the load instructions again.

# %% key="vector-loads-run"
if has_triton():
    rows = []
    for said, n_type in (("anything", "i32"), ("a multiple of 16", "i32:16")):
        made = compile_for(
            add_relu, POINTERS | {"n": n_type}, {"BLOCK": 1024}, "8.0"
        )
        loads = re.findall(r"ld\.global[.\w]*", made.ptx)
        rows.append(
            {
                "n is": said,
                "loads a thread": len(loads),
                "instruction": loads[0],
            }
        )
    show.table(
        rows,
        caption="The same kernel, the same bytes",
        kinds=dict.fromkeys(("loads a thread", "instruction"), "measured"),
    )
else:
    print(no_triton)

# %% [markdown] key="vector-loads-read"
# A mask may end anywhere, so four neighbours may need four answers and four loads. If 16 divides `n`, four neighbours are inside or outside together, and one instruction
# loads 16 bytes. Triton finds out the divisibility at the launch, by looking at the numbers you pass. That is one reason why round sizes are fast.

# %% [markdown] key="waves-title"
# ## Waves and their tail
#
# A GPU with 132 SMs, each with room for one block of your kernel. All blocks take equally long. You launch 132 blocks; then 133.

# %% key="predict-waves"
predict(
    "06.waves",
    "133 blocks take how many times as long as 132?",
    unit="times",
)

# %% [markdown] key="waves-intro"
# ## Exercise: waves
#
# ●○○○ · 5 minutes · 2 points
#
# Blocks that run at the same time are a **wave**. Return `"waves"`, how many it takes, and `"efficiency"`: blocks over the places that those waves offer, so the share
# of the GPU's time that does work. All blocks take equally long.

# %% key="waves" tags=["exercise"]
def waves(
    blocks: int, multiprocessors: int, blocks_per_multiprocessor: int
) -> dict:
    """Waves in which a grid runs, and how full they are on average.

    >>> waves(264, 132, 1), waves(66, 132, 1)
    ({'waves': 2, 'efficiency': 1.0}, {'waves': 1, 'efficiency': 0.5})
    """
    ### BEGIN SOLUTION
    at_once = multiprocessors * blocks_per_multiprocessor
    n_waves = -(-blocks // at_once)
    return {"waves": n_waves, "efficiency": blocks / (n_waves * at_once)}
    ### END SOLUTION


# %% key="waves-check" tags=["check"]
waves = check("06.waves", waves)

# %% key="waves-plot"
ratio = waves(133, 132, 1)["waves"] / waves(132, 132, 1)["waves"]
against_prediction("06.waves", ratio, "times", kind="modelled")
grids = list(range(1, 1001))
full = [waves(blocks, 132, 1)["efficiency"] for blocks in grids]
below = max(b for b, share in zip(grids, full, strict=True) if share < 0.8)
show.line(
    grids,
    full,
    x="blocks",
    y="share of the GPU's time used",
    kind="modelled",
    title=f"132 SMs, one block each: past {below} blocks"
    " no grid wastes more than a fifth",
)

# %% [markdown] key="waves-read"
# The tail is a whole wave that is nearly empty. It hurts when there are few waves, which is where large tiles lead: a matrix product with tiles of 128 x 128 has few
# blocks. Chapter 8 weighs the one against the other. Elementwise kernels have thousands of short blocks and need not care.
#
# Real blocks don't all take equally long, so a real tail is softer. The model gives the direction.

# %% [markdown] key="tree-title"
# ## Sums: threads that need each other
#
# An addition of arrays needs no one else. A sum does: $n$ numbers, one result. One thread alone takes $n - 1$ additions, one after the other, while thousands of others watch.
#
# Fold instead. Half of the lanes each add the number of a lane of the other half. Half as many numbers remain, after **one** step. Inside a warp that is a single instruction, the
# *shuffle*, by which a lane reads a register of another lane: five steps for 32. Then one number a warp goes through shared memory, and the first warp folds those.

# %% [markdown] key="reduction_tree-intro"
# ## Exercise: a sum as a tree
#
# ●●○○ · 8 minutes · 3 points
#
# Given $n \ge 1$ numbers. In a step, let `half` be $n/2$ rounded up. For every $i$ with `i + half < n`, value $i$ becomes value $i$ plus value `i + half`. Then only the first
# `half` values remain. Repeat until one is left.
#
# Return `"sum"`, that value, and `"steps"`, the number of steps. Additions round, so keep exactly this order. Add the values as they come, without turning them into another type, and leave the list unchanged.

# %% key="reduction_tree" tags=["exercise"]
def reduction_tree(values: list[float]) -> dict:
    """Sum by folding the upper half onto the lower, and the steps it took.

    >>> reduction_tree([1.0, 2.0, 3.0, 4.0, 5.0])
    {'sum': 15.0, 'steps': 3}
    """
    ### BEGIN SOLUTION
    values, steps = list(values), 0
    while len(values) > 1:
        half = (len(values) + 1) // 2
        for i in range(len(values) - half):
            values[i] = values[i] + values[i + half]
        values, steps = values[:half], steps + 1
    return {"sum": values[0], "steps": steps}
    ### END SOLUTION


# %% key="reduction_tree-check" tags=["check"]
reduction_tree = check("06.reduction_tree", reduction_tree)

# %% [markdown] key="tree-rounding"
# Faster is one thing. There is a second gift. Sum float32 numbers between 0 and 1, one after the other and as a tree, and compare both with the exact sum.

# %% key="tree-rounding-run"
rng = np.random.default_rng(0)
rows = []
for n in (32, 1024, 2**17):
    errors = []
    for numbers in rng.random((5, n), dtype=np.float32):
        exact = math.fsum(numbers.tolist())
        tree = reduction_tree(list(numbers))
        sums = np.add.accumulate(numbers)[-1], tree["sum"]
        errors.append([abs(float(s) - exact) / exact for s in sums])
    in_a_row, folded = np.mean(errors, axis=0)
    rows.append(
        {
            "numbers": f"{n:,}",
            "steps in a row": f"{n - 1:,}",
            "steps of the tree": tree["steps"],
            "error in a row": f"{in_a_row:.1e}",
            "error of the tree": f"{folded:.1e}",
        }
    )
show.table(
    rows,
    caption="Relative error of a float32 sum, the mean of 5",
    kinds=dict.fromkeys(list(rows[0])[3:], "measured"),
)

# %% [markdown] key="tree-rounding-read"
# In a row, every number is added to a total that grows, and loses the digits that the total has no room for, $n$ times. In the tree a number takes part in $\log_2 n$ additions, mostly
# with numbers of its own size.
#
# The order of additions changes the last digits. That is why two GPUs, two batch sizes, or two versions of a kernel do not agree to the last digit, and why none of them is wrong.

# %% [markdown] key="tensor-cores"
# ## The matrix units
#
# So far a lane did one operation at a time. A fused multiply-add is one instruction; in a warp it does $32 \times 2 = 64$ FLOPs. **Tensor cores** execute another instruction: the whole warp
# together multiplies two small matrices that lie spread over its registers, and adds a third.
#
# Look at what the compiler makes of `tl.dot`. The name of the instruction says the shape: `m16n8k16` is a 16 x 16 matrix times a 16 x 8 one.

# %% key="tensor-cores-run"
if has_triton():

    @triton.jit
    def product(a_ptr, b_ptr, c_ptr, N: tl.constexpr):
        i = tl.arange(0, N)
        at = i[:, None] * N + i[None, :]
        a, b = tl.load(a_ptr + at), tl.load(b_ptr + at)
        tl.store(c_ptr + at, tl.dot(a, b))

    rows, types = [], {"a_ptr": "*fp16", "b_ptr": "*fp16", "c_ptr": "*fp32"}
    for chip, capability in (("A100", "8.0"), ("H100", "9.0")):
        made = compile_for(product, types, {"N": 64}, capability)
        names = re.findall(r"w?g?mma[\w.]*\.m\d+n\d+k\d+", made.ptx)
        shape = re.search(r"m(\d+)n(\d+)k(\d+)", names[0])
        flops = 2 * math.prod(map(int, shape.groups()))
        rows.append(
            {
                "chip": chip,
                "instruction": names[0],
                "by": "4 warps" if "wgmma" in names[0] else "1 warp",
                "FLOPs each": f"{flops:,}",
                "in the kernel": len(names),
                "shared memory": show.si(made.shared_bytes, "B"),
            }
        )
    show.table(
        rows,
        caption="64 x 64 times 64 x 64 in fp16, 4 warps",
        kinds=dict.fromkeys(list(rows[0])[1:], "measured")
        | {"FLOPs each": "modelled"},
    )
else:
    print(no_triton)
vector = accelerator("H100 SXM").peak("fp32")
ratio = accelerator("H100 SXM").peak("bf16") / vector
show.number(ratio, "times: H100's matrix units over the rest", "published")

# %% [markdown] key="tensor-cores-read"
# One instruction, thousands of FLOPs. Where the listing shows `wgmma`, four warps work together, and the operands come from shared memory directly. Each warp of the A100 executes
# its share of the listed instructions.
#
# The matrix units are so much faster than everything else that the question is never how fast they multiply. It is whether the operands are there. An addition and a ReLU can't use them at all.

# %% [markdown] key="thirty"
# ## Thirty small operators
#
# Back up. You have seen where one line goes. Now thirty of them in a row, as in a layer of a model written without care: scale, shift, mask, clamp, and so on. A ReLU stands for them all.

# %% key="thirty-run"
def thirty(x: torch.Tensor) -> torch.Tensor:
    for _ in range(30):
        x = torch.relu(x)
    return x


small = torch.rand(100, device=device)
samples = {"thirty": [], "one": []}
for _ in range(5):
    samples["thirty"].append(median_time(thirty, small, min_seconds=0.02))
    samples["one"].append(median_time(torch.relu, small, min_seconds=0.02))
middle = {name: sorted(taken)[2] for name, taken in samples.items()}
ratio = middle["thirty"] / middle["one"]
show.number(ratio, "times one operator, on 100 numbers", "measured")
rows = []
for n in (10**3, 10**5, 10**7, 10**9):
    fused = fusion_bytes(n, [0] * 30, 2)["fused"]
    apart = fusion_bytes(n, [0] * 30, 2)["unfused"]
    many = Cost(apart // 2, apart // 2, {"vector": 30 * n}, launches=30)
    single = Cost(fused // 2, fused // 2, {"vector": 30 * n})
    many, single = many.on(h100), single.on(h100)
    rows.append(
        {
            "elements": f"{n:,}",
            "30 kernels": show.si(many.seconds, "s"),
            "bound by": many.bound_by,
            "1 kernel": show.si(single.seconds, "s"),
            "times faster": round(many.seconds / single.seconds, 1),
        }
    )
show.table(
    rows,
    caption="Thirty elementwise operators on an H100, bf16",
    kinds=dict.fromkeys(list(rows[0])[1:], "modelled"),
)

# %% [markdown] key="thirty-read"
# The first row and the last gain the same factor, for two reasons that have nothing in common. At the top, 30 launches became one. At the bottom, 30 trips through memory became one. In between, both.
#
# (The meter adds the launch to the work. On a GPU whose queue is full the launch hides behind long kernels; at the top, where it matters, it cannot.)

# %% [markdown] key="what-to-do"
# ### What to do
#
# - **More work a launch.** A larger batch moves you right along the bend, for free, until the bytes take over.
# - **Fewer kernels.** Fuse: `torch.compile` does it for elementwise chains, Triton for what it does not see (chapter 7).
# - **Cheaper launches.** A *CUDA graph* records a sequence of launches once and then starts all of them with one call. The kernels stay, their bytes stay, and the CPU is out of the way.
#
# Which of the three? Ask what binds. If launches: any. If bytes: only fusion.

# %% [markdown] key="at-scale"
# ## At scale
#
# **A decode step.** A large model that writes one token runs a few hundred small kernels. What the launches alone would cost, per token, beside the time that the weights need to arrive:

# %% key="at-scale-decode"
rows = []
for name, n_layer, weights in (
    ("Llama 3.1 8B, 1 GPU", 32, 16e9),
    ("Llama 3.1 70B, 8 GPUs", 80, 140e9 / 8),
    ("Llama 3.1 8B, 8 GPUs", 32, 16e9 / 8),
):
    kernels = 12 * n_layer
    launches, arrive = kernels * LAUNCH_SECONDS, weights / h100.bytes_per_s
    rows.append(
        {
            "model": name,
            "kernels a token": kernels,
            "launches": show.si(launches, "s"),
            "weights arrive in": show.si(arrive, "s"),
            "launches over weights": f"{launches / arrive:.0%}",
        }
    )
show.table(
    rows,
    caption="One token on H100s, bf16, 12 kernels a layer assumed",
    kinds=dict.fromkeys(list(rows[0])[1:], "modelled"),
)

# %% [markdown] key="at-scale-decode-read"
# Split a model over more GPUs and each has fewer bytes to read, but just as many kernels to launch. So the launches' share grows with the number of GPUs. This is why servers
# for inference record the decode step as a CUDA graph.
#
# **1,000 GPUs and more.** In training each rank has its own Python and its own queue. All wait for the slowest at every exchange. One rank whose Python was interrupted for a millisecond
# stalls all of them. Full queues absorb that; a launch-bound program has none.

# %% [markdown] key="at-scale-misleads"
# **What misleads.** The usual "GPU utilisation" is the share of time in which **some** kernel ran, on one SM or on all 132. A launch-bound program can show a high one. A single block that loops
# shows 100%, and uses less than a hundredth of the chip.
#
# Occupancy misleads the other way. And a kernel that was tuned for 132 SMs meets another number of waves on the next chip: tails do not move along.
#
# What stays on every chip: aligned pieces of memory, a fixed cost for each call, and resources handed out in units.

# %% [markdown] key="remember"
# ## What to remember
#
# - A small operator costs its launch. Thirty cost thirty, however fast the GPU.
# - Fusion keeps intermediate numbers in registers: it saves launches and bytes, never FLOPs.
# - Memory comes in aligned sectors of 32 bytes. Neighbouring lanes should want neighbouring addresses, on both sides of a copy.
# - Registers, threads, shared memory and blocks share an SM; the scarcest sets the occupancy, and occupancy is only a means to hide latency.
# - Blocks run in waves, sums in trees, and matrix units only help whoever feeds them.

# %% [markdown] key="sources"
# ## Sources
#
# - NVIDIA, "CUDA C++ Programming Guide", hardware implementation; technical specifications per compute capability.
# - NVIDIA, "CUDA C++ Best Practices Guide", coalesced access to global memory; shared memory and its banks.
# - NVIDIA, `cuda_occupancy.h` in the CUDA Toolkit and `arch_traits.h` in CCCL (github.com/NVIDIA/cccl): units of allocation, reserved shared memory.
# - NVIDIA, "Parallel Thread Execution ISA": `ld.global`, `setp`, `mma`, `wgmma`.
# - V. Volkov, "Better performance at lower occupancy", GPU Technology Conference, 2010.
# - M. Harris, "Optimizing parallel reduction in CUDA", NVIDIA.
# - P. Tillet, H. Kung, D. Cox, "Triton: an intermediate language and compiler for tiled neural network computations", MAPL 2019.
# - N. Higham, "The accuracy of floating point summation", SIAM Journal on Scientific Computing 14 (4), 1993.
