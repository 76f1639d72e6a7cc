"""The roofline: is it bytes or FLOPs. Source: Williams, Waterman, Patterson, CACM 52(4), 2009.

Peaks are dense, of the unit and dtype the work really uses.
"""

from utils.arithmetic import checks


def ridge_point(peak_flops_per_s: float, bytes_per_s: float) -> float:
    """FLOP per byte above which the peak limits, below which the bandwidth does.

    Raises ValueError naming a wrong argument.

    >>> round(ridge_point(989.4e12, 3.35e12), 1)
    295.3
    """
    peak = checks.positive("peak_flops_per_s", peak_flops_per_s)
    return peak / checks.positive("bytes_per_s", bytes_per_s)


def attainable_flops_per_s(intensity: float, peak_flops_per_s: float, bytes_per_s: float) -> float:
    """The height of the roof over an arithmetic intensity, in FLOP/s.

    intensity: FLOP per byte. Raises ValueError naming a wrong argument.

    >>> attainable_flops_per_s(1, 989.4e12, 3.35e12)
    3350000000000.0
    """
    peak = checks.positive("peak_flops_per_s", peak_flops_per_s)
    slope = checks.positive("bytes_per_s", bytes_per_s)
    return min(peak, checks.not_negative("intensity", intensity) * slope)


def roofline_seconds(
    flops: float, n_bytes: float, peak_flops_per_s: float, bytes_per_s: float
) -> float:
    """Least seconds for the work, with arithmetic and traffic perfectly overlapped.

    Raises ValueError naming a wrong argument.

    >>> roofline_seconds(2**30, 3 * 4 * 2**30, 67e12, 3.35e12) == 3 * 4 * 2**30 / 3.35e12
    True
    """
    compute = checks.not_negative("flops", flops) / checks.positive(
        "peak_flops_per_s", peak_flops_per_s
    )
    traffic = checks.not_negative("n_bytes", n_bytes) / checks.positive("bytes_per_s", bytes_per_s)
    return max(compute, traffic)


def matmul_intensity(m: int, n: int, k: int, bytes_per_element: float) -> float:
    """FLOP per byte of an (m, k) @ (k, n) product that touches each matrix once.

    Raises ValueError naming a wrong argument.

    >>> round(matmul_intensity(64, 4096, 4096, 2), 1)
    62.1
    """
    m, n, k = checks.whole("m", m), checks.whole("n", n), checks.whole("k", k)
    moved = (m * k + k * n + m * n) * checks.positive("bytes_per_element", bytes_per_element)
    return 2 * m * n * k / moved


def mbu(
    weight_bytes: float,
    kv_bytes: float,
    seconds_per_token: float,
    peak_bytes_per_s: float,
    n_gpu: int = 1,
) -> float:
    """Model bandwidth utilisation of decoding, 0 to 1, against a named peak bandwidth.

    weight_bytes, kv_bytes: read once for each output token; kv_bytes is the whole cache
    seconds_per_token: time per output token of the batch, which reads the weights once
    peak_bytes_per_s: of one GPU. Raises ValueError naming a wrong argument.
    Source: Databricks, "LLM Inference Performance Engineering: Best Practices" (2023).

    >>> round(mbu(14e9, 0, 0.014, 2e12), 6)
    0.5
    """
    moved = checks.positive("weight_bytes", weight_bytes) + checks.not_negative(
        "kv_bytes", kv_bytes
    )
    peak = checks.positive("peak_bytes_per_s", peak_bytes_per_s) * checks.whole("n_gpu", n_gpu)
    return moved / checks.positive("seconds_per_token", seconds_per_token) / peak


def matrix_unit_peak_flops_per_s(
    n_core: int, units_per_core: int, multiply_adds_per_cycle: int, clock_hz: float
) -> float:
    """Peak of a chip's matrix units: a multiply-add is two FLOPs.

    n_core: streaming multiprocessors on an NVIDIA GPU; units_per_core: tensor cores in each
    multiply_adds_per_cycle: of one unit, dense, in the dtype at hand
    Raises ValueError naming a wrong argument. Source: ml-engineering, compute/accelerator.

    >>> round(matrix_unit_peak_flops_per_s(132, 4, 512, 1830e6) / 1e12, 2)  # H100 SXM, bf16
    989.43
    """
    units = checks.whole("n_core", n_core) * checks.whole("units_per_core", units_per_core)
    per_cycle = 2 * checks.whole("multiply_adds_per_cycle", multiply_adds_per_cycle)
    return units * per_cycle * checks.positive("clock_hz", clock_hz)
