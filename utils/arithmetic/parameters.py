"""Parameters, to the last one, from a ModelShape."""

from utils.arithmetic import checks
from utils.arithmetic.shapes import ModelShape, check_shape


def count_parameters(shape: ModelShape) -> int:
    """Every stored parameter. A tied output head is stored once, so it counts once.

    Raises ValueError when shape is not a ModelShape.

    >>> from utils.arithmetic import model
    >>> count_parameters(model("GPT-2 124M"))
    124439808
    >>> count_parameters(model("Mixtral 8x7B"))
    46702792704
    """
    return sum(parameter_table(shape).values())


def parameter_table(shape: ModelShape) -> dict[str, int]:
    """The same, part by part, over all layers. What the model does not have is 0.

    Raises ValueError when shape is not a ModelShape.

    >>> from utils.arithmetic import model
    >>> parameter_table(model("GPT-2 124M"))["token embedding"] == 50257 * 768
    True
    """
    check_shape(shape)
    embedding = shape.vocab_size * shape.d_model
    experts = shape.n_expert + shape.n_expert_shared
    return {
        "token embedding": embedding,
        "position embedding": shape.seq_len * shape.d_model if shape.positions == "learned" else 0,
        "attention": shape.n_layer * (_attention_weights(shape) + _attention_biases(shape)),
        "feed-forward": shape.n_layer * experts * _one_feed_forward(shape, shape.bias),
        "router": shape.n_layer * _router(shape),
        "norms": (2 * shape.n_layer + 1) * _one_norm(shape),
        "output head": 0 if shape.tied else embedding,
    }


def active_parameters(shape: ModelShape) -> int:
    """Parameters that one token uses: all but the experts it is not sent to.

    Convention: embeddings and output head are counted, as in the Mixtral paper
    (arXiv 2401.04088, which says 13B). For a dense model this is count_parameters.
    Raises ValueError when shape is not a ModelShape.

    >>> from utils.arithmetic import model
    >>> active_parameters(model("Mixtral 8x7B"))
    12879925248
    """
    idle = check_shape(shape).n_expert - shape.n_expert_active
    return count_parameters(shape) - shape.n_layer * idle * _one_feed_forward(shape, shape.bias)


def matmul_parameters(shape: ModelShape, *, lm_head: bool = True) -> int:
    """Weights that one token is multiplied by. A forward pass does two FLOPs with each.

    Left out: the embedding tables, which are looked up; norms and biases, which are
    elementwise; experts the token is not sent to. The output head is a matmul whether
    tied or not, so it counts here even where it is not stored twice.
    Raises ValueError naming a wrong argument.

    >>> from utils.arithmetic import model
    >>> matmul_parameters(model("GPT-2 124M")) == 12 * 12 * 768**2 + 50257 * 768
    True
    """
    per_layer = _attention_weights(check_shape(shape)) + _router(shape)
    experts = shape.n_expert_active + shape.n_expert_shared
    per_layer += experts * _one_feed_forward(shape, bias=False)
    head = shape.vocab_size * shape.d_model if checks.flag("lm_head", lm_head) else 0
    return shape.n_layer * per_layer + head


def _attention_weights(shape: ModelShape) -> int:
    q_and_output = 2 * shape.d_model * shape.n_head * shape.head_dim
    k_and_v = 2 * shape.d_model * shape.n_kv_head * shape.head_dim
    return q_and_output + k_and_v


def _attention_biases(shape: ModelShape) -> int:
    qkv = (shape.n_head + 2 * shape.n_kv_head) * shape.head_dim if shape.qkv_bias else 0
    return qkv + (shape.d_model if shape.bias else 0)


def _one_feed_forward(shape: ModelShape, bias: bool) -> int:
    """One dense feed-forward, or one expert: up (and gate) and down."""
    d_hidden = shape.d_ff if shape.n_expert == 1 else shape.d_ff_expert
    n_up = 2 if shape.gated else 1
    weights = (n_up + 1) * shape.d_model * d_hidden
    return weights + (n_up * d_hidden + shape.d_model if bias else 0)


def _router(shape: ModelShape) -> int:
    return shape.d_model * shape.n_expert if shape.n_expert > 1 else 0


def _one_norm(shape: ModelShape) -> int:
    return shape.d_model * (2 if shape.norm == "layernorm" and shape.bias else 1)
