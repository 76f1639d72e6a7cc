# ---
# jupyter:
#   course:
#     title: "8. The two kernels that matter"
#     minutes: 150
#     hardware: "no GPU; with one, kernels are compiled and timed; Triton is for Linux"
#     needs: "chapters 4, 6 and 7"
#     leaves_with: "a tiled matmul and a FlashAttention of your own, graded on the bytes they move"
# ---

# %% [markdown] key="title"
# # 8. The two kernels that matter
#
# Ask a language model for one more token and a few hundred kernels run. Two kinds of them do nearly all the arithmetic: the matrix product, and
# attention.
#
# Both live from one idea. A number that was fetched once is used many times while it is on the chip. In this chapter you write both, and
# count how often. First the product: tiles, the order they are made in, what can ride along for free. Then FlashAttention, forward and
# backward, until it trains the GPT of [chapter 5](05_tiny_gpt.ipynb).

# %% key="setup" tags=["setup"]
import dataclasses
import math

import numpy as np
import torch
import torch.nn.functional as F
from matplotlib.colors import ListedColormap

from utils import lab, show
from utils.arithmetic import attention_share, matmul_parameters, model
from utils.course import against_prediction, check, hint, mine, predict, quiz
from utils.course import progress, reveal, start
from utils.hardware import accelerator, median_time, time_samples
from utils.meter import measure, meter
from utils.meter.compiled import compile_for
from utils.meter.l2 import L2
from utils.meter.memory import SECTOR_BYTES
from utils.meter.on_paper import launches, tl, triton, with_tail
from utils.show import Choice, Point, Roof, Series, Slider
from utils.show.figure import Picture, new_figure
from utils.show.marks import BLUE

torch.manual_seed(0)
machine = start("08")
device = "cuda" if machine.device == "cuda" else "cpu"

# %% key="recall"
quiz("08.recall")

# %% [markdown] key="two-kernels"
# ## Where the arithmetic is
#
# [Chapter 1](01_flops.ipynb) counted the FLOPs of a transformer. Split them in two: products with weights, and attention, which is a
# product of activations with activations. Everything else (norms, activation functions, additions) is about one FLOP for each number
# it touches.

# %% key="two-kernels-table"
llama = model("Llama 3.1 8B")
rows = []
for seq_len in (1024, 8192, 131_072):
    share = attention_share(llama, seq_len)
    rows.append(
        {
            "sequence length": seq_len,
            "products with weights": f"{1 - share:.1%}",
            "attention": f"{share:.1%}",
        }
    )
show.table(
    rows,
    caption="Llama 3.1 8B, forward: who does the FLOPs",
    kinds={"products with weights": "modelled", "attention": "modelled"},
)

# %% [markdown] key="naive"
# ## One output at a time
#
# The product of `a`, $m \times k$, and `b`, $k \times n$, has $m\,n$ outputs. Each is a dot product of a row of `a` and a column of `b`.
# So let one program make one output, as a first kernel would.
#
# Each output fetches $2k$ numbers and does $2k$ FLOPs. With $e$ bytes a number that is $1/e$ FLOP per byte, whatever the sizes. The
# matrices themselves are small: [chapter 3](03_roofline.ipynb) counted each of their bytes once. Here every row is fetched $n$ times.

# %% key="naive-kernel"
@triton.jit
def naive_kernel(a_ptr, b_ptr, c_ptr, n, k, BLOCK: tl.constexpr):
    """One program, one output; BLOCK is at least k."""
    row, column = tl.program_id(0), tl.program_id(1)
    inner = tl.arange(0, BLOCK)
    x = tl.load(a_ptr + row * k + inner, mask=inner < k, other=0.0)
    y = tl.load(b_ptr + inner * n + column, mask=inner < k, other=0.0)
    tl.store(c_ptr + row * n + column, tl.sum(x * y, 0))


# %% key="naive-run"
# Needs Triton.
size = 32
a, b = torch.randn(2, size, size)
c = torch.empty(size, size)
naive = measure(naive_kernel, (size, size), a, b, c, size, size, BLOCK=size)
show.table(
    naive.rows(),
    caption=f"One output a program, {size} x {size} x {size}, fp32:"
    f" asks for {naive.requested_bytes / naive.fewest_bytes:.0f} times"
    " the bytes there are",
    kinds=dict.fromkeys(("read", "written", "sectors"), "modelled"),
)

# %% [markdown] key="predict-tiles-intro"
# Now let one program make a tile of 16 x 16 outputs instead. It needs 16 rows of `a` and 16 columns of `b`, and makes 256 outputs of them.

# %% key="predict-tiles"
predict(
    "08.tiles",
    "With 16 x 16 tiles, how many times fewer bytes of a and b are asked for?",
    unit="times",
)

# %% [markdown] key="tiles"
# ## A tile at a time
#
# A tile of $B_M \times B_N$ outputs needs a **strip** of $B_M$ rows of `a` and a strip of $B_N$ columns of `b`, $k$ numbers long.
# There are $\frac{m}{B_M} \cdot \frac{n}{B_N}$ tiles. So the inputs cost
#
# $$\underbrace{\frac{m}{B_M}\,\frac{n}{B_N}}_{\text{tiles}} \; \underbrace{(B_M + B_N)\,k\,e}_{\text{two strips}} \;=\; m\,n\,k\,e\left(\frac{1}{B_M} + \frac{1}{B_N}\right) \text{ bytes,}$$
#
# and each output is written once. This is the **tile formula**. One output a program is $B_M = B_N = 1$.
#
# A whole strip may not fit on the chip. It need not: walk along $k$ in pieces of $B_K$, add the product of two pieces to the tile of
# sums, forget the pieces. Only the sums stay.

# %% [markdown] key="matmul_kernel-intro"
# ## Exercise: a tiled product
#
# ●●●○ · 25 minutes · 5 points
#
# `c = a @ b`, with `a` `(m, k)`, `b` `(k, n)`, `c` `(m, n)`. `a` and `b` are float32 or float16, `c` is float32. Element `(i, j)` of `a` lies at
# `i * stride_am + j * stride_ak`, and so on: a transposed matrix is only other strides. No size need be a multiple of a block.
#
# The grid has `cdiv(m, BLOCK_M) * cdiv(n, BLOCK_N)` programs. Program `p` makes the tile in tile row `p // cdiv(n, BLOCK_N)`, column `p % cdiv(n, BLOCK_N)`.
# `tl.dot(x, y, total)` is `total + x @ y` for tiles, in float32. (Constants in capitals are passed by name: keep their names.)
#
# Graded: the result to float32 precision, so sum in float32; no address outside; bytes at most 1.1 times the tile formula, where a tile that sticks
# out counts whole; coalescing 90% where sizes are multiples of 16.

# %% key="matmul_kernel" tags=["exercise"]
@triton.jit
def matmul_kernel(
    a_ptr,
    b_ptr,
    c_ptr,
    m,
    n,
    k,
    stride_am,
    stride_ak,
    stride_bk,
    stride_bn,
    stride_cm,
    stride_cn,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
):
    """c = a @ b, (m, k) @ (k, n); one program a tile of c.

    >>> a, c = torch.ones(3, 5), torch.empty(3, 3)
    >>> matmul_kernel[(1,)](a, a, c, 3, 3, 5, 5, 1, 1, 5, 3, 1, 16, 16, 16)
    >>> c[0]
    tensor([5., 5., 5.])
    """
    ### BEGIN SOLUTION
    pid = tl.program_id(0)
    tiles_n = tl.cdiv(n, BLOCK_N)
    rows = (pid // tiles_n) * BLOCK_M + tl.arange(0, BLOCK_M)
    columns = (pid % tiles_n) * BLOCK_N + tl.arange(0, BLOCK_N)
    inner = tl.arange(0, BLOCK_K)
    a = a_ptr + rows[:, None] * stride_am + inner[None, :] * stride_ak
    b = b_ptr + inner[:, None] * stride_bk + columns[None, :] * stride_bn
    row_ok, column_ok = rows[:, None] < m, columns[None, :] < n
    total = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for begin in range(0, k, BLOCK_K):
        left = k - begin  # of the inner dimension
        x = tl.load(a, mask=row_ok & (inner[None, :] < left), other=0.0)
        y = tl.load(b, mask=(inner[:, None] < left) & column_ok, other=0.0)
        total = tl.dot(x, y, total)
        a += BLOCK_K * stride_ak
        b += BLOCK_K * stride_bk
    c = c_ptr + rows[:, None] * stride_cm + columns[None, :] * stride_cn
    tl.store(c, total, mask=row_ok & column_ok)
    ### END SOLUTION


# %% key="matmul_kernel-check" tags=["check"]
matmul_kernel = check("08.matmul_kernel", matmul_kernel)

# %% key="tiles-verdict"
# Needs Triton.
def tiled_report(m, n, k, block_m, block_n, block_k=32):
    """matmul_kernel on random fp32 matrices, on paper."""
    a, b, c = torch.randn(m, k), torch.randn(k, n), torch.empty(m, n)
    grid = (triton.cdiv(m, block_m) * triton.cdiv(n, block_n),)
    strides = (*a.stride(), *b.stride(), *c.stride())
    tiles = {"BLOCK_M": block_m, "BLOCK_N": block_n, "BLOCK_K": block_k}
    return measure(matmul_kernel, grid, a, b, c, m, n, k, *strides, **tiles)


def inputs_read(report):
    """Bytes of a and b that were asked for: the first two arguments."""
    return sum(row.read_bytes for row in report.arguments[:2])


tiled = tiled_report(size, size, size, 16, 16)
fewer = inputs_read(naive) / inputs_read(tiled)
against_prediction("08.tiles", fewer, "times", kind="modelled")

# %% [markdown] key="tiles-why"
# Not 256 times, though a tile has 256 outputs. A row serves the 16 outputs of its tile row, a column those of its tile column: each number
# that is fetched is used 16 times instead of once.
#
# Does the formula hold for other tiles? Count some.

# %% key="tiles-table"
# Needs Triton.
m = n = k = 128
least = 4 * (m * k + k * n + m * n)
rows = []
for block_m, block_n in ((16, 16), (16, 64), (32, 32), (64, 64), (128, 128)):
    report = tiled_report(m, n, k, block_m, block_n, 64)
    formula = 4 * m * n * k * (1 / block_m + 1 / block_n) + 4 * m * n
    rows.append(
        {
            "tile": f"{block_m} x {block_n}",
            "programs": report.programs,
            "counted bytes": report.requested_bytes,
            "tile formula": round(formula),
            "over least": round(report.requested_bytes / least, 2),
        }
    )
show.table(
    rows,
    caption=f"Your kernel on {m} x {n} x {k}, fp32",
    kinds=dict.fromkeys(
        ("counted bytes", "tile formula", "over least"), "modelled"
    ),
)

# %% [markdown] key="tile-shape"
# Two things to take from the table. A 16 x 64 tile holds as many sums as a 32 x 32 tile and asks for more: with $B_M B_N$ given, the square has the shortest
# edges. And larger is better, all the way to a single tile that reads everything once.
#
# So why not always the largest?

# %% [markdown] key="choosing"
# ## What a large tile costs
#
# The sums of a tile live in registers, four bytes each. An SM (a core of an NVIDIA GPU, [chapter 6](06_gpu_execution.ipynb)) has 65,536 registers of four bytes, and a thread can
# name at most 255. The pieces of `a` and `b` wait in shared memory. A tile too large for the registers **spills**: sums go out to memory and
# come back at every step.

# %% [markdown] key="choosing-compile"
# Triton brings its own assembler, so your laptop can ask what a kernel would take on an A100. Below is the same tiled product, plain,
# compiled for tiles of growing size. The intensity of a tile is its FLOPs over the bytes it asks for:
#
# $$\frac{2\,B_M B_N B_K}{(B_M + B_N)\,B_K\,e} = \frac{2}{e}\cdot\frac{B_M B_N}{B_M + B_N}.$$

# %% key="ordered-kernel"
@triton.jit
def ordered_matmul_kernel(
    order_ptr,
    a_ptr,
    b_ptr,
    c_ptr,
    n,
    k,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
):
    """A tiled product of whole tiles; program p looks up which tile is its."""
    pid = tl.program_id(0)
    tile_row = tl.load(order_ptr + 2 * pid)
    tile_column = tl.load(order_ptr + 2 * pid + 1)
    rows = tile_row * BLOCK_M + tl.arange(0, BLOCK_M)[:, None]
    columns = tile_column * BLOCK_N + tl.arange(0, BLOCK_N)[None, :]
    total = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for begin in range(0, k, BLOCK_K):
        inner = begin + tl.arange(0, BLOCK_K)
        x = tl.load(a_ptr + rows * k + inner[None, :])
        y = tl.load(b_ptr + inner[:, None] * n + columns)
        total = tl.dot(x, y, total)
    tl.store(c_ptr + rows * n + columns, total)


# %% key="choosing-table"
# Needs Triton.
A100 = accelerator("A100 80GB SXM")
types = {"order_ptr": "*i32", "a_ptr": "*bf16", "b_ptr": "*bf16"}
types |= {"c_ptr": "*fp32", "n": "i32:16", "k": "i32:16"}
rows = []
for block_m, block_n, warps in (
    (32, 32, 4),
    (64, 64, 4),
    (128, 128, 8),
    (128, 256, 8),
    (256, 256, 8),
):
    tile = {"BLOCK_M": block_m, "BLOCK_N": block_n, "BLOCK_K": 64}
    made = compile_for(
        ordered_matmul_kernel, types, tile, A100.capability, num_warps=warps
    )
    rows.append(
        {
            "tile": f"{block_m} x {block_n}",
            "FLOP per byte": round(block_m * block_n / (block_m + block_n), 1),
            "warps": warps,
            "registers a thread": made.registers,
            "spilled a thread": show.si(made.spill_bytes, "bytes"),
            "shared memory": show.si(made.shared_bytes, "bytes"),
        }
    )
show.table(
    rows,
    caption="bf16 tiles compiled for an A100, 64 deep",
    kinds={
        "FLOP per byte": "modelled",
        "registers a thread": "measured",
        "spilled a thread": "measured",
        "shared memory": "measured",
    },
)
ridge = A100.ridge_point("bf16")
show.number(ridge, "FLOP per byte: the ridge of an A100", "modelled")

# %% [markdown] key="choosing-read"
# Read the last two rows. One size beyond the largest tile that fits, the compiler gives up on registers: it parks thousands of bytes a thread in memory.
#
# Now compare the intensities with the ridge point. **No tile that fits reaches it.** If every byte that a tile asks for came from main memory, the largest tile
# would leave the tensor cores idle part of the time. Programs must share what they fetch, and they do, through the L2 cache: two tiles in
# one tile row want the same strip of `a`.
#
# They share it if they want it at about the same time. Which brings us to the order.

# %% [markdown] key="order"
# ## Who runs beside whom
#
# An A100 has 108 SMs. Say each runs one program at a time: programs 0 to 107 start together, a **wave** ([chapter 6](06_gpu_execution.ipynb)). Programs are handed out by number, and you
# decide which tile a number means.
#
# How many bytes a wave needs from memory depends on how many different strips its tiles need. A square patch of tiles shares more than a long row does.

# %% [markdown] key="order-wide"
# ### A wide product
#
# A real case: the output head of Llama 2 7B, 2,048 tokens times a 4,096 x 32,000 matrix in bf16, in tiles of 128 x 256. That makes 16 rows of 125 tiles. Row after
# row, a wave covers 108 tiles of one row. They share one strip of `a`, and need 108 different strips of `b`. The next row needs all of `b` again, 262 MB, and
# the L2 holds 40 MB.
#
# Take bands of 8 tile rows instead, and go down each column of the band before the next. A wave then covers 8 rows and 13 or 14 columns.

# %% key="predict-order"
predict(
    "08.order",
    "Row after row reads how many times the bytes past L2"
    " that bands of 8 read?",
    unit="times",
)

# %% [markdown] key="grouped_order-intro"
# ## Exercise: an order for the programs
#
# ●●○○ · 12 minutes · 2 points
#
# A plain function this time. The output has `tiles_m` x `tiles_n` tiles. Bands of `group` tile rows follow each other from the top; the last may have
# fewer rows. Inside a band go down the first tile column, then down the second, and so on.
#
# Return (tile row, tile column) of program `pid`, for 0 <= `pid` < `tiles_m * tiles_n`. Every tile has one program. For 4 x 3 tiles and `group=2` the numbers stand like this:
#
# ```
# 0  2  4
# 1  3  5
# 6  8 10
# 7  9 11
# ```

# %% key="grouped_order" tags=["exercise"]
def grouped_order(
    pid: int, tiles_m: int, tiles_n: int, group: int
) -> tuple[int, int]:
    """(tile row, tile column) of program pid, in bands of `group` rows.

    >>> [grouped_order(pid, 4, 3, 2) for pid in range(4)]
    [(0, 0), (1, 0), (0, 1), (1, 1)]
    >>> grouped_order(6, 4, 3, 2)
    (2, 0)
    """
    ### BEGIN SOLUTION
    first = pid // (group * tiles_n) * group
    inside = pid % (group * tiles_n)
    height = min(group, tiles_m - first)
    return first + inside % height, inside // height
    ### END SOLUTION


# %% key="grouped_order-check" tags=["check"]
grouped_order = check("08.grouped_order", grouped_order)

# %% [markdown] key="order-toy-intro"
# Try it on a toy, small enough to run on paper: 8 x 8 tiles of 64 x 64 on a made-up GPU with 8 cores and an L2 that holds half of the two matrices. The kernel is the
# one from above, which looks its tile up in a table. The table is yours. (A kernel in earnest computes the order from `pid`, with the same three lines.)

# %% key="order-toy"
# Needs Triton.
block, across = 64, 8
size = block * across
toy = dataclasses.replace(
    accelerator("A100 80GB SXM"),
    name="a toy with 8 cores",
    cores=8,
    onchip_bytes=4 * size * size,
)
a, b, c = (torch.randn(size, size) for _ in "abc")
rows = []
for group in (1, 2, 4, 8):
    order = [grouped_order(p, across, across, group) for p in range(across**2)]
    report = measure(
        ordered_matmul_kernel,
        (across**2,),
        torch.tensor(order, dtype=torch.int32),
        a,
        b,
        c,
        size,
        size,
        **{"BLOCK_M": block, "BLOCK_N": block, "BLOCK_K": block},
        accelerator=toy,
    )
    rows.append(
        {
            "rows in a band": group,
            "asked for": show.si(report.requested_bytes, "bytes"),
            "read past L2": show.si(report.cost.bytes_read, "bytes"),
            "L2 hits": f"{report.l2_hit_rate:.0%}",
        }
    )
show.table(
    rows,
    caption=f"The same tiles in four orders, {size} x {size} x {size}, fp32",
    kinds=dict.fromkeys(list(rows[0])[1:], "modelled"),
)

# %% [markdown] key="order-toy-why"
# The kernel asks for the same bytes each time. Only who asks at the same time changes.
#
# A wave of 8 programs that covers $r$ rows and $8/r$ columns needs $r + 8/r$ strips. One row: 9 strips. Two rows by four columns: 6. A
# band of 8 rows is a column of tiles, and needs 9 again. Bands of 4 win here for another reason as well: two waves in a row use the same four strips of `a`, which
# are still in the cache.
#
# A full-size product would take minutes on paper. So for the figure the L2 model gets strips, cut in pieces, in place of a kernel's addresses.

# %% key="strip-model"
def past_l2(order, steps, a_bytes, b_bytes, chip):
    """(bytes read past L2, bytes asked for) when each tile reads two strips.

    order: (tile row, tile column) of each program, in turn
    a_bytes, b_bytes: of one of the `steps` pieces of a strip of a and of b
    """
    unit = math.gcd(a_bytes, b_bytes)
    wide = a_bytes // unit, b_bytes // unit
    a_pieces = steps * (1 + max(i for i, _ in order))
    b_pieces = steps * (1 + max(j for _, j in order))
    units = np.arange(a_pieces * wide[0] + b_pieces * wide[1])
    a_units = units[: a_pieces * wide[0]].reshape(-1, steps, wide[0])
    b_units = units[a_pieces * wide[0] :].reshape(-1, steps, wide[1])
    room = chip.onchip_bytes // unit * SECTOR_BYTES
    cache = L2(units.size, room, chip.cores)
    for i, j in order:
        cache.start_program()
        for step in range(steps):
            cache.access(a_units[i, step], "load")
            cache.access(b_units[j, step], "load")
    cache.finish()
    return cache.misses * unit, cache.requests * unit


# %% key="head-orders"
chip = accelerator("A100 80GB SXM")
tiles_m, tiles_n, steps = 2048 // 128, 32_000 // 256, 8
piece = 4096 // steps * 2  # bytes of one row's piece, bf16
flops = 2 * 2048 * 4096 * 32_000
waves = -(-tiles_m * tiles_n // chip.cores)
orders, moved, rows = {}, {}, []
for group in (1, 2, 4, 8, 16):
    orders[group] = [
        grouped_order(pid, tiles_m, tiles_n, group)
        for pid in range(tiles_m * tiles_n)
    ]
    moved[group], asked = past_l2(
        orders[group], steps, 128 * piece, 256 * piece, chip
    )
    rows.append(
        {
            "rows in a band": group,
            "read past L2": show.si(moved[group], "bytes"),
            "L2 hits": f"{1 - moved[group] / asked:.0%}",
            "FLOP per byte": round(flops / moved[group]),
            "memory time": show.si(moved[group] / chip.bytes_per_s, "seconds"),
        }
    )
against_prediction("08.order", moved[1] / moved[8], "times", kind="modelled")
show.table(
    rows,
    caption="Output head of Llama 2 7B on 2,048 tokens, one A100. Tensor"
    f" cores need {show.si(flops / chip.peak('bf16'), 'seconds')}",
    kinds=dict.fromkeys(list(rows[0])[1:], "modelled"),
)

# %% [markdown] key="head-orders-why"
# Row after row the product is bound by memory: it does fewer FLOPs per byte than the ridge asks for. In bands of 8 it is bound by the tensor cores, as a large product
# should be. Same kernel, same tiles, another numbering.
#
# Sixteen rows are all there are here, so the last line is column after column. With many more tokens that would be as bad as rows are now, as on the toy: a band is safe
# both ways.

# %% [markdown] key="head-orders-limits"
# The model is generous. Its L2 is one piece, it drops the least recently used line, programs of a wave keep in step. A real A100's L2 is in
# two halves, and programs drift apart. Triton's own tutorial reports about a tenth for this change on an A100, 220 to 245 TFLOP/s (published).
#
# Move the wave along and watch which strips it needs.

# %% key="order-figure" tags=["figure"]
def draw(group, wave):
    here = orders[group][(wave - 1) * chip.cores : wave * chip.cores]
    need_a, need_b = {i for i, _ in here}, {j for _, j in here}
    square = np.full((tiles_m + 3, tiles_n + 4), -1)  # strips lie outside
    for place, (i, j) in enumerate(orders[group]):
        square[i + 3, j + 4] = place // chip.cores % 2
    for i, j in here:
        square[i + 3, j + 4] = 2
    square[3:, 0:2], square[0:2, 4:] = 3, 3
    for i in need_a:
        square[i + 3, 0:2] = 2
    for j in need_b:
        square[0:2, j + 4] = 2
    strips = f"{len(need_a)} strips of a and {len(need_b)} of b"

    def paint():
        figure, axes = new_figure(title, "tile column", "tile row", 2.9)
        colours = ["white", "#dddddd", "#f2f2f2", BLUE, "#fbe3d0"]
        axes.imshow(
            square,
            cmap=ListedColormap(colours),
            vmin=-1.5,
            vmax=3.5,
            aspect="auto",
            interpolation="nearest",
        )
        axes.set_xticks([4, 4 + tiles_n - 1], ["0", str(tiles_n - 1)])
        axes.set_yticks([3, 3 + tiles_m - 1], ["0", str(tiles_m - 1)])
        axes.text(0.5, 2, "a", ha="center", va="center")
        axes.text(2.2, 0.5, "b", ha="center", va="center")
        axes.spines[:].set_visible(False)
        return figure

    title = f"Wave {wave} of {waves} works on {len(here)} tiles: {strips}"
    alt = f"{title}. Bands of {group} rows; grey stripes are other waves."
    numbers = show.make.table(
        [
            {
                "wave": wave,
                "tiles": len(here),
                "strips of a": len(need_a),
                "strips of b": len(need_b),
                "strips asked for": 2 * len(here),
            }
        ],
        caption=title,
        kinds={"strips of a": "modelled", "strips of b": "modelled"},
    )
    picture = Picture(
        title=title,
        alt=alt,
        text=numbers.text,
        numbers=numbers.html,
        paint=paint,
    )
    said = (
        f"Bands of {group}: {show.si(moved[group], 'bytes')} past L2 in all,"
        f" {flops / moved[group]:.0f} FLOP per byte (modelled)."
    )
    return picture, said


show.explore(
    draw,
    group=Choice(list(orders), 1, label="rows in a band"),
    wave=Slider(1, waves, 3),
)

# %% [markdown] key="figure-read"
# Blue tiles run now, and the blue strips beside and above are what they read. The two greys are other waves by turns, pale orange is what this wave leaves alone. With one row in a band,
# nearly the whole width of `b` is blue in every wave. With 8, the blue patch is compact, and it moves slowly enough that the cache still has much of
# what it needs.
#
# This is [chapter 4](04_attention.ipynb)'s lesson again, one level up: what runs together should share what it reads.

# %% [markdown] key="epilogue"
# ## What can ride along
#
# After a product comes a bias, then an activation function. As kernels of their own each reads all of `c` from memory and writes it back,
# for one FLOP a number. Inside the product's kernel, between the last step and the store, the tile of sums is still in registers. There the
# same work costs no bytes but the bias.
#
# That place is called the **epilogue**.

# %% [markdown] key="matmul_bias_relu_kernel-intro"
# ## Exercise: a fused epilogue
#
# ●●○○ · 12 minutes · 3 points
#
# `c = max(a @ b + bias, 0)`. All is as in `matmul_kernel`, with a bias of `n` float32 numbers, one for each column of `c`. The maximum with 0 is ReLU. (Chapter 7's GELU would go in
# the same place.)
#
# Copy your `matmul_kernel` and add what is missing. Graded: the result to float32 precision; no address outside; bytes at most 1.1 times the tile formula
# plus `BLOCK_N` numbers of bias for each tile. `c` is written once and never read.

# %% key="matmul_bias_relu_kernel" tags=["exercise"]
@triton.jit
def matmul_bias_relu_kernel(
    a_ptr,
    b_ptr,
    bias_ptr,
    c_ptr,
    m,
    n,
    k,
    stride_am,
    stride_ak,
    stride_bk,
    stride_bn,
    stride_cm,
    stride_cn,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
):
    """c = max(a @ b + bias, 0); bias has n numbers, one a column.

    >>> a, c = torch.ones(2, 2), torch.empty(2, 2)
    >>> bias = torch.tensor([1.0, -9.0])
    >>> matmul_bias_relu_kernel[(1,)](
    ...     a, a, bias, c, 2, 2, 2, 2, 1, 2, 1, 2, 1, 16, 16, 16)
    >>> c[0]
    tensor([3., 0.])
    """
    ### BEGIN SOLUTION
    pid = tl.program_id(0)
    tiles_n = tl.cdiv(n, BLOCK_N)
    rows = (pid // tiles_n) * BLOCK_M + tl.arange(0, BLOCK_M)
    columns = (pid % tiles_n) * BLOCK_N + tl.arange(0, BLOCK_N)
    inner = tl.arange(0, BLOCK_K)
    a = a_ptr + rows[:, None] * stride_am + inner[None, :] * stride_ak
    b = b_ptr + inner[:, None] * stride_bk + columns[None, :] * stride_bn
    row_ok, column_ok = rows[:, None] < m, columns[None, :] < n
    total = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for begin in range(0, k, BLOCK_K):
        left = k - begin
        x = tl.load(a, mask=row_ok & (inner[None, :] < left), other=0.0)
        y = tl.load(b, mask=(inner[:, None] < left) & column_ok, other=0.0)
        total = tl.dot(x, y, total)
        a += BLOCK_K * stride_ak
        b += BLOCK_K * stride_bk
    bias = tl.load(bias_ptr + columns, mask=columns < n, other=0.0)
    total = tl.maximum(total + bias[None, :], 0.0)
    c = c_ptr + rows[:, None] * stride_cm + columns[None, :] * stride_cn
    tl.store(c, total, mask=row_ok & column_ok)
    ### END SOLUTION


# %% key="matmul_bias_relu_kernel-check" tags=["check"]
matmul_bias_relu_kernel = check(
    "08.matmul_bias_relu_kernel", matmul_bias_relu_kernel
)

# %% [markdown] key="epilogue-count-intro"
# Count both ways on one layer. PyTorch's three operators through [chapter 4](04_attention.ipynb)'s meter, which lets nothing stay in a cache between operators. Your
# kernel through the kernel meter, where everything fits the L2, so that each byte moves once.

# %% key="epilogue-count"
# Needs Triton.
m, n, k = 256, 256, 64
a, b, bias = torch.randn(m, k), torch.randn(k, n), torch.randn(n)
c = torch.empty(m, n)
with meter() as apart:
    expected = F.relu(a @ b + bias)
fused = measure(
    matmul_bias_relu_kernel,
    (16,),
    *(a, b, bias, c, m, n, k),
    *(*a.stride(), *b.stride(), *c.stride()),
    **{"BLOCK_M": 64, "BLOCK_N": 64, "BLOCK_K": 64},
)
print("same result:", torch.allclose(c, expected, atol=1e-4))
show.bars(
    ["three operators", "one kernel"],
    [apart.bytes, fused.cost.bytes],
    unit="bytes",
    kind="modelled",
    title=f"Fused, the layer moves {apart.bytes / fused.cost.bytes:.1f}"
    " times fewer bytes",
)

# %% [markdown] key="epilogue-worth-intro"
# That was a thin product, $k = 64$. What is it worth in a real layer, where the product itself takes long? Take the first matrix of Llama 2 7B's feed-forward
# block, 4,096 tokens, bf16, on an A100: the product at its peak, and each extra pass over its output at full bandwidth.

# %% key="epilogue-worth"
tokens, d_model, d_ff = 4096, 4096, 11_008
product_s = 2 * tokens * d_model * d_ff / chip.peak("bf16")
pass_s = 2 * 2 * tokens * d_ff / chip.bytes_per_s  # read and write, 2 bytes
show.number(product_s, "seconds", "modelled", "the product")
show.number(pass_s, "seconds", "modelled", "one pass over its output")
show.number(100 * pass_s / product_s, "% longer for each pass", "modelled")

# %% [markdown] key="epilogue-why"
# Some percent a pass, which is why every library fuses the common cases, and why the first thing to ask of a fusion is how large the product beside it is.
# In inference with few tokens the product shrinks and the launches count instead.

# %% [markdown] key="split-k"
# ## Too few tiles
#
# Now a product with a small output and a long $k$: $m = n = 64$ and $k = 2048$, as in the gradient of a small weight matrix over many tokens. One tile of 64 x 64, one program,
# and 107 SMs look on.
#
# Cut $k$ instead. Program `(p, s)` takes every `SPLITS`-th step of tile `p`, and adds its sums to `c` with `tl.atomic_add`, since others add to the same
# elements. This is **split-K**.

# %% key="split-k-kernel"
@triton.jit
def split_k_kernel(
    a_ptr,
    b_ptr,
    c_ptr,
    n,
    k,
    BLOCK: tl.constexpr,
    BLOCK_K: tl.constexpr,
    SPLITS: tl.constexpr,
):
    """c += a @ b, whole tiles; program (p, s) takes every SPLITS-th step."""
    pid, split = tl.program_id(0), tl.program_id(1)
    tiles_n = n // BLOCK
    rows = (pid // tiles_n) * BLOCK + tl.arange(0, BLOCK)[:, None]
    columns = (pid % tiles_n) * BLOCK + tl.arange(0, BLOCK)[None, :]
    total = tl.zeros((BLOCK, BLOCK), dtype=tl.float32)
    for begin in range(split * BLOCK_K, k, SPLITS * BLOCK_K):
        inner = begin + tl.arange(0, BLOCK_K)
        x = tl.load(a_ptr + rows * k + inner[None, :])
        y = tl.load(b_ptr + inner[:, None] * n + columns)
        total = tl.dot(x, y, total)
    tl.atomic_add(c_ptr + rows * n + columns, total, sem="relaxed")


# %% key="split-k-run"
# Needs Triton.
n, k = 64, 2048
a, b = torch.randn(n, k), torch.randn(k, n)
rows = []
for splits in (1, 4, 16, 32):
    c = torch.zeros(n, n)  # split-K adds to what is there
    report = measure(
        split_k_kernel,
        (1, splits),
        *(a, b, c, n, k),
        **{"BLOCK": 64, "BLOCK_K": 64, "SPLITS": splits},
    )
    assert torch.allclose(c, a @ b, atol=1e-3)
    rows.append(
        {
            "splits": splits,
            "programs": report.programs,
            "asked for": show.si(report.requested_bytes, "bytes"),
            "atomic adds": report.atomics,
            "time on an A100": show.si(with_tail(report), "seconds"),
        }
    )
show.table(
    rows,
    caption=f"{n} x {n} x {k}, fp32, one tile, split along k",
    kinds=dict.fromkeys(list(rows[0])[2:], "modelled"),
)

# %% [markdown] key="split-k-why"
# The modelled time counts an idle SM as lost bandwidth and lost arithmetic, so it falls with every split. The bytes go up: each split adds a read and a write of `c`. And `c`
# must be set to zero first, a launch of its own.
#
# There is a second price. Atomics arrive in any order, and float addition depends on it: $(x + y) + z$ and $x + (y + z)$ round differently. Add the 32 parts of that product in
# three orders.

# %% key="atomic-order"
n, k, splits = 64, 2048, 32
a, b = torch.randn(n, k), torch.randn(k, n)
parts = [a[:, i : i + 64] @ b[i : i + 64] for i in range(0, k, 64)]
forward, backward = sum(parts), sum(parts[::-1])
shuffled = sum(parts[i] for i in torch.randperm(splits).tolist())
show.table(
    [
        {
            "order": name,
            "elements that differ": f"{(c != forward).double().mean():.0%}",
            "largest difference": f"{(c - forward).abs().max():.1e}",
        }
        for name, c in (("backwards", backward), ("shuffled", shuffled))
    ],
    caption="Parts added in another order, against first to last, fp32",
    kinds={
        "elements that differ": "measured",
        "largest difference": "measured",
    },
)

# %% [markdown] key="atomic-why"
# Most elements change in their last digits. None of the orders is wrong. But run a kernel with atomics twice and you may get two results, and a bug that shows once in ten runs
# is no longer told apart from rounding. If you need the same bits each time, let every split write its own part and add the parts in a fixed order. That costs the bytes of the
# parts.

# %% [markdown] key="precision"
# ## What the tensor cores multiply
#
# `tl.dot` of float32 tiles does not multiply float32 on an NVIDIA GPU, unless you say so. By default it uses **TF32**: operands are rounded to 10 bits after the leading one, as in
# fp16, with the range of float32. Products are summed in float32. `input_precision="ieee"` keeps all 23 bits, and leaves the tensor cores unused.
# `"tf32x3"` splits each number in two TF32 parts and makes three products.
#
# The meter multiplies float32 exactly, so here the rounding is done by hand.

# %% key="precision-table"
def to_tf32(x):
    """Round float32 to 10 bits after the leading one, ties to even."""
    bits = x.view(torch.int32)
    bits = (bits + 0x0FFF + (bits >> 13 & 1)) & ~0x1FFF
    return bits.view(torch.float32)


x, y = torch.randn(256, 1024), torch.randn(1024, 256)
exact = x.double() @ y.double()
x1, y1 = to_tf32(x), to_tf32(y)
x2, y2 = to_tf32(x - x1), to_tf32(y - y1)
rows = []
for name, out, peak in (
    ("ieee", x @ y, chip.peak("fp32")),
    ("tf32x3", x1 @ y1 + (x1 @ y2 + x2 @ y1), chip.peak("tf32") / 3),
    ("tf32", x1 @ y1, chip.peak("tf32")),
    ("bf16 operands", x.bfloat16().float() @ y.bfloat16().float(),
     chip.peak("bf16")),
):
    error = float((out - exact).norm() / exact.norm())
    rows.append(
        {
            "operands": name,
            "error": f"{error:.0e}",
            "A100 peak": show.si(peak, "FLOP/s"),
        }
    )
show.table(
    rows,
    caption="256 x 256 x 1024, error relative to the result's norm. Peak of"
    " tf32x3: a third of tf32's",
    kinds={"error": "measured", "A100 peak": "published"},
)

# %% [markdown] key="precision-why"
# An error of a few parts in ten thousand, at eight times the speed. For training that is mostly fine. For a test that compares your kernel with `torch.matmul` it is a trap: PyTorch's default for float32 products
# is full precision, so on a GPU the two disagree in the fourth digit, and neither has a bug. Compare like with like. [Chapter 9](09_mixed_precision.ipynb) takes the formats
# apart.

# %% [markdown] key="autotune"
# ## Let the machine choose
#
# Tile sizes, warps, how many pieces are fetched ahead: nobody computes the best by hand. `triton.autotune` tries a list of configurations, once for each new value of the arguments
# named in `key`, and keeps the fastest.
#
# On a GPU it times them. On paper it asks the meter's model instead, which knows bytes past the L2, FLOPs, and that SMs without a program are idle. It does not know registers or latency.
# So read the modelled ranking as what the model can see.

# %% key="autotune-run"
# Needs Triton.
if device == "cuda":
    shapes = [(64, 64, 4), (128, 64, 4), (128, 128, 4), (128, 128, 8)]
    shapes += [(128, 256, 8), (256, 128, 8)]
    size, depth, kind, dtype = 4096, 64, "measured", torch.bfloat16
else:
    shapes = [(32, 32, 4), (32, 64, 4), (64, 64, 4), (128, 128, 8)]
    size, depth, kind, dtype = 256, 64, "modelled", torch.float32
configs = [
    triton.Config(
        {"BLOCK_M": block_m, "BLOCK_N": block_n, "BLOCK_K": depth},
        num_warps=warps,
    )
    for block_m, block_n, warps in shapes
]
tuned = triton.autotune(configs=configs, key=["m", "n", "k"])(matmul_kernel)


def matmul(a, b):
    """a @ b by your kernel in its best configuration, float32 out."""
    (m, k), n = a.shape, b.shape[1]
    c = torch.empty(m, n, device=a.device)
    tuned[
        lambda tile: (
            triton.cdiv(m, tile["BLOCK_M"]) * triton.cdiv(n, tile["BLOCK_N"]),
        )
    ](a, b, c, m, n, k, *a.stride(), *b.stride(), *c.stride())
    return c


a, b = torch.randn(2, size, size, device=device, dtype=dtype)
matmul(a, b)
rows = []
for config, taken in tuned.configs_timings.items():
    seconds = taken[0] / 1000  # the median, of milliseconds
    block_m, block_n = config.kwargs["BLOCK_M"], config.kwargs["BLOCK_N"]
    rows.append(
        {
            "tile": f"{block_m} x {block_n}",
            "warps": config.num_warps,
            "programs": -(-size // block_m) * -(-size // block_n),
            "inputs asked for": show.si(
                a.element_size() * size**3 * (1 / block_m + 1 / block_n),
                "bytes",
            ),
            "time": show.si(seconds, "seconds"),
            "chosen": "◀" if config is tuned.best_config else "",
        }
    )
show.table(
    rows,
    caption=f"{size} x {size} x {size}: configurations, times {kind}",
    kinds={"inputs asked for": "modelled", "time": kind},
)

# %% [markdown] key="autotune-read"
# For a product this small the model prefers the tiles that ask for the most bytes, because they give the most SMs something to do, and everything fits the L2 anyway. For a large
# product there are always programs enough, and large tiles win.
#
# That is the reason for `key`: the best tile depends on the sizes, so a new size means a new search. A server that sees a new sequence length in every request would search all day. Round the lengths up.

# %% [markdown] key="cublas"
# ### Against the library
#
# Put the steps of this chapter on an A100's roof, for 4,096 x 4,096 x 4,096 in bf16. Each point does the same FLOPs. What moves it to the right is that fewer of the bytes it
# asks for come from main memory.

# %% key="cublas-roofline"
size, peak = 4096, chip.peak("bf16")
across_m, across_n, steps = size // 128, size // 256, 8
piece = size // steps * 2
by_rows = [(i, j) for i in range(across_m) for j in range(across_n)]
from_memory, _ = past_l2(by_rows, steps, 128 * piece, 256 * piece, chip)
total = 2 * size**3
intensities = {
    "one output a program": 1 / 2,
    "32 x 32 tiles, no L2": 32 * 32 / 64,
    "128 x 256 tiles, no L2": 128 * 256 / 384,
    "128 x 256 tiles, L2": total / (from_memory + 2 * size**2),
}
show.roofline(
    [Roof(chip.name, peak, chip.bytes_per_s, "published")],
    [
        Point(name, x, min(peak, x * chip.bytes_per_s), "modelled")
        for name, x in intensities.items()
    ],
    title=f"From {show.si(chip.bytes_per_s / 2, 'FLOP/s')} to"
    f" {show.si(peak, 'FLOP/s')}, by asking memory for less",
)

# %% key="cublas-time"
# Needs Triton.
if device == "cuda":
    a, b = torch.randn(2, size, size, device=device, dtype=torch.bfloat16)
    points, rows = [], []
    for name, function in (("yours", matmul), ("torch", torch.matmul)):
        taken = sorted(time_samples(function, a, b))
        middle = taken[len(taken) // 2]
        moved_bytes = a.element_size() * 2 * size**2
        moved_bytes += function(a, b).element_size() * size**2
        points.append(Point(name, total / moved_bytes, total / middle))
        rows.append(
            {
                "kernel": name,
                "median": show.si(middle, "seconds"),
                "spread": f"{taken[0]:.2e} to {taken[-1]:.2e} seconds",
                "rate": show.si(total / middle, "FLOP/s"),
            }
        )
    show.table(rows, caption=f"{size}^3 in bf16", kinds={"median": "measured"})
    roof = Roof("this GPU", machine.peak("bf16"), machine.bytes_per_s)
    show.roofline([roof], points)
else:
    print("No GPU here: with one, this cell times your kernel and cuBLAS.")

# %% [markdown] key="gemv"
# ## One row: when only the weights count
#
# While a model writes, it multiplies one row at a time ([chapter 3](03_roofline.ipynb)). The tile has one row, each weight is used once, and no tiling helps. The time is the bytes of
# the weights. So store fewer.
#
# **Weight-only int8**: each row of $W$ gets a scale $s_i = \max_j |W_{ij}| / 127$ and the integers $q_{ij} = \mathrm{round}(W_{ij} / s_i)$. Then
#
# $$y_i = \sum_j W_{ij}\, x_j \approx s_i \sum_j q_{ij}\, x_j.$$
#
# The scale does not depend on $j$, so it waits until the sum is done. The weights cross the memory bus as single bytes, and turn into floats in registers. A separate kernel that turned them into bf16 first would move more bytes
# than it saved.

# %% [markdown] key="int8_gemv_kernel-intro"
# ## Exercise: weights of one byte
#
# ●●○○ · 15 minutes · 3 points
#
# `y[i] = scale[i] * sum over j of w[i, j] * x[j]`. `w` is `(n, k)` int8, row after row without gaps. `scale` is `(n,)` float32, `x` is `(k,)` float32 or float16, `y` is `(n,)` float32. The grid has `cdiv(n, BLOCK_N)`
# programs; program `p` makes `BLOCK_N` outputs and walks along `k` in pieces of `BLOCK_K`.
#
# Multiply and add in float32. Graded: the result to float32 precision; no address outside; bytes at most 1.1 times
#
# $$n\,k + \left\lceil n / \mathrm{BLOCK\_N} \right\rceil k\, e_x + 8\,n,$$
#
# each weight once, `x` ($e_x$ bytes a number) once a program, a scale and an output a row; coalescing 90% where `k` is a multiple of `BLOCK_K`.

# %% key="int8_gemv_kernel" tags=["exercise"]
@triton.jit
def int8_gemv_kernel(
    w_ptr,
    scale_ptr,
    x_ptr,
    y_ptr,
    n,
    k,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
):
    """y = (scale * w) @ x: w (n, k) int8 row after row, scale (n,), x (k,).

    >>> w = torch.tensor([[1, 2], [3, 4]], dtype=torch.int8)
    >>> scale, x, y = torch.tensor([1.0, 0.5]), torch.ones(2), torch.empty(2)
    >>> int8_gemv_kernel[(1,)](w, scale, x, y, 2, 2, BLOCK_N=4, BLOCK_K=16)
    >>> y
    tensor([3.0000, 3.5000])
    """
    ### BEGIN SOLUTION
    rows = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    row_ok = rows < n
    total = tl.zeros((BLOCK_N,), dtype=tl.float32)
    for begin in range(0, k, BLOCK_K):
        inner = begin + tl.arange(0, BLOCK_K)
        inner_ok = inner < k
        at = w_ptr + rows[:, None] * k + inner[None, :]
        inside = row_ok[:, None] & inner_ok[None, :]
        w = tl.load(at, mask=inside, other=0).to(tl.float32)
        x = tl.load(x_ptr + inner, mask=inner_ok, other=0.0).to(tl.float32)
        total += tl.sum(w * x[None, :], 1)
    scale = tl.load(scale_ptr + rows, mask=row_ok, other=0.0)
    tl.store(y_ptr + rows, total * scale, mask=row_ok)
    ### END SOLUTION


# %% key="int8_gemv_kernel-check" tags=["check"]
int8_gemv_kernel = check("08.int8_gemv_kernel", int8_gemv_kernel)

# %% key="gemv-count"
# Needs Triton.
n, k = 256, 512
weights, x = torch.randn(n, k), torch.randn(k)
scale = weights.abs().amax(1) / 127
q = (weights / scale[:, None]).round().to(torch.int8)
y = torch.empty(n)
report = measure(
    int8_gemv_kernel, (n // 32,), q, scale, x, y, n, k, BLOCK_N=32, BLOCK_K=128
)
show.table(
    report.rows(),
    caption=f"{n} x {k} int8 weights: {report.requested_bytes / (n * k):.2f}"
    " bytes asked for, a weight",
    kinds=dict.fromkeys(("read", "written", "sectors"), "modelled"),
)
error = float((y - weights @ x).norm() / (weights @ x).norm())
show.number(100 * error, "% error from rounding the weights", "measured")

# %% [markdown] key="gemv-worth-intro"
# And for a whole model? Every generated token reads every weight that takes part in a product. At best:

# %% key="gemv-worth"
n_weights = matmul_parameters(llama)
show.table(
    [
        {
            "GPU": gpu.name,
            "bf16": show.si(2 * n_weights / gpu.bytes_per_s, "seconds"),
            "int8": show.si(n_weights / gpu.bytes_per_s, "seconds"),
        }
        for gpu in map(accelerator, ("T4", "RTX 4090", "A100 80GB SXM"))
    ],
    caption="Llama 3.1 8B, one token at batch 1, weights alone",
    kinds={"bf16": "modelled", "int8": "modelled"},
)

# %% [markdown] key="gemv-why"
# Half the bytes, half the time, and the arithmetic is the same as before: this is not int8 arithmetic. At large batch the product is bound by FLOPs, and then one-byte weights save memory and no time.
# [Chapter 9](09_mixed_precision.ipynb) multiplies int8 by int8.

# %% [markdown] key="flash-intro"
# ## Attention in one kernel
#
# [Chapter 4](04_attention.ipynb) cut attention into tiles and found no saving: each operator of PyTorch carried its tile to memory and back. "To have the small
# tiles without the launches you must write one kernel that does the whole loop." Here it is.
#
# One program takes one tile of queries of one head. It loads the tile once, walks along the keys, and carries what your `online_softmax` carried: the maximum so
# far, the total, and the output so far. Scores are born in registers and die there.
#
# This is FlashAttention (T. Dao and others, 2022).

# %% [markdown] key="flash-bytes-intro"
# ### What it moves
#
# Take one head with $T$ positions, head dimension $d$, $e$ bytes a number. Each query tile is read once and its output written once: $2\,T d\, e$ bytes. With the output goes one float32
# for each row, its **log-sum-exp** $\lambda_i$, which the backward pass will want: $4\,T$ bytes.
#
# And query tile $t$ reads $K_t$ keys and as many values. So, summed over the query tiles,
#
# $$2\,T d\,e + 4\,T + 2\,d\,e \sum_t K_t \ \text{ bytes.}$$
#
# Without a mask each $K_t$ is $T$. With the causal mask a tile stops at its own last row, rounded up to whole key tiles.

# %% key="predict-skipped"
predict(
    "08.skipped",
    "1,024 positions, 64 x 64 tiles: what share can a causal mask skip?",
    unit="%",
)

# %% key="tile-map" tags=["figure"]
def tiles_of(seq_len, block_q, block_k, causal=True):
    """(query tiles, key tiles): 0 skipped, 1 all seen, 2 masked in part."""
    first_q = np.arange(0, seq_len, block_q)[:, None]
    first_k = np.arange(0, seq_len, block_k)[None, :]
    last_q = np.minimum(first_q + block_q, seq_len) - 1
    last_k = np.minimum(first_k + block_k, seq_len) - 1
    kinds = np.where(last_k <= first_q, 1, 2)
    kinds[first_k > last_q] = 0
    return kinds if causal else np.ones_like(kinds)


def draw(seq_len, block_q, block_k):
    kinds = tiles_of(seq_len, block_q, block_k)
    visited = int((kinds > 0).sum())
    scores = visited * block_q * block_k
    waste = 1 - seq_len * (seq_len + 1) / 2 / scores
    title = f"{visited:,} of {kinds.size:,} tiles are visited"

    def paint():
        figure, axes = new_figure(title, "key tile", "query tile", 3.2)
        axes.imshow(
            kinds,
            cmap=ListedColormap(["white", BLUE, "#9ecae1"]),
            vmin=0,
            vmax=2,
            aspect="auto",
            interpolation="nearest",
        )
        axes.locator_params(integer=True)
        return figure

    numbers = show.make.table(
        [
            {
                "tiles": kinds.size,
                "skipped": int((kinds == 0).sum()),
                "masked in part": int((kinds == 2).sum()),
                "seen whole": int((kinds == 1).sum()),
            }
        ],
        caption=title,
    )
    picture = Picture(
        title=title,
        alt=f"{title}. Those above the diagonal are left out.",
        text=numbers.text,
        numbers=numbers.html,
        paint=paint,
    )
    said = (
        f"White is skipped, light is masked in part. {waste:.0%} of the"
        " scores that are computed are hidden ones (modelled)."
    )
    return picture, said


kinds = tiles_of(1024, 64, 64)
skipped = 100 * float((kinds == 0).mean())
against_prediction("08.skipped", skipped, "%", kind="modelled")
show.explore(
    draw,
    seq_len=Slider(128, 4096, 1024, log2=True, label="positions"),
    block_q=Choice([16, 32, 64, 128], 64, label="queries in a tile"),
    block_k=Choice([16, 32, 64, 128], 64, label="keys in a tile"),
)

# %% [markdown] key="tile-map-read"
# Not quite half: the tiles on the diagonal are needed for their lower triangle, and computed whole. The shorter the sequence, or the larger the tiles, the more of the work
# is hidden scores.
#
# Move one control: a 128 x 64 tile wastes as much as a 128 x 128 tile. What counts is the longer side.
#
# Heads may be **grouped**: `GROUP` query heads share one key head ([chapter 4](04_attention.ipynb)). Number the heads of all batch entries in one row, and query head `h` reads key
# head `h // GROUP`. Nothing is copied.

# %% [markdown] key="flash_forward_kernel-intro"
# ### Exercise: FlashAttention, forward
#
# ●●●● · 30 minutes · 6 points
#
# `q` and `out` are `(batch, n_head, seq_len, HEAD_DIM)`, `k` and `v` `(batch, n_head // GROUP, seq_len, HEAD_DIM)`, rows one after the other. `lse` is `(batch, n_head, seq_len)` float32. Program
# `(i, h)` owns queries `i * BLOCK_Q` onwards of head `h`, of `batch * n_head`. Scores are `q · k * scale`. With `CAUSAL`, query `i` sees keys `0` to `i`. Sizes are powers of two, except `seq_len`.
#
# Write `out` and `lse` (natural logarithm). Operands of `tl.dot` may have the inputs' dtype; keep all else in float32.
#
# Graded: the result to float32 precision, fp16 inputs too, and huge scores; no address outside; bytes at most 1.1 times the formula above; coalescing 90%
# where `seq_len` is a multiple of 8.

# %% key="flash_forward_kernel" tags=["exercise"]
@triton.jit
def flash_forward_kernel(
    q_ptr, k_ptr, v_ptr, out_ptr, lse_ptr, seq_len, scale,
    GROUP: tl.constexpr, HEAD_DIM: tl.constexpr, BLOCK_Q: tl.constexpr,
    BLOCK_K: tl.constexpr, CAUSAL: tl.constexpr,
):  # fmt: skip
    """Attention of BLOCK_Q queries of one head, and each row's log-sum-exp.

    >>> q, k, v, out = torch.randn(4, 1, 1, 20, 16)
    >>> lse = torch.empty(1, 1, 20)
    >>> sizes = dict(GROUP=1, HEAD_DIM=16, BLOCK_Q=16, BLOCK_K=16)
    >>> flash_forward_kernel[(2, 1)](
    ...     q, k, v, out, lse, 20, 0.25, CAUSAL=True, **sizes)
    >>> same = F.scaled_dot_product_attention(q, k, v, is_causal=True)
    >>> torch.allclose(out, same, atol=1e-5)
    True
    """
    ### BEGIN SOLUTION
    first = tl.program_id(0) * BLOCK_Q
    head = tl.program_id(1).to(tl.int64)  # offsets may pass 2**31
    query, column = first + tl.arange(0, BLOCK_Q), tl.arange(0, HEAD_DIM)
    row = head * seq_len + query
    q_at = row[:, None] * HEAD_DIM + column[None, :]
    own = query < seq_len
    q = tl.load(q_ptr + q_at, mask=own[:, None], other=0.0)
    top = tl.full((BLOCK_Q,), float("-inf"), tl.float32)
    total = tl.zeros((BLOCK_Q,), tl.float32)
    mixed = tl.zeros((BLOCK_Q, HEAD_DIM), tl.float32)
    end = min(first + BLOCK_Q, seq_len) if CAUSAL else seq_len
    for low in range(0, end, BLOCK_K):
        key = low + tl.arange(0, BLOCK_K)
        real = key < seq_len
        key_row = head // GROUP * seq_len + key
        at = key_row[:, None] * HEAD_DIM + column[None, :]
        k = tl.load(k_ptr + at, mask=real[:, None], other=0.0)
        v = tl.load(v_ptr + at, mask=real[:, None], other=0.0)
        seen = real[None, :]
        if CAUSAL:
            seen = seen & (key[None, :] <= query[:, None])
        scores = tl.dot(q, tl.trans(k)) * scale
        scores = tl.where(seen, scores, float("-inf"))
        new = tl.maximum(top, tl.max(scores, 1))
        shrink = tl.exp(top - new)
        weights = tl.exp(scores - new[:, None])
        total = total * shrink + tl.sum(weights, 1)
        mixed = mixed * shrink[:, None]
        mixed += tl.dot(weights.to(v.dtype), v)
        top = new
    out = mixed / total[:, None]
    tl.store(out_ptr + q_at, out, mask=own[:, None])
    tl.store(lse_ptr + row, top + tl.log(total), mask=own)
    ### END SOLUTION


# %% key="flash_forward_kernel-check" tags=["check"]
flash_forward_kernel = check("08.flash_forward_kernel", flash_forward_kernel)

# %% [markdown] key="flash-count-intro"
# Run it on something larger: four query heads on two key heads. The output is compared with PyTorch's fused attention, the bytes with the formula and with your
# count of the unfused form in chapter 4.

# %% key="flash-count"
# Needs Triton.
unfused_bytes = mine("04.hbm_bytes")


def flash_forward_report(q, k, v, causal, block_q, block_k):
    """Output, log-sum-exp, and what the kernel did, on paper."""
    batch, n_head, seq_len, head_dim = q.shape
    out, lse = torch.empty_like(q), torch.empty(q.shape[:3])
    report = measure(
        flash_forward_kernel,
        (triton.cdiv(seq_len, block_q), batch * n_head),
        *(q, k, v, out, lse, seq_len, head_dim**-0.5),
        GROUP=n_head // k.shape[1],
        HEAD_DIM=head_dim,
        BLOCK_Q=block_q,
        BLOCK_K=block_k,
        CAUSAL=causal,
    )
    return out, lse, report


def flash_bytes(seq_len, head_dim, size, block_q, block_k, causal):
    """The formula, for one head."""
    seen = 0
    for first in range(0, seq_len, block_q):
        end = min(first + block_q, seq_len) if causal else seq_len
        seen += min(triton.cdiv(end, block_k) * block_k, seq_len)
    return 2 * head_dim * size * (seq_len + seen) + 4 * seq_len


seq_len, head_dim, n_head = 250, 64, 4
q = torch.randn(1, n_head, seq_len, head_dim)
k, v = torch.randn(2, 1, 2, seq_len, head_dim)
rows = []
for causal, block_q, block_k in ((False, 64, 64), (True, 64, 64),
                                 (True, 32, 64), (True, 128, 64)):
    tiles = seq_len, head_dim, 4, block_q, block_k, causal
    out, lse, report = flash_forward_report(q, k, v, causal, block_q, block_k)
    same = F.scaled_dot_product_attention(
        q, k, v, is_causal=causal, enable_gqa=True
    )
    unfused = n_head * unfused_bytes(seq_len, head_dim, 4)
    rows.append(
        {
            "causal": causal,
            "tile": f"{block_q} x {block_k}",
            "counted bytes": report.requested_bytes,
            "formula": n_head * flash_bytes(*tiles),
            "unfused": unfused,
            "past L2": report.cost.bytes,
            "error": f"{float((out - same).norm() / same.norm()):.0e}",
        }
    )
show.table(
    rows,
    caption=f"{n_head} heads of {seq_len} x {head_dim}, fp32",
    kinds={
        **dict.fromkeys(list(rows[0])[2:-1], "modelled"),
        "error": "measured",
    },
)

# %% [markdown] key="flash-count-why"
# The count is the formula to the byte. More queries in a tile means that keys and values pass by less often, exactly as a taller tile does in a matrix product.
#
# "Past L2" is what the meter's cache model lets through. It hardly depends on the tile: all programs of a head read the same keys, and both query heads of a group read the same key head.

# %% [markdown] key="flash-modelled-intro"
# At 250 positions there is little to save. The formulas hold for any length, so let them run: one head in bf16 on an H100, $4\,T^2 d$ FLOPs without a mask. Once with every tile of keys and values fetched from main memory, once
# with L2 keeping them, so that each byte comes once.

# %% key="flash-modelled"
h100, d, block = accelerator("H100 SXM"), 128, 128
peak, points, rows = h100.peak("bf16"), [], []
for n in (1024, 8192, 65_536):
    flops, own = 4 * n * n * d, 4 * n * d + 4 * n
    row = {"positions": f"{n:,}"}
    for name, moved in (
        ("unfused", 2 * (4 * n * d + 4 * n * n)),
        ("flash", own + 4 * d * n * triton.cdiv(n, block)),
        ("flash, L2", own + 4 * d * n),
    ):
        seconds = max(flops / peak, moved / h100.bytes_per_s)
        row[f"{name}: bytes"] = show.si(moved, "B")
        row[f"{name}: time"] = show.si(seconds, "s")
        if n == 8192:
            rate = flops / seconds
            points.append(Point(name, flops / moved, rate, "modelled"))
    row["arithmetic alone"] = show.si(flops / peak, "s")
    rows.append(row)
show.table(
    rows,
    caption=f"One head, {h100.name}, bf16, tiles of {block} queries",
    kinds=dict.fromkeys(list(rows[0])[1:], "modelled"),
)
fewer = [point.intensity / points[0].intensity for point in points]
show.roofline(
    [Roof(h100.name, peak, h100.bytes_per_s, "published")],
    points,
    title=f"8,192 positions: {fewer[1]:.0f} times fewer bytes by tiles,"
    f" {fewer[2]:.0f} times if L2 keeps k and v",
)

# %% [markdown] key="flash-modelled-read"
# Tiles alone leave the kernel on the slope. It is the cache, which serves keys and values to all query tiles of a head that run at the same time, that puts it under the flat part. The unfused form cannot have that help: its
# scores are too many for any cache.

# %% [markdown] key="flash-backward-derive"
# ## Backward, in two kernels
#
# Chapter 4 derived the backward pass in tiles. For a tile of weights $P$, with $\Delta_i = dO_i \cdot O_i$ a number for each row (`delta`):
#
# $$P = e^{S - \lambda}, \quad dP = dO\,V^\top, \quad dS = P\,(dP - \Delta)\cdot \mathrm{scale},$$
#
# $$dV \mathrel{+}= P^\top dO, \quad dK \mathrel{+}= dS^\top Q, \quad dQ \mathrel{+}= dS\,K.$$
#
# Each tile adds to three sums. `dV` and `dK` belong to the keys, `dQ` to the queries. A program that owns a key tile can keep `dV` and `dK` in registers, but meets every query tile on its way, and
# so do all the others: they would all add to `dQ`, with atomics.

# %% [markdown] key="flash-backward-two"
# You saw what atomics cost: another result in each run. So make two kernels. In the first, a program owns a **key tile** and walks along the queries, of all heads of the group, which share the
# key head. In the second, a program owns a **query tile** and walks along the keys, as forward. Every sum then has one owner.
#
# The price: both compute the weights again. Count products of tiles. Forward has two, $QK^\top$ and $PV$.

# %% key="predict-flash-backward"
predict(
    "08.backward",
    "FLOPs of products, both backward kernels over the forward one?",
    unit="times",
)

# %% [markdown] key="flash_backward_kernels-intro"
# ### Exercise: FlashAttention, backward
#
# ●●●● · 30 minutes · 6 points
#
# One function, launched twice; the constant `KEYS` makes two kernels of it. Shapes are those of the forward pass; `d_out` and `d_q` are as `q`, `d_k` and `d_v` as `k`, `delta` as `lse`, float32.
#
# - `KEYS=True`: program `(j, g)` owns key tile `j` of key head `g` and writes its `d_k` and `d_v`, summed over the group.
# - `KEYS=False`: program `(i, h)` owns query tile `i` of query head `h` and writes its `d_q`.
#
# Graded as forward. Bytes at most 1.1 times: what a program owns or writes, once; `q`, `d_out`, `lse`, `delta` (or `k`, `v`) once for every visited tile. Causal: a key tile skips all query tiles that end before
# it begins.

# %% key="flash_backward_kernels" tags=["exercise"]
@triton.jit
def flash_backward_kernels(
    q_ptr, k_ptr, v_ptr, d_out_ptr, lse_ptr, delta_ptr,
    d_q_ptr, d_k_ptr, d_v_ptr, seq_len, scale,
    GROUP: tl.constexpr, HEAD_DIM: tl.constexpr, BLOCK_Q: tl.constexpr,
    BLOCK_K: tl.constexpr, CAUSAL: tl.constexpr, KEYS: tl.constexpr,
):  # fmt: skip
    """Gradients of attention. KEYS: d_k and d_v of one key tile, else d_q.

    >>> q, k, v, d_out, d_q, d_k, d_v = torch.zeros(7, 1, 1, 16, 16)
    >>> lse = torch.full((1, 1, 16), 16.0).log()  # all scores are 0
    >>> sizes = dict(GROUP=1, HEAD_DIM=16, BLOCK_Q=16, BLOCK_K=16)
    >>> flash_backward_kernels[(1, 1)](
    ...     q, k, v, d_out + 1, lse, 0 * lse, d_q, d_k, d_v, 16, 0.25,
    ...     CAUSAL=False, KEYS=True, **sizes)
    >>> round(d_v.mean().item(), 4)  # 16 queries, each weighs it 1/16
    1.0
    """
    column = tl.arange(0, HEAD_DIM)
    if KEYS:
        ### BEGIN SOLUTION
        first = tl.program_id(0) * BLOCK_K
        kv_head = tl.program_id(1).to(tl.int64)
        key = first + tl.arange(0, BLOCK_K)
        real = key < seq_len
        key_row = kv_head * seq_len + key
        at = key_row[:, None] * HEAD_DIM + column[None, :]
        k = tl.load(k_ptr + at, mask=real[:, None], other=0.0)
        v = tl.load(v_ptr + at, mask=real[:, None], other=0.0)
        d_k = tl.zeros((BLOCK_K, HEAD_DIM), tl.float32)
        d_v = tl.zeros((BLOCK_K, HEAD_DIM), tl.float32)
        begin = first // BLOCK_Q * BLOCK_Q if CAUSAL else 0
        for member in range(GROUP):
            for low in range(begin, seq_len, BLOCK_Q):
                query = low + tl.arange(0, BLOCK_Q)
                own = query < seq_len
                row = (kv_head * GROUP + member) * seq_len + query
                q_at = row[:, None] * HEAD_DIM + column[None, :]
                q = tl.load(q_ptr + q_at, mask=own[:, None], other=0.0)
                d_out = tl.load(
                    d_out_ptr + q_at, mask=own[:, None], other=0.0
                )
                lse = tl.load(lse_ptr + row, mask=own, other=0.0)
                delta = tl.load(delta_ptr + row, mask=own, other=0.0)
                seen = real[:, None] & own[None, :]
                if CAUSAL:
                    seen = seen & (key[:, None] <= query[None, :])
                # transposed: a row is a key
                scores = tl.dot(k, tl.trans(q)) * scale
                weights = tl.exp(scores - lse[None, :])
                weights = tl.where(seen, weights, 0.0)
                d_v += tl.dot(weights.to(d_out.dtype), d_out)
                d_weights = tl.dot(v, tl.trans(d_out))
                d_scores = weights * (d_weights - delta[None, :]) * scale
                d_k += tl.dot(d_scores.to(q.dtype), q)
        tl.store(d_k_ptr + at, d_k, mask=real[:, None])
        tl.store(d_v_ptr + at, d_v, mask=real[:, None])
        ### END SOLUTION
    else:
        ### BEGIN SOLUTION
        first = tl.program_id(0) * BLOCK_Q
        head = tl.program_id(1).to(tl.int64)
        query = first + tl.arange(0, BLOCK_Q)
        own = query < seq_len
        row = head * seq_len + query
        q_at = row[:, None] * HEAD_DIM + column[None, :]
        q = tl.load(q_ptr + q_at, mask=own[:, None], other=0.0)
        d_out = tl.load(d_out_ptr + q_at, mask=own[:, None], other=0.0)
        lse = tl.load(lse_ptr + row, mask=own, other=0.0)
        delta = tl.load(delta_ptr + row, mask=own, other=0.0)
        d_q = tl.zeros((BLOCK_Q, HEAD_DIM), tl.float32)
        end = min(first + BLOCK_Q, seq_len) if CAUSAL else seq_len
        for low in range(0, end, BLOCK_K):
            key = low + tl.arange(0, BLOCK_K)
            real = key < seq_len
            key_row = head // GROUP * seq_len + key
            at = key_row[:, None] * HEAD_DIM + column[None, :]
            k = tl.load(k_ptr + at, mask=real[:, None], other=0.0)
            v = tl.load(v_ptr + at, mask=real[:, None], other=0.0)
            seen = own[:, None] & real[None, :]
            if CAUSAL:
                seen = seen & (key[None, :] <= query[:, None])
            scores = tl.dot(q, tl.trans(k)) * scale
            weights = tl.exp(scores - lse[:, None])
            weights = tl.where(seen, weights, 0.0)
            d_weights = tl.dot(d_out, tl.trans(v))
            d_scores = weights * (d_weights - delta[:, None]) * scale
            d_q += tl.dot(d_scores.to(k.dtype), k)
        tl.store(d_q_ptr + q_at, d_q, mask=own[:, None])
        ### END SOLUTION


# %% key="flash_backward_kernels-check" tags=["check"]
flash_backward_kernels = check(
    "08.flash_backward_kernels", flash_backward_kernels
)

# %% [markdown] key="flash-backward-count-intro"
# Compare with autograd through the plain formula in float64, and count.

# %% key="flash-backward-count"
# Needs Triton.
seq_len, head_dim, block = 128, 64, 32
q, d_out = torch.randn(2, 1, 4, seq_len, head_dim)
k, v = torch.randn(2, 1, 2, seq_len, head_dim)
out, lse, forward = flash_forward_report(q, k, v, True, block, block)
gradients = [torch.empty_like(x) for x in (q, k, v)]
reports = [forward]
for keys, heads in ((True, 2), (False, 4)):
    reports.append(
        measure(
            flash_backward_kernels,
            (seq_len // block, heads),
            *(q, k, v, d_out, lse, (out * d_out).sum(-1), *gradients),
            *(seq_len, head_dim**-0.5),
            GROUP=2,
            HEAD_DIM=head_dim,
            BLOCK_Q=block,
            BLOCK_K=block,
            CAUSAL=True,
            KEYS=keys,
        )
    )
names = "forward", "backward, keys", "backward, queries"
# Rows that the tiles of one head visit: block, 2 * block, ... for the queries'
# tiles, the same backwards for the keys'.
visited = sum(range(block, seq_len + 1, block))
once, row_bytes = 4 * head_dim * seq_len, 4 * head_dim
formulas = (
    4 * (2 * once + 2 * row_bytes * visited + 4 * seq_len),
    2 * 4 * once + 4 * (2 * row_bytes + 8) * visited,
    4 * (3 * once + 2 * row_bytes * visited + 8 * seq_len),
)
show.table(
    [
        {
            "kernel": name,
            "products": show.si(report.dot_flops, "FLOP"),
            "counted bytes": report.requested_bytes,
            "formula": formula,
        }
        for name, report, formula in zip(names, reports, formulas, strict=True)
    ],
    caption=f"4 query heads on 2 key heads, {seq_len} x {head_dim}, causal",
    kinds=dict.fromkeys(("products", "counted bytes", "formula"), "modelled"),
)
more = sum(report.dot_flops for report in reports[1:]) / forward.dot_flops
against_prediction("08.backward", more, "times", kind="modelled")
exact = [x.double().requires_grad_() for x in (q, k, v)]
plain = F.scaled_dot_product_attention(*exact, is_causal=True, enable_gqa=True)
wanted = torch.autograd.grad(plain, exact, d_out.double())
for name, ours, theirs in zip("qkv", gradients, wanted, strict=True):
    gap = float((ours - theirs).norm() / theirs.norm())
    show.number(gap, f"relative error of d_{name}", "measured")

# %% [markdown] key="flash-backward-why"
# Seven products against two. The keys' kernel makes $S$, $dP$, $dV$ and $dK$; the queries' makes $S$ and $dP$ again, then $dQ$. Chapter 4's single loop had five, because it wrote all three sums to memory as it
# went.
#
# So two products are spent on having no atomics. Kernels in use decide either way: with atomics (five products, and a sum whose order varies), or with an owner for each sum (same bits in each
# run). FlashAttention-2 adds to $dQ$ with atomics; a deterministic mode is an option, and slower.

# %% [markdown] key="flash_attention-intro"
# ### Exercise: a function that PyTorch can differentiate
#
# ●●●○ · 15 minutes · 4 points
#
# Autograd cannot look into a kernel. A `torch.autograd.Function` tells it what to do: `forward` runs and hands tensors to `ctx.save_for_backward`; `backward` gets the output's gradient and returns one for each input of
# `forward`.
#
# `q` is `(batch, n_head, seq_len, head_dim)`, `k` and `v` may have fewer heads: float32, float16 or bfloat16, `head_dim` a power of two from 16 to 256. `out` and gradients come back in that dtype. Inputs and `d_out` may be views with any strides.
# `delta` is the float32 row sum of `d_out * out`. Pass `constants` by keyword.
#
# Graded: result and gradients to float32 precision; both kernel functions run; saved at most 1.1 times the bytes of `q`, `k`, `v`, `out` and `lse`.

# %% key="flash_attention" tags=["exercise"]
def flash_attention(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, causal: bool = True
) -> torch.Tensor:
    """Attention by your kernels, forward and backward.

    >>> q = torch.randn(1, 2, 20, 16, requires_grad=True)
    >>> k, v = torch.randn(2, 1, 1, 20, 16)  # two query heads, one key head
    >>> out = flash_attention(q, k, v)
    >>> out.sum().backward()
    >>> out.shape == q.grad.shape == q.shape
    True
    """
    batch, n_head, seq_len, head_dim = q.shape
    n_kv_head, scale = k.shape[1], head_dim**-0.5
    block = 8192 // (head_dim * q.element_size())  # a tile of 8 kB
    block = max(16, min(64, block, triton.next_power_of_2(seq_len)))
    n_tiles = triton.cdiv(seq_len, block)
    constants = {
        "GROUP": n_head // n_kv_head,
        "HEAD_DIM": head_dim,
        "BLOCK_Q": block,
        "BLOCK_K": block,
        "CAUSAL": causal,
    }

    class Flash(torch.autograd.Function):
        @staticmethod
        def forward(ctx, q, k, v):
            ### BEGIN SOLUTION
            q, k, v = (x.contiguous() for x in (q, k, v))
            out = torch.empty_like(q)
            lse = q.new_empty(q.shape[:3], dtype=torch.float32)
            flash_forward_kernel[(n_tiles, batch * n_head)](
                q, k, v, out, lse, seq_len, scale, **constants
            )
            ctx.save_for_backward(q, k, v, out, lse)
            return out
            ### END SOLUTION

        @staticmethod
        def backward(ctx, d_out):
            ### BEGIN SOLUTION
            q, k, v, out, lse = ctx.saved_tensors
            d_out = d_out.contiguous()
            delta = (d_out.float() * out.float()).sum(-1)
            grads = [torch.empty_like(x) for x in (q, k, v)]
            given = q, k, v, d_out, lse, delta, *grads, seq_len, scale
            for keys, heads in ((True, n_kv_head), (False, n_head)):
                flash_backward_kernels[(n_tiles, batch * heads)](
                    *given, **constants, KEYS=keys
                )
            return tuple(grads)
            ### END SOLUTION

    return Flash.apply(q, k, v)


# %% key="flash_attention-check" tags=["check"]
flash_attention = check("08.flash_attention", flash_attention)

# %% [markdown] key="held-flash-intro"
# ## What is held until the backward pass
#
# Between forward and backward everything that was saved must stay in memory, for every layer. Count it, for the plain formula of chapter 4 and for your function.

# %% key="predict-held"
predict(
    "08.held",
    "512 positions, head dimension 64: plain holds how many times as much?",
    unit="times",
)

# %% key="held-flash"
# Needs Triton.
def saved_bytes(attention, *tensors):
    """Bytes that autograd keeps for the backward pass, each array once."""
    kept = {}

    def pack(tensor):
        storage = tensor.untyped_storage()
        kept[storage.data_ptr()] = storage.nbytes(), tensor
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda x: x):
        out = attention(*tensors, True)
    del out
    return sum(size for size, _ in kept.values())


lengths = [64, 128, 256, 512]
held = {"plain": [], "flash": []}
plain_attention = mine("04.attention")
for n in lengths:
    q, k, v = (torch.randn(1, 1, n, 64, requires_grad=True) for _ in "qkv")
    for name, function in (
        ("plain", plain_attention), ("flash", flash_attention)
    ):
        held[name].append(saved_bytes(function, q, k, v))
times = held["plain"][-1] / held["flash"][-1]
against_prediction("08.held", times, "times")
show.lines(
    [Series(lengths, sizes, name) for name, sizes in held.items()],
    x="sequence length (positions)",
    y="held for the backward pass (bytes)",
    log=True,
    title=f"At {lengths[-1]} positions plain attention holds"
    f" {times:.0f} times as much",
)

# %% [markdown] key="held-flash-why"
# Double the length: flash doubles, plain tends to quadruple. Flash keeps four arrays and one number a row, whatever the scores.
#
# In [chapter 2](02_memory.ipynb) the scores were the activation that outgrew all others. With this function a layer's activations grow with the length itself, and it is no longer attention that decides how long a
# sequence fits.

# %% [markdown] key="train-flash-intro"
# ## It trains
#
# Now the GPT of [chapter 5](05_tiny_gpt.ipynb), from the same weights on the same batches: with PyTorch's attention, and with yours, forward and backward. On a laptop each kernel is
# interpreted, so the model is tiny. Two more runs have a planted fault.

# %% key="train-flash"
# Needs Triton.
shape = dataclasses.replace(
    lab.CONFIGS["1M"], n_layer=1, n_head=2, n_kv_head=2, head_dim=16,
    d_model=32, d_ff=128, seq_len=64,
)
recipe = lab.Recipe(steps=24, batch=2, warmup_steps=2, peak_lr=1e-2)
text, reference = lab.stdlib_text(), lab.scaled_dot_product_attention


def losses(attention):
    """The loss before each step, from the same weights and batches."""
    gpt = lab.GPT(shape, attention).to(device)
    trainer = lab.Trainer(gpt, text, recipe)
    return [float(trainer.step()[0]) for _ in range(recipe.steps)]


curves = {
    "PyTorch's": losses(reference),
    "yours": losses(flash_attention),
    "no d_k": losses(lambda q, k, v, c: reference(q, k.detach(), v, c)),
    "no d_v": losses(lambda q, k, v, c: reference(q, k, v.detach(), c)),
}
apart = {
    name: max(map(abs, np.subtract(curve, curves["PyTorch's"]).tolist()))
    for name, curve in curves.items()
}
steps = list(range(1, recipe.steps + 1))
show.lines(
    [Series(steps, curves[name], name) for name in ("PyTorch's", "yours")],
    x="step",
    y="loss (nats a byte)",
    title=f"{recipe.steps} steps: yours stays within"
    f" {apart['yours']:.0e} of PyTorch's loss",
)
show.table(
    [
        {
            "attention": name,
            "last loss": f"{curves[name][-1]:.4f}",
            "largest distance": f"{apart[name]:.0e}",
        }
        for name in curves
    ],
    caption="Loss in nats a byte, and its distance from PyTorch's",
    kinds=dict.fromkeys(("last loss", "largest distance"), "measured"),
)

# %% [markdown] key="train-flash-why"
# Your line lies on PyTorch's. They differ in the last digits of a float32, because sums are taken in another order. Nothing is approximated: FlashAttention computes attention exactly, only the order of the work changed.
#
# The last two rows are controls. In one, keys get no gradient, as if you had forgotten `d_k`; in the other, values get none. Both still learn, for the rest of the model makes up for it, and without `d_k` you would hardly see it in the
# plot. The distances give both away. A loss curve that looks right is weak evidence for a kernel. Compare gradients first, in float64.

# %% [markdown] key="time-flash-intro"
# ## Against the fused kernel
#
# With a GPU the next cell times your function, forward and with backward, against `F.scaled_dot_product_attention`. That one is tuned for each card. Yours has one tile size: a tile of 8 kB, so that
# the four or five that are alive in the backward pass fit a T4's 64 kB of shared memory.

# %% key="time-flash"
# Needs Triton.
def both_ways(attention, q, k, v, d_out):
    """Forward and backward."""
    torch.autograd.grad(attention(q, k, v, True), (q, k, v), d_out)


n, d, heads = 4096, 64, 16
flops = 2 * n * n * d * heads  # forward, causal
if device == "cuda":
    made = torch.randn(
        4, 1, heads, n, d, device=device, dtype=torch.float16
    )
    q, k, v = (x.clone().requires_grad_() for x in made[:3])
    rows = []
    for name, function in (
        ("yours", flash_attention),
        ("PyTorch, fused", lab.scaled_dot_product_attention),
    ):
        for way, work, run in (
            ("forward", 1, lambda: function(q, k, v, True)),
            ("and backward", 3.5, lambda: both_ways(function, q, k, v,
                                                    made[3])),
        ):
            taken = sorted(time_samples(run))
            middle = taken[len(taken) // 2]
            rows.append(
                {
                    "attention": name,
                    "pass": way,
                    "median": show.si(middle, "seconds"),
                    "spread": f"{taken[0]:.2e} to {taken[-1]:.2e} seconds",
                    "rate": show.si(work * flops / middle, "FLOP/s"),
                }
            )
    show.table(
        rows,
        caption=f"{heads} heads of {n:,} x {d}, causal, fp16",
        kinds=dict.fromkeys(("median", "spread", "rate"), "measured"),
    )
else:
    rows, own = [], heads * (8 * n * d + 4 * n)
    for name in ("T4", "A100 80GB SXM", "H100 SXM"):
        gpu = accelerator(name)
        tiles = heads * flash_bytes(n, d, 2, 64, 64, True)
        rows.append(
            {
                "GPU": name,
                "arithmetic": show.si(flops / gpu.peak("fp16"), "s"),
                "every tile": show.si(tiles / gpu.bytes_per_s, "s"),
                "each byte once": show.si(own / gpu.bytes_per_s, "s"),
            }
        )
    show.table(
        rows,
        caption=f"No GPU here. Forward at best, {heads} heads of {n:,} x {d},"
        " causal, fp16, tiles of 64: arithmetic, or bytes",
        kinds=dict.fromkeys(list(rows[0])[1:], "modelled"),
    )

# %% [markdown] key="flash-left"
# What the kernels in use do beyond yours: they mask only the tiles on the diagonal and leave the others alone; they take larger query tiles and tune them for each card; they fold the scale into
# powers of two, which the hardware has an instruction for; and on newer cards some warps only fetch while others multiply.
#
# None of it changes the idea, and none of it changes the bytes that you counted.

# %% [markdown] key="at-scale"
# ## At scale
#
# One product on one chip is where the tricks of this chapter work best. Three things change with more chips.
#
# **Tiles run out.** Split a layer's matrix over several GPUs (chapter 14) and each has fewer columns, so fewer tiles, on as many SMs as before. Count it for the first
# feed-forward matrix of Llama 3.1 70B on H100s.

# %% key="at-scale-tiles"
chip, tokens = accelerator("H100 SXM"), 1024
shape = model("Llama 3.1 70B")
rows = []
for gpus in (1, 2, 4, 8):
    count = (tokens // 128) * -(-shape.d_ff // gpus // 256)
    waves = -(-count // chip.cores)
    rows.append(
        {
            "GPUs": gpus,
            "tiles on each": count,
            "waves": waves,
            "SMs with work": f"{count / (waves * chip.cores):.0%}",
        }
    )
show.table(
    rows,
    caption=f"{tokens} tokens, tiles of 128 x 256, {chip.cores} SMs",
    kinds=dict.fromkeys(list(rows[0])[1:], "modelled"),
)

# %% [markdown] key="at-scale-more"
# **Sums change order.** Splits, atomics and messages between GPUs each add in an order of their own. At 1,000 GPUs the loss of two equal runs differs in its last digits within a few steps. Fixed
# orders cost bytes, and teams pay them while they hunt a bug.

# %% [markdown] key="at-scale-sequence"
# **The sequence gets split too.** The log-sum-exp that FlashAttention keeps for each row is all that two GPUs need to merge their halves of a row. Long-context training passes keys and values around a ring and merges as they arrive.
#
# What misleads: a rate measured on one large square product. Your layers are not square, their last wave is not full, and a chip that runs all its tensor cores for minutes may lower its clock. Measure your
# shapes, with random numbers, for long enough.
#
# What stays: keep on the chip what will be used again.

# %% [markdown] key="remember"
# ## What to remember
#
# - A tile of $B_M \times B_N$ outputs uses each fetched number $B_N$ or $B_M$ times. The bytes are the tile formula.
# - Registers limit the tile, and no tile alone reaches the ridge. Programs that run together must share strips in the L2.
# - What follows a product is free in its epilogue. With one row only the bytes of the weights count.
# - Attention needs no matrix of scores: a running maximum and a running sum per row, rescaled as tiles arrive. The backward pass computes the tiles again.
# - Same function, same FLOPs or more, fewer bytes: that is the whole trick. Count them before you time anything.

# %% [markdown] key="sources"
# ## Sources
#
# - K. Goto, R. van de Geijn: Anatomy of High-Performance Matrix Multiplication. ACM Transactions on Mathematical Software 34(3), 2008.
# - P. Tillet, H. T. Kung, D. Cox: Triton: An Intermediate Language and Compiler for Tiled Neural Network Computations. MAPL, 2019.
# - Triton documentation, tutorial "Matrix Multiplication".
# - NVIDIA: A100 Tensor Core GPU Architecture, white paper, 2020.
# - M. Milakov, N. Gimelshein: Online normalizer calculation for softmax, 2018, arXiv 1805.02867.
# - T. Dao, D. Fu, S. Ermon, A. Rudra, C. Ré: FlashAttention, 2022, arXiv 2205.14135.
# - T. Dao: FlashAttention-2, 2023, arXiv 2307.08691.
# - J. Ainslie et al.: GQA, 2023, arXiv 2305.13245.
# - H. Liu, M. Zaharia, P. Abbeel: Ring Attention with Blockwise Transformers for Near-Infinite Context, 2023, arXiv 2310.01889.
