"""Released models by name. Sizes are those of each release's published configuration."""

import difflib
from functools import partial

from utils.arithmetic import checks
from utils.arithmetic.shapes import ModelShape

# arXiv 2302.13971, section 2.2: RMSNorm, SwiGLU, rotary positions, no biases.
_llama_like = partial(
    ModelShape, gated=True, norm="rmsnorm", positions="rope", bias=False, tied=False
)

MODELS: dict[str, ModelShape] = {
    # GPT-2 report, table 2, and openai/gpt-2's hparams.json
    "GPT-2 124M": ModelShape(12, 768, 12, 50257, seq_len=1024),
    "GPT-2 Medium 355M": ModelShape(24, 1024, 16, 50257, seq_len=1024),
    "GPT-2 Large 774M": ModelShape(36, 1280, 20, 50257, seq_len=1024),
    "GPT-2 XL 1.5B": ModelShape(48, 1600, 25, 50257, seq_len=1024),
    # arXiv 2005.14165, table 2.1 (half of its layers attend to a band; the shape is the same)
    "GPT-3 175B": ModelShape(96, 12288, 96, 50257, seq_len=2048),
    # config.json of each release
    "Llama 2 7B": _llama_like(32, 4096, 32, 32000, seq_len=4096, d_ff=11008),
    "Llama 2 70B": _llama_like(80, 8192, 64, 32000, seq_len=4096, n_kv_head=8, d_ff=28672),
    "Llama 3.1 8B": _llama_like(32, 4096, 32, 128256, seq_len=131072, n_kv_head=8, d_ff=14336),
    "Llama 3.1 70B": _llama_like(80, 8192, 64, 128256, seq_len=131072, n_kv_head=8, d_ff=28672),
    "Llama 3.1 405B": _llama_like(126, 16384, 128, 128256, seq_len=131072, n_kv_head=8, d_ff=53248),
    "Llama 3.2 1B": _llama_like(
        16, 2048, 32, 128256, seq_len=131072, n_kv_head=8, d_ff=8192, tied=True
    ),
    "Qwen2.5 0.5B": _llama_like(
        24, 896, 14, 151936, seq_len=32768, n_kv_head=2, d_ff=4864, qkv_bias=True, tied=True
    ),
    "Qwen2.5 7B": _llama_like(
        28, 3584, 28, 152064, seq_len=131072, n_kv_head=4, d_ff=18944, qkv_bias=True
    ),
    "Mistral 7B": _llama_like(32, 4096, 32, 32000, seq_len=32768, n_kv_head=8, d_ff=14336),
    "Mixtral 8x7B": _llama_like(
        32,
        4096,
        32,
        32000,
        seq_len=32768,
        n_kv_head=8,
        d_ff=14336,
        n_expert=8,
        n_expert_active=2,
    ),
}


def model(name: str) -> ModelShape:
    """The shape of a released model.

    Raises ValueError with near names when the name is not in MODELS.

    >>> model("GPT-2 124M").d_model
    768
    >>> model("gpt2-124m")
    Traceback (most recent call last):
    ValueError: name is 'gpt2-124m'; allowed: "GPT-2 124M"; MODELS lists all
    """
    return named("name", name, MODELS, "MODELS")


def named(argument: str, name: object, table: dict, table_name: str):
    """table[name], or a ValueError with the nearest names."""
    if isinstance(name, str) and name in table:
        return table[name]
    plain = {key.lower(): key for key in table}
    close = difflib.get_close_matches(str(name).lower(), plain, n=3, cutoff=0.6)
    holding = [key for low, key in plain.items() if str(name).lower() in low]
    near = [plain[key] for key in close] or holding or list(table)
    allowed = " or ".join(f'"{key}"' for key in near)
    raise checks.refuse(argument, name, f"{allowed}; {table_name} lists all")
