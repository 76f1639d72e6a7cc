"""ModelShape: the numbers from which a transformer's parameters, FLOPs and bytes follow."""

from dataclasses import KW_ONLY, dataclass

from utils.arithmetic import checks

NORMS = ("layernorm", "rmsnorm")
POSITIONS = ("learned", "rope")


@dataclass(frozen=True)
class ModelShape:
    """The shape of a decoder-only transformer: GPT, Llama-like, or a mixture of experts.

    What is left out is filled in when the shape is made, so n_kv_head, head_dim, d_ff and
    qkv_bias can always be read. `dataclasses.replace` carries the filled-in values along.

    n_layer, d_model, n_head: blocks, width of the residual stream, query heads in a block
    vocab_size: rows of the embedding, padding included (see pad_vocabulary)
    seq_len: tokens the model was released for; the rows of a learned position table
    n_kv_head: key and value heads; n_head is MHA (the default), fewer is GQA, 1 is MQA
    head_dim: width of a head; default d_model / n_head
    d_ff: hidden width of the feed-forward; default 4 * d_model
    gated: three matrices in the feed-forward (SwiGLU) instead of two
    norm: "layernorm" has a weight, and a bias if `bias`; "rmsnorm" has a weight only
    positions: "learned" is a table of seq_len rows; "rope" has no parameters
    bias: on every linear layer but the output head and the router, and in layernorm
    qkv_bias: the same for q, k and v only; default `bias`. Qwen2.5 has it without the others
    tied: the output head is the token embedding, stored once
    n_expert: 1 is dense. More: each feed-forward is that many experts and a router
    n_expert_active: routed experts that one token visits
    n_expert_shared: experts that every token visits beside the routed ones, not routed to
    d_ff_expert: hidden width of an expert; default d_ff. None in a dense model

    Raises ValueError naming the argument that does not fit.

    >>> ModelShape(12, 768, 12, 50257).head_dim
    64
    >>> ModelShape(12, 768, 7, 50257)
    Traceback (most recent call last):
    ValueError: n_head is 7; allowed: a divisor of d_model=768, or give head_dim
    """

    n_layer: int
    d_model: int
    n_head: int
    vocab_size: int
    _: KW_ONLY
    seq_len: int = 1024
    n_kv_head: int | None = None
    head_dim: int | None = None
    d_ff: int | None = None
    gated: bool = False
    norm: str = "layernorm"
    positions: str = "learned"
    bias: bool = True
    qkv_bias: bool | None = None
    tied: bool = True
    n_expert: int = 1
    n_expert_active: int = 1
    n_expert_shared: int = 0
    d_ff_expert: int | None = None

    def __post_init__(self) -> None:
        for name in ("n_layer", "d_model", "n_head", "vocab_size", "seq_len"):
            self._set(name, checks.whole(name, getattr(self, name)))
        for name in ("gated", "bias", "tied"):
            checks.flag(name, getattr(self, name))
        checks.choice("norm", self.norm, NORMS)
        checks.choice("positions", self.positions, POSITIONS)
        self._fill_attention()
        self._fill_feed_forward()

    def _fill_attention(self) -> None:
        if self.head_dim is None:
            if self.d_model % self.n_head:
                allowed = f"a divisor of d_model={self.d_model}, or give head_dim"
                raise checks.refuse("n_head", self.n_head, allowed)
            self._set("head_dim", self.d_model // self.n_head)
        self._set("head_dim", checks.whole("head_dim", self.head_dim))
        n_kv_head = self.n_head if self.n_kv_head is None else self.n_kv_head
        self._set("n_kv_head", checks.whole("n_kv_head", n_kv_head))
        if self.n_head % self.n_kv_head:
            allowed = f"a divisor of n_head={self.n_head}"
            raise checks.refuse("n_kv_head", self.n_kv_head, allowed)
        qkv_bias = self.bias if self.qkv_bias is None else self.qkv_bias
        self._set("qkv_bias", checks.flag("qkv_bias", qkv_bias))

    def _fill_feed_forward(self) -> None:
        d_ff = 4 * self.d_model if self.d_ff is None else self.d_ff
        self._set("d_ff", checks.whole("d_ff", d_ff))
        self._set("n_expert", checks.whole("n_expert", self.n_expert))
        active = checks.whole("n_expert_active", self.n_expert_active, 1, self.n_expert)
        self._set("n_expert_active", active)
        most_shared = None if self.n_expert > 1 else 0
        shared = checks.whole("n_expert_shared", self.n_expert_shared, 0, most_shared)
        self._set("n_expert_shared", shared)
        if self.n_expert == 1:
            if self.d_ff_expert is not None:
                allowed = "None while n_expert is 1: a dense model has d_ff"
                raise checks.refuse("d_ff_expert", self.d_ff_expert, allowed)
            return
        d_ff_expert = self.d_ff if self.d_ff_expert is None else self.d_ff_expert
        self._set("d_ff_expert", checks.whole("d_ff_expert", d_ff_expert))

    def _set(self, name: str, value: object) -> None:
        object.__setattr__(self, name, value)  # the way into a frozen dataclass


def check_shape(shape: object) -> ModelShape:
    """The shape itself, or a ValueError when it is something else."""
    if not isinstance(shape, ModelShape):
        raise checks.refuse("shape", shape, 'a ModelShape, such as model("GPT-2 124M")')
    return shape


def pad_vocabulary(vocab_size: int, multiple: int) -> int:
    """The smallest multiple that holds the vocabulary. The extra rows are parameters too.

    Both in tokens. Raises ValueError naming a wrong argument. Source: nanoGPT's model.py pads
    50257 to 50304 for speed.

    >>> pad_vocabulary(50257, 64)
    50304
    """
    vocab_size = checks.whole("vocab_size", vocab_size)
    multiple = checks.whole("multiple", multiple)
    return -(-vocab_size // multiple) * multiple
