# ---
# jupyter:
#   course:
#     title: "4. What does attention cost, and must it?"
#     minutes: 100
#     hardware: "no GPU; with one, the timings use it"
#     needs: "chapters 0 to 3"
#     leaves_with: "your own attention, forward and backward, which chapter 5 trains with, and its bytes counted in two forms"
# ---

# %% [markdown] key="title"
# # 4. What does attention cost, and must it?
#
# In 2022 a paper measured the attention of GPT-2 medium on an A100. The usual code moved 40.3 GB through the GPU's memory. The
# authors' code moved 4.4 GB, did 13% more arithmetic, and ran 5.7 times as fast. Both compute the same function, nothing approximated.
# (Published: FlashAttention, figure 2.)
#
# You will write both forms. First attention itself, from one query to many heads. Then the same result without ever holding the
# matrix that everyone draws when they explain it. Then the gradient, by hand.

# %% key="setup" tags=["setup"]
import math

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from utils import show
from utils.arithmetic import kv_cache_bytes_per_token, model
from utils.course import against_prediction, check, hint, predict, quiz
from utils.course import progress, reveal, start
from utils.hardware import accelerator, time_samples
from utils.meter import meter
from utils.show import Choice, Series, Slider

torch.manual_seed(0)
machine = start("04")
device = "cuda" if machine.device == "cuda" else "cpu"

# %% key="recall"
quiz("04.recall")

# %% [markdown] key="the-bill-first"
# ## Before you know anything
#
# A head of attention takes three arrays, `q`, `k` and `v`, and returns one, `out`. Take 1,024 positions with 64 numbers each,
# which is a head of GPT-2. Reading the three and writing the one is the least that any code can move.
#
# You will write attention in a few lines of PyTorch, each line a kernel or two. How many times that least will it move?

# %% key="predict-bytes"
predict("04.bytes", "Plain code moves how many times the least?", unit="times")

# %% [markdown] key="one-query"
# ## One query
#
# A token wants to know something about the tokens before it. It asks with a vector, its **query** $q$. Every token $j$ offers
# a **key** $k_j$, which says what it has, and a **value** $v_j$, which is what it gives. All three have $d$ numbers (`head_dim`).
#
# How well a key fits the query is their dot product, the **score**:
#
# $$s_j = \frac{q \cdot k_j}{\sqrt{d}}.$$
#
# Scores become **weights** that are positive and sum to one. The answer is the weighted average of the values:
#
# $$p_j = \frac{e^{s_j}}{\sum_i e^{s_i}}, \qquad o = \sum_j p_j\, v_j.$$

# %% [markdown] key="softmax-intro"
# ## Exercise: softmax
#
# ●○○○ · 5 minutes · 2 points
#
# The map from $s$ to $p$ is the **softmax**. As written above it fails: in float32 $e^{89}$ is infinite. But a number $c$
# subtracted from all scores of a row cancels:
#
# $$\frac{e^{s_j - c}}{\sum_i e^{s_i - c}} = \frac{e^{-c}\, e^{s_j}}{e^{-c} \sum_i e^{s_i}}.$$
#
# Choose $c$ so that no exponential overflows and the largest is 1.
#
# `x` is a tensor of any shape and float dtype. Return the softmax along its last axis, same shape. Rows may hold scores of any
# size and also `-inf` (weight 0), but never only `-inf`. Leave `x` unchanged.

# %% key="softmax" tags=["exercise"]
def softmax(x: torch.Tensor) -> torch.Tensor:
    """Softmax along the last axis; x (..., n) -> the same shape.

    >>> softmax(torch.tensor([[1000.0, 1000.0], [0.0, -float("inf")]]))
    tensor([[0.5000, 0.5000],
            [1.0000, 0.0000]])
    """
    ### BEGIN SOLUTION
    raised = (x - x.amax(-1, keepdim=True)).exp()
    return raised / raised.sum(-1, keepdim=True)
    ### END SOLUTION


# %% key="softmax-check" tags=["check"]
softmax = check("04.softmax", softmax)

# %% [markdown] key="one-query-code"
# One query, in code. The query below is a copy of key 2, so you know whom it should listen to.

# %% key="one-query-run"
d = 8
keys, values = torch.randn(5, d), torch.randn(5, d)
query = keys[2]
scores = keys @ query / math.sqrt(d)
weights = softmax(scores)
answer = weights @ values
show.bars(
    [f"key {j}" for j in range(5)],
    weights.tolist(),
    unit="weight",
    kind="measured",
    title=f"Key {int(weights.argmax())} gets {float(weights.max()):.0%}"
    " of the attention",
)

# %% [markdown] key="why-root"
# ### Why the square root
#
# A dot product of $d$ random numbers is a sum of $d$ terms. If each number has variance 1, the sum has variance $d$, so it
# spreads as $\sqrt{d}$. Without the division, scores grow with the size of a head. Softmax then picks one key and ignores the
# rest, and a weight that is stuck at 0 or 1 passes almost no gradient on.
#
# Dividing by $\sqrt{d}$ keeps the spread at 1 for every $d$. Dividing by $d$ would overdo it: all keys would look alike.

# %% key="why-root-table"
rows = []
for d in (16, 64, 256):
    scores = torch.randn(200, d) @ torch.randn(64, d).T
    rows.append(
        {
            "head_dim": d,
            "spread of q·k": round(float(scores.std()), 1),
            "√d": round(math.sqrt(d), 1),
        }
        | {
            f"top weight, {name}": round(
                float(softmax(scores / by).amax(-1).mean()), 2
            )
            for name, by in (("bare", 1), ("over √d", d**0.5), ("over d", d))
        }
    )
kinds = dict.fromkeys(rows[0], "measured")
kinds["√d"] = "modelled"
del kinds["head_dim"]
show.table(rows, caption="Random queries against 64 random keys", kinds=kinds)

# %% [markdown] key="many-queries"
# ## Many queries
#
# Every position has a query. Stack them as rows of $Q$, the keys as rows of $K$, the values as rows of $V$, each $T \times d$ for
# $T$ positions (`seq_len`). Then one matrix product gives all scores, and one more all answers:
#
# $$S = \frac{Q K^\top}{\sqrt{d}}, \qquad P = \mathrm{softmax}(S), \qquad O = P\,V.$$
#
# Row $i$ of $S$ holds the scores of query $i$, one column a key. So the softmax runs along rows. $S$ and $P$ are $T \times T$.
# Remember that.

# %% [markdown] key="causal"
# ### No looking ahead
#
# A language model learns to predict the next token at every position at once. Position $i$ must not see what comes after it, or it
# would copy the answer. So hide key $j$ from query $i$ whenever $j > i$. The query sees its own key.
#
# Hide it **before** the softmax, by setting its score to $-\infty$: then its weight is $e^{-\infty} = 0$ and the remaining ones still sum
# to one. This is called a causal mask.

# %% [markdown] key="attention-intro"
# ## Exercise: attention
#
# ●●○○ · 10 minutes · 3 points
#
# All tensors are `(batch, n_head, seq_len, head_dim)`. Every batch entry and every head is on its own. With `causal=True`, query `i`
# sees keys 0 to `i`. With `causal=False` it sees all, and then `q` may have another `seq_len` than `k` and `v`.
#
# Work in any float dtype, on any device, and let gradients flow: chapter 5 trains a model with what you write here. Return a tensor of
# the shape and dtype of `q`. The tensors you get may not be contiguous, so use `reshape` where you would use `view`.

# %% key="attention" tags=["exercise"]
def attention(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, causal: bool = True
) -> torch.Tensor:
    """softmax(q kᵀ / √head_dim) v, (batch, n_head, seq_len, head_dim).

    >>> x = torch.tensor([[[[1.0], [3.0]]]])
    >>> attention(torch.zeros(1, 1, 2, 1), x, x).flatten()
    tensor([1., 2.])
    """
    ### BEGIN SOLUTION
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
    if causal:
        n = q.shape[-2]
        future = torch.ones(n, n, dtype=torch.bool, device=q.device).triu(1)
        scores = scores.masked_fill(future, float("-inf"))
    return softmax(scores) @ v
    ### END SOLUTION


# %% key="attention-check" tags=["check"]
attention = check("04.attention", attention)

# %% [markdown] key="against-torch"
# PyTorch has a function for this. Yours should agree with it, and autograd should be able to follow yours.

# %% key="against-torch-run"
q, k, v = (torch.randn(2, 4, 50, 16, requires_grad=True) for _ in "qkv")
out = attention(q, k, v, True)
same = F.scaled_dot_product_attention(q, k, v, is_causal=True)
gap = float((out - same).abs().max().detach())
show.number(gap, "largest difference to PyTorch's", "measured")
try:
    out.sum().backward()
    print("Gradients reach q, k and v.")
except RuntimeError:
    print(
        "Your attention changes in place what autograd needs for the"
        " gradient. To train with it, write those steps out of place."
    )

# %% [markdown] key="bill"
# ## The bill
#
# Now count. The meter sees every operator that PyTorch runs and adds up what each must read and write. It assumes that nothing stays
# in a cache between two operators, which is how large tensors behave on a GPU.

# %% key="bill-run"
seq_len, head_dim = 1024, 64
q, k, v = (torch.randn(1, 1, seq_len, head_dim) for _ in "qkv")
least = 4 * q.numel() * q.element_size()
with meter() as plain:
    attention(q, k, v)
rows = []
for row in plain.rows():
    if row.bytes:
        rows.append(
            {
                "operator": row.name,
                "calls": row.calls,
                "FLOPs": show.si(row.flops + row.vector_flops, "FLOP"),
                "moved": show.si(row.bytes, "bytes"),
                "FLOP per byte": round(row.intensity, 2),
            }
        )
show.table(
    rows,
    caption=f"Your attention, one head, {seq_len} x {head_dim}, fp32:"
    f" {show.si(plain.bytes, 'bytes')} moved",
    kinds=dict.fromkeys(("FLOPs", "moved", "FLOP per byte"), "modelled"),
)

# %% key="bill-verdict"
against_prediction("04.bytes", plain.bytes / least, "times", kind="modelled")
ratio = seq_len**2 / (seq_len * head_dim)
show.number(ratio, "T² over T·d: one pass over the scores", "modelled")

# %% [markdown] key="bill-why"
# The arithmetic sits in the two products. The bytes sit everywhere else. A $T \times T$ array is $T/d$ times as large as `q`, and each
# small step (scale, mask, maximum, difference, exponential, sum, quotient) carries it from memory and back. Those steps have less
# than one FLOP per byte. [Chapter 3](03_roofline.ipynb) told you what that means: far below any ridge point, bytes are the time.
#
# And the ratio grows. Double the sequence and the scores quadruple.

# %% [markdown] key="heads"
# ## Many heads
#
# One query asks one question. A token has several: who is my subject, which bracket do I close? So the model splits its $C$
# numbers (`d_model`) into `n_head` heads of $d = C / n_{head}$ each. Every head attends on its own, and a last matrix mixes what they
# found.
#
# The arithmetic stays the same: `n_head` products with $d$ columns cost what one with $C$ columns costs. The scores do not: there is a
# $T \times T$ matrix **for each head**.

# %% [markdown] key="multi_head-intro"
# ## Exercise: multi-head attention
#
# ●●●○ · 10 minutes · 3 points
#
# `x` is `(batch, seq_len, d_model)`. Multiply it by `w_qkv`, `(d_model, 3 * d_model)`. The first `d_model` columns of the result are queries, then
# come keys, then values. Within each, head `h` owns the columns `h * head_dim` to `(h + 1) * head_dim`, with `head_dim = d_model / n_head`.
#
# Let each head attend, put the heads side by side again in the same order, and multiply by `w_out`, `(d_model, d_model)`. You may
# use `attention`. Beware: `reshape` keeps the order of numbers in memory, `transpose` swaps axes. They are not the same.

# %% key="multi_head" tags=["exercise"]
def multi_head(
    x: torch.Tensor,
    w_qkv: torch.Tensor,
    w_out: torch.Tensor,
    n_head: int,
    causal: bool = True,
) -> torch.Tensor:
    """Project, split into heads, attend, merge, project. x like the result.

    >>> x, w = torch.ones(1, 2, 4), torch.eye(4)
    >>> multi_head(x, torch.cat([w, w, 2 * w], 1), w, n_head=2)[0, 0]
    tensor([2., 2., 2., 2.])
    """
    ### BEGIN SOLUTION
    batch, seq_len, d_model = x.shape
    heads = (batch, seq_len, n_head, d_model // n_head)
    q, k, v = (
        part.reshape(heads).transpose(1, 2)
        for part in (x @ w_qkv).chunk(3, dim=-1)
    )
    mixed = attention(q, k, v, causal)
    return mixed.transpose(1, 2).reshape(x.shape) @ w_out
    ### END SOLUTION


# %% key="multi_head-check" tags=["check"]
multi_head = check("04.multi_head", multi_head)

# %% key="multi-head-against-torch"
layer = nn.MultiheadAttention(32, 4, bias=False, batch_first=True)
x = torch.randn(2, 10, 32)
future = torch.ones(10, 10, dtype=torch.bool).triu(1)
with torch.no_grad():
    theirs, _ = layer(x, x, x, attn_mask=future, need_weights=False)
    w_qkv, w_out = layer.in_proj_weight.T, layer.out_proj.weight.T
    ours = multi_head(x, w_qkv, w_out, 4)
gap = float((theirs - ours).abs().max())
show.number(gap, "largest difference to nn.MultiheadAttention", "measured")

# %% [markdown] key="sharing"
# ## Heads that share
#
# While a model writes, it keeps the keys and values of everything so far: the KV cache of [chapter 2](02_memory.ipynb). Each new
# token reads all of it, and [chapter 3](03_roofline.ipynb) showed that no batch helps.
#
# Let neighbouring query heads share one head of keys and values, and the cache shrinks by the size of the group. That is
# **grouped-query attention**. With one key head for all it is called multi-query. The number of queries and the FLOPs stay.

# %% [markdown] key="grouped_query-intro"
# ## Exercise: grouped heads
#
# ●●○○ · 5 minutes · 2 points
#
# `q` has `n_head` heads, `k` and `v` have `n_kv_head`, which divides `n_head`. With `group = n_head / n_kv_head`, query head `h` reads key and
# value head `h // group`: the first `group` query heads share key head 0, the next share key head 1. Return a tensor of the shape of `q`.
#
# For the result it does not matter whether you repeat keys or reshape queries.

# %% key="grouped_query" tags=["exercise"]
def grouped_query(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, causal: bool = True
) -> torch.Tensor:
    """Attention in which query head h reads key head h // group.

    >>> q = torch.zeros(1, 4, 1, 1)
    >>> v = torch.tensor([7.0, 9.0]).reshape(1, 2, 1, 1)
    >>> grouped_query(q, v, v).flatten()
    tensor([7., 7., 9., 9.])
    """
    ### BEGIN SOLUTION
    group = q.shape[1] // k.shape[1]
    k = k.repeat_interleave(group, dim=1)
    v = v.repeat_interleave(group, dim=1)
    return attention(q, k, v, causal)
    ### END SOLUTION


# %% key="grouped_query-check" tags=["check"]
grouped_query = check("04.grouped_query", grouped_query)

# %% [markdown] key="grouped-table-intro"
# What sharing is worth: Llama 3.1 70B has 64 query heads and 8 key heads. The other rows are what it did not choose.

# %% key="grouped-table"
llama = model("Llama 3.1 70B")
rows = []
for what, n_kv_head in (
    ("none share", llama.n_head),
    ("as built", llama.n_kv_head),
    ("all share", 1),
):
    per_token = kv_cache_bytes_per_token(
        llama.n_layer, n_kv_head, llama.head_dim, 2
    )
    rows.append(
        {
            "heads": what,
            "key heads": n_kv_head,
            "cache of a token": show.si(per_token, "bytes"),
            "of 32,768 tokens": show.si(32_768 * per_token, "bytes"),
        }
    )
show.table(
    rows,
    caption="KV cache of Llama 3.1 70B in bf16",
    kinds=dict.fromkeys(("cache of a token", "of 32,768 tokens"), "modelled"),
)

# %% [markdown] key="positions"
# ## Where am I?
#
# Without the mask, attention does not know the order of its tokens. Shuffle the keys and values together and every output stays, up to rounding. Try it.

# %% key="shuffle"
q, k, v = (torch.randn(1, 1, 6, 8) for _ in "qkv")
order = torch.randperm(6)
moved = attention(q, k[:, :, order], v[:, :, order], False)
gap = float((attention(q, k, v, False) - moved).abs().max())
show.number(gap, "largest change by shuffling keys and values", "measured")

# %% [markdown] key="rope-why"
# So positions must come in with the numbers. **RoPE** (rotary position embedding) turns `q` and `k` by an angle that grows with
# their position. Take two of the numbers of a vector as a point in a plane and turn it:
#
# $$\begin{pmatrix} a' \\ b' \end{pmatrix} = \begin{pmatrix} \cos\theta & -\sin\theta \\ \sin\theta & \cos\theta \end{pmatrix} \begin{pmatrix} a \\ b \end{pmatrix}.$$
#
# If the query at position $m$ is turned by $m\omega$ and the key at $n$ by $n\omega$, their dot product depends on the angle between them,
# $(m - n)\,\omega$: on the distance alone. Each pair has its own speed $\omega$, from fast to slow, like the hands of a clock.

# %% [markdown] key="rope-intro"
# ## Exercise: rotary positions
#
# ●●●○ · 8 minutes · 3 points
#
# `x` is `(batch, n_head, seq_len, head_dim)` with an even `head_dim`. Pair number `i`, from 0 to `head_dim / 2 - 1`, consists of `x[..., i]`
# and `x[..., i + head_dim / 2]`. (The paper pairs neighbours; many codes pair halves, and so do we.) Row `t` has position `start + t`. Its pair `i` turns by
#
# $$\theta = (\text{start} + t) \cdot \text{base}^{-2i / \text{head\_dim}}.$$
#
# Return the turned tensor, same shape and dtype.

# %% key="rope" tags=["exercise"]
def rope(
    x: torch.Tensor, start: int = 0, base: float = 10_000.0
) -> torch.Tensor:
    """Turn pair (x[i], x[i + head_dim / 2]) by position · base^(-2i/head_dim).

    >>> rope(torch.tensor([[[[1.0, 0.0], [1.0, 0.0]]]]))
    tensor([[[[1.0000, 0.0000],
              [0.5403, 0.8415]]]])
    """
    ### BEGIN SOLUTION
    seq_len, head_dim = x.shape[-2:]
    pair = torch.arange(0, head_dim, 2, device=x.device).double()
    position = torch.arange(start, start + seq_len, device=x.device).double()
    angle = position[:, None] * base ** (-pair / head_dim)
    a, b = x.chunk(2, dim=-1)
    cos, sin = angle.cos().to(x.dtype), angle.sin().to(x.dtype)
    return torch.cat([a * cos - b * sin, b * cos + a * sin], dim=-1)
    ### END SOLUTION


# %% key="rope-check" tags=["check"]
rope = check("04.rope", rope)

# %% [markdown] key="rope-distance-intro"
# Put one key at position 0 and the same query at positions 0 to 127. Then move both 500 positions on. If scores depend on the distance
# alone, none changes. The plot's title says by how much they did.

# %% key="rope-distance"
x = torch.ones(1, 1, 128, 64)


def scores_by_distance(start: int) -> list:
    """Score of a query at each position against the key at start."""
    turned = rope(x, start)
    return (turned @ turned[0, 0, 0] / 8).flatten().tolist()


here, there = scores_by_distance(0), scores_by_distance(500)
gap = max(abs(a - b) for a, b in zip(here, there, strict=True))
show.line(
    range(128),
    here,
    x="distance (positions)",
    y="score",
    title=f"Moving both by 500 changes a score by at most {gap:.1e}",
)

# %% [markdown] key="must-it"
# ## Must it cost that?
#
# You have counted it: the scores are made, written, read, scaled, written, read, masked, and so on. Merge all the small steps into
# one kernel and the scores still go to memory and back, because a row's softmax needs the whole row: its maximum and its sum.
#
# Unless you can do a softmax without seeing the whole row. Look at the two numbers. The maximum is easy, it can run along. The sum
# seems not to be, because it is a sum of $e^{s_j - m}$ and $m$ is known only at the end.

# %% [markdown] key="online-derive"
# ### A sum that can be corrected
#
# Say you have seen some scores. Their maximum is $m$, and their sum is $\ell = \sum_j e^{s_j - m}$. Now a new chunk of scores raises the
# maximum to $m'$. What should the old sum have been?
#
# $$\sum_j e^{s_j - m'} = \sum_j e^{s_j - m}\, e^{m - m'} = \ell \cdot e^{m - m'}.$$
#
# One factor mends it. Multiply, then add the new chunk's $e^{s_j - m'}$. This is the **online softmax**.

# %% [markdown] key="online_softmax-intro"
# ## Exercise: online softmax
#
# ●●●○ · 8 minutes · 3 points
#
# `chunks` gives the scores of one row piece by piece, as one-dimensional tensors. You may go through it once, and each chunk is gone when the
# next one comes: keep two numbers, not the scores. Return the pair `(maximum, total)` with `total` the sum of `exp(score - maximum)` over the
# whole row. Numbers or tensors with one element will do.
#
# A chunk may consist of `-inf` only, even the first. Some score is finite.

# %% key="online_softmax" tags=["exercise"]
def online_softmax(chunks) -> tuple:
    """(maximum, sum of exp(score - maximum)) of scores that come in chunks.

    >>> online_softmax([torch.tensor([1.0, 1.0]), torch.tensor([1.0])])
    (1.0, 3.0)
    """
    ### BEGIN SOLUTION
    maximum, total = float("-inf"), 0.0
    for chunk in chunks:
        new = max(maximum, chunk.max().item())
        if new == float("-inf"):
            continue
        added = (chunk - new).exp().sum().item()
        total = total * math.exp(maximum - new) + added
        maximum = new
    return maximum, total
    ### END SOLUTION


# %% key="online_softmax-check" tags=["check"]
online_softmax = check("04.online_softmax", online_softmax)

# %% key="online-run"
row = 30 * torch.randn(4096)
top, total = online_softmax(row.split(64))
lse = float(top) + math.log(float(total))
exact = float(row.double().logsumexp(0))
show.number(abs(lse - exact), "difference in max + log(total)", "measured")

# %% [markdown] key="tiled-derive"
# ## Tiles
#
# The output can be corrected in the same way. Carry an unfinished one, $o = \sum_j e^{s_j - m} v_j$, and when the maximum rises
# multiply it by the same factor. Divide by $\ell$ once, at the end.
#
# So take a tile of queries (`block_q` rows) and let the keys and values pass by, a tile of `block_k` at a time. For every key tile:
#
# 1. scores of this tile only, `block_q x block_k`, masked where needed;
# 2. the new maximum of each row, and the factor $e^{m - m'}$;
# 3. correct $\ell$ and $o$ by the factor, then add this tile's part.
#
# Nothing larger than a tile of scores ever exists. Step through it.

# %% key="play" tags=["figure"]
T, B = 16, 4  # positions, and positions in a tile
toy = torch.Generator().manual_seed(1)
toy_q, toy_k, toy_v = torch.randn(3, T, 8, generator=toy)
toy_scores = 2 * toy_q @ toy_k.T / math.sqrt(8)


def tiles(causal: bool) -> list:
    """(query tile, key tile) in the order in which they are computed."""
    n = T // B
    return [(i, j) for i in range(n) for j in range(i + 1 if causal else n)]


def state_after(i: int, j: int, causal: bool) -> tuple:
    """Maximum, total and output of the last query of tile i after tile j."""
    seen = slice(0, (j + 1) * B)
    row = toy_scores[(i + 1) * B - 1, seen]
    top = row.max()
    weights = (row - top).exp()
    return top, weights.sum(), weights @ toy_v[seen, 0]


def draw(step, causal):
    order = tiles(causal)
    step = min(step, len(order))
    rows = []
    for i in range(T // B):
        done = [j for a, j in order[:step] if a == i]
        row = {"queries": f"{i * B} to {(i + 1) * B - 1}"}
        for j in range(T // B):
            name = f"keys {j * B} to {(j + 1) * B - 1}"
            now = step and order[step - 1] == (i, j)
            waits = "·" if (i, j) in order else "skip"
            row[name] = "▶ now" if now else "■ done" if j in done else waits
        if done:
            top, total, out = state_after(i, done[-1], causal)
            row |= {"max": f"{top:.2f}", "sum": f"{total:.2f}"}
            row |= {"output": f"{out:.2f}", "over sum": f"{out / total:.3f}"}
        else:
            row |= dict.fromkeys(("max", "sum", "output", "over sum"), "–")
        rows.append(row)
    caption = f"Tile {step} of {len(order)}"
    return show.make.table(rows, caption=caption), said(step, order, causal)


def said(step: int, order: list, causal: bool) -> str:
    if not step:
        return "Nothing computed: every maximum is -infinity, every sum 0."
    i, j = order[step - 1]
    top, total, _ = state_after(i, j, causal)
    if j == 0:
        return f"A new query tile starts: maximum {top:.2f}, sum {total:.2f}."
    old, before, _ = state_after(i, j - 1, causal)
    factor = float((old - top).exp())
    return (
        f"Query {(i + 1) * B - 1}: the maximum goes from {old:.2f} to"
        f" {top:.2f}. The old sum {before:.2f} times {factor:.2f},"
        f" plus this tile's part, is {total:.2f}."
    )


show.explore(
    draw,
    step=Slider(0, (T // B) ** 2, start=8),
    causal=Choice([True, False]),
)

# %% [markdown] key="play-read"
# The four numbers are those of each tile's last query, with the first of its eight outputs. Watch the sum when the maximum rises: it
# can fall. With the mask on, tiles above the diagonal are never touched: every score in them is hidden, so leave them out. That
# is nearly half of the work for free.

# %% [markdown] key="tiled_attention-intro"
# ## Exercise: tiled attention
#
# ●●●● · 20 minutes · 5 points
#
# Write it. Shapes and meaning are those of `attention`, with `block_q` queries and `block_k` keys in a tile. The last tiles may be
# smaller. All batch entries and heads may go together. The check counts while your code runs:
#
# - no tensor may have more elements than four times `q` or two tiles, whichever is more. A `seq_len x seq_len` mask is too large;
# - no product may have more rows or columns than a tile: one query against all keys is too long;
# - the products may do no more FLOPs than the tiles need that are not masked whole.
#
# It sees torch operations only, so leave numpy aside. How fast your code is does not count.

# %% key="tiled_attention" tags=["exercise"]
def tiled_attention(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    causal: bool = True,
    block_q: int = 64,
    block_k: int = 64,
) -> torch.Tensor:
    """Attention that holds one tile of scores at a time.

    >>> q, k, v = torch.randn(3, 1, 2, 10, 4)
    >>> tiled = tiled_attention(q, k, v, True, 4, 4)
    >>> torch.allclose(tiled, attention(q, k, v, True), atol=1e-5)
    True
    """
    ### BEGIN SOLUTION
    seq_len, device = q.shape[2], q.device
    out = torch.empty_like(q)
    for i in range(0, seq_len, block_q):
        rows = q[:, :, i : i + block_q] / math.sqrt(q.shape[3])
        query = torch.arange(i, i + rows.shape[2], device=device)
        top = torch.full_like(rows[..., :1], float("-inf"))
        total, mixed = torch.zeros_like(top), torch.zeros_like(rows)
        for j in range(0, seq_len, block_k):
            if causal and j >= i + rows.shape[2]:
                break  # this tile and all after it are hidden
            columns = slice(j, j + block_k)
            scores = rows @ k[:, :, columns].transpose(2, 3)
            if causal and j + block_k > i:
                key = torch.arange(j, j + scores.shape[3], device=device)
                hidden = key > query[:, None]
                scores = scores.masked_fill(hidden, float("-inf"))
            new = torch.maximum(top, scores.amax(-1, keepdim=True))
            weights, factor = (scores - new).exp(), (top - new).exp()
            total = total * factor + weights.sum(-1, keepdim=True)
            mixed = mixed * factor + weights @ v[:, :, columns]
            top = new
        out[:, :, i : i + block_q] = mixed / total
    return out
    ### END SOLUTION


# %% key="tiled_attention-check" tags=["check"]
tiled_attention = check("04.tiled_attention", tiled_attention)

# %% [markdown] key="held-intro"
# ## What is held
#
# First the memory. The meter knows the most bytes of tensors alive at once. Run both forms at growing lengths.

# %% key="held"
lengths = [128, 256, 512, 1024, 2048]
held = {"plain": [], "tiled": []}
for n in lengths:
    q, k, v = (torch.randn(1, 1, n, head_dim) for _ in "qkv")
    for name, function in (("plain", attention), ("tiled", tiled_attention)):
        with meter() as m:
            function(q, k, v)
        held[name].append(m.peak_bytes)
more = held["plain"][-1] / held["tiled"][-1]
show.lines(
    [Series(lengths, most, name) for name, most in held.items()],
    x="sequence length (positions)",
    y="most held at once (bytes)",
    log=True,
    title=f"At {lengths[-1]} positions plain attention holds"
    f" {more:.0f} times as much",
)

# %% [markdown] key="held-why"
# One line climbs with the square of the length, the other with the length itself. That alone changed what can be trained: the activations
# of [chapter 2](02_memory.ipynb) that grow with the square of the length, a matrix for every head of every layer, are gone.
#
# And the bytes moved? You saw the plain form carry the scores through memory step by step. The tiled form holds only tiles.

# %% key="predict-tiled"
predict(
    "04.tiled",
    "The meter counts how many times fewer bytes for the tiled form?",
    unit="times",
)

# %% key="meter-tiled"
q, k, v = (torch.randn(1, 1, seq_len, head_dim) for _ in "qkv")
with meter() as tiled:
    tiled_attention(q, k, v, False)
with meter() as plain:
    attention(q, k, v, False)
against_prediction(
    "04.tiled", plain.bytes / tiled.bytes, "times", kind="modelled"
)
show.table(
    [
        {
            "form": name,
            "launches": m.launches,
            "FLOPs of products": show.si(m.flops, "FLOP"),
            "moved": show.si(m.bytes, "bytes"),
            "times the least": round(m.bytes / least, 1),
        }
        for name, m in (("plain", plain), ("tiled", tiled))
    ],
    caption="No mask, one head, 1,024 x 64, fp32; nothing stays on chip",
    kinds=dict.fromkeys(
        ("FLOPs of products", "moved", "times the least"), "modelled"
    ),
)

# %% [markdown] key="meter-tiled-why"
# No miracle. Cutting the scores into tiles does not make them fewer, and each operator of PyTorch still reads its tile from memory and
# writes its result there. The order of the work alone saves nothing.
#
# What it does is make saving **possible**. A tile of scores is small enough to stay on the chip, in a cache or in the registers and shared memory
# of a GPU, from the product that makes it to the product that uses it. The whole matrix never is.
#
# So count again, with a chip. Say it keeps every tensor up to 100 kB, the size that the FlashAttention paper took for its example. Only larger ones cost
# bytes.

# %% key="off-chip"
class OffChip(TorchDispatchMode):
    """Counts bytes of tensors that lie in memory too large for the chip."""

    def __init__(self, chip_bytes: int):
        super().__init__()
        self.chip_bytes, self.bytes = chip_bytes, 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        out = func(*args, **(kwargs or {}))
        name = func.overloadpacket.__name__
        moves_nothing = name.startswith("empty") or name == "_unsafe_view"
        if not (func.is_view or moves_nothing):
            touched = {}  # an array written in place counts once
            for t in tree_leaves((args, kwargs, out)):
                if isinstance(t, torch.Tensor):
                    touched[t.data_ptr(), t.shape] = t
            for t in touched.values():
                if t.untyped_storage().nbytes() > self.chip_bytes:
                    self.bytes += t.numel() * t.element_size()
        return out


def off_chip_bytes(function, *arguments, chip_bytes: int = 100_000) -> int:
    """Bytes to and from memory, on a chip that keeps small tensors."""
    with OffChip(chip_bytes) as counted:
        function(*arguments)
    return counted.bytes


off_plain = off_chip_bytes(attention, q, k, v, False)
off_tiled = off_chip_bytes(tiled_attention, q, k, v, False)
for name, moved in (("plain", off_plain), ("tiled", off_tiled)):
    show.number(moved, f"bytes past the chip, {name}", "modelled")
show.number(off_plain / off_tiled, "times fewer", "modelled")

# %% [markdown] key="hbm_bytes-intro"
# ## Exercise: the formula
#
# ●●○○ · 8 minutes · 2 points
#
# Write down what you just counted, for one head. HBM is a GPU's main memory.
#
# **Unfused** (`block_q is None`): three kernels. Scores: read `q` and `k`, write `seq_len x seq_len` scores. Softmax: read the scores, write the weights.
# Product: read the weights and `v`, write `out`. `causal` changes nothing.
#
# **Tiled**: each tile of `block_q` queries is read once, its output written once. For it, every key tile of `block_k` keys and its values
# are read. With `causal`, key tiles that begin after the query tile's last row are not. Last tiles are smaller. Nothing else moves.
#
# Return bytes, exactly.

# %% key="hbm_bytes" tags=["exercise"]
def hbm_bytes(
    seq_len: int,
    head_dim: int,
    bytes_per_element: int,
    block_q: int | None = None,
    block_k: int | None = None,
    causal: bool = False,
) -> int:
    """Bytes that one head of attention moves, unfused or in tiles.

    >>> hbm_bytes(1024, 64, 2), hbm_bytes(1024, 64, 2, 128, 128)
    (8912896, 2359296)
    """
    ### BEGIN SOLUTION
    if block_q is None:
        elements = 4 * seq_len * head_dim + 4 * seq_len**2
        return elements * bytes_per_element
    elements = 2 * seq_len * head_dim
    for first in range(0, seq_len, block_q):
        end = min(first + block_q, seq_len)
        seen = end if causal else seq_len
        keys = min(math.ceil(seen / block_k) * block_k, seq_len)
        elements += 2 * keys * head_dim
    return elements * bytes_per_element
    ### END SOLUTION


# %% key="hbm_bytes-check" tags=["check"]
hbm_bytes = check("04.hbm_bytes", hbm_bytes)

# %% key="formula-beside-count"
rows = []
for causal in (False, True):
    for block in (64, 128):
        counted = off_chip_bytes(
            tiled_attention, q, k, v, causal, block, block
        )
        with meter() as m:
            tiled_attention(q, k, v, causal, block, block)
        formula = hbm_bytes(seq_len, head_dim, 4, block, block, causal)
        unfused = hbm_bytes(seq_len, head_dim, 4)
        rows.append(
            {
                "causal": causal,
                "block": block,
                "nothing kept": show.si(m.bytes, "bytes"),
                "tiles kept": show.si(counted, "bytes"),
                "formula": show.si(formula, "bytes"),
                "unfused formula": show.si(unfused, "bytes"),
                "fewer by": f"{unfused / formula:.1f} x",
            }
        )
show.table(
    rows,
    caption="Bytes of one head, 1,024 x 64, fp32",
    kinds=dict.fromkeys(list(rows[0])[2:], "modelled"),
)

# %% [markdown] key="formula-read"
# Where "tiles kept" and "formula" agree, your code moves what the formula says. If yours is higher, something of full size is touched once
# more than needed: queries scaled again for every key tile, an output that is initialised with zeros, or tiles joined at the end.
#
# A query tile of twice the rows halves the reading of keys and values. The chip's memory is what limits it.

# %% [markdown] key="published-intro"
# ## Beside the published figure
#
# The paper's 40.3 GB is for forward and backward of GPT-2 medium's attention: 16 heads, 1,024 positions, 64 numbers a head, batch 64, fp16. One
# array of scores at that size is over 2 GB, so it says how often the scores were carried. The paper does not list its kernels. Meter three ways to
# write standard attention and see where it lies:
#
# - every step a kernel of its own, with dropout on the weights;
# - the scale moved from the scores to `q`, which is $T/d$ times smaller;
# - and without dropout.
#
# One head is metered, in bf16, which has fp16's size, and multiplied.

# %% key="published"
hidden = torch.ones(seq_len, seq_len, dtype=torch.bool).triu(1)
n_all = 64 * 16
one_pass = n_all * 2 * seq_len**2


def standard_bytes(scale_scores: bool, dropout: bool) -> int:
    """Bytes of standard attention, forward and backward, all heads."""
    q, k, v = torch.randn(
        3, 1, seq_len, head_dim, dtype=torch.bfloat16, requires_grad=True
    )
    root = math.sqrt(head_dim)
    with meter() as m:
        scores = (
            q @ k.transpose(-2, -1) / root
            if scale_scores
            else (q / root) @ k.transpose(-2, -1)
        )
        scores = scores.masked_fill(hidden, float("-inf"))
        weights = F.softmax(scores, dim=-1)
        if dropout:
            weights, _ = torch.native_dropout(weights, 0.1, True)
        (weights @ v).sum().backward()
    return n_all * m.bytes


in_tiles = n_all * hbm_bytes(seq_len, head_dim, 2, 128, 128)
unfused = n_all * hbm_bytes(seq_len, head_dim, 2)
figures = [
    ("every step a kernel", standard_bytes(True, True), "modelled"),
    ("scale on q", standard_bytes(False, True), "modelled"),
    ("scale on q, no dropout", standard_bytes(False, False), "modelled"),
    ("the paper, standard", 40.3e9, "published"),
    ("the paper, FlashAttention", 4.4e9, "published"),
    ("forward only, unfused", unfused, "modelled"),
    ("forward only, tiles of 128", in_tiles, "modelled"),
]
show.bars(
    [name for name, _, _ in figures],
    [value for _, value, _ in figures],
    unit="bytes",
    kind=[kind for _, _, kind in figures],
    title="The paper's standard attention carries its scores"
    f" {40.3e9 / one_pass:.0f} times, ours"
    f" {figures[2][1] / one_pass:.0f} to {figures[0][1] / one_pass:.0f}",
)

# %% [markdown] key="published-read"
# So 40 GB is no secret: it is about twenty walks over an array that nobody wanted.
#
# The last two bars are `hbm_bytes`, and hold no backward pass, so do not compare them with the paper's digit by digit. Compare their ratio. It is
# smaller than the paper's, because a forward pass carries the scores only four times when each kernel does all it can. The rest of the factor 9 comes
# from the backward pass, and from small steps that standard code does one by one.

# %% [markdown] key="time-intro"
# ## And the time?
#
# Your tiled attention is Python that launches small operators. Your machine's caches may keep its tiles, or not. PyTorch's fused
# function is the same algorithm in one compiled kernel. Time them.

# %% key="time"
n = 4096 if device == "cuda" else 2048
timed = [torch.randn(1, 4, n, 64, device=device) for _ in "qkv"]
forms = {
    "plain": lambda: attention(*timed, True),
    "tiles of 32": lambda: tiled_attention(*timed, True, 32, 32),
    "tiles of 256": lambda: tiled_attention(*timed, True, 256, 256),
    "PyTorch, fused": lambda: F.scaled_dot_product_attention(
        *timed, is_causal=True
    ),
}
samples = {name: [] for name in forms}
for _ in range(3):  # in turn, so that a busy moment hits all
    for name, form in forms.items():
        samples[name] += time_samples(form, repeats=1)
medians = {name: sorted(taken)[1] for name, taken in samples.items()}
ratios = {name: took / medians["plain"] for name, took in medians.items()}
show.bars(
    list(medians),
    list(medians.values()),
    unit="s",
    kind="measured",
    spread=[(min(taken), max(taken)) for taken in samples.values()],
    title=f"Causal, {n:,} positions: tiles of 256 take"
    f" {ratios['tiles of 256']:.2f} of plain's time,"
    f" fused {ratios['PyTorch, fused']:.2f}",
)

# %% [markdown] key="time-read"
# The fused kernel is the target. Between "plain" and the tiles, two things pull one way: tiling skips the hidden half, and it keeps its scores in a cache, in
# memory that was used a moment ago. Plain attention asks for fresh memory again and again.
#
# One thing pulls the other way. Every tile launches a dozen operators, and each costs its overhead ([chapter 0](00_your_machine.ipynb)). Tiles of 32
# launch more than 50 times as many operators as tiles of 256, for the same arithmetic. Compare the two bars.
#
# To have the small tiles without the launches you must write one kernel that does the whole loop: chapter 8.

# %% [markdown] key="backward-derive"
# ## Backwards, by hand
#
# Training needs gradients. Call $L$ the loss and write $dX$ for $\partial L / \partial X$, which has the shape of $X$. Given is $dO$. Walk the
# three steps of the forward pass backwards.
#
# **The product** $O = P V$. A weight $P_{ij}$ and a value $V_j$ meet in row $O_i$, so
#
# $$dV = P^\top dO, \qquad dP = dO\, V^\top.$$
#
# **The scores** $S = Q K^\top / \sqrt{d}$, likewise:
#
# $$dQ = \frac{dS\, K}{\sqrt{d}}, \qquad dK = \frac{dS^\top Q}{\sqrt{d}}.$$

# %% [markdown] key="backward-softmax"
# **The softmax** lies between. Raise one score $S_{ij}$ a little: its own weight grows by $P_{ij}$ times that, and every weight $P_{ik}$
# of the row, its own included, loses $P_{ij} P_{ik}$ times that, because the row still sums to one. Collect:
#
# $$dS_{ij} = P_{ij} \Big( dP_{ij} - \sum_k P_{ik}\, dP_{ik} \Big).$$
#
# In words: a score's gradient is its weight times how much better than the row's average its key did. A hidden key has weight 0 and so
# gradient 0: the mask needs no step of its own.

# %% [markdown] key="attention_backward-intro"
# ## Exercise: the backward pass
#
# ●●●● · 12 minutes · 4 points
#
# Given `q`, `k`, `v` as in `attention` (all of one shape) and `d_out`, the gradient of the loss with respect to the output, return
# `(d_q, d_k, d_v)`. Compute the weights again, then the formulas above. Autograd is switched off while the check runs. You may hold
# `seq_len x seq_len` matrices here.

# %% key="attention_backward" tags=["exercise"]
def attention_backward(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    d_out: torch.Tensor,
    causal: bool = True,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Gradients of attention with respect to q, k and v.

    >>> x, one = torch.zeros(1, 1, 2, 1), torch.ones(1, 1, 2, 1)
    >>> d_q, d_k, d_v = attention_backward(x, x, x, one, causal=False)
    >>> d_v.flatten()
    tensor([1., 1.])
    """
    ### BEGIN SOLUTION
    scale = 1 / math.sqrt(q.shape[-1])
    scores = q @ k.transpose(-2, -1) * scale
    if causal:
        n = q.shape[-2]
        future = torch.ones(n, n, dtype=torch.bool, device=q.device).triu(1)
        scores = scores.masked_fill(future, float("-inf"))
    weights = softmax(scores)
    d_v = weights.transpose(-2, -1) @ d_out
    d_weights = d_out @ v.transpose(-2, -1)
    average = (weights * d_weights).sum(-1, keepdim=True)
    d_scores = weights * (d_weights - average)
    d_q = d_scores @ k * scale
    d_k = d_scores.transpose(-2, -1) @ q * scale
    return d_q, d_k, d_v
    ### END SOLUTION


# %% key="attention_backward-check" tags=["check"]
attention_backward = check("04.attention_backward", attention_backward)

# %% [markdown] key="against-autograd-intro"
# The judge is autograd through **your** forward pass, in float64, where rounding cannot hide a mistake.

# %% key="against-autograd"
q, k, v, d_out = torch.randn(4, 2, 3, 20, 8, dtype=torch.float64)
leaves = [x.clone().requires_grad_() for x in (q, k, v)]
try:
    wanted = torch.autograd.grad(attention(*leaves), leaves, d_out)
except RuntimeError:  # an attention that works in place
    same = F.scaled_dot_product_attention(*leaves, is_causal=True)
    wanted = torch.autograd.grad(same, leaves, d_out)
by_hand = attention_backward(q, k, v, d_out)
for name, ours, theirs in zip("qkv", by_hand, wanted, strict=True):
    gap = float((ours - theirs).norm() / theirs.norm())
    show.number(gap, f"relative difference of d_{name}", "measured")

# %% [markdown] key="recompute"
# ## The backward pass without the matrix
#
# The formulas use $P$, all of it. Keeping it for the backward pass is the memory you just saved. But a tile of $P$ can be made again from $q$, $k$ and one
# number a row, $\lambda_i = m_i + \ln \ell_i$:
#
# $$P_{ij} = e^{S_{ij} - \lambda_i}.$$
#
# And the row's average needs no row of $P$ either:
#
# $$\sum_k P_{ik}\, dP_{ik} = \sum_k P_{ik}\, (dO_i \cdot V_k) = dO_i \cdot O_i.$$
#
# So keep $O$ and $\lambda$, and compute scores twice. The forward pass has two products for each tile. How many FLOPs does this backward pass
# spend for one of the forward's?

# %% key="predict-backward"
predict("04.backward", "Backward FLOPs over forward FLOPs?", unit="times")

# %% key="tiled-backward"
def tiled_backward(q, k, v, out, log_total, d_out, block: int) -> tuple:
    """Gradients tile by tile, without mask; every tensor (seq_len, ...)."""
    scale = 1 / math.sqrt(q.shape[1])
    d_q, d_k, d_v = (torch.zeros_like(x) for x in (q, k, v))
    average = (out * d_out).sum(-1, keepdim=True)
    tiles = range(0, len(q), block)
    for a in (slice(i, i + block) for i in tiles):
        for b in (slice(j, j + block) for j in tiles):
            weights = (q[a] @ k[b].T * scale - log_total[a]).exp()
            d_weights = d_out[a] @ v[b].T
            d_scores = weights * (d_weights - average[a]) * scale
            d_v[b] += weights.T @ d_out[a]
            d_q[a] += d_scores @ k[b]
            d_k[b] += d_scores.T @ q[a]
    return d_q, d_k, d_v


q, k, v, d_out = torch.randn(4, 512, 64)
log_total = (q @ k.T / 8).logsumexp(-1, keepdim=True)
with meter() as forward:
    out = tiled_attention(*(x[None, None] for x in (q, k, v)), False)[0, 0]
with meter() as backward:
    in_tiles = tiled_backward(q, k, v, out, log_total, d_out, 64)
four = (x[None, None] for x in (q, k, v, d_out))
with meter() as whole:
    at_once = attention_backward(*four, False)
ratio = backward.flops / forward.flops
against_prediction("04.backward", ratio, "times", kind="modelled")
gap = max(
    float((a - b[0, 0]).norm() / b.norm())
    for a, b in zip(in_tiles, at_once, strict=True)
)
show.number(gap, "relative difference to your backward", "measured")
ends = whole.peak_bytes / backward.peak_bytes
show.number(ends, "times less held at once", "measured")

# %% [markdown] key="recompute-why"
# Five products against two: the scores again, and four gradients. It is more arithmetic than keeping $P$, which needs four, and still faster,
# because the arithmetic units were waiting anyway. Forward and backward together are seven products instead of six, 17% more. The paper reports 13% more
# FLOPs for its run; it does not say what it counted.
#
# Remember the rule, it comes back in every part of this course: **when bytes are the limit, compute again what you would have to fetch.**

# %% [markdown] key="at-scale"
# ## At scale
#
# **Length.** What the score matrix of one layer would take, in bf16, for one sequence and the 32 heads of Llama 3.1 8B, beside the most an H100
# holds:

# %% key="at-scale-length"
llama, h100 = model("Llama 3.1 8B"), accelerator("H100 SXM")
rows = []
for n in (2_048, 8_192, 32_768, 131_072, 1_048_576):
    matrix = 2 * llama.n_head * n**2
    filled = matrix / h100.memory_bytes
    carried = 2 * 2 * n * llama.n_head * llama.head_dim
    rows.append(
        {
            "positions": f"{n:,}",
            "scores of a layer": show.si(matrix, "bytes"),
            "H100s filled": f"{filled:.3f}" if filled < 1 else round(filled),
            "q and output": show.si(carried, "bytes"),
        }
    )
show.table(
    rows,
    caption="One sequence, Llama 3.1 8B, bf16",
    kinds=dict.fromkeys(list(rows[0])[1:], "modelled"),
)

# %% [markdown] key="at-scale-intensity"
# **Is it then limited by arithmetic?** Divide: without a mask, the two products do $4T^2d$ FLOPs, and each query tile reads all keys and
# values. The intensity of a long sequence is about as many FLOP per byte as a query tile has rows (in bf16).

# %% key="at-scale-intensity-table"
n, d = 8_192, 128
ridge = h100.ridge_point("bf16")
rows = []
for block in (16, 64, 128, 256):
    moved = hbm_bytes(n, d, 2, block, block)
    rows.append(
        {
            "query tile": block,
            "FLOP per byte": round(4 * n * n * d / moved, 1),
            "share of the ridge": f"{4 * n * n * d / moved / ridge:.0%}",
        }
    )
show.table(
    rows,
    caption=f"H100, bf16: ridge at {ridge:.0f} FLOP per byte",
    kinds=dict.fromkeys(list(rows[0])[1:], "modelled"),
)
show.number(4 * n * d, "bytes, keys and values of one head", "modelled")

# %% [markdown] key="at-scale-misleads"
# By this table a tile of 128 could not reach half of an H100. FlashAttention-3 reaches 740 TFLOP/s (published, arXiv v1). The formula counts every
# reading of the keys as one from HBM. But keys and values of one head are only a few megabytes, many query tiles of that head run at once, and
# the L2 cache serves all of them but the first.
#
# A count of bytes is a bound only for the memory level that it was counted for. What then limits the fast kernels? All that is not a product: there is an exponential
# for every score, and it does not run on the matrix units.

# %% key="at-scale-exp"
a100 = accelerator("A100 80GB SXM")
share = 740e12 / h100.peak("bf16")
show.number(100 * share, "% of the peak, FlashAttention-3", "published")
vector = a100.peak("bf16") / a100.peak("fp32")
show.number(vector, "times: A100's matrix units over the rest", "published")

# %% [markdown] key="at-scale-gpus"
# **8 GPUs.** Heads are independent, so each GPU takes some of them. Inside attention no message is needed, only at `w_out`. More GPUs than key heads
# is where that ends.
#
# **1,000 and more.** When one sequence no longer fits a GPU, split it. Each GPU keeps its queries, and tiles of keys and values travel around a ring. Since partial results
# can be corrected with one factor, it does not matter where or when a tile is met: the online softmax is also the algorithm of many machines.

# %% [markdown] key="at-scale-short"
# **What misleads.** At short sequences attention is a small share of the FLOPs ([chapter 1](01_flops.ipynb)); making it ten times faster then changes little. And while
# decoding one token there is one query: no tile to reuse, and the cache is read once, whatever the kernel.

# %% [markdown] key="remember"
# ## What to remember
#
# - Scale by $\sqrt{d}$, mask with $-\infty$ before the softmax, softmax over the keys.
# - Plain attention is limited by carrying $T \times T$ scores through memory, not by its two products.
# - A sum of exponentials is corrected by one factor when the maximum rises. So softmax, and attention, can be computed piece by piece.
# - Tiles alone save memory, not traffic. Traffic is saved when a tile stays on the chip, which needs one kernel.
# - Backward in tiles recomputes the scores: 2.5 times the forward FLOPs, and no matrix kept.

# %% [markdown] key="sources"
# ## Sources
#
# - A. Vaswani and others, "Attention is all you need", 2017, arXiv 1706.03762.
# - M. Milakov, N. Gimelshein, "Online normalizer calculation for softmax", 2018, arXiv 1805.02867.
# - M. Rabe, C. Staats, "Self-attention does not need O(n²) memory", 2021, arXiv 2112.05682.
# - T. Dao and others, "FlashAttention: fast and memory-efficient exact attention with IO-awareness", 2022, arXiv 2205.14135.
# - T. Dao, "FlashAttention-2: faster attention with better parallelism and work partitioning", 2023, arXiv 2307.08691.

# %% [markdown] key="sources-more"
# - J. Shah and others, "FlashAttention-3: fast and accurate attention with asynchrony and low-precision", 2024, arXiv 2407.08608.
# - N. Shazeer, "Fast transformer decoding: one write-head is all you need", 2019, arXiv 1911.02150.
# - J. Ainslie and others, "GQA: training generalized multi-query transformer models from multi-head checkpoints", 2023, arXiv 2305.13245.
# - J. Su and others, "RoFormer: enhanced transformer with rotary position embedding", 2021, arXiv 2104.09864.
# - H. Liu, M. Zaharia, P. Abbeel, "Ring attention with blockwise transformers for near-infinite context", 2023, arXiv 2310.01889.
