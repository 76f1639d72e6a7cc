"""Second, differently written correct answers to chapter 03's exercises."""

import numpy as np


def arithmetic_intensity(m, n, k, bytes_per_element):
    elements = sum([m * k, k * n, n * m])
    return (m * n) * (k + k) / elements / bytes_per_element


def attainable(intensity, peak_flops_per_s, bytes_per_s):
    ridge = peak_flops_per_s / bytes_per_s
    return peak_flops_per_s * min(1.0, intensity / ridge)


def elementwise_intensity(n_inputs, flops_per_element, bytes_per_element):
    elements = 1000
    moved = n_inputs * elements * bytes_per_element + elements * bytes_per_element
    return elements * flops_per_element / moved


def softmax_intensity(rows, columns, bytes_per_element, fused):
    flops = rows * (2 * (columns - 1) + 3 * columns)
    elements = 2 * rows * columns
    if not fused:
        elements = 4 * rows * (2 * columns + 1)
    return flops / elements / bytes_per_element


def decode_attention_intensity(n_head, n_kv_head, head_dim, seq_len, batch, bytes_per_element):
    sharing = n_head / n_kv_head
    return 2 / bytes_per_element / (1 / sharing + 1 / seq_len)


def crossover_batch(k, n, bytes_per_weight, bytes_per_activation, peak_flops_per_s, bytes_per_s):
    def waits_for_bytes(batch):
        moved = k * n * bytes_per_weight + batch * (k + n) * bytes_per_activation
        return moved / bytes_per_s > 2 * batch * k * n / peak_flops_per_s

    high = 1
    while waits_for_bytes(high):
        high *= 2
        if high > 1e12:
            return None
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if waits_for_bytes(middle) else (low, middle)
    return high


def mbu(weight_bytes, kv_bytes, seconds_per_token, peak_bytes_per_s, n_gpu):
    least_seconds = np.divide(weight_bytes + kv_bytes, n_gpu * peak_bytes_per_s)
    return least_seconds / seconds_per_token


def tokens_per_second_bound(
    weight_bytes, kv_bytes_per_sequence, flops_per_token, batch, peak_flops_per_s, bytes_per_s
):
    per_token_bytes = weight_bytes / batch + kv_bytes_per_sequence
    return min(bytes_per_s / per_token_bytes, peak_flops_per_s / flops_per_token)


def gpus_for_latency(
    weight_bytes, kv_bytes, seconds_per_token, bytes_per_s, memory_bytes, utilisation
):
    n_gpu = 1
    while True:
        per_gpu = (weight_bytes + kv_bytes) / n_gpu
        if per_gpu <= memory_bytes and per_gpu / bytes_per_s / utilisation <= seconds_per_token:
            return n_gpu
        n_gpu += 1


def bigger_or_better_fed(steps, peak_flops_per_s, bytes_per_s, peak_factor, bandwidth_factor):
    flops, moved = np.array(steps).T

    def total(peak, bandwidth):
        return np.maximum(flops / peak, moved / bandwidth).sum()

    now = total(peak_flops_per_s, bytes_per_s)
    bigger = now / total(peak_flops_per_s * peak_factor, bytes_per_s)
    fed = now / total(peak_flops_per_s, bytes_per_s * bandwidth_factor)
    choose = ["same", "bigger", "better_fed"][int(np.sign(bigger - fed))]
    return {"bigger": bigger, "better_fed": fed, "choose": choose}
