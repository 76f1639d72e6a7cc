"""MFU and HFU: the share of a named peak that a run reached.

MFU counts the FLOPs the model needs. HFU counts those the hardware did, recomputation
included. Both divide by the same peak, so HFU is never below MFU. No peak is typed in
here: give this machine's measured one, or a named accelerator's dense one for the dtype.
A result above 1 means that the peak or the FLOPs are wrong.
"""

from utils.arithmetic import checks


def mfu(model_flops: float, seconds: float, peak_flops_per_s: float, n_gpu: int = 1) -> float:
    """Model FLOPs utilisation, 0 to 1.

    model_flops: done by all GPUs in `seconds`: training_flops(..., recompute="none")
    peak_flops_per_s: of one GPU. Raises ValueError naming a wrong argument.
    Source: arXiv 2204.02311, appendix B.

    >>> round(mfu(100 * 874944921600, 0.755, 312e12), 4)
    0.3714
    """
    return _utilisation(
        checks.positive("model_flops", model_flops), seconds, peak_flops_per_s, n_gpu
    )


def hfu(hardware_flops: float, seconds: float, peak_flops_per_s: float, n_gpu: int = 1) -> float:
    """Hardware FLOPs utilisation, 0 to 1: recomputed work counts too.

    hardware_flops: training_flops(..., recompute=what the run really did)
    Raises ValueError naming a wrong argument. Source: arXiv 2205.05198, section 6.3.

    >>> round(hfu(4e14, 1.0, 989.4e12), 3)
    0.404
    """
    flops = checks.positive("hardware_flops", hardware_flops)
    return _utilisation(flops, seconds, peak_flops_per_s, n_gpu)


def mfu_from_throughput(
    tokens_per_s: float, flops_per_token: float, peak_flops_per_s: float, n_gpu: int = 1
) -> float:
    """MFU from what a training log prints.

    tokens_per_s: of all n_gpu together
    flops_per_token: training_flops(shape, seq_len=..., tokens=1), or 6 N
    Raises ValueError naming a wrong argument.

    >>> round(mfu_from_throughput(10_000, 6 * 8.03e9, 989.4e12), 3)
    0.487
    """
    tokens_per_s = checks.positive("tokens_per_s", tokens_per_s)
    flops = tokens_per_s * checks.positive("flops_per_token", flops_per_token)
    return _utilisation(flops, 1, peak_flops_per_s, n_gpu)


def palm_flops_per_token(
    n_params: float, n_layer: int, n_head: int, head_dim: int, seq_len: int
) -> float:
    """Training FLOPs a token by PaLM's convention: 6 N + 12 L H Q T.

    N is all parameters, L layers, H heads, Q head_dim, T seq_len; no causal discount.
    Raises ValueError naming a wrong argument. Source: arXiv 2204.02311, appendix B.

    >>> palm_flops_per_token(124439808, 12, 12, 64, 1024)
    859885056
    """
    pairs = checks.whole("n_layer", n_layer) * checks.whole("n_head", n_head)
    pairs *= checks.whole("head_dim", head_dim) * checks.whole("seq_len", seq_len)
    return 6 * checks.positive("n_params", n_params) + 12 * pairs


def palm_mfu(
    n_params: float,
    n_layer: int,
    n_head: int,
    head_dim: int,
    seq_len: int,
    tokens_per_s: float,
    peak_flops_per_s: float,
    n_gpu: int = 1,
) -> float:
    """MFU with palm_flops_per_token. tokens_per_s is that of all n_gpu together.

    Raises ValueError naming a wrong argument.

    >>> round(palm_mfu(540.35e9, 118, 48, 256, 2048, 238300, 275e12, 6144), 4)
    0.4623
    """
    per_token = palm_flops_per_token(n_params, n_layer, n_head, head_dim, seq_len)
    return mfu_from_throughput(tokens_per_s, per_token, peak_flops_per_s, n_gpu)


def mpt_mfu(
    n_params: float,
    n_layer: int,
    d_model: int,
    seq_len: int,
    tokens_per_s: float,
    peak_flops_per_s: float,
    n_gpu: int = 1,
) -> float:
    """MFU as llm-foundry's tables for MPT count it: 6 N + 12 L d_model T a token.

    The same as PaLM's where heads fill the width (H Q = d_model). Raises ValueError naming a
    wrong argument. Source: llm-foundry, scripts/train/benchmarking/README.md.

    >>> round(mpt_mfu(29975214080, 48, 7168, 2048, 865, 312e12), 3)
    0.522
    """
    d_model = checks.whole("d_model", d_model)
    per_token = palm_flops_per_token(n_params, n_layer, 1, d_model, seq_len)
    return mfu_from_throughput(tokens_per_s, per_token, peak_flops_per_s, n_gpu)


def mpt_hfu(mfu: float, *, checkpointing: bool) -> float:
    """HFU as llm-foundry's tables count it: 4/3 of MFU when activations are checkpointed.

    One forward pass more for everything, the output head too, where training_flops with
    recompute="full" leaves the head out. Raises ValueError naming a wrong argument.

    >>> round(mpt_hfu(0.5225, checkpointing=True), 4)
    0.6967
    """
    return checks.positive("mfu", mfu) * (
        4 / 3 if checks.flag("checkpointing", checkpointing) else 1
    )


def _utilisation(flops: float, seconds: float, peak_flops_per_s: float, n_gpu: int) -> float:
    peak = checks.positive("peak_flops_per_s", peak_flops_per_s) * checks.whole("n_gpu", n_gpu)
    return flops / checks.positive("seconds", seconds) / peak
