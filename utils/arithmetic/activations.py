"""Activations that one GPT layer keeps for its backward pass, in bytes.

The layer of arXiv 2205.05198, section 4: two-byte activations, one-byte dropout masks,
LayerNorm, GELU, a feed-forward of 4 d_model, and an attention matrix that is stored.
"""

from utils.arithmetic import checks
from utils.arithmetic.flops import RECOMPUTE

# name: (bytes per token and channel, bytes per token, key and head, does tensor parallel split it)
_PARTS = {
    "layernorm inputs": (4, 0, False),
    "input of q, k, v": (2, 0, False),
    "q and k": (4, 0, True),
    "v": (2, 0, True),
    "softmax output": (0, 2, True),
    "softmax dropout mask": (0, 1, True),
    "softmax after dropout": (0, 2, True),
    "input of the output projection": (2, 0, True),
    "dropout mask after attention": (1, 0, False),
    "input of the feed-forward": (2, 0, False),
    "input of GELU": (8, 0, True),
    "input of the second feed-forward matrix": (8, 0, True),
    "dropout mask after the feed-forward": (1, 0, False),
}


def activation_table(
    seq_len: int,
    batch: int,
    d_model: int,
    n_head: int,
    *,
    tensor_parallel: int = 1,
    sequence_parallel: bool = False,
    recompute: str = "none",
) -> dict[str, int]:
    """Bytes that each part of one layer keeps on one GPU; kept parts only.

    seq_len, batch: tokens in a sequence, sequences in a micro-batch
    tensor_parallel: GPUs that share the layer; divides n_head and d_model
    sequence_parallel: they also share the sequence where tensor parallel keeps whole copies
    recompute: "selective" drops the attention matrix (as flash attention does, but for its
      small statistics); "full" keeps only the layer's input
    Raises ValueError naming a wrong argument. Source: arXiv 2205.05198, section 4.

    >>> activation_table(1024, 1, 768, 12, recompute="full")
    {'layer input': 1572864}
    """
    seq_len = checks.whole("seq_len", seq_len)
    n_token = seq_len * checks.whole("batch", batch)
    d_model = checks.whole("d_model", d_model)
    n_head = checks.whole("n_head", n_head)
    n_gpu = checks.whole("tensor_parallel", tensor_parallel)
    for name, size in (("n_head", n_head), ("d_model", d_model)):
        if size % n_gpu:
            raise checks.refuse("tensor_parallel", n_gpu, f"a divisor of {name}={size}")
    if d_model % n_head:
        raise checks.refuse("n_head", n_head, f"a divisor of d_model={d_model}")
    if checks.flag("sequence_parallel", sequence_parallel) and seq_len % n_gpu:
        raise checks.refuse("seq_len", seq_len, f"a multiple of tensor_parallel={n_gpu}")
    checks.choice("recompute", recompute, RECOMPUTE)
    if recompute == "full":
        return {"layer input": 2 * n_token * d_model // (n_gpu if sequence_parallel else 1)}
    kept = {}
    for name, (per_channel, per_key, split) in _PARTS.items():
        if per_key and recompute == "selective":
            continue
        n_bytes = n_token * (per_channel * d_model + per_key * seq_len * n_head)
        kept[name] = n_bytes // (n_gpu if split or sequence_parallel else 1)
    return kept


def activation_bytes_per_layer(
    seq_len: int,
    batch: int,
    d_model: int,
    n_head: int,
    *,
    tensor_parallel: int = 1,
    sequence_parallel: bool = False,
    recompute: str = "none",
) -> int:
    """Bytes that one layer keeps on one GPU: s b h (34 + 5 a s / h) with nothing shared.

    s is seq_len, b batch, h d_model, a n_head. The arguments and errors are those of
    activation_table. Source: arXiv 2205.05198, table 2. With recompute="full" the table
    keeps a whole input, 2 s b h; under sequence parallelism that input arrives shared out,
    so here it is 2 s b h / tensor_parallel.

    >>> activation_bytes_per_layer(2048, 1, 12288, 96)
    2868903936
    >>> activation_bytes_per_layer(2048, 1, 12288, 96, tensor_parallel=8, recompute="selective")
    327155712
    """
    table = activation_table(
        seq_len,
        batch,
        d_model,
        n_head,
        tensor_parallel=tensor_parallel,
        sequence_parallel=sequence_parallel,
        recompute=recompute,
    )
    return sum(table.values())
