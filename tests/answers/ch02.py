"""Second, differently written correct answers to chapter 02's exercises."""

import itertools
import math


def state_bytes(n_params, recipe):
    bits = {"fp32": 32, "bf16": 16, "fp16": 16, "int8": 8}
    blocks = (n_params - 1) // 2048 + 1
    plain = n_params * sum(bits[dtype] for dtype in recipe.values()) // 8
    return plain + blocks * 4 * list(recipe.values()).count("int8")


def zero_bytes(n_params, n_rank, stage, weights=2, gradients=2, optimizer=12):
    held = optimizer / n_rank if stage >= 1 else optimizer
    held += gradients / n_rank if stage >= 2 else gradients
    held += weights / n_rank if stage == 3 else weights
    return held * n_params


def activation_bytes(
    seq_len, batch, d_model, n_head, recompute="none", element_bytes=2, mask_bytes=1
):
    norms = attention_input = attention_output = feed_forward_input = element_bytes
    if recompute == "full":
        return norms * d_model * batch * seq_len
    qkv, wide = 3 * element_bytes, 4 * element_bytes
    per_channel = 2 * norms + attention_input + qkv + attention_output + mask_bytes
    per_channel += feed_forward_input + wide + wide + mask_bytes
    per_token = per_channel * d_model
    if recompute != "selective":
        softmax = dropped = element_bytes
        per_token += n_head * seq_len * (softmax + mask_bytes + dropped)
    return per_token * batch * seq_len


def largest_batch(
    memory_bytes, fixed_bytes, n_layer, d_model, n_head, seq_len, vocab_size, recompute="none"
):
    hidden, scores = seq_len * d_model, n_head * seq_len * seq_len
    everything = 34 * hidden + 5 * scores
    kept = {"none": everything, "selective": 34 * hidden, "full": 2 * hidden}[recompute]
    dropped = everything - kept
    peak = n_layer * kept + (dropped if dropped > 12 * seq_len * vocab_size else 0)
    if dropped <= 12 * seq_len * vocab_size:
        peak += 12 * seq_len * vocab_size
    room = memory_bytes - fixed_bytes
    return (room - room % peak) // peak if room >= peak else 0


def checkpoint_plan(n_layer, kept, flops, budget_bytes):
    best = (math.inf, math.inf, None)
    for modes in itertools.combinations_with_replacement(("none", "selective", "full"), n_layer):
        peak = sum(kept[mode] for mode in modes)
        peak += max(kept["none"] - kept[mode] for mode in modes)
        again = sum(flops[mode] for mode in modes)
        if peak <= budget_bytes and (again, peak) < best[:2]:
            best = (again, peak, modes)
    modes = best[2]
    return modes and {mode: modes.count(mode) for mode in ("full", "selective", "none")}


def kv_cache_bytes(n_layer, d_model, n_head, n_kv_head, seq_len, batch, bytes_per_element=2):
    keys = (batch, n_layer, n_kv_head, seq_len, d_model // n_head)
    values = keys
    return (math.prod(keys) + math.prod(values)) * bytes_per_element


def what_does_not_fit(memory_bytes, parts, left):
    over = sum(parts.values()) - memory_bytes
    if over <= 0:
        return "nothing"
    order = sorted(left, key=lambda part: left[part] * parts[part] - parts[part])
    possible = sum(parts[part] - left[part] * parts[part] for part in order)
    return order[0] if possible >= over else "card"
