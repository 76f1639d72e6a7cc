"""Wrong arguments to utils.arithmetic: a ValueError that names argument, value and way out."""

import inspect
import math
from fractions import Fraction

import numpy as np
import pytest

from utils import arithmetic as ar
from utils.arithmetic import ModelShape, model

GPT2 = model("GPT-2 124M")
NOT_NUMBERS = [True, "12", None, [1], math.nan, math.inf, -math.inf, 10**400, 1j]

# function: arguments that work. Each is then broken, one argument at a time.
CALLS = {
    ar.pad_vocabulary: {"vocab_size": 50257, "multiple": 64},
    ar.count_parameters: {"shape": GPT2},
    ar.parameter_table: {"shape": GPT2},
    ar.active_parameters: {"shape": GPT2},
    ar.matmul_parameters: {"shape": GPT2, "lm_head": True},
    ar.forward_flops: {
        "shape": GPT2, "seq_len": 8, "batch": 1, "causal": False, "lm_head": True,
    },
    ar.attention_flops: {"shape": GPT2, "seq_len": 8, "batch": 1, "causal": False},
    ar.attention_share: {"shape": GPT2, "seq_len": 8, "causal": False},
    ar.training_flops: {
        "shape": GPT2, "seq_len": 8, "batch": 1, "recompute": "none", "causal": False,
        "attention": True,
    },
    ar.flops_6nd: {"n_params": 1e9, "n_tokens": 1e9},
    ar.petaflop_s_days: {"flops": 1e20},
    ar.days_to_train: {"flops": 1e20, "n_gpu": 8, "peak_flops_per_s": 1e15, "mfu": 0.4},
    ar.mfu: {"model_flops": 1e15, "seconds": 1, "peak_flops_per_s": 1e15, "n_gpu": 8},
    ar.hfu: {"hardware_flops": 1e15, "seconds": 1, "peak_flops_per_s": 1e15, "n_gpu": 8},
    ar.mfu_from_throughput: {
        "tokens_per_s": 1e4, "flops_per_token": 1e9, "peak_flops_per_s": 1e15, "n_gpu": 8,
    },
    ar.palm_flops_per_token: {
        "n_params": 1e9, "n_layer": 2, "n_head": 2, "head_dim": 2, "seq_len": 2,
    },
    ar.palm_mfu: {
        "n_params": 1e9, "n_layer": 2, "n_head": 2, "head_dim": 2, "seq_len": 2,
        "tokens_per_s": 1e4, "peak_flops_per_s": 1e15, "n_gpu": 8,
    },
    ar.mpt_mfu: {
        "n_params": 1e9, "n_layer": 2, "d_model": 2, "seq_len": 2, "tokens_per_s": 1e4,
        "peak_flops_per_s": 1e15, "n_gpu": 8,
    },
    ar.mpt_hfu: {"mfu": 0.4, "checkpointing": True},
    ar.state_bytes: {"n_params": 1e9, "recipe": "fp32"},
    ar.zero_bytes: {"n_params": 1e9, "n_rank": 4, "stage": 1, "recipe": "fp32"},
    ar.activation_table: {
        "seq_len": 8, "batch": 1, "d_model": 16, "n_head": 4, "tensor_parallel": 2,
        "sequence_parallel": True, "recompute": "none",
    },
    ar.activation_bytes_per_layer: {
        "seq_len": 8, "batch": 1, "d_model": 16, "n_head": 4, "tensor_parallel": 2,
        "sequence_parallel": True, "recompute": "none",
    },
    ar.kv_cache_bytes_per_token: {
        "n_layer": 2, "n_kv_head": 2, "head_dim": 2, "bytes_per_element": 2,
    },
    ar.latent_cache_bytes_per_token: {
        "n_layer": 2, "latent_dim": 2, "rope_dim": 2, "bytes_per_element": 2,
    },
    ar.kv_cache_bytes: {
        "n_layer": 2, "n_kv_head": 2, "head_dim": 2, "seq_len": 2, "batch": 2,
        "bytes_per_element": 2,
    },
    ar.ridge_point: {"peak_flops_per_s": 1e15, "bytes_per_s": 1e12},
    ar.attainable_flops_per_s: {
        "intensity": 1, "peak_flops_per_s": 1e15, "bytes_per_s": 1e12,
    },
    ar.roofline_seconds: {
        "flops": 1, "n_bytes": 1, "peak_flops_per_s": 1e15, "bytes_per_s": 1e12,
    },
    ar.matmul_intensity: {"m": 2, "n": 2, "k": 2, "bytes_per_element": 2},
    ar.mbu: {
        "weight_bytes": 1e9, "kv_bytes": 0, "seconds_per_token": 1, "peak_bytes_per_s": 1e12,
        "n_gpu": 1,
    },
    ar.matrix_unit_peak_flops_per_s: {
        "n_core": 2, "units_per_core": 4, "multiply_adds_per_cycle": 8, "clock_hz": 1e9,
    },
    ar.model: {"name": "GPT-2 124M"},
}  # fmt: skip
MAY_BE_ZERO = {"kv_bytes", "intensity", "n_bytes", "rope_dim", "stage"}


def may_be_zero(function, name):
    return name in MAY_BE_ZERO or (function is ar.roofline_seconds and name == "flops")


def wrong_values(function, name, good):
    if isinstance(good, bool):
        return [1, "False", None, math.nan]
    if isinstance(good, str):
        return ["", "no such name", "FULL", 3, True, None, [], math.nan]
    if isinstance(good, ModelShape):
        return ["GPT-2 124M", None, 124e6, True, ModelShape]
    wrong = [value for value in NOT_NUMBERS if value is not None] + [-1]
    if isinstance(good, int) and name not in ("seconds", "seconds_per_token", "bytes_per_element"):
        wrong = [value for value in wrong if value != 10**400]  # exact integers may be long
    if not may_be_zero(function, name):
        wrong += [0, 0.0]
    return wrong


BROKEN = [
    pytest.param(function, name, value, id=f"{function.__name__}-{name}-{str(value)[:12]}")
    for function, good in CALLS.items()
    for name in good
    for value in wrong_values(function, name, good[name])
]


def test_every_public_function_is_in_the_list():
    public = [getattr(ar, name) for name in ar.__all__]
    functions = {thing for thing in public if inspect.isfunction(thing)}
    assert functions == set(CALLS)
    for function, good in CALLS.items():
        function(**good)
        missing = set(inspect.signature(function).parameters) - set(good)
        assert missing <= {"tokens"}, function.__name__


@pytest.mark.parametrize(("function", "name", "value"), BROKEN)
def test_one_wrong_argument(function, name, value):
    with pytest.raises(ValueError) as caught:
        function(**{**CALLS[function], name: value})
    message = str(caught.value)
    assert message.startswith(f"{name} is ")
    assert "; allowed: " in message
    assert len(message) < 400


@pytest.mark.parametrize(
    ("name", "value"),
    [(n, v) for n in ("n_layer", "d_model", "n_head", "vocab_size", "seq_len", "n_kv_head",
                      "head_dim", "d_ff", "n_expert", "n_expert_active", "n_expert_shared")
     for v in (True, "8", -1, 2.0, math.nan)]
    + [(n, 0) for n in ("n_layer", "d_model", "n_head", "vocab_size", "seq_len", "n_kv_head",
                        "head_dim", "d_ff", "n_expert", "n_expert_active")]
    + [(n, v) for n in ("gated", "bias", "tied", "qkv_bias") for v in (1, "True", 0.0)]
    + [(n, v) for n in ("norm", "positions") for v in ("", "LayerNorm", None, 1, True, [])]
    + [("n_head", 5), ("n_kv_head", 3), ("n_kv_head", 8), ("n_expert_active", 2),
       ("n_expert_shared", 1), ("d_ff_expert", 64)],
)  # fmt: skip
def test_wrong_shapes(name, value):
    good = {"n_layer": 2, "d_model": 16, "n_head": 4, "vocab_size": 10}
    ModelShape(**good)
    with pytest.raises(ValueError, match=rf"^{name} is .*; allowed: "):
        ModelShape(**{**good, name: value})


def test_experts():
    four = {"n_layer": 2, "d_model": 16, "n_head": 4, "vocab_size": 10, "n_expert": 4}
    assert ModelShape(**four, n_expert_active=4, n_expert_shared=1).d_ff_expert == 64
    for name, value in [("n_expert_active", 5), ("d_ff_expert", 0), ("d_ff_expert", "8")]:
        with pytest.raises(ValueError, match=f"^{name} is "):
            ModelShape(**four, **{name: value})


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"tensor_parallel": 3}, "tensor_parallel is 3; allowed: a divisor of n_head=4"),
        ({"n_head": 5, "tensor_parallel": 1}, "n_head is 5; allowed: a divisor of d_model=16"),
        ({"seq_len": 9}, "seq_len is 9; allowed: a multiple of tensor_parallel=2"),
    ],
)
def test_activations_that_do_not_divide(changes, message):
    with pytest.raises(ValueError, match=f"^{message}$"):
        ar.activation_table(**{**CALLS[ar.activation_table], **changes})


def test_training_flops_takes_batch_or_tokens():
    for both in ({}, {"batch": 1, "tokens": 1}):
        with pytest.raises(ValueError, match=r"^batch or tokens is .*exactly one of the two"):
            ar.training_flops(GPT2, **both)
    for tokens in (0, -5, 1.5, True, "1e9", math.nan, math.inf):
        with pytest.raises(ValueError, match=r"^tokens is "):
            ar.training_flops(GPT2, tokens=tokens)


@pytest.mark.parametrize("stage", [4, -1, 1.0, True, "2", None])
def test_zero_stage(stage):
    with pytest.raises(ValueError, match=r"^stage is .*; allowed: a whole number from 0 to 3$"):
        ar.zero_bytes(1e9, 4, stage)


@pytest.mark.parametrize("mfu", [1.01, 40, 0, -0.1])
def test_mfu_of_a_plan_is_a_share(mfu):
    with pytest.raises(ValueError, match=r"40% is 0\.4"):
        ar.days_to_train(1e20, 8, 1e15, mfu)


def test_near_names():
    with pytest.raises(ValueError, match=r'"Llama 3\.1 8B"'):
        model("llama 3.1 8b")
    with pytest.raises(ValueError, match='"Mixtral 8x7B"'):
        model("Mixtral8x7B")
    with pytest.raises(ValueError, match=r'"bf16 \+ fp32 Adam"'):
        ar.state_bytes(1e9, "bf16 fp32 adam")
    with pytest.raises(ValueError, match=r'allowed: "Qwen2\.5 0\.5B" or "Qwen2\.5 7B";'):
        model("qwen")


def test_recipe_fields():
    for field in ("weights", "gradients", "master", "adam_m", "adam_v"):
        for value in (-1, "2", True, math.nan):
            sizes = dict.fromkeys(("weights", "gradients", "master", "adam_m", "adam_v"), 2)
            with pytest.raises(ValueError, match=f"^{field} is "):
                ar.Recipe("mine", **{**sizes, field: value}, gives_up="nothing.")


def test_numbers_of_other_kinds_are_welcome_and_exact():
    # In int32 the product would overflow; in float32 it would lose digits.
    shape = ModelShape(*(np.int32(n) for n in (12, 768, 12, 50257)))
    assert ar.forward_flops(shape, batch=np.int32(64)) == 64 * 291_648_307_200
    assert type(ar.count_parameters(shape)) is int
    assert ar.flops_6nd(np.float32(1e9), Fraction(10**9)) == 6e18
    assert ar.activation_bytes_per_layer(np.int16(2048), 1, 12288, 96) == 2868903936
