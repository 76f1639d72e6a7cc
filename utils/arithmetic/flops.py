"""FLOPs of a transformer, forward and in training. A multiply-add is two FLOPs.

Conventions, here and in chapter 01:
- only matrix products count; norms, softmax, activations and residuals do not;
- the embedding is looked up, not multiplied; the output head is multiplied, tied or not;
- attention is counted over all seq_len x seq_len pairs, as PaLM and nanoGPT count it.
  causal=True counts the seq_len (seq_len + 1) / 2 pairs that a causal mask keeps. Papers on
  flash attention count half of all pairs, which leaves out half the diagonal;
- the backward pass costs two forward passes: one for the inputs, one for the weights.
"""

from utils.arithmetic import checks
from utils.arithmetic.parameters import matmul_parameters
from utils.arithmetic.shapes import ModelShape, check_shape

RECOMPUTE = ("none", "selective", "full")
SECONDS_PER_DAY = 86400


def forward_flops(
    shape: ModelShape,
    *,
    seq_len: int | None = None,
    batch: int = 1,
    causal: bool = False,
    lm_head: bool = True,
) -> int:
    """FLOPs of one forward pass over batch sequences of seq_len tokens.

    seq_len: default shape.seq_len, which is long for recent models
    lm_head: False leaves out the output head, for all tokens
    Raises ValueError naming a wrong argument. Source: nanoGPT, transformer_sizing.ipynb.

    >>> from utils.arithmetic import model
    >>> forward_flops(model("GPT-2 124M"))
    291648307200
    """
    seq_len = _length(shape, seq_len)
    n_weights = matmul_parameters(shape, lm_head=lm_head)
    products = 2 * n_weights * seq_len * checks.whole("batch", batch)
    return products + attention_flops(shape, seq_len=seq_len, batch=batch, causal=causal)


def attention_flops(
    shape: ModelShape, *, seq_len: int | None = None, batch: int = 1, causal: bool = False
) -> int:
    """Forward FLOPs of attention proper: q @ k and probabilities @ v, in all layers.

    The projections are not in here: they are weights. Grouped heads save no FLOPs: each
    query head still meets every key. Raises ValueError naming a wrong argument.

    >>> from utils.arithmetic import model
    >>> attention_flops(model("GPT-2 124M"), seq_len=1024) == 12 * 4 * 1024**2 * 768
    True
    """
    seq_len = _length(shape, seq_len)
    twice_the_pairs = 2 * seq_len**2
    if checks.flag("causal", causal):
        twice_the_pairs = seq_len * (seq_len + 1)
    per_layer = 2 * twice_the_pairs * shape.n_head * shape.head_dim
    return shape.n_layer * per_layer * checks.whole("batch", batch)


def attention_share(
    shape: ModelShape, seq_len: int | None = None, *, causal: bool = False
) -> float:
    """Share of the forward FLOPs, output head included, that attention_flops is. 0 to 1.

    Training triples both, so the share is the same. Raises ValueError naming a wrong argument.

    >>> from utils.arithmetic import model
    >>> round(attention_share(model("GPT-2 124M"), 1024), 3)
    0.133
    """
    attention = attention_flops(shape, seq_len=seq_len, causal=causal)
    return attention / forward_flops(shape, seq_len=seq_len, causal=causal)


def training_flops(
    shape: ModelShape,
    *,
    seq_len: int | None = None,
    batch: int | None = None,
    tokens: int | None = None,
    recompute: str = "none",
    causal: bool = False,
    attention: bool = True,
) -> int:
    """FLOPs of forward and backward: of one step (batch), or of a whole run (tokens).

    Give exactly one of batch (sequences) and tokens (a whole number, 1e11 is fine).
    tokens=1 gives FLOPs per token.
    recompute: "none" counts model FLOPs, which MFU uses: 3 forward passes. "full" adds one
      forward pass of every layer, "selective" one of attention proper: hardware FLOPs, which
      HFU uses. The output head is never recomputed.
    attention: False leaves attention proper out, which is 6 x matmul_parameters a token
    Raises ValueError naming a wrong argument.
    Source: arXiv 2104.04473, eq. 3 (full); arXiv 2205.05198, appendix A (none, selective).
    The latter prints s/3h for selective, which is attention done six times. One more
    forward pass of it makes four, 2s/9h, and that is what is counted here.

    >>> from utils.arithmetic import model
    >>> training_flops(model("GPT-2 124M"), batch=1)
    874944921600
    >>> training_flops(model("GPT-2 124M"), tokens=1)
    854438400
    """
    seq_len = _length(shape, seq_len)
    checks.choice("recompute", recompute, RECOMPUTE)
    layer_passes = 4 if recompute == "full" else 3
    attention_passes = 3 if recompute == "none" else 4
    layers = 2 * matmul_parameters(shape, lm_head=False)
    head = 2 * shape.d_model * shape.vocab_size
    # Divides without remainder: attention grows with seq_len times a whole number of keys.
    core = attention_flops(shape, seq_len=seq_len, causal=causal) // seq_len
    if not checks.flag("attention", attention):
        core = 0
    per_token = layer_passes * layers + 3 * head + attention_passes * core
    return per_token * _n_tokens(seq_len, batch, tokens)


def flops_6nd(n_params: float, n_tokens: float) -> float:
    """Training FLOPs by the rule 6 N D: parameters times tokens, six FLOPs each.

    It leaves out attention. With N all parameters it counts the embedding tables as matmuls,
    and a mixture's idle experts as work: give active_parameters there. Raises ValueError
    naming a wrong argument. Source: arXiv 2001.08361, section 2.1, whose N has no embeddings.

    >>> f"{flops_6nd(1.5e9, 100e9):.0e}"
    '9e+20'
    """
    return 6 * checks.positive("n_params", n_params) * checks.positive("n_tokens", n_tokens)


def petaflop_s_days(flops: float) -> float:
    """FLOPs as days of work at 10^15 FLOP/s. Raises ValueError when flops is not above 0.

    Source: arXiv 2005.14165, appendix D.

    >>> round(petaflop_s_days(3.14e23))
    3634
    """
    return checks.positive("flops", flops) / (1e15 * SECONDS_PER_DAY)


def days_to_train(flops: float, n_gpu: int, peak_flops_per_s: float, mfu: float) -> float:
    """Days that a run takes.

    flops: of the whole run. With model FLOPs give the MFU, with hardware FLOPs the HFU.
    peak_flops_per_s: of one GPU, dense, in the run's dtype; mfu: above 0, at most 1
    Raises ValueError naming a wrong argument. Source: arXiv 2104.04473, eq. 4.

    >>> round(days_to_train(9e20, 8, 989.4e12, 0.4), 2)
    3.29
    """
    flops = checks.positive("flops", flops)
    rate = checks.whole("n_gpu", n_gpu) * checks.positive("peak_flops_per_s", peak_flops_per_s)
    return flops / (rate * checks.share("mfu", mfu)) / SECONDS_PER_DAY


def _length(shape: ModelShape, seq_len: int | None) -> int:
    shape = check_shape(shape)
    return shape.seq_len if seq_len is None else checks.whole("seq_len", seq_len)


def _n_tokens(seq_len: int, batch: int | None, tokens: int | None) -> int:
    if (batch is None) == (tokens is None):
        given = "neither" if batch is None else (batch, tokens)
        raise checks.refuse("batch or tokens", given, "exactly one of the two")
    if batch is not None:
        return seq_len * checks.whole("batch", batch)
    if isinstance(tokens, float) and tokens.is_integer():
        tokens = int(tokens)  # 1e11 is how people write it
    return checks.whole("tokens", tokens)
