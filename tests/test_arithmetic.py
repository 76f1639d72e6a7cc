"""utils.arithmetic: doctests, layering, and figures that other people published."""

import ast
import dataclasses
import doctest
import importlib
import pkgutil
import subprocess
import sys
from pathlib import Path

import pytest

from utils import ROOT, arithmetic
from utils.arithmetic import (
    MODELS,
    RECIPES,
    ModelShape,
    activation_bytes_per_layer,
    activation_table,
    active_parameters,
    attainable_flops_per_s,
    attention_flops,
    attention_share,
    count_parameters,
    forward_flops,
    hfu,
    kv_cache_bytes,
    kv_cache_bytes_per_token,
    latent_cache_bytes_per_token,
    matmul_intensity,
    matmul_parameters,
    mfu,
    mfu_from_throughput,
    model,
    pad_vocabulary,
    palm_flops_per_token,
    parameter_table,
    ridge_point,
    roofline_seconds,
    state_bytes,
    training_flops,
    zero_bytes,
)

MODULES = [
    f"utils.arithmetic.{module.name}" for module in pkgutil.iter_modules(arithmetic.__path__)
]


@pytest.mark.parametrize("name", MODULES)
def test_doctests(name):
    result = doctest.testmod(importlib.import_module(name))
    assert result.attempted > 0
    assert result.failed == 0


def test_every_public_function_has_an_example_and_says_what_it_raises():
    for name in arithmetic.__all__:
        thing = getattr(arithmetic, name)
        if callable(thing) and not isinstance(thing, type):
            assert ">>>" in thing.__doc__, name
            if name != "activation_bytes_per_layer":  # which refers to activation_table
                assert "Raises ValueError" in " ".join(thing.__doc__.split()), name


def test_standard_library_only():
    allowed = sys.stdlib_module_names | {"utils"}
    for path in Path(arithmetic.__path__[0]).glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = []
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                names = [node.module]
            for name in names:
                assert name.split(".")[0] in allowed, f"{path.name} imports {name}"
                if name.startswith("utils."):
                    assert name.startswith("utils.arithmetic"), f"{path.name} imports {name}"


def test_import_loads_nothing_heavy():
    code = "import sys, utils.arithmetic; print({'torch', 'numpy'} & set(sys.modules))"
    result = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert result.stdout.strip() == "set()"


# Totals of the released checkpoints (Hugging Face safetensors metadata; GPT-3: table 2.1).
PUBLISHED_PARAMETERS = {
    "GPT-2 124M": 124_439_808,
    "GPT-2 Medium 355M": 354_823_168,
    "GPT-2 Large 774M": 774_030_080,
    "GPT-2 XL 1.5B": 1_557_611_200,
    "Llama 2 7B": 6_738_415_616,
    "Llama 2 70B": 68_976_648_192,
    "Llama 3.1 8B": 8_030_261_248,
    "Llama 3.1 70B": 70_553_706_496,
    "Llama 3.1 405B": 405_853_388_800,
    "Llama 3.2 1B": 1_235_814_400,
    "Qwen2.5 0.5B": 494_032_768,
    "Qwen2.5 7B": 7_615_616_512,
    "Mistral 7B": 7_241_732_096,
    "Mixtral 8x7B": 46_702_792_704,
}


@pytest.mark.parametrize("name", MODELS)
def test_released_models(name):
    if name == "GPT-3 175B":
        assert count_parameters(model(name)) == pytest.approx(174.6e9, rel=1e-3)
    else:
        assert count_parameters(model(name)) == PUBLISHED_PARAMETERS[name]


def test_mixtral_active_parameters():
    # arXiv 2401.04088 says 13B
    assert active_parameters(model("Mixtral 8x7B")) == pytest.approx(12.9e9, rel=2e-3)
    dense = model("Llama 3.1 8B")
    assert active_parameters(dense) == count_parameters(dense)


def test_parameter_table_adds_up_and_ties():
    shape = model("GPT-2 124M")
    table = parameter_table(shape)
    assert sum(table.values()) == count_parameters(shape)
    assert table["output head"] == table["router"] == 0
    untied = dataclasses.replace(shape, tied=False)
    assert count_parameters(untied) - count_parameters(shape) == 50257 * 768
    assert matmul_parameters(untied) == matmul_parameters(shape)


def test_padded_vocabulary():
    assert pad_vocabulary(50257, 128) == 50304
    assert pad_vocabulary(50304, 128) == 50304
    padded = dataclasses.replace(model("GPT-2 124M"), vocab_size=50304)
    assert count_parameters(padded) == 124_439_808 + 47 * 768


def test_replacing_a_size_keeps_a_dense_shape_valid():
    assert dataclasses.replace(model("Llama 2 7B"), d_ff=8192).d_ff == 8192
    experts = dataclasses.replace(model("Llama 2 7B"), n_expert=4)
    assert experts.d_ff_expert == 11008


def test_training_flops_of_megatron():
    # arXiv 2104.04473, eq. 3, full recompute: 96 B s l h^2 (1 + s / 6h + V / 16 l h)
    n_layer, h, vocab, s, b = 96, 12288, 51200, 2048, 4
    shape = ModelShape(n_layer, h, 96, vocab, seq_len=s)
    eq_3 = 96 * b * s * n_layer * h**2 + 16 * b * s**2 * n_layer * h + 6 * b * s * h * vocab
    assert training_flops(shape, batch=b, recompute="full") == eq_3
    # arXiv 2205.05198, appendix A, model FLOPs: 72 B L s h^2 (1 + s / 6h + v / 12 h L)
    model_flops = 72 * b * s * n_layer * h**2 + 12 * b * s**2 * n_layer * h + 6 * b * s * h * vocab
    assert training_flops(shape, batch=b) == model_flops
    selective = training_flops(shape, batch=b, recompute="selective")
    assert selective == model_flops + attention_flops(shape, batch=b)


def test_training_flops_conventions():
    shape = model("GPT-2 124M")
    assert training_flops(shape, batch=5) == 3 * forward_flops(shape, batch=5)
    assert training_flops(shape, tokens=5 * 1024) == training_flops(shape, batch=5)
    assert training_flops(shape, tokens=1e11) == 10**11 * training_flops(shape, tokens=1)
    without = training_flops(shape, tokens=1, attention=False)
    assert without == 6 * matmul_parameters(shape)
    full = training_flops(shape, batch=1, recompute="full", attention=False)
    head = 2 * 768 * 50257 * 1024
    assert full == 4 * forward_flops(shape) - 4 * attention_flops(shape) - head


def test_palm_counts_like_the_exact_count_but_for_what_is_no_matmul():
    # tied: the embedding's weights are the head's. 6N then differs by positions, norms, biases.
    shape = model("GPT-2 124M")
    exact = training_flops(shape, tokens=1)
    palm = palm_flops_per_token(count_parameters(shape), 12, 12, 64, 1024)
    assert palm - exact == 6 * (count_parameters(shape) - matmul_parameters(shape))


def test_causal_counts_the_pairs_a_mask_keeps():
    shape = ModelShape(1, 8, 2, 10, seq_len=4)
    kept = sum(1 for query in range(4) for key in range(4) if key <= query)
    assert attention_flops(shape, causal=True) == kept * 4 * 8
    assert attention_flops(shape) == 16 * 4 * 8
    assert attention_flops(ModelShape(1, 8, 2, 10, n_kv_head=1), seq_len=4) == 16 * 4 * 8


def test_attention_share_grows_to_one():
    shape = model("Llama 3.1 8B")
    shares = [attention_share(shape, 2**power) for power in range(8, 24, 3)]
    assert shares == sorted(shares)
    assert shares[0] < 0.05 < 0.95 < shares[-1] < 1
    # Equal where 4 T d_model n_layer = 2 weights
    equal = matmul_parameters(shape) // (2 * 4096 * 32)
    assert attention_share(shape, equal) == pytest.approx(0.5, abs=1e-4)


def test_utilisation_conventions():
    shape = model("GPT-2 124M")
    step, recomputed = (training_flops(shape, batch=8, recompute=r) for r in ("none", "full"))
    assert mfu(step, 0.1, 312e12) < hfu(recomputed, 0.1, 312e12)
    from_log = mfu_from_throughput(8 * 1024 / 0.1, training_flops(shape, tokens=1), 312e12)
    assert from_log == pytest.approx(mfu(step, 0.1, 312e12))
    assert mfu(step, 0.1, 312e12, n_gpu=4) == pytest.approx(mfu(step, 0.1, 312e12) / 4)


@pytest.mark.parametrize(
    ("name", "n_bytes"),
    [
        ("bf16 + fp32 Adam", 12),
        ("bf16 + fp32 master", 16),
        ("bf16 + fp32 master and gradients", 18),
        ("fp32", 16),
        ("bf16 + 8-bit Adam", 6),
        ("bf16 + fp32 master, 8-bit Adam", 10),
        ("bf16 everything", 8),
        ("fp32 SGD with momentum", 12),
        ("fp32 SGD", 8),
        ("bf16 SGD", 4),
    ],
)
def test_recipes(name, n_bytes):
    assert RECIPES[name].bytes_per_parameter == n_bytes
    assert state_bytes(10, name) == state_bytes(10, RECIPES[name]) == 10 * n_bytes


def test_recipes_all_say_what_they_give_up():
    assert len(RECIPES) == 10
    assert all(recipe.gives_up.endswith(".") for recipe in RECIPES.values())


def test_the_seed_recipe():
    assert state_bytes(1.5e9, "bf16 + fp32 Adam") == 18e9


def test_zero_shares_out_what_its_stage_names():
    for recipe in RECIPES.values():
        sizes = [zero_bytes(1000, 4, stage, recipe) for stage in range(4)]
        assert sizes[0] == state_bytes(1000, recipe)
        assert sizes[0] - sizes[1] == 750 * recipe.optimizer_bytes_per_parameter
        assert sizes[1] - sizes[2] == 750 * recipe.gradients
        assert sizes[3] == sizes[0] / 4


@pytest.mark.parametrize(
    ("sequence_parallel", "recompute", "per_sbh", "per_ass_b"),
    [
        (False, "none", 10 + 24 / 3, 5 / 3),
        (True, "none", 34 / 3, 5 / 3),
        (False, "selective", 10 + 24 / 3, 0),
        (True, "selective", 34 / 3, 0),
        (False, "full", 2, 0),
        (True, "full", 2 / 3, 0),
    ],
)
def test_activations_over_three_gpus(sequence_parallel, recompute, per_sbh, per_ass_b):
    s, b, h, a = 66, 2, 96, 6
    got = activation_bytes_per_layer(
        s, b, h, a, tensor_parallel=3, sequence_parallel=sequence_parallel, recompute=recompute
    )
    assert got == pytest.approx(per_sbh * s * b * h + per_ass_b * a * s * s * b, rel=1e-12)


def test_activations_full_and_selective_are_not_swapped():
    sizes = [
        activation_bytes_per_layer(1024, 1, 768, 12, recompute=r)
        for r in ("none", "selective", "full")
    ]
    assert sizes == sorted(sizes, reverse=True)
    assert sum(activation_table(1024, 1, 768, 12).values()) == sizes[0]


# arXiv 2505.09343, table 1: KV cache per token in bf16
@pytest.mark.parametrize(
    ("got", "published_kb"),
    [
        (latent_cache_bytes_per_token(61, 512, 64), 70.272),  # DeepSeek-V3
        (kv_cache_bytes_per_token(80, 8, 128), 327.680),  # Qwen2.5 72B
        (kv_cache_bytes_per_token(126, 8, 128), 516.096),  # Llama 3.1 405B
    ],
)
def test_published_caches(got, published_kb):
    assert got == round(1000 * published_kb)


def test_caches():
    assert latent_cache_bytes_per_token(1, 512, 64, 1) == 576
    multi_query = kv_cache_bytes_per_token(32, 1, 128)
    assert kv_cache_bytes_per_token(32, 32, 128) == 32 * multi_query
    assert kv_cache_bytes_per_token(32, 8, 128, 0.5) == 32768
    cache = kv_cache_bytes(32, 8, 128, seq_len=8192, batch=4)
    assert cache == 4 * 2**30


def test_roofline_bends_at_the_ridge():
    peak, bandwidth = 989.4e12, 3.35e12
    ridge = ridge_point(peak, bandwidth)
    assert attainable_flops_per_s(ridge / 2, peak, bandwidth) == pytest.approx(peak / 2)
    assert attainable_flops_per_s(ridge * 2, peak, bandwidth) == peak
    assert attainable_flops_per_s(0, peak, bandwidth) == 0
    assert roofline_seconds(peak, 1, peak, bandwidth) == 1
    assert roofline_seconds(1, bandwidth, peak, bandwidth) == 1
    assert matmul_intensity(1, 4096, 4096, 2) == pytest.approx(1, rel=1e-3)
    assert matmul_intensity(8192, 8192, 8192, 2) == pytest.approx(8192 / 3)
