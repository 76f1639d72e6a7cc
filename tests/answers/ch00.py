"""Second, differently written correct answers to chapter 00's exercises."""


def matmul_rate(m, n, k, seconds):
    multiply_adds = m * n * k
    return (multiply_adds + multiply_adds) / seconds


def median_time(run, synchronize, clock, repeats):
    for _ in range(3):
        run()
    times = []
    while len(times) < repeats:
        synchronize()
        before = clock()
        run()
        synchronize()
        times.append(clock() - before)
    return sorted(times)[len(times) // 2]


def copy_bandwidth(n_elements, bytes_per_element, seconds):
    read = written = n_elements * bytes_per_element * 1e-9
    return (read + written) / seconds


def launch_overhead(sizes, seconds):
    count = len(sizes)
    mean_n, mean_t = sum(sizes) / count, sum(seconds) / count
    above = sum((n - mean_n) * (t - mean_t) for n, t in zip(sizes, seconds, strict=True))
    per_element = above / sum((n - mean_n) ** 2 for n in sizes)
    return [mean_t - per_element * mean_n, 1 / per_element]


def utilisation(flops_per_s, dtype, peaks):
    sparse = peaks.get(f"{dtype} tensor sparse", 0)
    dense = peaks.get(f"{dtype} tensor") or sparse / 2 or peaks[f"{dtype} vector"]
    return flops_per_s / dense


def native_bf16(vendor, capability, says_supported):
    return int(capability.split(".")[0]) > 7 if vendor == "NVIDIA" else None
