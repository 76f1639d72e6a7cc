"""Bytes of the key-value cache. It holds keys and values: two tensors, not one."""

from utils.arithmetic import checks


def kv_cache_bytes_per_token(
    n_layer: int, n_kv_head: int, head_dim: int, bytes_per_element: float = 2
) -> float:
    """Bytes that one token adds to the cache: 2 (K and V) x layers x heads x width x bytes.

    n_kv_head: n_head for MHA, the number of groups for GQA, 1 for MQA
    bytes_per_element: 2 for bf16, 1 for fp8 or int8, 0.5 for 4 bits (scales not counted)
    Raises ValueError naming a wrong argument. Source: arXiv 2305.13245 (GQA).

    >>> kv_cache_bytes_per_token(32, 8, 128)
    131072
    """
    n_element = 2 * checks.whole("n_layer", n_layer) * checks.whole("n_kv_head", n_kv_head)
    n_element *= checks.whole("head_dim", head_dim)
    return n_element * checks.positive("bytes_per_element", bytes_per_element)


def latent_cache_bytes_per_token(
    n_layer: int, latent_dim: int, rope_dim: int, bytes_per_element: float = 2
) -> float:
    """The same for multi-head latent attention: one latent vector and one rotary key a layer.

    Keys and values of all heads are rebuilt from the latent vector, so there is no factor 2
    and no number of heads. DeepSeek-V2 and V3: 512 + 64 = 576 elements a layer.
    Raises ValueError naming a wrong argument. Source: arXiv 2405.04434, section 2.1.

    >>> latent_cache_bytes_per_token(61, 512, 64)
    70272
    """
    width = checks.whole("latent_dim", latent_dim) + checks.whole("rope_dim", rope_dim, 0)
    n_element = checks.whole("n_layer", n_layer) * width
    return n_element * checks.positive("bytes_per_element", bytes_per_element)


def kv_cache_bytes(
    n_layer: int,
    n_kv_head: int,
    head_dim: int,
    *,
    seq_len: int,
    batch: int = 1,
    bytes_per_element: float = 2,
) -> float:
    """Bytes of the cache of batch sequences of seq_len tokens.

    Raises ValueError naming a wrong argument.

    >>> kv_cache_bytes(32, 32, 128, seq_len=4096) / 2**30
    2.0
    """
    n_token = checks.whole("seq_len", seq_len) * checks.whole("batch", batch)
    return n_token * kv_cache_bytes_per_token(n_layer, n_kv_head, head_dim, bytes_per_element)
