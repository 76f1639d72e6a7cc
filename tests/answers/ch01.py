"""Second, differently written correct answers to chapter 01's exercises."""

import math


def count_parameters(n_layer, d_model, vocab_size, seq_len):
    linear = [(1, 3), (1, 1), (1, 4), (4, 1)]
    block = sum((i * d_model + 1) * (o * d_model) for i, o in linear) + 2 * (2 * d_model)
    return vocab_size * d_model + seq_len * d_model + n_layer * block + d_model + d_model


def count_llama_parameters(n_layer, d_model, n_head, n_kv_head, d_ff, vocab_size, tied):
    group = n_head // n_kv_head
    total = d_model if tied else d_model + vocab_size * d_model
    for _ in range(n_layer):
        total += d_model * (d_model + d_model + 2 * d_model // group)
        total += 3 * d_ff * d_model
        total += 2 * d_model
    return total + vocab_size * d_model


def active_parameters(
    n_layer, d_model, n_head, n_kv_head, d_ff, vocab_size, n_expert, n_expert_active
):
    outside = count_llama_parameters(n_layer, d_model, n_head, n_kv_head, 0, vocab_size, False)
    router = d_model * n_expert
    experts = n_expert_active * (2 * d_model * d_ff + d_ff * d_model)
    return outside + n_layer * (router + experts)


def forward_flops(n_layer, d_model, vocab_size, seq_len, batch):
    token = 2 * d_model * (n_layer * (12 * d_model + 2 * seq_len) + vocab_size)
    return float(token * seq_len * batch)


def training_flops(n_layer, d_model, vocab_size, seq_len, n_tokens):
    weights = 12 * n_layer * d_model**2 + vocab_size * d_model
    return (6.0 * weights + 12.0 * n_layer * d_model * seq_len) * n_tokens


def attention_share(matmul_weights, n_layer, n_head, head_dim, seq_len, causal):
    pairs = sum(range(seq_len + 1)) if causal else seq_len**2
    ratio = 2 * matmul_weights * seq_len / (4 * n_layer * n_head * head_dim * pairs)
    return 1 / (1 + ratio)


def days_to_train(flops, n_gpu, peak_flops_per_s, mfu):
    exponent = math.log(flops) - math.log(n_gpu) - math.log(peak_flops_per_s) - math.log(mfu)
    return math.exp(exponent) / 24 / 3600


def mfu_from_throughput(
    tokens_per_s, n_params, n_layer, n_head, head_dim, seq_len, peak_flops_per_s, n_gpu
):
    ideal_tokens_per_s = n_gpu * peak_flops_per_s
    ideal_tokens_per_s /= 6 * n_params + 12 * n_layer * n_head * head_dim * seq_len
    return tokens_per_s / ideal_tokens_per_s
