# ---
# jupyter:
#   course:
#     title: "7. Write one"
#     minutes: 120
#     hardware: "no GPU; with one, kernels are compiled and timed; Triton is for Linux"
#     needs: "chapters 3, 4 and 6"
#     leaves_with: "seven kernels of your own, each graded on the bytes it moves"
# ---

# %% [markdown] key="title"
# # 7. Write one
#
# Between two operators of PyTorch every number goes to memory and comes back. You have counted what that costs. This chapter takes the
# trip away: you write the kernel that does several steps while the numbers are on the chip.
#
# The language is Triton, in which a kernel is ten lines of Python. You need no GPU. Here a kernel runs on paper: program by program, every
# address checked, every byte counted. A bad address, which on a GPU corrupts something quietly, ends in a sentence.

# %% key="setup" tags=["setup"]
import math

import torch
import torch.nn.functional as F

from utils import show
from utils.course import against_prediction, check, hint, predict, quiz
from utils.course import progress, reveal, start
from utils.hardware import accelerator, time_samples
from utils.meter import LAUNCH_SECONDS, measure, meter
from utils.meter.on_paper import KernelError, launches, tl, triton
from utils.show import Choice, Point, Roof, Slider

torch.manual_seed(0)
machine = start("07")
device = "cuda" if machine.device == "cuda" else "cpu"

# %% key="recall"
quiz("07.recall")

# %% [markdown] key="gelu-first"
# ## What operators cost
#
# GPT-2's feed-forward layer adds a bias to its hidden numbers and applies **GELU**, a smooth step:
#
# $$\mathrm{gelu}(z) = \frac{z}{2}\left(1 + \mathrm{erf}\frac{z}{\sqrt 2}\right), \qquad z = x + b.$$
#
# erf is the error function; a GPU computes it in a few instructions. The least that any code must move is `x` once in and the result
# once out. The next cell writes the formula as you would in PyTorch.

# %% key="predict-gelu"
predict(
    "07.gelu",
    "Written in operators, bias and GELU move how many times the least?",
    unit="times",
)

# %% key="gelu-operators"
def gelu_operators(x, bias):
    """gelu(x + bias), one operator a step."""
    z = x + bias
    return 0.5 * z * (1 + torch.erf(z / math.sqrt(2)))


x, bias = torch.randn(64, 3072), torch.randn(3072)
with meter() as m:
    gelu_operators(x, bias)
least = 2 * x.numel() * x.element_size()
show.table(
    [
        {
            "operator": row.name,
            "calls": row.calls,
            "moved": show.si(row.bytes, "bytes"),
            "times the least": round(row.bytes / least, 2),
        }
        for row in m.rows()
    ],
    caption=f"{m.launches} launches, {show.si(m.bytes, 'bytes')} moved",
    kinds={"moved": "modelled", "times the least": "modelled"},
)
against_prediction("07.gelu", m.bytes / least, "times", kind="modelled")

# %% [markdown] key="gelu-why"
# Each operator reads an array and writes an array, and between two of them nothing stays. The arithmetic is a dozen FLOPs an
# element, far below any ridge, so on a GPU the bytes are the time.
#
# One kernel that loads `x`, does all steps in registers and stores the result once would move the least. Let us get there.

# %% [markdown] key="programs"
# ## A kernel, its programs, its grid
#
# A Triton kernel is a function that runs many times at once. Each run is a **program**. It knows which one it is:
# `tl.program_id(0)` is its number. How many there are is the **grid**, chosen at the launch, `kernel[grid](arguments)`.
#
# A program works on a **block** of numbers at once, not on a single one. `tl.arange(0, 4)` is the block 0, 1, 2, 3. Its positions are
# called **lanes**. A block lives in registers. Its size is a power of two and known when the kernel is compiled: that is what `tl.constexpr`
# says.

# %% [markdown] key="pointers"
# A tensor arrives as a **pointer**, the address of its first element. A pointer plus a block of whole numbers is a block of addresses, in
# elements. `tl.load` fetches what lies there, `tl.store` writes there.
#
# In the cell below three programs run, each with a block of four lanes. What will be printed?

# %% key="who"
# Needs Triton.
@triton.jit
def who_kernel(out_ptr, BLOCK: tl.constexpr):
    """Each program writes its number into the elements it owns."""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + i, tl.program_id(0))


numbers = torch.empty(12, dtype=torch.int32)
who_kernel[(3,)](numbers, BLOCK=4)
print(numbers.tolist())

# %% [markdown] key="jit"
# ### What `@triton.jit` does
#
# It keeps the function's source and runs nothing. At the first launch Triton translates the source for the types of these arguments and the
# values of these constants: to its own intermediate form, then to LLVM's, then to the GPU's machine code. It decides which
# thread holds which lane, and how wide each load is. The result is cached, so the second launch costs microseconds.
#
# Python's names do not exist on the GPU. Inside a kernel use arithmetic, `if`, `for` over a `range`, your arguments, and functions of `tl`. Most are named as in PyTorch:
# `tl.exp`, `tl.sqrt`, `tl.maximum`, `tl.where`. A block of zeros is `tl.zeros((BLOCK,), tl.float32)`.
#
# Tensors on the CPU, as in this chapter, run on paper instead: the same source, interpreted and checked.

# %% [markdown] key="add_kernel-intro"
# ## Exercise: add two vectors
#
# ●○○○ · 10 minutes · 2 points
#
# `x_ptr` and `y_ptr` point at `n` numbers each, `out_ptr` at room for `n` more. Program `p` owns the elements `p * BLOCK` to
# `(p + 1) * BLOCK - 1`. Write `x + y` there. `n` need not be a multiple of `BLOCK`: lanes past the end must touch nothing. That is what
# `mask` is for: `tl.load(p, mask=m)` and `tl.store(p, v, mask=m)` leave out the lanes where `m` is false.
#
# Graded: the result; no address out of bounds; no two programs writing one element; at most `12 * n` bytes asked for; at least 90% of what
# is fetched needed. Keep the names of arguments in CAPITALS in every exercise: the launch passes them by name.

# %% key="add_kernel" tags=["exercise"]
@triton.jit
def add_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    """out = x + y, all of n elements; one program a block.

    >>> x, out = torch.tensor([1.0, 2.0, 3.0]), torch.empty(3)
    >>> add_kernel[(2,)](x, x, out, 3, BLOCK=2)
    >>> out
    tensor([2., 4., 6.])
    """
    ### BEGIN SOLUTION
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = i < n
    x = tl.load(x_ptr + i, mask=inside)
    y = tl.load(y_ptr + i, mask=inside)
    tl.store(out_ptr + i, x + y, mask=inside)
    ### END SOLUTION


# %% key="add_kernel-check" tags=["check"]
add_kernel = check("07.add_kernel", add_kernel)

# %% [markdown] key="add-run-intro"
# Your kernel as the meter sees it. `measure` runs a launch on paper and reports: bytes each argument was asked for, sectors fetched, the
# modelled time on a GPU that you name. It also says what it does not model.

# %% key="add-run"
# Needs Triton.
x, y, out = torch.randn(1000), torch.randn(1000), torch.empty(1000)
report = measure(
    add_kernel, (4,), x, y, out, 1000, BLOCK=256, accelerator="T4"
)
columns = ("argument", "read", "written", "sectors", "coalescing")
show.table(
    [{name: row[name] for name in columns} for row in report.rows()],
    caption=f"{report.programs} programs; {report.modelled}",
    kinds=dict.fromkeys(("read", "written", "sectors"), "modelled"),
)
print("Not modelled:", *report.not_modelled, sep="\n- ")

# %% [markdown] key="launch-bound"
# A thousand numbers are nothing: the launch takes longer than the work. And fusing one operator with nothing gains nothing. PyTorch's
# `x + y` moves the same twelve bytes an element.
#
# So much for the first kernel. Before the second, look at who touches what.

# %% [markdown] key="map-intro"
# ## Which program touches which address
#
# Below is a tensor in memory, eight fp32 numbers a line: one line is a **sector** of 32 bytes, the least that is fetched. Every cell
# shows the number of the program that owns it. Choose a program, the size of its block, and a pattern:
#
# - **neighbours**: program `p` owns elements `p * BLOCK` and on;
# - **far apart**: lane `k` of program `p` is element `k * programs + p`.

# %% key="map" tags=["figure"]
from matplotlib.patches import Rectangle

from utils.show.figure import Picture, new_figure


def owned(pattern: str, n: int, block: int, program: int) -> list:
    """Elements that the program's lanes point at, also those past n."""
    programs = -(-n // block)
    if pattern == "neighbours":
        return [program * block + lane for lane in range(block)]
    return [lane * programs + program for lane in range(block)]


def memory_map(n: int, block: int, program: int, pattern: str) -> Picture:
    """Elements in lines of 8; the program's own are filled."""
    owner = {}
    for p in range(-(-n // block)):
        owner |= dict.fromkeys(owned(pattern, n, block, p), p)

    def paint():
        lines = -(-n // 8)
        figure, axes = new_figure(
            title, "bytes in the sector", "sector", 4.6
        )
        for i, p in owner.items():
            if i >= n:
                continue
            row, column = divmod(i, 8)
            mine = p == program
            colour = "#0072B2" if mine else "white"
            box = {"facecolor": colour, "edgecolor": "#808080"}
            axes.add_patch(Rectangle((4 * column, row), 4, 1, **box))
            axes.text(
                4 * column + 2,
                row + 0.5,
                str(p),
                ha="center",
                va="center",
                fontsize=9,
                color="white" if mine else "#222222",
                fontweight="bold" if mine else "normal",
            )
        axes.set(xlim=(0, 32), ylim=(lines, 0), xticks=range(0, 33, 4))
        axes.set_yticks([k + 0.5 for k in range(lines)], range(lines))
        return figure

    text = "\n".join(
        " ".join(f"{owner[i]:3}" for i in range(j, min(j + 8, n)))
        for j in range(0, n, 8)
    )
    title = f"{n} elements, BLOCK {block}, {pattern}"
    alt = f"Memory in sectors, each element with its program. {title}."
    return Picture(
        title=title,
        alt=alt,
        text=text,
        numbers=f"<pre>{text}</pre>",
        paint=paint,
    )


def draw(n, block, program, pattern):
    programs = -(-n // block)
    program = min(program, programs - 1)
    lanes = owned(pattern, n, block, program)
    alive = [i for i in lanes if i < n]
    sectors = len({i // 8 for i in alive})
    fewest = -(-len(alive) // 8)
    said = (
        f"Program {program} of {programs}: {len(alive)} lanes at work,"
        f" {block - len(alive)} masked off. Sectors it fetches: {sectors}."
        f" Sectors that would hold its numbers: {fewest}."
    )
    return memory_map(n, block, program, pattern), said


show.explore(
    draw,
    n=Slider(20, 120, start=100, unit="elements"),
    block=Slider(8, 32, start=32, log2=True, label="BLOCK"),
    program=Slider(0, 14, start=1),
    pattern=Choice(["neighbours", "far apart"]),
)

# %% [markdown] key="map-read"
# Set the program to the last one: some of its lanes have no element, and the mask turns them off. Now switch the pattern. The same numbers are
# read, once each, and yet every program fetches all sectors of the tensor. Neighbouring lanes should touch neighbouring
# addresses: that is coalescing, from [chapter 6](06_gpu_execution.ipynb).

# %% [markdown] key="bad-address"
# ## The first bad address
#
# What happens without the mask? On a GPU the last program reads past the end, and gets whatever lies there, usually another
# tensor. A store past the end changes that other tensor. Nobody says a word, until a loss becomes NaN an hour later, or an "illegal memory
# access" appears at a line that is innocent.
#
# Here the launch stops at the first such address, before it is touched.

# %% key="bad-address-run"
# Needs Triton.
@triton.jit
def careless_kernel(x_ptr, out_ptr, BLOCK: tl.constexpr):
    """Doubles x, and forgets where x ends."""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + i, 2 * tl.load(x_ptr + i))


x = torch.randn(1000)
try:
    careless_kernel[(4,)](x, torch.empty_like(x), BLOCK=256)
except KernelError as error:
    print(error)

# %% [markdown] key="bad-address-read"
# Read it once: kernel, program, argument, index, how many lanes, whether there was a mask, and the line. Programs 0 to 2 were fine: with
# 1024 elements nobody would have noticed. **Test kernels on sizes that do not divide.** The checks in this chapter do.

# %% [markdown] key="tiles"
# ## Tiles and strides
#
# A matrix of `rows` x `columns` lies in memory row after row. Element $(r, c)$ is at $r \cdot \text{columns} + c$. What you add to get
# from one row to the next is the **stride** of the rows. It belongs to the tensor, not to your block.
#
# A block can have two dimensions. `r[:, None]` makes a column of row numbers, `c[None, :]` a row of column numbers, and their sum
# broadcasts to a tile, as in PyTorch. The grid can have two dimensions too: `tl.program_id(1)` is the second number.

# %% [markdown] key="bias_gelu_kernel-intro"
# ## Exercise: bias and GELU in one kernel
#
# ●●○○ · 12 minutes · 3 points
#
# `x` and `out` are `rows` x `columns`, one row right after the other, fp32. `bias` has `columns` numbers. Program `(i, j)` owns tile `i` of
# rows (`BLOCK_ROWS` of them) and tile `j` of columns (`BLOCK_COLUMNS`). Write `gelu(x + bias)`, with `tl.erf`, there. Tiles at the edge
# stick out: mask them.
#
# Graded as before. Bytes: `x` and `out` once, and `bias` once for each tile of rows, so at most
# `4 * (2 * rows * columns + tiles * columns)` with `tiles = ceil(rows / BLOCK_ROWS)`.

# %% key="bias_gelu_kernel" tags=["exercise"]
@triton.jit
def bias_gelu_kernel(
    x_ptr,
    bias_ptr,
    out_ptr,
    rows,
    columns,
    BLOCK_ROWS: tl.constexpr,
    BLOCK_COLUMNS: tl.constexpr,
):
    """out = z / 2 * (1 + erf(z / sqrt(2))) with z = x + bias.

    >>> x, out = torch.tensor([[0.0, 1.0, -9.0]]), torch.empty(1, 3)
    >>> bias_gelu_kernel[(1, 1)](
    ...     x, torch.zeros(3), out, 1, 3, BLOCK_ROWS=2, BLOCK_COLUMNS=4
    ... )
    >>> out.abs()
    tensor([[0.0000, 0.8413, 0.0000]])
    """
    ### BEGIN SOLUTION
    r = tl.program_id(0) * BLOCK_ROWS + tl.arange(0, BLOCK_ROWS)[:, None]
    c = tl.program_id(1) * BLOCK_COLUMNS
    c += tl.arange(0, BLOCK_COLUMNS)[None, :]
    inside = (r < rows) & (c < columns)
    bias = tl.load(bias_ptr + c, mask=c < columns)
    z = tl.load(x_ptr + r * columns + c, mask=inside) + bias
    gelu = 0.5 * z * (1 + tl.erf(z * 0.7071067811865476))
    tl.store(out_ptr + r * columns + c, gelu, mask=inside)
    ### END SOLUTION


# %% key="bias_gelu_kernel-check" tags=["check"]
bias_gelu_kernel = check("07.bias_gelu_kernel", bias_gelu_kernel)

# %% [markdown] key="bill-intro"
# ## The bill
#
# Now compare. `launches` gathers the reports of every launch inside it, and `meter` counts the operators, on the same input. The time is modelled
# for an A100, on a thousand times as many rows, since a real batch has thousands: launches stay, bytes grow.

# %% key="bill"
GPU, MORE = "A100 80GB SXM", 1000
saved = {}  # kernel -> operators' bytes over its own
points = {}  # kernel -> (FLOP per byte, FLOP/s) as modelled


def bill(name, reports, operators, least):
    """Your launches beside PyTorch's operators, on the same input."""
    flops = sum(sum(report.flops.values()) for report in reports)
    moved = sum(report.requested_bytes for report in reports)
    chip = accelerator(GPU)
    rows = []
    for form, n_launch, n_bytes in (
        ("operators", operators.launches, operators.bytes),
        ("your kernel", len(reports), moved),
    ):
        seconds = n_launch * LAUNCH_SECONDS
        seconds += MORE * n_bytes / chip.bytes_per_s
        rows.append(
            {
                "form": form,
                "launches": n_launch,
                "moved": show.si(n_bytes, "bytes"),
                "times the least": round(n_bytes / least, 2),
                f"x {MORE:,}": show.si(seconds, "s"),
            }
        )
    saved[name] = operators.bytes / moved
    points[name] = (flops / moved, MORE * flops / seconds)
    kinds = dict.fromkeys(list(rows[0])[2:], "modelled")
    show.table(rows, caption=f"{name}, {GPU}", kinds=kinds)

# %% key="gelu-bill"
# Needs Triton.
def bias_gelu(x, bias):
    """gelu(x + bias) by your kernel."""
    out = torch.empty_like(x)
    grid = (triton.cdiv(len(x), 4), triton.cdiv(x.shape[1], 512))
    bias_gelu_kernel[grid](
        x, bias, out, *x.shape, BLOCK_ROWS=4, BLOCK_COLUMNS=512
    )
    return out


x, bias = torch.randn(16, 3072), torch.randn(3072)
with meter() as operators:
    wanted = gelu_operators(x, bias)
with launches() as reports:
    out = bias_gelu(x, bias)
show.number(float((out - wanted).abs().max()), "largest gap", "measured")
bill("bias and GELU", reports, operators, 8 * x.numel())
with meter() as pytorch:
    F.gelu(x + bias)
show.number(
    pytorch.bytes / (8 * x.numel()),
    "times the least for F.gelu(x + bias)",
    "modelled",
)

# %% [markdown] key="gelu-bill-read"
# Four rows of a tile share one load of the bias, so your kernel stays a little above the least. PyTorch has a GELU in one kernel, but not one
# with your bias in front: it still carries `z` to memory and back.
#
# This is **fusion**. Nothing was computed faster. Intermediate results never left the registers.

# %% [markdown] key="rows"
# ## A row at a time
#
# Softmax is harder to fuse: every element needs the maximum and the sum of its row. In operators it goes over the row
# again and again. You know the steps from [chapter 4](04_attention.ipynb): maximum, difference, exponential, sum, quotient.
#
# The least: read the input, write the output.

# %% key="predict-softmax"
predict(
    "07.softmax",
    "In five operators, softmax moves how many times the least?",
    unit="times",
)

# %% key="softmax-operators"
def softmax_operators(x):
    """Softmax of each row, one operator a step."""
    raised = (x - x.amax(dim=1, keepdim=True)).exp()
    return raised / raised.sum(dim=1, keepdim=True)


x = torch.randn(32, 768)
with meter() as m:
    softmax_operators(x)
softmax_ratio = m.bytes / (8 * x.numel())
against_prediction("07.softmax", softmax_ratio, "times", kind="modelled")
show.table(
    [
        {
            "operator": row.name,
            "read": round(row.bytes_read / 4 / x.numel(), 2),
            "written": round(row.bytes_written / 4 / x.numel(), 2),
        }
        for row in m.rows()
        if row.bytes
    ],
    caption="How often each moves an array of the input's size",
    kinds={"read": "modelled", "written": "modelled"},
)

# %% [markdown] key="softmax-plan"
# Eight trips where two would do. The plan for one kernel: a program takes a whole row as one block. Then the maximum is
# `tl.max(x, axis=0)` and the sum `tl.sum(..., axis=0)`, both without leaving the chip.
#
# A row of 768 does not fill a block of 1024. The 256 lanes past the end take part in the maximum and in the sum unless you stop them.
# `tl.load(..., mask=m, other=v)` puts `v` into lanes that the mask leaves out. Which value does neither a maximum nor a sum of exponentials notice?

# %% [markdown] key="softmax_kernel-intro"
# ## Exercise: softmax
#
# ●●○○ · 15 minutes · 3 points
#
# Program `p` takes row `p`, `columns` fp32 numbers. `BLOCK` is a power of two, at least `columns`. Row `p` of `x` starts at `p * x_stride`: the rows may
# be part of a wider tensor, and what lies between them is not yours. Row `p` of `out` starts at `p * out_stride`.
#
# Logits may be as large as 200 or as small as -200. Graded as before; at most `8` bytes an element.

# %% key="softmax_kernel" tags=["exercise"]
@triton.jit
def softmax_kernel(
    x_ptr, out_ptr, x_stride, out_stride, columns, BLOCK: tl.constexpr
):
    """Softmax of each row; one program a row.

    >>> x, out = torch.tensor([[7.0, 7.0, 7.0]]), torch.empty(1, 3)
    >>> softmax_kernel[(1,)](x, out, 3, 3, 3, BLOCK=4)
    >>> out
    tensor([[0.3333, 0.3333, 0.3333]])
    """
    ### BEGIN SOLUTION
    row, c = tl.program_id(0), tl.arange(0, BLOCK)
    inside = c < columns
    x = tl.load(x_ptr + row * x_stride + c, mask=inside, other=-float("inf"))
    raised = tl.exp(x - tl.max(x, axis=0))
    out = raised / tl.sum(raised, axis=0)
    tl.store(out_ptr + row * out_stride + c, out, mask=inside)
    ### END SOLUTION


# %% key="softmax_kernel-check" tags=["check"]
softmax_kernel = check("07.softmax_kernel", softmax_kernel)

# %% key="softmax-bill"
# Needs Triton.
def softmax(x):
    """Softmax of each row by your kernel."""
    out = torch.empty_like(x)
    softmax_kernel[(len(x),)](
        x,
        out,
        x.stride(0),
        out.stride(0),
        x.shape[1],
        BLOCK=triton.next_power_of_2(x.shape[1]),
    )
    return out


with meter() as operators:
    wanted = softmax_operators(x)
with launches() as reports:
    out = softmax(x)
show.number(float((out - wanted).abs().max()), "largest gap", "measured")
bill("softmax", reports, operators, 8 * x.numel())

# %% [markdown] key="other"
# ### Lanes that hold anything
#
# Leave out `other` and the masked lanes are **undefined**: on a GPU they hold what the register held before. The trap is that it often
# works. An interpreter that puts zeros there says all is well, and so may your GPU, today.
#
# So on paper a program with such lanes is run twice, the second time with rubbish in them. If what it stores differs, it is stopped.

# %% key="other-run"
# Needs Triton.
@triton.jit
def hopeful_kernel(x_ptr, out_ptr, columns, BLOCK: tl.constexpr):
    """Sums each row, and hopes that lanes past the end hold 0."""
    row, c = tl.program_id(0), tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * columns + c, mask=c < columns)
    tl.store(out_ptr + row, tl.sum(x, axis=0))


try:
    hopeful_kernel[(32,)](x, torch.empty(32), 768, BLOCK=1024)
except KernelError as error:
    print(error)

# %% [markdown] key="fits"
# ### A row must fit, or be looped over
#
# The plan needs the whole row in registers. A program usually has 4 warps, 128 threads, and a thread has at most 255
# registers of 4 bytes. Lanes past the end are wasted, too.

# %% key="fits-table"
rows = []
for what, columns in (
    ("GPT-2's d_model", 768),
    ("GPT-2's hidden", 3_072),
    ("Llama 3's d_model", 4_096),
    ("Llama 3's hidden", 14_336),
    ("GPT-2's vocabulary", 50_257),
    ("Llama 3's vocabulary", 128_256),
):
    block = triton.next_power_of_2(columns)
    rows.append(
        {
            "row": what,
            "columns": columns,
            "BLOCK": block,
            "idle lanes": f"{1 - columns / block:.0%}",
            "numbers a thread, 4 warps": block // 128,
            "32 warps": block // 1024,
        }
    )
show.table(rows, caption="One fp32 block for a row; 255 registers a thread")

# %% [markdown] key="fits-read"
# More warps spread a row over more threads, up to 32 warps. Past that, or long before, the compiler **spills**: it keeps part of
# the block in slow local memory, and the bytes you saved come back. The meter does not see that. For a vocabulary you loop over
# pieces of the row, which comes below.

# %% [markdown] key="rmsnorm"
# ## Narrow in memory, wide in the sum
#
# **RMSNorm** divides a row by its root mean square and multiplies each column by a learned weight $w$:
#
# $$y_c = w_c\, \frac{x_c}{\sqrt{\frac1n \sum_k x_k^2 + \varepsilon}}.$$
#
# $n$ is the number of columns and $\varepsilon$ a small number that keeps a row of zeros from dividing by 0. Models hold $x$ in 16 bits. The sum must not be.

# %% key="rmsnorm-narrow"
row = torch.ones(4096, dtype=torch.float16)
narrow = torch.zeros((), dtype=torch.float16)
for square in row * row:
    narrow += square
show.number(int(narrow), "sum of 4,096 ones, added in fp16", "measured")
wide = int((row.float() ** 2).sum())
show.number(wide, "the same in fp32", "measured")

# %% [markdown] key="rmsnorm-narrow-why"
# From 2,048 on, fp16 numbers lie 2 apart, and adding 1 changes nothing: [chapter 9](09_mixed_precision.ipynb) shows where every format stops. And fp16
# ends at 65,504, so the square of 256 is infinite.
#
# Converting costs no byte: the number is in a register already. Load 16 bits, compute in 32, `x.to(tl.float32)`, store 16.

# %% [markdown] key="rmsnorm_kernel-intro"
# ## Exercise: RMSNorm
#
# ●●○○ · 12 minutes · 3 points
#
# `x` and `out` are `rows` x `columns`, rows one after the other, `weight` has `columns` numbers. All three are fp32 or all fp16. Program `p` takes
# row `p`; `BLOCK` is a power of two, at least `columns`. Compute in fp32 and round once, as you store: `tl.store` converts to the type of its pointer.
#
# Graded as before. Bytes: `x`, `weight` and `out` once for each row.

# %% key="rmsnorm_kernel" tags=["exercise"]
@triton.jit
def rmsnorm_kernel(
    x_ptr, weight_ptr, out_ptr, columns, eps, BLOCK: tl.constexpr
):
    """out = weight * x / sqrt(mean(x²) + eps); one program a row.

    >>> x, out = torch.tensor([[3.0, 4.0, 0.0]]), torch.empty(1, 3)
    >>> rmsnorm_kernel[(1,)](x, torch.ones(3), out, 3, 0.0, BLOCK=4)
    >>> out
    tensor([[1.0392, 1.3856, 0.0000]])
    """
    ### BEGIN SOLUTION
    row, c = tl.program_id(0), tl.arange(0, BLOCK)
    inside = c < columns
    x = tl.load(x_ptr + row * columns + c, mask=inside, other=0.0)
    x = x.to(tl.float32)
    root = tl.sqrt(tl.sum(x * x, axis=0) / columns + eps)
    weight = tl.load(weight_ptr + c, mask=inside, other=0.0)
    tl.store(out_ptr + row * columns + c, x / root * weight, mask=inside)
    ### END SOLUTION


# %% key="rmsnorm_kernel-check" tags=["check"]
rmsnorm_kernel = check("07.rmsnorm_kernel", rmsnorm_kernel)

# %% key="rmsnorm-operators"
def rmsnorm_operators(x, weight, eps=1e-5):
    """RMSNorm, one operator a step, summed in fp32."""
    wide = x.float()
    root = (wide.pow(2).mean(dim=1, keepdim=True) + eps).sqrt()
    return (wide / root * weight.float()).to(x.dtype)


# %% key="rmsnorm-bill"
# Needs Triton.
def rmsnorm(x, weight, eps=1e-5):
    """RMSNorm by your kernel."""
    out = torch.empty_like(x)
    block = triton.next_power_of_2(x.shape[1])
    rmsnorm_kernel[(len(x),)](x, weight, out, x.shape[1], eps, BLOCK=block)
    return out


x = (30 * torch.randn(32, 768)).half()
weight = torch.rand(768).half()
with meter() as operators:
    wanted = rmsnorm_operators(x, weight)
with launches() as reports:
    out = rmsnorm(x, weight)
gap = float((out.float() - wanted.float()).abs().max())
show.number(gap, "largest gap, fp16", "measured")
bill("RMSNorm, fp16", reports, operators, 4 * x.numel())

# %% [markdown] key="rmsnorm-bill-read"
# Here the operators pay twice: the converted copies are as wide as fp32, and each of them travels.
#
# Your kernel asks for `weight` again for every row, so it stands above the least. Those 1.5 kB are in a cache after the first row:
# look at the share of loads that hit L2 in the report.

# %% key="rmsnorm-l2"
# Needs Triton.
report = reports[0]
show.number(report.requested_bytes, "bytes asked for", "modelled")
show.number(report.cost.bytes, "bytes past L2", "modelled")
show.number(100 * report.l2_hit_rate, "% of loads hit L2", "modelled")

# %% [markdown] key="layernorm"
# ## LayerNorm, forward
#
# **LayerNorm** also subtracts the mean, and adds a learned bias $b$. With $\mu$ the mean of a row, $\sigma^2$ its variance and $r = 1/\sqrt{\sigma^2 + \varepsilon}$:
#
# $$\hat x_c = (x_c - \mu)\, r, \qquad y_c = w_c\, \hat x_c + b_c.$$
#
# This one is written for you. It keeps two numbers a row for the backward pass, $\mu$ and $r$, instead of the row $\hat x$.
# The variance takes a second pass over the row, which costs nothing: the row is on the chip. `tl.where` keeps lanes past the end out of it.

# %% key="layernorm-forward"
# Needs Triton.
@triton.jit
def layernorm_kernel(
    x_ptr,
    weight_ptr,
    bias_ptr,
    out_ptr,
    mean_ptr,
    rstd_ptr,
    columns,
    eps,
    BLOCK: tl.constexpr,
):
    """LayerNorm of each row; keeps mean and 1 / deviation."""
    row, c = tl.program_id(0), tl.arange(0, BLOCK)
    inside = c < columns
    x = tl.load(x_ptr + row * columns + c, mask=inside, other=0.0)
    mean = tl.sum(x, axis=0) / columns
    centred = tl.where(inside, x - mean, 0.0)
    variance = tl.sum(centred * centred, axis=0) / columns
    rstd = 1 / tl.sqrt(variance + eps)
    weight = tl.load(weight_ptr + c, mask=inside)
    bias = tl.load(bias_ptr + c, mask=inside)
    out = centred * rstd * weight + bias
    tl.store(out_ptr + row * columns + c, out, mask=inside)
    tl.store(mean_ptr + row, mean)
    tl.store(rstd_ptr + row, rstd)


def layernorm(x, weight, bias, eps=1e-5):
    """(LayerNorm of x, its rows' means, their 1 / deviations)."""
    out = torch.empty_like(x)
    mean, rstd = torch.empty(2, len(x), device=x.device)
    block = triton.next_power_of_2(x.shape[1])
    layernorm_kernel[(len(x),)](
        x, weight, bias, out, mean, rstd, x.shape[1], eps, BLOCK=block
    )
    return out, mean, rstd


x, d_out = 2 * torch.randn(32, 200) + 1, torch.randn(32, 200)
weight, bias = torch.randn(200), torch.randn(200)
with launches() as reports:
    out, mean, rstd = layernorm(x, weight, bias)
wanted = F.layer_norm(x, (200,), weight, bias)
gap = float((out - wanted).abs().max())
show.number(gap, "largest gap to PyTorch's", "measured")

# %% [markdown] key="backward-row"
# ## LayerNorm, backward: within a row
#
# Write $dy$ for the gradient of the loss with respect to $y$, and so on. What arrives at $\hat x$ is $g_c = dy_c\, w_c$. How does $x_i$ move
# $\hat x_j$? Directly, through the mean ($\partial\mu/\partial x_i = 1/n$), and through the deviation
# ($\partial r/\partial x_i = -r^2 \hat x_i / n$). Together:
#
# $$\frac{\partial \hat x_j}{\partial x_i} = r\left(\delta_{ij} - \frac1n - \frac{\hat x_i \hat x_j}{n}\right),$$
#
# with $\delta_{ij}$ 1 where $i = j$ and else 0. Sum over $j$, weighted with $g_j$:
#
# $$dx_i = r\left(g_i - \overline{g} - \hat x_i\, \overline{g \hat x}\right).$$
#
# A bar is the mean of the row. Both means are sums on the chip, as before.

# %% [markdown] key="backward-columns"
# ## LayerNorm, backward: across rows
#
# The weight and the bias are shared by all rows, so their gradients are sums over rows:
#
# $$dw_c = \sum_{\text{rows}} dy_c\, \hat x_c, \qquad db_c = \sum_{\text{rows}} dy_c.$$
#
# Rows belong to different programs. Programs run at the same time, in no order you may rely on. If two of them load `dw`, add to it and store
# it, one addition can be lost: a **race**. Here it is reported, even though on paper programs take turns and the sum comes out right.

# %% key="race"
# Needs Triton.
@triton.jit
def racing_kernel(x_ptr, total_ptr, BLOCK: tl.constexpr):
    """Adds every row to total, each program for itself."""
    c = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + tl.program_id(0) * BLOCK + c)
    tl.store(total_ptr + c, tl.load(total_ptr + c) + x)


try:
    racing_kernel[(8,)](torch.randn(8, 64), torch.zeros(64), BLOCK=64)
except KernelError as error:
    print(error)

# %% [markdown] key="atomics"
# `tl.atomic_add(p, v, mask=m)` is the way: memory itself adds, one after the other, and none is lost. It has two prices.
#
# - It is traffic to memory, for every lane. So add up on the chip first: let a program take several rows, sum them in a block, and send one
#   atomic at the end.
# - Programs arrive in any order, and fp32 addition depends on the order in its last digits. Two runs may differ there. Who needs equal bits
#   lets each program store its sum in a row of its own, and adds those rows with a second kernel.

# %% [markdown] key="layernorm_backward_kernel-intro"
# ## Exercise: LayerNorm backward
#
# ●●●● · 25 minutes · 5 points
#
# `x`, `d_out` and `d_x` are `rows` x `columns`, fp32, rows one after the other. `mean` and `rstd` ($\mu$ and $r$) have one number a row. `d_weight` and `d_bias` start as
# zeros: add to them. Program `p` takes rows `p * ROWS` to `(p + 1) * ROWS - 1`, as far as they exist. `BLOCK` is at least `columns`.
#
# Graded as before. Bytes: `x`, `d_out`, `d_x` once, `mean` and `rstd` once a row; `weight`, and the atomics to `d_weight` and `d_bias`, once a program.
# So at most `4 * (3 * rows * columns + 2 * rows + 3 * programs * columns)`.

# %% key="layernorm_backward_kernel" tags=["exercise"]
@triton.jit
def layernorm_backward_kernel(
    x_ptr,
    weight_ptr,
    mean_ptr,
    rstd_ptr,
    d_out_ptr,
    d_x_ptr,
    d_weight_ptr,
    d_bias_ptr,
    rows,
    columns,
    ROWS: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Gradients of LayerNorm; a program takes ROWS rows.

    >>> x, d_out = torch.tensor([[-1.0, 1.0]]), torch.tensor([[1.0, 1.0]])
    >>> one, zero = torch.ones(2), torch.zeros(1)
    >>> d_x, d_w, d_b = torch.empty(1, 2), torch.zeros(2), torch.zeros(2)
    >>> layernorm_backward_kernel[(1,)](
    ...     x, one, zero, one[:1], d_out, d_x, d_w, d_b, 1, 2,
    ...     ROWS=2, BLOCK=2,
    ... )
    >>> d_x, d_w, d_b
    (tensor([[0., 0.]]), tensor([-1.,  1.]), tensor([1., 1.]))
    """
    ### BEGIN SOLUTION
    c = tl.arange(0, BLOCK)
    inside = c < columns
    weight = tl.load(weight_ptr + c, mask=inside, other=0.0)
    d_weight = tl.zeros((BLOCK,), dtype=tl.float32)
    d_bias = tl.zeros((BLOCK,), dtype=tl.float32)
    first = tl.program_id(0) * ROWS
    for row in range(first, min(first + ROWS, rows)):
        place = row * columns + c
        x = tl.load(x_ptr + place, mask=inside, other=0.0)
        d_out = tl.load(d_out_ptr + place, mask=inside, other=0.0)
        rstd = tl.load(rstd_ptr + row)
        x_hat = (x - tl.load(mean_ptr + row)) * rstd
        g = d_out * weight
        mean_g = tl.sum(g, axis=0) / columns
        mean_gx = tl.sum(g * x_hat, axis=0) / columns
        d_x = (g - mean_g - x_hat * mean_gx) * rstd
        tl.store(d_x_ptr + place, d_x, mask=inside)
        d_weight += d_out * x_hat
        d_bias += d_out
    tl.atomic_add(d_weight_ptr + c, d_weight, mask=inside)
    tl.atomic_add(d_bias_ptr + c, d_bias, mask=inside)
    ### END SOLUTION


# %% key="layernorm_backward_kernel-check" tags=["check"]
layernorm_backward_kernel = check(
    "07.layernorm_backward_kernel", layernorm_backward_kernel
)

# %% [markdown] key="backward-bill-intro"
# The judge is autograd. The bill compares with the formulas above, an operator a step.

# %% key="backward-bill"
# Needs Triton.
def backward_operators(x, weight, mean, rstd, d_out):
    """(d_x, d_weight, d_bias), one operator a step."""
    x_hat = (x - mean[:, None]) * rstd[:, None]
    g = d_out * weight
    inner = g - g.mean(dim=1, keepdim=True)
    inner = inner - x_hat * (g * x_hat).mean(dim=1, keepdim=True)
    d_weight = (d_out * x_hat).sum(dim=0)
    return inner * rstd[:, None], d_weight, d_out.sum(dim=0)


def layernorm_backward(x, weight, mean, rstd, d_out, rows=16):
    """(d_x, d_weight, d_bias) by your kernel."""
    d_x, d_weight = torch.empty_like(x), torch.zeros_like(weight)
    d_bias = torch.zeros_like(weight)
    layernorm_backward_kernel[(triton.cdiv(len(x), rows),)](
        x,
        weight,
        mean,
        rstd,
        d_out,
        d_x,
        d_weight,
        d_bias,
        *x.shape,
        ROWS=rows,
        BLOCK=triton.next_power_of_2(x.shape[1]),
    )
    return d_x, d_weight, d_bias


with meter() as operators:
    backward_operators(x, weight, mean, rstd, d_out)
with launches() as reports:
    by_hand = layernorm_backward(x, weight, mean, rstd, d_out)
leaves = [t.clone().requires_grad_() for t in (x, weight, bias)]
y = F.layer_norm(leaves[0], (200,), *leaves[1:])
wanted = torch.autograd.grad(y, leaves, d_out)
for name, ours, theirs in zip(
    ("x", "weight", "bias"), by_hand, wanted, strict=True
):
    gap = float((ours - theirs).norm() / theirs.norm())
    show.number(gap, f"relative gap of d_{name}", "measured")
bill("LayerNorm backward", reports, operators, 12 * x.numel())

# %% [markdown] key="rmsnorm-backward"
# ### RMSNorm backward
#
# With $r = 1/\sqrt{\frac1n \sum_k x_k^2 + \varepsilon}$ and $\hat x = x r$ there is no mean to move, so its term goes:
#
# $$dx_i = r\left(g_i - \hat x_i\, \overline{g \hat x}\right), \qquad dw_c = \sum_{\text{rows}} dy_c\, \hat x_c.$$
#
# This kernel keeps nothing from the forward pass, not even $r$. It has the row anyway, and computes $r$ again from it: a sum, but not a byte.

# %% key="rmsnorm-backward-run"
# Needs Triton.
@triton.jit
def rmsnorm_backward_kernel(
    x_ptr,
    weight_ptr,
    d_out_ptr,
    d_x_ptr,
    d_weight_ptr,
    rows,
    columns,
    eps,
    ROWS: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Gradients of RMSNorm; a program takes ROWS rows."""
    c = tl.arange(0, BLOCK)
    inside = c < columns
    weight = tl.load(weight_ptr + c, mask=inside, other=0.0)
    d_weight = tl.zeros((BLOCK,), dtype=tl.float32)
    first = tl.program_id(0) * ROWS
    for row in range(first, min(first + ROWS, rows)):
        place = row * columns + c
        x = tl.load(x_ptr + place, mask=inside, other=0.0)
        d_out = tl.load(d_out_ptr + place, mask=inside, other=0.0)
        r = 1 / tl.sqrt(tl.sum(x * x, axis=0) / columns + eps)
        x_hat, g = x * r, d_out * weight
        mean_gx = tl.sum(g * x_hat, axis=0) / columns
        d_x = r * (g - x_hat * mean_gx)
        tl.store(d_x_ptr + place, d_x, mask=inside)
        d_weight += d_out * x_hat
    tl.atomic_add(d_weight_ptr + c, d_weight, mask=inside)


d_x, d_weight = torch.empty_like(x), torch.zeros(200)
rmsnorm_backward_kernel[(2,)](
    x, weight, d_out, d_x, d_weight, 32, 200, 1e-5, ROWS=16, BLOCK=256
)
leaves = [t.clone().requires_grad_() for t in (x, weight)]
y = F.rms_norm(leaves[0], (200,), leaves[1], eps=1e-5)
wanted = torch.autograd.grad(y, leaves, d_out)
for name, ours, theirs in zip(
    ("x", "weight"), (d_x, d_weight), wanted, strict=True
):
    gap = float((ours - theirs).norm() / theirs.norm())
    show.number(gap, f"relative gap of d_{name}", "measured")

# %% [markdown] key="cross-entropy"
# ## A row that does not fit
#
# The last layer of a language model makes `vocab` logits $z$ for each token, and the loss of a token with target $t$ is
#
# $$\ell = -\log \mathrm{softmax}(z)_t = \log \sum_j e^{z_j} - z_t.$$
#
# To compute it, PyTorch's `F.cross_entropy` first writes the logarithms of all probabilities, as many as there are logits. What is that for a real model?

# %% key="cross-entropy-size"
rows = []
for name, vocab, tokens in (
    ("GPT-2", 50_257, 16 * 1_024),
    ("Llama 3.1 8B", 128_256, 8_192),
):
    logits = 4 * vocab * tokens
    rows.append(
        {
            "model": name,
            "tokens": tokens,
            "logits, fp32": show.si(logits, "bytes"),
            "log-probabilities": show.si(logits, "bytes"),
            "losses": show.si(4 * tokens, "bytes"),
        }
    )
kinds = dict.fromkeys(list(rows[0])[2:], "modelled")
show.table(rows, caption="One step's last layer", kinds=kinds)

# %% [markdown] key="cross-entropy-plan"
# Gigabytes, for a number a token. You need one number of the row, $z_t$, and its log-sum. And you know how to get the log-sum in one pass, piece by
# piece: the online softmax of [chapter 4](04_attention.ipynb). Carry a maximum `top` and a sum `total`; when a block raises the maximum
# from `top` to `new`, multiply `total` by `exp(top - new)`.
#
# A row of any length then needs one block of registers.

# %% [markdown] key="cross_entropy_kernel-intro"
# ## Exercise: cross-entropy
#
# ●●●○ · 20 minutes · 4 points
#
# Program `p` takes row `p` of the logits, which starts at `p * stride` and has `vocab` fp32 numbers. Behind them there may be padding, which is not to be touched. `target` has one
# int64 a row. Write two numbers a row: `loss`, and `log_total`, the logarithm of the sum of exponentials.
#
# `BLOCK` is smaller than a row. Go over the row once. Logits may be in the hundreds, none is infinite. Graded as before. Bytes a row: `4 * vocab` for the logits and 20 for
# the target, its logit and the two results.

# %% key="cross_entropy_kernel" tags=["exercise"]
@triton.jit
def cross_entropy_kernel(
    logits_ptr,
    target_ptr,
    loss_ptr,
    log_total_ptr,
    stride,
    vocab,
    BLOCK: tl.constexpr,
):
    """Loss and log-sum-exp of each row; one program a row.

    >>> logits, target = torch.zeros(1, 3), torch.tensor([2])
    >>> loss, log_total = torch.empty(1), torch.empty(1)
    >>> cross_entropy_kernel[(1,)](
    ...     logits, target, loss, log_total, 3, 3, BLOCK=2
    ... )
    >>> loss, log_total
    (tensor([1.0986]), tensor([1.0986]))
    """
    ### BEGIN SOLUTION
    row = tl.program_id(0)
    start = logits_ptr + row * stride
    top, total = -float("inf"), 0.0
    for first in range(0, vocab, BLOCK):
        i = first + tl.arange(0, BLOCK)
        z = tl.load(start + i, mask=i < vocab, other=-float("inf"))
        new = tl.maximum(top, tl.max(z, axis=0))
        total = total * tl.exp(top - new) + tl.sum(tl.exp(z - new), axis=0)
        top = new
    log_total = top + tl.log(total)
    chosen = tl.load(start + tl.load(target_ptr + row))
    tl.store(loss_ptr + row, log_total - chosen)
    tl.store(log_total_ptr + row, log_total)
    ### END SOLUTION


# %% key="cross_entropy_kernel-check" tags=["check"]
cross_entropy_kernel = check("07.cross_entropy_kernel", cross_entropy_kernel)

# %% [markdown] key="entropy-bill-intro"
# GPT-2's vocabulary, padded to a multiple of 64 as is usual, eight tokens.

# %% key="entropy-bill"
# Needs Triton.
def cross_entropy(logits, target, block=4096):
    """(loss of each row, log-sum-exp of each row) by your kernel."""
    loss, log_total = torch.empty(2, len(logits), device=logits.device)
    cross_entropy_kernel[(len(logits),)](
        logits,
        target,
        loss,
        log_total,
        logits.stride(0),
        logits.shape[1],
        BLOCK=block,
    )
    return loss, log_total


padded, target = 3 * torch.randn(8, 50_304), torch.randint(50_257, (8,))
logits = padded[:, :50_257]
with meter() as operators:
    wanted = F.cross_entropy(logits, target, reduction="none")
with launches() as reports:
    loss, log_total = cross_entropy(logits, target)
gap = float((loss - wanted).abs().max())
show.number(gap, "largest gap to PyTorch's loss", "measured")
bill("cross-entropy", reports, operators, 4 * logits.numel())
beside = operators.peak_bytes - operators.existing_bytes
show.number(beside, "bytes PyTorch holds beside the logits", "modelled")
show.number(8 * len(target), "bytes yours writes", "modelled")

# %% [markdown] key="entropy-backward"
# ### And its gradient
#
# The gradient of the loss with respect to the logits needs the probabilities after all:
#
# $$dz_j = \mathrm{softmax}(z)_j - [j = t] = e^{z_j - \text{log\_total}} - [j = t].$$
#
# The bracket is 1 where $j = t$, else 0. But each probability is needed for a moment only. With `log_total` kept, a kernel reads a block of logits and writes the
# gradient **over them**: the logits are not needed any more. No array of that size is ever added.

# %% key="entropy-backward-run"
# Needs Triton.
@triton.jit
def entropy_backward_kernel(
    logits_ptr, target_ptr, log_total_ptr, stride, vocab, BLOCK: tl.constexpr
):
    """Turns logits into the gradient of the loss, in place."""
    row = tl.program_id(0)
    i = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    place = logits_ptr + row * stride + i
    z = tl.load(place, mask=i < vocab)
    d_z = tl.exp(z - tl.load(log_total_ptr + row))
    d_z -= tl.where(i == tl.load(target_ptr + row), 1.0, 0.0)
    tl.store(place, d_z, mask=i < vocab)


leaf = logits.clone().requires_grad_()
loss = F.cross_entropy(leaf, target, reduction="sum")
(wanted,) = torch.autograd.grad(loss, leaf)
entropy_backward_kernel[(8, triton.cdiv(50_257, 4096))](
    logits, target, log_total, logits.stride(0), 50_257, BLOCK=4096
)
gap = float((logits - wanted).norm() / wanted.norm())
show.number(gap, "relative gap to autograd", "measured")

# %% [markdown] key="dropout"
# ## A mask that is not stored
#
# **Dropout** sets each number to 0 with probability $p$ while training, and divides the others by $1 - p$. The backward pass must drop the same
# ones. PyTorch keeps the mask, one byte an element.
#
# But random numbers in Triton are a pure function: `tl.rand(seed, i)` gives a number from 0 to 1 for the pair of a seed and an index, always the same. So keep the seed,
# eight bytes, and ask again. The gradient of a kept number is its factor, so the backward pass **is** the forward pass, applied to the gradient.

# %% key="dropout-run"
# Needs Triton.
@triton.jit
def dropout_kernel(x_ptr, out_ptr, n, p, seed, BLOCK: tl.constexpr):
    """out = x / (1 - p) where a random number is at least p, else 0."""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n)
    kept = tl.rand(seed, i) >= p
    tl.store(out_ptr + i, tl.where(kept, x / (1 - p), 0.0), mask=i < n)


def dropout(x, p, seed):
    """Dropout by the kernel, whose mask follows from the seed."""
    out = torch.empty_like(x)
    grid = (triton.cdiv(x.numel(), 1024),)
    dropout_kernel[grid](x, out, x.numel(), p, seed, BLOCK=1024)
    return out


n, p = 10_000, 0.2
x, d_out = torch.randn(n), torch.randn(n)
with launches() as reports:
    y = dropout(x, p, seed=7)  # forward
    d_x = dropout(d_out, p, seed=7)  # backward
    other = dropout(x, p, seed=8)
print("the same were dropped:", torch.equal(y == 0, d_x == 0))
print("with another seed:", torch.equal(y == 0, other == 0))
show.number(100 * float((y == 0).float().mean()), "% dropped", "measured")

# %% [markdown] key="dropout-bytes-intro"
# What that saves. `torch.native_dropout` is PyTorch's kernel with a stored mask; its backward pass reads the mask again.

# %% key="dropout-bytes"
# Needs Triton.
with meter() as stored:
    _, mask = torch.native_dropout(x, p, True)
    torch.ops.aten.native_dropout_backward(d_out, mask, 1 / (1 - p))
ours = sum(report.requested_bytes for report in reports[:2])
show.table(
    [
        {
            "form": form,
            "moved": show.si(moved, "bytes"),
            "kept for the backward pass": show.si(kept, "bytes"),
        }
        for form, moved, kept in (
            ("mask stored", stored.bytes, mask.numel() * mask.element_size()),
            ("mask recomputed", ours, 8),
        )
    ],
    caption=f"Dropout forward and backward, {n:,} fp32 numbers",
    kinds=dict.fromkeys(("moved", "kept for the backward pass"), "modelled"),
)

# %% [markdown] key="dropout-read"
# Fused into the kernel before it, as attention does, dropout moves nothing at all.
#
# It is the third time you meet the rule: **compute again what you would have to fetch.**

# %% [markdown] key="transpose"
# ## Both ways at once
#
# A transpose computes nothing: `out[c, r] = x[r, c]`. Read a row of `x` and its lanes are neighbours. Write the same numbers into `out` and they
# land in a column, `rows` elements apart, each in a sector of its own. Read a column instead, and the writing is fine and the reading is not.
#
# Here is that first version.

# %% key="transpose-naive"
@triton.jit
def row_by_row_kernel(x_ptr, out_ptr, rows, columns, BLOCK: tl.constexpr):
    """out = x transposed; a program moves one row."""
    r, c = tl.program_id(0), tl.arange(0, BLOCK)
    x = tl.load(x_ptr + r * columns + c, mask=c < columns)
    tl.store(out_ptr + c * rows + r, x, mask=c < columns)


# %% key="predict-transpose"
predict(
    "07.transpose",
    "Sectors that it fetches and writes, over the fewest possible?",
    unit="times",
)

# %% key="transpose-naive-run"
# Needs Triton.
x, out = torch.randn(128, 128), torch.empty(128, 128)
naive = measure(row_by_row_kernel, (128,), x, out, 128, 128, BLOCK=128)
fewest = 2 * x.numel() * 4 // 32
against_prediction(
    "07.transpose", naive.sectors / fewest, "times", kind="modelled"
)
show.table(
    [
        {
            "argument": row.name,
            "sectors": row.read_sectors + row.written_sectors,
            "needed": f"{row.read_coalescing or row.written_coalescing:.0%}",
        }
        for row in naive.arguments
    ],
    caption="Row by row, 128 x 128 fp32",
    kinds={"sectors": "modelled"},
)

# %% [markdown] key="transpose-why"
# Reading is perfect, writing takes eight sectors for each one needed, and the average is between. A cache may gather the pieces of a sector before it goes to
# memory, if they come soon enough. Each piece is a transaction all the same.
#
# The cure is a **tile**. Load a square of `x`: along its rows lanes are neighbours. Store the square turned: along *its* rows lanes are neighbours too. In between the
# numbers change lanes, on the chip. In CUDA C++ you would do that by hand through shared memory. Triton's compiler sees which way each access runs and does it
# for you.

# %% [markdown] key="transpose_kernel-intro"
# ## Exercise: transpose
#
# ●●●○ · 12 minutes · 3 points
#
# `x` is `rows` x `columns`, `out` is `columns` x `rows`, both fp32 with rows one after the other. Program `(i, j)` takes the tile of `x` that begins at row `i * BLOCK` and
# column `j * BLOCK`. Load it as a tile, store it as a tile. Edges stick out.
#
# Graded as before: at most 8 bytes an element, and at least 90% of the sectors needed, **in each direction**.

# %% key="transpose_kernel" tags=["exercise"]
@triton.jit
def transpose_kernel(x_ptr, out_ptr, rows, columns, BLOCK: tl.constexpr):
    """out = x transposed, tile by tile.

    >>> x, out = torch.tensor([[1.0, 2.0, 3.0]]), torch.empty(3, 1)
    >>> transpose_kernel[(1, 2)](x, out, 1, 3, BLOCK=2)
    >>> out.flatten()
    tensor([1., 2., 3.])
    """
    ### BEGIN SOLUTION
    lane = tl.arange(0, BLOCK)
    r = (tl.program_id(0) * BLOCK + lane)[:, None]
    c = (tl.program_id(1) * BLOCK + lane)[None, :]
    inside = (r < rows) & (c < columns)
    tile = tl.load(x_ptr + r * columns + c, mask=inside)
    tl.store(out_ptr + c * rows + r, tile, mask=inside)
    ### END SOLUTION


# %% key="transpose_kernel-check" tags=["check"]
transpose_kernel = check("07.transpose_kernel", transpose_kernel)

# %% key="transpose-run"
# Needs Triton.
tiled = measure(transpose_kernel, (4, 4), x, out, 128, 128, BLOCK=32)
show.bars(
    ["row by row", "in tiles", "fewest"],
    [naive.sectors, tiled.sectors, fewest],
    unit="sectors",
    kind="modelled",
    title=f"Tiles need {naive.sectors / tiled.sectors:.1f} times fewer"
    " sectors for the same bytes",
)

# %% [markdown] key="all-intro"
# ## All of them
#
# What fusion saved, kernel by kernel.

# %% key="all"
# Needs Triton.
best = max(saved, key=saved.get)
show.bars(
    list(saved),
    list(saved.values()),
    unit="times fewer bytes",
    kind="modelled",
    title=f"{best} gains most: {saved[best]:.1f} times fewer bytes",
)
chip = accelerator(GPU)
show.roofline(
    [Roof(GPU, chip.peak("fp32"), chip.bytes_per_s, "published")],
    [Point(name, *at, "modelled") for name, at in points.items()],
    title="All kernels lie on the slope: they run at memory's speed",
)

# %% [markdown] key="measured-intro"
# ### Measured
#
# On a machine with a GPU the next cell times three of your kernels, compiled, against PyTorch's operators, `torch.compile` of those operators, and PyTorch's own kernel.
# Without one it says so, and the modelled bill above stands.

# %% key="measured"
# Needs Triton.
def against_pytorch(name, x, yours, operators, library):
    """Median seconds of four forms on a GPU, with their spread."""
    forms = {
        "yours": yours,
        "operators": operators,
        "torch.compile": torch.compile(operators),
        "PyTorch's kernel": library,
    }
    samples = {form: sorted(time_samples(f, x)) for form, f in forms.items()}
    middle = [s[len(s) // 2] for s in samples.values()]
    slower = middle[1] / middle[0]
    show.bars(
        list(samples),
        middle,
        unit="seconds",
        kind="measured",
        spread=[(s[0], s[-1]) for s in samples.values()],
        title=f"{name}: operators take {slower:.1f} times as long",
    )


if device == "cuda":
    x = torch.randn(8192, 4096, device=device)
    w = torch.randn(4096, device=device)
    against_pytorch(
        "softmax",
        x,
        softmax,
        softmax_operators,
        lambda x: torch.softmax(x, 1),
    )
    against_pytorch(
        "bias and GELU",
        x,
        lambda x: bias_gelu(x, w),
        lambda x: gelu_operators(x, w),
        lambda x: F.gelu(x + w),
    )
    against_pytorch(
        "RMSNorm",
        x,
        lambda x: rmsnorm(x, w),
        lambda x: rmsnorm_operators(x, w),
        lambda x: F.rms_norm(x, (4096,), w, 1e-5),
    )
else:
    print("No GPU here: nothing to time. The bill above is modelled.")

# %% [markdown] key="at-scale"
# ## At scale
#
# **How much of a step is this?** Next to the matrix products, little arithmetic and many bytes. Take one layer of a GPT, forward, in bf16 on an H100. Its products do
# $24\,d^2$ FLOPs a token ($d$ is `d_model`, attention's scores left out). Its two norms, GELU, bias and residuals are elementwise. Count
# their bytes, in bf16: as operators with the meter, fused as one reading and one writing.

# %% key="at-scale-share"
x, w = torch.randn(256, 1024), torch.randn(1024)
x, w = x.to(torch.bfloat16), w.to(torch.bfloat16)
per_number = {}  # bytes moved for each number of the input
for step, operators in (("norm", rmsnorm_operators), ("gelu", gelu_operators)):
    with meter() as m:
        operators(x, w)
    per_number[step] = m.bytes / x.numel()


def elementwise_bytes(d_model: int, fused: bool) -> float:
    """Of a layer's norms, GELU and residuals, a token, bf16."""
    norm, gelu = (4, 4) if fused else per_number.values()
    residual = 6  # reads two numbers, writes one
    return d_model * (2 * norm + 4 * gelu + 2 * residual)


chip = accelerator("H100 SXM")
rows = []
for d_model in (768, 4_096, 16_384):
    matmul = 24 * d_model**2 / chip.peak("bf16")
    row = {"d_model": d_model, "products": show.si(matmul, "s")}
    for form, fused in (("as operators", False), ("fused", True)):
        seconds = elementwise_bytes(d_model, fused) / chip.bytes_per_s
        row[form] = show.si(seconds, "s")
        row[f"share {form}"] = f"{seconds / (seconds + matmul):.0%}"
    rows.append(row)
kinds = dict.fromkeys(list(rows[0])[1:], "modelled")
show.table(rows, caption="A layer's time for one token, H100", kinds=kinds)

# %% [markdown] key="at-scale-read"
# **Width.** Products grow with $d^2$, the rest with $d$. On a small model fusion is most of the speed. On a wide one it is about a tenth, and a single
# one of these kernels hides in the noise.
#
# **Who writes these kernels?** For chains of elementwise steps and row reductions, `torch.compile` does, and what it generates **is** Triton. Write your own where an algorithm must change,
# which a compiler does not do for you: an online sum, a gradient over its input, a mask from a seed, attention.

# %% [markdown] key="at-scale-gpus"
# **8 GPUs.** Split the vocabulary over them and each has an eighth of every row. Each sends two numbers a row, `top` and `total`, and the log-sum follows: the same correction as
# between two blocks. Gathering the logits would send all of them.
#
# **1,000 and more.** `d_weight` is a sum over the rows of all GPUs. An atomic reaches one GPU's memory; between them it is a message (chapter 13), and the order
# of its additions is a matter of the network. Runs that must repeat bit for bit give up atomics, and some speed.
#
# **20,000.** Fusion saves bytes of memory, never a message.

# %% [markdown] key="at-scale-misleads"
# **What misleads.** The meter counts bytes and sectors. It does not see registers that spill, a block so large that one program fills a core, or an
# instruction mix that cannot keep memory busy. A kernel with the fewest bytes can still be slow. But one with many bytes cannot be fast, and that you now know before
# you rent anything.

# %% [markdown] key="remember"
# ## What to remember
#
# - A program owns a block, the grid says how many programs there are, and a mask keeps lanes inside. Test on sizes that do not divide.
# - A masked lane holds anything: give it the `other` that your reduction does not notice.
# - Fusion computes nothing faster. It keeps intermediate results on the chip, and for row kernels bytes are the time.
# - Load narrow, sum wide, store narrow. Sum on the chip first, then one atomic.
# - Compute again what you would have to fetch: $\hat x$, probabilities, masks.

# %% [markdown] key="sources"
# ## Sources
#
# - P. Tillet, H. T. Kung, D. Cox, "Triton: an intermediate language and compiler for tiled neural network computations", MAPL 2019.
# - Triton documentation, tutorials on vector addition, fused softmax, low-memory dropout and layer normalization.
# - M. Milakov, N. Gimelshein, "Online normalizer calculation for softmax", 2018, arXiv 1805.02867.
# - D. Hendrycks, K. Gimpel, "Gaussian error linear units (GELUs)", 2016, arXiv 1606.08415.
# - J. L. Ba, J. R. Kiros, G. E. Hinton, "Layer normalization", 2016, arXiv 1607.06450.

# %% [markdown] key="sources-more"
# - B. Zhang, R. Sennrich, "Root mean square layer normalization", 2019, arXiv 1910.07467.
# - J. Salmon and others, "Parallel random numbers: as easy as 1, 2, 3", SC 2011 (the generator behind `tl.rand`).
# - P.-L. Hsu and others, "Liger Kernel: efficient Triton kernels for LLM training", 2024, arXiv 2410.10989 (a cross-entropy that overwrites its logits).
# - E. Wijmans and others, "Cut your losses in large-vocabulary language models", 2024, arXiv 2411.09009.
# - M. Shoeybi and others, "Megatron-LM", 2019, arXiv 1909.08053 (cross-entropy over a split vocabulary).
