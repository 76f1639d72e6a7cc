# ---
# jupyter:
#   course:
#     title: "1. How much work is a transformer?"
#     minutes: 90
#     hardware: "no GPU; with one, the same cells measure it"
#     needs: "chapter 0's profile of your machine"
#     leaves_with: "parameters and FLOPs of any transformer from its shapes, and the days its training takes on any card"
# ---

# %% [markdown] key="title"
# # 1. How much work is a transformer?
#
# Before anyone rents a GPU, somebody writes down one number: how much arithmetic the run needs. It
# takes no GPU to find it. It follows from the shapes of the model's matrices, with a pencil.
#
# You will count GPT-2, Llama and a mixture of experts, to the last parameter and the last
# operation. PyTorch will check you, and once you will catch PyTorch. Then you turn 1.5 billion
# parameters and 100 billion tokens into days.

# %% key="setup" tags=["setup"]
import statistics

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.flop_counter import FlopCounterMode

from utils import arithmetic, show
from utils.course import against_prediction, check, hint, predict, quiz
from utils.course import progress, reveal, start
from utils.hardware import accelerator, time_samples

machine = start("01")

# %% [markdown] key="recall-intro"
# Three questions on chapter 0 first.

# %% key="recall"
quiz("01.recall")

# %% [markdown] key="first-guess"
# ## What a transformer stores
#
# The smallest GPT-2 has 12 blocks, and a table with one row for each of the 50,257 tokens that it
# knows. A **token** is a piece of text, often a word or a part of one. A row is 768 numbers wide.
#
# All blocks together, or that table: which holds more? Commit to a number before you count.

# %% key="predict-embedding"
predict(
    "01.embedding",
    "What share of GPT-2's parameters is its token table? 0 to 1, or 10%.",
)

# %% [markdown] key="shapes"
# A **parameter** is a number that training changes. Parameters sit in matrices, so counting them is
# multiplying shapes. Write $L$ for `n_layer`, the number of blocks; $d$ for `d_model`, the width of
# the vector that stands for a token; $V$ for `vocab_size`; $T$ for `seq_len`, the longest text the
# model can take, in tokens.
#
# | part of GPT-2 | shape | bias | how often |
# |---|---|---|---|
# | token embedding | $V \times d$ | | once |
# | position embedding | $T \times d$ | | once |
# | query, key, value | $d \times 3d$ | $3d$ | each block |
# | attention's output | $d \times d$ | $d$ | each block |
# | feed-forward, up | $d \times 4d$ | $4d$ | each block |
# | feed-forward, down | $4d \times d$ | $d$ | each block |
# | LayerNorm | $d$ | $d$ | 2 a block, 1 at the end |
# | output head | $d \times V$ | | stored nowhere |

# %% [markdown] key="tied"
# The last row is no misprint. The head turns a vector back into one score for each token, with a
# matrix of the same shape as the token embedding. GPT-2 uses the same numbers for both. The head is
# **tied**, and stores nothing of its own.
#
# Chapters 4 and 5 build every part. Here only the shapes matter. The number of heads is not in the table.
# Heads cut the width $d$ into pieces; they add no number.

# %% [markdown] key="count_parameters-intro"
# ### Exercise: every parameter of GPT-2
#
# ●●○○ · 12 minutes · 3 points
#
# The GPT-2 report printed 117 million for its smallest model. Check it. Return the number of
# parameters as a whole number, from the table above: all matrices, all biases, all norms, the head
# tied.
#
# With `n_layer` 1, `d_model` 3, `vocab_size` 10 and `seq_len` 2 the model has 189 parameters.


# %% key="count_parameters" tags=["exercise"]
def count_parameters(
    n_layer: int, d_model: int, vocab_size: int, seq_len: int
) -> int:
    """Every stored parameter of a GPT-2: biases, norms, tied head.

    >>> count_parameters(n_layer=1, d_model=3, vocab_size=10, seq_len=2)
    189
    """
    ### BEGIN SOLUTION
    matrices = d_model * (3 + 1 + 4 + 4) * d_model
    biases = (3 + 1 + 4 + 1) * d_model
    norm = 2 * d_model
    block = matrices + biases + 2 * norm
    return (vocab_size + seq_len) * d_model + n_layer * block + norm
    ### END SOLUTION


# %% key="count_parameters-check" tags=["check"]
count_parameters = check("01.count_parameters", count_parameters)

# %% [markdown] key="meta-intro"
# Now let PyTorch count. Here is GPT-2 as a PyTorch module. It is built on the `meta` device, where
# a tensor has a shape and no numbers: the largest GPT-2 takes no memory at all.

# %% key="gpt"
class Block(nn.Module):
    def __init__(self, d: int, n_head: int):
        super().__init__()
        self.n_head = n_head
        self.norm1, self.norm2 = nn.LayerNorm(d), nn.LayerNorm(d)
        self.qkv, self.out = nn.Linear(d, 3 * d), nn.Linear(d, d)
        self.up, self.down = nn.Linear(d, 4 * d), nn.Linear(4 * d, d)

    def forward(self, x):
        heads = self.qkv(self.norm1(x)).unflatten(-1, (3, self.n_head, -1))
        q, k, v = heads.permute(2, 0, 3, 1, 4)  # batch, head, token, width
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(y.transpose(1, 2).flatten(2))
        return x + self.down(F.gelu(self.up(self.norm2(x))))


class GPT(nn.Module):
    def __init__(self, n_layer, d_model, n_head, vocab_size, seq_len):
        super().__init__()
        d = d_model
        self.tokens = nn.Embedding(vocab_size, d)
        self.positions = nn.Embedding(seq_len, d)
        blocks = [Block(d, n_head) for _ in range(n_layer)]
        self.blocks = nn.Sequential(*blocks)
        self.norm = nn.LayerNorm(d)
        self.head = nn.Linear(d, vocab_size, bias=False)
        self.head.weight = self.tokens.weight  # tied
        nn.init.normal_(self.tokens.weight, std=0.02)  # as GPT-2 starts

    def forward(self, ids):
        x = self.tokens(ids) + self.positions.weight[: ids.shape[1]]
        return self.head(self.norm(self.blocks(x)))


def parameters_of(module: nn.Module) -> int:
    return sum(p.numel() for p in module.parameters())


# %% key="gpt-sizes"
GPT2 = {  # n_layer, d_model, n_head, and what the report's table 2 printed
    "GPT-2 small": (12, 768, 12, "117M"),
    "GPT-2 medium": (24, 1024, 16, "345M"),
    "GPT-2 large": (36, 1280, 20, "762M"),
    "GPT-2 XL": (48, 1600, 25, "1542M"),
}
rows = []
for name, (n_layer, d_model, n_head, printed) in GPT2.items():
    with torch.device("meta"):
        gpt = GPT(n_layer, d_model, n_head, 50257, 1024)
    yours = count_parameters(n_layer, d_model, 50257, 1024)
    rows.append(
        {
            "model": name,
            "in the report": printed,
            "your count": yours,
            "PyTorch's count": parameters_of(gpt),
        }
    )
show.table(
    rows,
    caption="Parameters of the four GPT-2 models",
    kinds={
        "in the report": "published",
        "your count": "modelled",
        "PyTorch's count": "measured",
    },
)

# %% [markdown] key="report-wrong"
# The report's counts were wrong. Its authors said so later, in the README of the released code, and
# since then the small model is called 124M. Counting takes a minute. Trusting a name can cost you a
# card that is too small.
#
# Now your prediction. Where do the parameters sit?

# %% key="where"
sizes = {}
for name in ("GPT-2 124M", "GPT-2 XL 1.5B"):
    table = arithmetic.parameter_table(arithmetic.model(name))
    table = {part: n for part, n in table.items() if n}
    sizes[name] = {part: n / sum(table.values()) for part, n in table.items()}
small = sizes["GPT-2 124M"]
against_prediction("01.embedding", small["token embedding"], kind="modelled")
show.table(
    [
        {"part": part} | {name: f"{sizes[name][part]:.2%}" for name in sizes}
        for part in small
    ],
    caption="Where they are: the token table fades as the model grows",
    kinds=dict.fromkeys(sizes, "modelled"),
)

# %% [markdown] key="twelve"
# The token table grows with $d$, the blocks with $L \cdot d^2$. So the table is a large part of a
# small model and almost nothing of a large one.
#
# The blocks' matrices hold $12\,d^2$ numbers each: $3 + 1$ from attention, $4 + 4$ from the
# feed-forward. That gives the estimate to know by heart:
#
# $$N \approx 12\,L\,d^2 .$$
#
# Two numbers from a model's card, and you know its size. Biases and norms never matter. In small
# models the table does.

# %% [markdown] key="llama"
# ## Llama: the same, with four changes
#
# Most models since 2023 look like Llama. Four things change the count.
#
# - **Grouped heads.** `n_head` query heads share `n_kv_head` key and value heads. All heads have
#   the same width `head_dim`, which is `d_model // n_head`. So keys and values are narrower than
#   queries.
# - **A gated feed-forward.** Two matrices $d \times d_{ff}$, called gate and up, and one $d_{ff}
#   \times d$, called down. $d_{ff}$, in code `d_ff`, is chosen freely.
# - **RMSNorm** stores a weight of $d$ numbers, and nothing has a bias.
# - **Positions** are computed, not stored. The head is usually a matrix of its own.

# %% [markdown] key="count_llama_parameters-intro"
# ### Exercise: every parameter of a Llama
#
# ●●○○ · 8 minutes · 2 points
#
# Return the number of parameters as a whole number. A block has four attention matrices (query,
# key, value, output), three feed-forward matrices and two norms. Outside the blocks are the token
# embedding, one last norm and, unless `tied`, the head. The output projection takes all query heads
# side by side and returns $d$ numbers.
#
# With `n_layer` 1, `d_model` 2, `n_head` 2, `n_kv_head` 1, `d_ff` 3, `vocab_size` 5 and a tied head
# that is 46.


# %% key="count_llama_parameters" tags=["exercise"]
def count_llama_parameters(
    n_layer: int,
    d_model: int,
    n_head: int,
    n_kv_head: int,
    d_ff: int,
    vocab_size: int,
    tied: bool,
) -> int:
    """Every stored parameter: grouped heads, gated, RMSNorm, no biases.

    >>> count_llama_parameters(1, 2, 2, 1, 3, 5, tied=True)
    46
    """
    ### BEGIN SOLUTION
    head_dim = d_model // n_head
    query_and_output = 2 * d_model * n_head * head_dim
    key_and_value = 2 * d_model * n_kv_head * head_dim
    feed_forward = 3 * d_model * d_ff
    block = query_and_output + key_and_value + feed_forward + 2 * d_model
    tables = 1 if tied else 2
    return n_layer * block + tables * vocab_size * d_model + d_model
    ### END SOLUTION


# %% key="count_llama_parameters-check" tags=["check"]
count_llama_parameters = check(
    "01.count_llama_parameters", count_llama_parameters
)

# %% key="llama-sizes"
RELEASED = {  # parameters in the released weight files
    "Llama 2 7B": 6_738_415_616,
    "Llama 3.1 8B": 8_030_261_248,
    "Llama 3.1 70B": 70_553_706_496,
    "Llama 3.1 405B": 405_853_388_800,
    "Llama 3.2 1B": 1_235_814_400,
}
rows = []
for name, released in RELEASED.items():
    s = arithmetic.model(name)
    shape = (s.n_layer, s.d_model, s.n_head, s.n_kv_head, s.d_ff, s.vocab_size)
    yours = count_llama_parameters(*shape, s.tied)
    rows.append(
        {
            "model": name,
            "released": released,
            "your count": yours,
            "equal": yours == released,
        }
    )
show.table(
    rows,
    caption="One function, five released models",
    kinds={"released": "published", "your count": "modelled"},
)

# %% [markdown] key="mixture"
# ## A mixture of experts: stored is not used
#
# A **mixture of experts** keeps `n_expert` feed-forwards in each block where a dense model has one.
# A **router**, a matrix of $d$ by `n_expert` without bias, scores all experts for each token. The
# best `n_expert_active` of them run. The others wait.
#
# So one number is no longer enough. **Total** parameters must be stored. **Active** parameters are
# those one token uses. Memory pays for the first, arithmetic for the second.
#
# We count as the Mixtral paper does: both embedding and head belong to the active parameters.

# %% [markdown] key="active_parameters-intro"
# ### Exercise: what one token uses
#
# ●●○○ · 8 minutes · 2 points
#
# The model is a Llama as above with an untied head, whose feed-forwards are `n_expert` experts and
# a router in each block. Each expert is gated, with hidden width `d_ff`. Return the active
# parameters as a whole number. Every token uses the whole router.
#
# With `n_layer` 1, `d_model` 4, `n_head` 2, `n_kv_head` 1, `d_ff` 3, `vocab_size` 7, two experts
# and one of them active that is 160.


# %% key="active_parameters" tags=["exercise"]
def active_parameters(
    n_layer: int,
    d_model: int,
    n_head: int,
    n_kv_head: int,
    d_ff: int,
    vocab_size: int,
    n_expert: int,
    n_expert_active: int,
) -> int:
    """Parameters of a mixture of experts that one token uses.

    >>> active_parameters(1, 4, 2, 1, 3, 7, n_expert=2, n_expert_active=1)
    160
    """
    ### BEGIN SOLUTION
    # The active experts side by side are one dense feed-forward.
    width = n_expert_active * d_ff
    dense = count_llama_parameters(
        n_layer, d_model, n_head, n_kv_head, width, vocab_size, tied=False
    )
    return dense + n_layer * d_model * n_expert
    ### END SOLUTION


# %% key="active_parameters-check" tags=["check"]
active_parameters = check("01.active_parameters", active_parameters)

# %% key="mixtral"
s = arithmetic.model("Mixtral 8x7B")
shape = (s.n_layer, s.d_model, s.n_head, s.n_kv_head, s.d_ff, s.vocab_size)
rows = [
    {"experts that run": k, "parameters": active_parameters(*shape, 8, k)}
    for k in (1, 2, 8)
]
show.table(
    rows,
    caption="Mixtral 8x7B: two of eight experts run, all eight are stored",
    kinds={"parameters": "modelled"},
)

# %% [markdown] key="not-56"
# The paper says 47B and 13B, and so do you. The name says 8 times 7B, which would be 56B:
# attention, embeddings and norms exist once, only the feed-forwards come eight times.
#
# Keep both numbers. The next sections need the active one, chapter 2 the total.

# %% [markdown] key="flop"
# ## What a product costs
#
# A **FLOP** is one addition or one multiplication of two numbers with a decimal point. FLOPs are an
# amount of work, FLOP/s is a rate. Some papers write FLOPS for both, so look for the "per second"
# in the sentence.
#
# Almost all work of a transformer is in matrix products. Count one in slow motion.

# %% key="loops"
def product(a: list[list[float]], b: list[list[float]]):
    """a (m, k) times b (k, n), and the FLOPs that it took."""
    flops, out = 0, []
    for row in a:
        out.append([])
        for column in zip(*b, strict=True):
            total = 0.0
            for x, y in zip(row, column, strict=True):
                total += x * y
                flops += 2  # one multiplication, one addition
            out[-1].append(total)
    return out, flops


m, k, n = 3, 4, 5
_, flops = product(torch.rand(m, k).tolist(), torch.rand(k, n).tolist())
show.number(flops, f"FLOP for ({m}, {k}) @ ({k}, {n})", "measured")

# %% [markdown] key="two-n"
# Three nested loops, two FLOPs inside: a product of $m \times k$ by $k \times n$ costs
# $2\,m\,k\,n$.
#
# Now let one token pass a matrix: $m = 1$. That is $2\,k\,n$, and the matrix has $k\,n$ weights. So
# **each weight costs each token two FLOPs**, whatever its shape. A model of $N$ parameters costs
# about $2N$ FLOPs a token. This is the most useful sentence of the chapter.

# %% [markdown] key="not-matmul"
# To make it exact, ask of each part whether it multiplies.
#
# - The **token embedding** does not: a row is copied. Positions are added. Neither counts.
# - The **head** does, tied or not: each token meets $V \cdot d$ weights.
# - **Biases, norms, softmax, GELU** do a few FLOPs for each number, where a product does thousands.
#   By convention they are left out. They still take time, and chapter 3 shows why.
# - **Attention proper** multiplies without any weight. In each block, each token's query meets the
#   keys of all $T$ tokens: $2\,T\,d$ FLOPs over all heads. Then $T$ probabilities weigh the values:
#   $2\,T\,d$ again.

# %% [markdown] key="forward_flops-intro"
# ### Exercise: one forward pass
#
# ●●○○ · 10 minutes · 3 points
#
# Return the FLOPs of a forward pass of GPT-2 over `batch` sequences of `seq_len` tokens, as a
# number. Count matrix products only, the head for every token, and attention over all `seq_len *
# seq_len` pairs of each sequence, as PaLM and nanoGPT count it. That is what plain products compute
# before a mask hides half of the result.
#
# With `n_layer` 2, `d_model` 6, `vocab_size` 11, `seq_len` 5 and `batch` 3 that is 31,500.


# %% key="forward_flops" tags=["exercise"]
def forward_flops(
    n_layer: int, d_model: int, vocab_size: int, seq_len: int, batch: int
) -> int:
    """FLOPs of the matrix products in one forward pass of a GPT-2.

    >>> forward_flops(2, 6, vocab_size=11, seq_len=5, batch=3)
    31500
    """
    ### BEGIN SOLUTION
    weights = n_layer * 12 * d_model**2 + vocab_size * d_model
    attention = n_layer * 2 * (2 * seq_len**2 * d_model)
    return batch * (2 * weights * seq_len + attention)
    ### END SOLUTION


# %% key="forward_flops-check" tags=["check"]
forward_flops = check("01.forward_flops", forward_flops)

# %% [markdown] key="counter-intro"
# PyTorch has a counter of its own. `FlopCounterMode` watches every operator that runs and adds up
# $2\,m\,k\,n$ for each product. It works on the `meta` device as well, so nothing is computed and
# no weight exists.
#
# The next cell writes a Llama with experts, for the models that your function does not cover.
# Rotary positions are left out: they turn pairs of numbers and hold no product of matrices.

# %% key="llama-module"
class Expert(nn.Module):
    def __init__(self, d: int, d_ff: int):
        super().__init__()
        self.gate = nn.Linear(d, d_ff, bias=False)
        self.up = nn.Linear(d, d_ff, bias=False)
        self.down = nn.Linear(d_ff, d, bias=False)

    def forward(self, x):
        return self.down(F.silu(self.gate(x)) * self.up(x))


class LlamaBlock(nn.Module):
    def __init__(self, s: arithmetic.ModelShape):
        super().__init__()
        self.s = s
        d, kv = s.d_model, s.n_kv_head * s.head_dim
        self.norm1, self.norm2 = nn.RMSNorm(d), nn.RMSNorm(d)
        self.q, self.out = (nn.Linear(d, d, bias=False) for _ in range(2))
        self.k, self.v = (nn.Linear(d, kv, bias=False) for _ in range(2))
        self.experts = nn.ModuleList(
            Expert(d, s.d_ff) for _ in range(s.n_expert)
        )
        if s.n_expert > 1:
            self.router = nn.Linear(d, s.n_expert, bias=False)

    def forward(self, x):
        y = self.norm1(x)
        q, k, v = (
            part(y).unflatten(-1, (-1, self.s.head_dim)).transpose(1, 2)
            for part in (self.q, self.k, self.v)
        )
        group = self.s.n_head // self.s.n_kv_head
        k, v = (z.repeat_interleave(group, dim=1) for z in (k, v))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(y.transpose(1, 2).flatten(2))
        y = self.norm2(x)
        if self.s.n_expert > 1:
            self.router(y)
        # Which experts run changes no count, so let it be the first ones.
        for expert in self.experts[: self.s.n_expert_active]:
            x = x + expert(y)
        return x


class Llama(nn.Module):
    def __init__(self, s: arithmetic.ModelShape):
        super().__init__()
        self.tokens = nn.Embedding(s.vocab_size, s.d_model)
        self.blocks = nn.Sequential(*[LlamaBlock(s) for _ in range(s.n_layer)])
        self.norm = nn.RMSNorm(s.d_model)
        self.head = nn.Linear(s.d_model, s.vocab_size, bias=False)

    def forward(self, ids):
        return self.head(self.norm(self.blocks(self.tokens(ids))))


# %% key="counter"
def count(module: nn.Module, ids, train: bool = False) -> int:
    """FLOPs that PyTorch counts in one pass."""
    with FlopCounterMode(display=False) as counter:
        out = module(ids)
        if train:
            out.sum().backward()
    return counter.get_total_flops()


rows = []
for name in ("GPT-2 124M", "GPT-2 XL 1.5B", "Llama 3.1 8B", "Mixtral 8x7B"):
    s, seq_len = arithmetic.model(name), 1024
    with torch.device("meta"):
        ids = torch.zeros(1, seq_len, dtype=torch.long)
        if name.startswith("GPT-2"):
            gpt = GPT(s.n_layer, s.d_model, s.n_head, s.vocab_size, seq_len)
            shape = (s.n_layer, s.d_model, s.vocab_size)
            yours = forward_flops(*shape, seq_len, batch=1)
        else:
            gpt = Llama(s)
            yours = arithmetic.forward_flops(s, seq_len=seq_len)
    active = arithmetic.active_parameters(s)
    rows.append(
        {
            "model": name,
            "parameters": parameters_of(gpt),
            "from shapes": yours,
            "PyTorch counts": count(gpt, ids),
            "2N a token, N active": 2 * active * seq_len,
        }
    )
show.table(
    rows,
    caption="FLOPs of one forward pass over 1,024 tokens",
    kinds={
        "from shapes": "modelled",
        "PyTorch counts": "measured",
        "2N a token, N active": "modelled",
    },
)
if any(row["from shapes"] != row["PyTorch counts"] for row in rows):
    print("They differ: this PyTorch counts an operator in another way.")

# %% [markdown] key="counter-equal"
# Both GPT-2 rows are your function. The other two come from `utils.arithmetic`, which does the same
# with more cases. Shapes and counter agree to the last digit, and $2N$ is close. How close, and
# when not, is what the rest of the chapter is about.
#
# Now the same counter on numbers that exist, on your machine. The model is tiny.

# %% key="counter-here"
tiny = {"n_layer": 2, "d_model": 64, "vocab_size": 1000, "seq_len": 128}
expected = forward_flops(**tiny, batch=1)
rows = []
for device in ("meta", machine.device):
    with torch.device(device):
        gpt = GPT(n_head=4, **tiny)
        ids = torch.zeros(1, 128, dtype=torch.long)
    forward, both = count(gpt, ids), count(gpt, ids, train=True)
    rows.append(
        {
            "device": device,
            "forward": forward,
            "over yours": forward / expected,
            "forward and backward": both,
            "over 3 times yours": both / (3 * expected),
        }
    )
missing = expected - rows[1]["forward"]
show.table(
    rows,
    caption=f"FLOPs that PyTorch counts; your forward pass: {expected:,}",
    kinds={"forward": "measured", "forward and backward": "measured"},
)
attention = 2 * 4 * 128**2 * 64
print(f"Missing in the forward pass on {machine.device}: {missing:,} FLOPs.")
print(f"Attention proper, 2 blocks of 4·T²·d: {attention:,} FLOPs.")

# %% [markdown] key="counter-trap"
# A counter counts the operators it knows. Where attention runs as one fused operator that is not on
# its list, attention costs nothing. In PyTorch 2.13 that is so on a CPU: what is missing is exactly
# attention. On an NVIDIA GPU the fused operator is on the list, and its backward pass counts five
# products, not four: the kernel computes the scores a second time.
#
# So a counter answers another question than you do. You count what the **model** needs, the counter
# what it saw the **hardware** do. When they differ, ask which operator explains it.

# %% [markdown] key="backward"
# ## Training: why three times
#
# A layer computes $Y = X W$, with tokens as the rows of $X$. The backward pass arrives with $G$,
# the gradient of the loss by $Y$. It needs two results:
#
# $$\frac{\partial\,\text{loss}}{\partial W} = X^\top G, \qquad \frac{\partial\,\text{loss}}{\partial X} = G\,W^\top .$$
#
# The first updates the weights. The second is handed to the layer below. Each is a product of the
# same three sizes as $X W$. So backward costs two forwards, and training costs three: $6$ FLOPs a
# weight and token.

# %% key="backward-counted"
layer = nn.Linear(64, 256, bias=False)
rows = []
for what, needs_gradient in (("inside a model", True), ("first layer", False)):
    x = torch.randn(32, 64, requires_grad=needs_gradient)
    both, forward = count(layer, x, train=True), count(layer, x)
    rows.append(
        {"layer": what, "forward": forward, "backward": both - forward}
        | {"backward / forward": (both - forward) / forward}
    )
show.table(
    rows,
    caption="FLOPs of one linear layer, 32 tokens",
    kinds=dict.fromkeys(
        ("forward", "backward", "backward / forward"), "measured"
    ),
)

# %% [markdown] key="first-layer"
# The second row is the exception that proves the reason. Raw data needs no gradient, so a layer
# that reads it skips one of the two products. In a transformer the layer below the blocks is an
# embedding, which needs its gradient. No block is exempt, and three times is exact.
#
# Freeze the weights and you save the other product. That is why training small adapters on a frozen
# model costs about $4N$ a token: less than $6N$, but no less, because the gradient must still
# travel through every layer.

# %% [markdown] key="training_flops-intro"
# ### Exercise: a whole training run
#
# ●●○○ · 8 minutes · 2 points
#
# Return the FLOPs of training GPT-2 on `n_tokens` tokens in all, cut into sequences of `seq_len`.
# Count as before: matrix products, head, attention over all pairs, forward and backward. `n_tokens`
# need not fill its last sequence: count each token with its even share of a full sequence.
#
# With `n_layer` 3, `d_model` 4, `vocab_size` 11, `seq_len` 5 and 7 tokens that is 31,080.


# %% key="training_flops" tags=["exercise"]
def training_flops(
    n_layer: int, d_model: int, vocab_size: int, seq_len: int, n_tokens: int
) -> int:
    """FLOPs of forward and backward over n_tokens tokens.

    >>> training_flops(3, 4, vocab_size=11, seq_len=5, n_tokens=7)
    31080
    """
    ### BEGIN SOLUTION
    one_sequence = forward_flops(n_layer, d_model, vocab_size, seq_len, 1)
    return 3 * one_sequence * n_tokens // seq_len
    ### END SOLUTION


# %% key="training_flops-check" tags=["check"]
training_flops = check("01.training_flops", training_flops)

# %% key="nine-e20"
with torch.device("meta"):
    gpt = GPT(12, 768, 12, 50257, 1024)
    ids = torch.zeros(1, 1024, dtype=torch.long)
step = count(gpt, ids, train=True)
xl = training_flops(48, 1600, 50257, 1024, 10**11)
rule = arithmetic.flops_6nd(1.5e9, 100e9)
show.table(
    [
        {
            "what": "GPT-2 124M, one sequence, PyTorch counts",
            "FLOP": step,
            "kind": "measured",
        },
        {
            "what": "the same, your function",
            "FLOP": training_flops(12, 768, 50257, 1024, 1024),
            "kind": "modelled",
        },
        {"what": "6ND, 1.5B on 100B tokens", "FLOP": rule, "kind": "modelled"},
        {
            "what": "GPT-2 XL on 100B tokens, your function",
            "FLOP": float(xl),
            "kind": "modelled",
        },
    ],
    caption=f"The rule is {1 - rule / xl:.0%} below the count for GPT-2 XL",
)

# %% [markdown] key="six-nd"
# With $N$ parameters and $D$ tokens the rule is
#
# $$C \approx 6\,N\,D .$$
#
# 1.5 billion parameters on 100 billion tokens: $9 \times 10^{20}$ FLOPs. Remember this number. The
# course trains this model on paper from here to its last chapter.
#
# The count for GPT-2 XL is a little higher, because it has 1.56 billion parameters, and because of
# attention. When does attention matter?

# %% [markdown] key="attention-when"
# ## When attention matters
#
# The weights cost a token the same whatever the text. Attention costs it $4\,T$ FLOPs for each
# channel of each block: the longer the context, the more. Somewhere the two are equal.
#
# Llama 3.1 8B has 32 blocks, each 4,096 channels wide, and was released for 131,072 tokens.

# %% key="predict-crossing"
predict(
    "01.crossing",
    "At how many tokens of context does attention cost Llama 3.1 8B as much "
    "as all its weights? (all pairs counted)",
    unit="tokens",
)

# %% [markdown] key="attention_share-intro"
# ### Exercise: attention's share
#
# ●●○○ · 8 minutes · 2 points
#
# Return attention's share of the forward FLOPs, 0 to 1, for a sequence of `seq_len` tokens.
# `matmul_weights` is the number of weights that multiply each token, head included. Each of
# `n_layer` blocks has `n_head` query heads, `head_dim` wide.
#
# Without `causal`, count all `seq_len * seq_len` pairs. With it, count what a causal mask keeps: a
# token meets itself and those before it, `seq_len * (seq_len + 1) / 2` pairs.
#
# With 50 weights, 3 blocks, 2 heads of 4 and 9 tokens, causal, that is 0.828.


# %% key="attention_share" tags=["exercise"]
def attention_share(
    matmul_weights: int,
    n_layer: int,
    n_head: int,
    head_dim: int,
    seq_len: int,
    causal: bool,
) -> float:
    """Attention's share of a forward pass, 0 to 1.

    >>> round(attention_share(50, 3, 2, 4, seq_len=9, causal=True), 3)
    0.828
    """
    ### BEGIN SOLUTION
    met = (seq_len + 1) / 2 if causal else seq_len
    attention = 4 * n_layer * n_head * head_dim * met
    return attention / (attention + 2 * matmul_weights)
    ### END SOLUTION


# %% key="attention_share-check" tags=["check"]
attention_share = check("01.attention_share", attention_share)

# %% key="crossing"
lengths = [2**i for i in range(8, 21)]
series, crossing = [], {}
for name in ("GPT-2 124M", "Llama 3.1 8B", "Llama 3.1 405B"):
    s = arithmetic.model(name)
    weights = arithmetic.matmul_parameters(s)
    of = (weights, s.n_layer, s.n_head, s.head_dim)
    shares = [attention_share(*of, seq_len, False) for seq_len in lengths]
    series.append(show.Series(lengths, shares, name, "modelled"))
    crossing[name] = weights / (2 * s.n_layer * s.n_head * s.head_dim)
against_prediction(
    "01.crossing", crossing["Llama 3.1 8B"], "tokens", kind="modelled"
)
first, last = crossing["GPT-2 124M"], crossing["Llama 3.1 405B"]
show.lines(
    series,
    x="context (tokens)",
    y="attention's share (0 to 1)",
    log="x",
    title=f"Attention is half the work at {first:,.0f} tokens in GPT-2, "
    f"at {last:,.0f} in Llama 405B",
)

# %% [markdown] key="six-d"
# Set the two equal for one block with $12\,d^2$ weights: $24\,d^2 = 4\,T\,d$, so $T = 6\,d$. Wide
# models can afford long texts. Llama 3 was mostly trained at 8,192 tokens. There attention is a
# part; at the 131,072 of its release it is most of the work.
#
# A kernel that skips what the mask hides does half of this, and the crossing moves to $12\,d$.
# Papers disagree on which to count. PaLM counts all pairs, and so does this course unless it says
# causal.

# %% [markdown] key="misleads"
# ## When 6N misleads
#
# $6\,N\,D$ has three blind spots: the embedding, which it counts though nothing is multiplied; idle
# experts, if you put in the total; and long context, which it never sees. Divide the rule by the
# count and they show.

# %% key="six-n-table"
CASES = [
    ("GPT-2 124M", 1024, "attention is missing; the table counts as the head"),
    ("Llama 3.1 8B", 1024, "the input table is counted"),
    ("Llama 3.1 8B", 8192, "attention is missing"),
    ("Llama 3.1 8B", 131072, "attention is most of the work"),
    ("Llama 3.1 405B", 8192, "what the rule is made for"),
    ("Mixtral 8x7B", 4096, "idle experts are counted"),
]


def training_per_token(shape, seq_len: int) -> int:
    return arithmetic.training_flops(shape, seq_len=seq_len, tokens=1)


rows = []
for name, seq_len, why in CASES:
    s = arithmetic.model(name)
    exact = training_per_token(s, seq_len)
    table = s.vocab_size * s.d_model
    blocks = arithmetic.count_parameters(s) - table * (1 if s.tied else 2)
    choices = {
        "all N": arithmetic.count_parameters(s),
        "active N": arithmetic.active_parameters(s),
        "all N but tables": blocks,
    }
    ratios = {which: f"{6 * n / exact:.2f}" for which, n in choices.items()}
    rows.append({"model": name, "context": seq_len, **ratios, "why": why})
worst = max(rows, key=lambda row: float(row["all N"]))
show.table(
    rows,
    caption=f"6ND over the count, with three meanings of N: up to "
    f"{worst['all N']} ({worst['model']})",
    kinds=dict.fromkeys(choices, "modelled"),
)

# %% [markdown] key="which-n"
# The last of the three leaves the tables out, as the first scaling-law paper (Kaplan, 2020) did.
# For the small model that is far too low, for the largest it makes almost no difference. So a law
# fitted on small models comes out different. A later paper (Pearce and Song, 2024) finds that this
# explains much of why Kaplan and Chinchilla disagree.
#
# When you read $6N$, ask: which $N$, and at what context?

# %% [markdown] key="budgets"
# ## Other people's budgets
#
# Papers print the compute of their runs. If you can find theirs from two numbers, you can check
# anybody's.

# %% key="published"
BUDGETS = [  # parameters, tokens, FLOPs as printed
    ("GPT-3", 174.6e9, 300e9, 3.14e23),
    ("Chinchilla", 70e9, 1.4e12, 588e21),
    ("Llama 3 405B", 405_853_388_800, 15.6e12, 3.8e25),
]
rows = [
    {
        "run": name,
        "parameters": show.si(n, ""),
        "tokens": show.si(d, ""),
        "6ND": show.si(arithmetic.flops_6nd(n, d), "FLOP"),
        "in the paper": show.si(printed, "FLOP"),
        "ratio": f"{arithmetic.flops_6nd(n, d) / printed:.3f}",
    }
    for name, n, d, printed in BUDGETS
]
show.table(
    rows,
    caption="FLOPs of three training runs",
    kinds={"6ND": "modelled", "in the paper": "published"},
)

# %% [markdown] key="days"
# ## From FLOPs to days
#
# Work divided by a rate is a time. The rate is not the peak on the data sheet. The share of the
# peak that a run reaches is its **MFU**, model FLOPs utilisation: FLOPs that the model needs, over
# FLOPs that the cards could have done in that time. PaLM's was 0.46, that of Llama 3 405B 0.41
# (published). Here you take 0.4 on trust. Later in this chapter you measure your own.

# %% key="predict-days"
predict(
    "01.days",
    "1.5B parameters, 100B tokens, one H100 (989 TFLOP/s in bf16) at an MFU "
    "of 0.4: how many days?",
    unit="days",
)

# %% [markdown] key="days_to_train-intro"
# ### Exercise: days
#
# ●○○○ · 5 minutes · 1 point
#
# Return the days that `flops` take on `n_gpu` cards, each with the peak `peak_flops_per_s`, at the
# share `mfu` of it, 0 to 1.
#
# $10^{15}$ FLOPs on one card of $10^{12}$ FLOP/s at half its peak take 0.0231 days.


# %% key="days_to_train" tags=["exercise"]
def days_to_train(
    flops: float, n_gpu: int, peak_flops_per_s: float, mfu: float
) -> float:
    """Days that a run of so many FLOPs takes.

    >>> round(days_to_train(1e15, 1, 1e12, 0.5), 4)
    0.0231
    """
    ### BEGIN SOLUTION
    reached = n_gpu * peak_flops_per_s * mfu
    return flops / reached / 86_400
    ### END SOLUTION


# %% key="days_to_train-check" tags=["check"]
days_to_train = check("01.days_to_train", days_to_train)

# %% key="days-table"
def fastest(name: str) -> tuple[str, float]:
    """bf16 where the card has it, else fp16, with the dense peak."""
    card = accelerator(name)
    dtype = "bf16" if "bf16" in card.dtypes else "fp16"
    return dtype, card.peak(dtype)


here = (machine.best_dtype, machine.peak(machine.best_dtype))
options = [("this machine", 1, *here, "measured")] + [
    (name, n_gpu, *fastest(name), "published")
    for name, n_gpu in (
        ("T4", 1),
        ("RTX 4090", 1),
        ("A100 80GB SXM", 1),
        ("H100 SXM", 1),
        ("H100 SXM", 8),
    )
]
rows = []
for name, n_gpu, dtype, peak, kind in options:
    days = days_to_train(9e20, n_gpu, peak, 0.4)
    rows.append(
        {
            "cards": f"{n_gpu} x {name}",
            "dtype": dtype,
            "peak of one": show.si(peak, "FLOP/s"),
            "peak is": kind,
            "time": show.si(days * 86_400, "seconds"),
        }
    )
against_prediction(
    "01.days",
    days_to_train(9e20, 1, fastest("H100 SXM")[1], 0.4),
    "days",
    kind="modelled",
)
show.table(
    rows,
    caption="1.5B parameters on 100B tokens at an MFU of 0.4",
    kinds={"time": "modelled"},
)

# %% [markdown] key="days-said"
# Eight rented H100s for a long weekend, or a gaming card for half a year. You know this before you
# have paid for anything. What you do not know yet is whether the model fits (chapter 2) and whether
# 0.4 is true (chapter 3 and all that follow).
#
# The table does not ask whether the model fits. A T4 has 16 GB, and chapter 2 shows that this
# model's weights, gradients and optimizer states need more.

# %% [markdown] key="mfu"
# ## MFU: the number to ask for
#
# Turn it round. A training log prints tokens a second. Multiply by the FLOPs of a token, divide by
# the peak of all cards, and you have the MFU. No profiler is needed, and nobody can hide behind a
# large cluster.
#
# The PaLM paper made it a convention. With $N$ all parameters, $H$ heads of width $Q$ and $T$
# tokens of context, a token costs
#
# $$6\,N + 12\,L\,H\,Q\,T .$$
#
# The second term is your attention, $4\,T$ a channel and block, three times.

# %% [markdown] key="mfu_from_throughput-intro"
# ### Exercise: MFU from a log
#
# ●●○○ · 6 minutes · 2 points
#
# Return the MFU by PaLM's convention, 0 to 1. `tokens_per_s` is that of all `n_gpu` cards together,
# `peak_flops_per_s` that of one card. Do not cap it: above 1, one of the figures is wrong.
#
# With 1.5 tokens a second, 3 parameters, one block with one head of width 1, a context of 1, and
# four cards of 1,000 FLOP/s that is 0.01125.


# %% key="mfu_from_throughput" tags=["exercise"]
def mfu_from_throughput(
    tokens_per_s: float,
    n_params: float,
    n_layer: int,
    n_head: int,
    head_dim: int,
    seq_len: int,
    peak_flops_per_s: float,
    n_gpu: int,
) -> float:
    """Model FLOPs utilisation by PaLM's convention, 0 to 1.

    >>> round(mfu_from_throughput(1.5, 3, 1, 1, 1, 1, 1000, n_gpu=4), 5)
    0.01125
    """
    ### BEGIN SOLUTION
    attention = 12 * n_layer * n_head * head_dim * seq_len
    needed = tokens_per_s * (6 * n_params + attention)
    return needed / (n_gpu * peak_flops_per_s)
    ### END SOLUTION


# %% key="mfu_from_throughput-check" tags=["check"]
mfu_from_throughput = check("01.mfu_from_throughput", mfu_from_throughput)

# %% key="palm"
palm = mfu_from_throughput(
    tokens_per_s=238_300,
    n_params=540.35e9,
    n_layer=118,
    n_head=48,
    head_dim=256,
    seq_len=2048,
    peak_flops_per_s=accelerator("TPU v4").peak("bf16"),
    n_gpu=6144,
)
show.number(100 * palm, "% MFU", "modelled", "from PaLM's throughput")
show.number(46.2, "% MFU", "published", "PaLM, table 3")

# %% [markdown] key="impossible"
# MFU also finds lies, most of all your own. DeepSeek-V3 has 671B parameters, of which 37B are
# active. Its report gives 14.8T tokens and 2.664 million GPU hours of pre-training on H800s, which
# multiply as fast as H100s and talk more slowly. Put in each $N$.

# %% key="impossible-mfu"
peak = accelerator("H100 SXM").peak("bf16")
rows = [
    {
        "N": f"{what}, {n / 1e9:.0f}B",
        "6ND / (time x peak)": arithmetic.mfu(
            arithmetic.flops_6nd(n, 14.8e12), 2.664e6 * 3600, peak
        ),
    }
    for what, n in (("total", 671e9), ("active", 37e9))
]
show.table(
    rows,
    caption="DeepSeek-V3 against the H100's dense bf16 peak",
    kinds={"6ND / (time x peak)": "modelled"},
)

# %% [markdown] key="above-one"
# A utilisation above 1 is no triumph. It says that the work or the peak is wrong. Here idle experts
# were counted as work. The other classics: a sparse peak, the peak of another dtype, or one card's
# peak for eight.
#
# The second row is believable. It is against bf16, while much of that run multiplied in fp8, whose
# peak is twice as high.

# %% [markdown] key="here"
# ## Your machine, training
#
# Now a real step. Backward does twice the FLOPs of forward, to the last digit. Does it take twice
# as long?

# %% key="predict-backward"
predict(
    "01.backward",
    "On this machine, backward takes how many times as long as forward?",
    unit="times",
)

# %% key="measure-step"
if machine.device == "cpu":
    n_layer, d_model, vocab_size, seq_len, batch = 2, 256, 2048, 128, 2
else:
    n_layer, d_model, vocab_size, seq_len, batch = 8, 1024, 8192, 512, 8
gpt = GPT(n_layer, d_model, d_model // 64, vocab_size, seq_len)
gpt = gpt.to(machine.device)
drawn = torch.randint(vocab_size, (2, batch, seq_len))
ids, targets = drawn.to(machine.device)


def forward_pass():
    return F.cross_entropy(gpt(ids).flatten(0, 1), targets.flatten())


def training_pass():
    gpt.zero_grad()
    forward_pass().backward()


def backward_pass():
    kept.backward(retain_graph=True)


kept = forward_pass()
passes = {
    "forward": forward_pass,
    "backward": backward_pass,
    "both": training_pass,
}
seconds = {part: [] for part in passes}
for _ in range(2):  # in turns, so that a busy moment hits all alike
    for part, one_pass in passes.items():
        seconds[part] += time_samples(one_pass, repeats=3)
del kept
median = {part: statistics.median(t) for part, t in seconds.items()}
ratio = median["backward"] / median["forward"]
against_prediction("01.backward", ratio, "times")

# %% key="mfu-here"
peak = machine.peak("fp32")
work = forward_flops(n_layer, d_model, vocab_size, seq_len, batch)
reached = {}
for part, n_forwards in (("forward", 1), ("backward", 2), ("both", 3)):
    times = sorted(seconds[part])
    reached[part] = [
        100 * n_forwards * work / t / peak
        for t in (times[-1], statistics.median(times), times[0])
    ]
tokens_per_s = ids.numel() / median["both"]
mfu = reached["both"][1]
show.bars(
    list(reached),
    [middle for _, middle, _ in reached.values()],
    unit="% of fp32 peak",
    kind="measured",
    spread=[(low, high) for low, _, high in reached.values()],
    title=f"Training at {tokens_per_s:,.0f} tokens/s is an MFU of {mfu:.0f}%; "
    f"backward took {ratio:.2f} times as long as forward",
)
slowest, _, quickest = reached["both"]
if quickest > 2 * slowest:
    print("The spread is wide: other programs run beside this one.")
    print("Close them and run the last two cells again.")

# %% [markdown] key="why-not-two"
# FLOPs say 2. If you measured something else, no FLOP explains it: the count is exact. What differs
# is what surrounds the products. Forward also runs softmax, GELU, norms and a cross-entropy over
# the vocabulary. They cost no counted FLOP, and time. Backward runs theirs, and writes a gradient
# for every weight.
#
# The MFU is below 100% for the same reason. This is the thesis of the course in one plot: the
# arithmetic is known to the last digit, and the time is somewhere else. Even the numbers themselves
# can take time. Look.

# %% [markdown] key="subnormal"
# ### The same FLOPs, smaller numbers
#
# A fp32 number below $1.2 \times 10^{-38}$ is **subnormal**: too small for the usual format, stored
# with fewer digits. Below, one product of two matrices twice. The second time, the left one is
# multiplied by $10^{-39}$ before.

# %% key="predict-subnormal"
predict(
    "01.subnormal",
    "The product with tiny numbers takes how many times as long?",
    unit="times",
)

# %% key="measure-subnormal"
a, b = torch.randn(2, 256, 256, device=machine.device)
taken = [
    statistics.median(time_samples(torch.mm, left, b, repeats=5))
    for left in (a, a * 1e-39)
]
against_prediction("01.subnormal", taken[1] / taken[0], "times")
show.bars(
    ["ordinary numbers", "subnormal numbers"],
    taken,
    unit="seconds",
    kind="measured",
    title=f"The same {2 * 256**3:,} FLOPs took {taken[1] / taken[0]:.3g} "
    "times as long",
)

# %% [markdown] key="subnormal-said"
# Many CPUs leave subnormals to a slow path. GPUs do not mind. It happens in real code: a gradient
# that fades becomes subnormal before it becomes zero. Ask the model above for the token it has just
# read, and take the `nn.init` line out of `GPT`. The tied head is certain at once, the gradients
# fade, and on such a CPU the backward pass crawls. `torch.set_flush_denormal(True)` turns
# subnormals into zeros where the CPU can.
#
# No FLOP was added. When a time does not fit your count, ask what the machine was fed.

# %% [markdown] key="play"
# ## A figure to play with
#
# Move the budget, the card, its number and the MFU. Two things to try. Find the smallest number of
# H100s that trains $9 \times 10^{20}$ FLOPs in a day. Then find a budget that your own machine can
# finish over a weekend.

# %% key="explore" tags=["figure"]
CARDS = [
    "T4",
    "RTX 4090",
    "A100 80GB SXM",
    "H100 SXM",
    "B200 SXM (HGX)",
    "MI300X",
    "TPU v5e",
]
PEAKS = {name: fastest(name)[1] for name in CARDS} | {"this machine": here[1]}


def draw(budget, card, n_gpu, mfu):
    counts = [2**i for i in range(15)]

    def days(cards, share):
        return days_to_train(budget, cards, PEAKS[card], share)

    answer = days(n_gpu, mfu / 100)
    said = show.si(answer * 86_400, "seconds")
    at_mfu = [days(cards, mfu / 100) for cards in counts]
    at_peak = [days(cards, 1) for cards in counts]
    plot = show.make.lines(
        [
            show.Series(counts, at_mfu, f"at {mfu}%", "modelled"),
            show.Series(counts, at_peak, "at the peak", "modelled"),
            show.Series([n_gpu], [answer], f"your run, {said}", "modelled"),
        ],
        x="number of cards",
        y="days",
        log=True,
        title=f"{n_gpu} x {card} at {mfu}%: {said}",
    )
    best = show.si((budget / 120) ** 0.5, "parameters")
    readout = (
        f"{show.si(budget, 'FLOP')} on {n_gpu} x {card} at {mfu}%: {said}. "
        f"At 20 tokens a parameter this budget trains {best}."
    )
    return plot, readout


show.explore(
    draw,
    budget=show.Slider(
        9e20 / 2**16, 9e20 * 2**16, 9e20, log2=True, unit="FLOP"
    ),
    card=show.Choice(list(PEAKS), "H100 SXM"),
    n_gpu=show.Slider(1, 16384, 8, log2=True, label="number of cards"),
    mfu=show.Slider(5, 70, 40, step=5, label="MFU", unit="%"),
)

# %% [markdown] key="twenty"
# Twenty tokens a parameter is the Chinchilla paper's rule for the best model of a given budget.
# With $D = 20\,N$ the budget is $6\,N \cdot 20\,N = 120\,N^2$, and the readout solves that for $N$.
# Ten times the budget gives a model only three times as large.

# %% [markdown] key="at-scale"
# ## At scale
#
# FLOPs do not care how many cards share them. That is their strength, and the trap. Let the formula
# run.

# %% key="scale-table"
peak = fastest("H100 SXM")[1]
batch_tokens = 1_000_000  # in one optimizer step, all cards together
n_steps = 100e9 / batch_tokens
rows = []
for n_gpu in (1, 8, 1000, 20_000):
    run_seconds = days_to_train(9e20, n_gpu, peak, 0.4) * 86_400
    rows.append(
        {
            "H100s": n_gpu,
            "whole run": show.si(run_seconds, "seconds"),
            "one step": show.si(run_seconds / n_steps, "seconds"),
            "tokens a card and step": round(batch_tokens / n_gpu),
        }
    )
show.table(
    rows,
    caption="9e20 FLOPs at an MFU of 0.4, a million tokens a step",
    kinds={"whole run": "modelled", "one step": "modelled"},
)
gradients = 1.5e9 * 2  # bytes in bf16
show.number(
    gradients / accelerator("H100 SXM").link_bytes_per_s,
    "seconds",
    "modelled",
    "1.5B bf16 gradients once over an H100's NVLink",
)

# %% [markdown] key="scale-said"
# The last row is a fantasy. Nobody trains this model in two minutes. At 50 tokens a card no product
# is large enough to fill it. And in each step every card must tell the others its gradients, which
# takes longer than the step (chapter 13). The formula holds; the 0.4 in it does not. **MFU is not a
# constant you put in. It is what more cards take from you.**
#
# What survives at any size: the FLOPs of the run, the ratio of two budgets, and every impossible
# claim that you can refuse.

# %% key="llama-at-scale"
budget, cards, mfu_printed = 3.8e25, 16_384, 0.41
gpu_hours = 30.84e6
days = days_to_train(budget, cards, peak, mfu_printed)
over_all = arithmetic.mfu(budget, gpu_hours * 3600, peak)
show.table(
    [
        {
            "Llama 3 405B": "days on 16,384 H100s at the printed MFU of 41%",
            "value": days,
            "kind": "modelled",
        },
        {
            "Llama 3 405B": "days, from the printed 30.84 million GPU hours",
            "value": gpu_hours / cards / 24,
            "kind": "published",
        },
        {
            "Llama 3 405B": "MFU over all those hours, in %",
            "value": 100 * over_all,
            "kind": "modelled",
        },
    ],
    caption="A good step and a whole run are not the same number",
)

# %% [markdown] key="scale-gap"
# A step reaches 41%, the bill says less. Between them lie failures, restarts, checkpoints, stages
# on fewer cards and longer texts (chapter 15).
#
# Two more things mislead at scale.
#
# - **Recomputation.** Large runs throw activations away and compute them again. With all of them
#   that is a fourth pass: $8N$ FLOPs done for $6N$ needed. Counted as done it is called **HFU**,
#   hardware FLOPs utilisation, up to a third above MFU. Ask which one a paper prints.
# - **The mask.** With attention counted over all pairs, a kernel that skips half of them shows a
#   flattering MFU at long context.

# %% [markdown] key="remember"
# ## What to remember
#
# - A transformer has about $12\,L\,d^2$ parameters, plus its tables. A mixture has two sizes: total
#   to store, active to compute.
# - Each weight costs each token 2 FLOPs forward and 4 backward: $6\,N\,D$ for a run. 1.5B on 100B
#   tokens is $9 \times 10^{20}$.
# - Attention adds $4\,T$ FLOPs a channel and block, forward. It equals the weights near $T = 6\,d$.
# - Days are FLOPs over cards, peak and MFU. The MFU is the one you do not know.
# - A utilisation above 1 means that the FLOPs or the peak is wrong.

# %% [markdown] key="sources"
# ## Sources
#
# - Radford and others, *Language Models are Unsupervised Multitask Learners* (GPT-2), 2019, table
#   2; corrected in the README of `openai/gpt-2`
# - Kaplan and others, *Scaling Laws for Neural Language Models*, 2020, arXiv 2001.08361
# - Brown and others, *Language Models are Few-Shot Learners* (GPT-3), 2020, arXiv 2005.14165, table
#   D.1
# - Hoffmann and others, *Training Compute-Optimal Large Language Models* (Chinchilla), 2022, arXiv
#   2203.15556
# - Chowdhery and others, *PaLM*, 2022, arXiv 2204.02311, table 3, appendix B
# - Jiang and others, *Mixtral of Experts*, 2024, arXiv 2401.04088
# - Pearce and Song, *Reconciling Kaplan and Chinchilla Scaling Laws*, 2024, arXiv 2406.12907
# - Llama team, *The Llama 3 Herd of Models*, 2024, arXiv 2407.21783, table 4; GPU hours: model card
#   of Llama 3.1
# - DeepSeek-AI, *DeepSeek-V3 Technical Report*, 2024, arXiv 2412.19437, table 1

# %% [markdown] key="next"
# Next: [What has to fit?](02_memory.ipynb)
