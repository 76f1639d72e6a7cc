"""FLOPs, bytes and time from shapes. Pure Python, standard library only.

Sizes are plain numbers: FLOPs count multiply-adds as two, bytes are bytes (GB is 10^9, GiB
2^30), rates are per second. A wrong argument raises ValueError with its name and value.
"""

from utils.arithmetic.activations import activation_bytes_per_layer, activation_table
from utils.arithmetic.flops import (
    attention_flops,
    attention_share,
    days_to_train,
    flops_6nd,
    forward_flops,
    petaflop_s_days,
    training_flops,
)
from utils.arithmetic.kv_cache import (
    kv_cache_bytes,
    kv_cache_bytes_per_token,
    latent_cache_bytes_per_token,
)
from utils.arithmetic.models import MODELS, model
from utils.arithmetic.parameters import (
    active_parameters,
    count_parameters,
    matmul_parameters,
    parameter_table,
)
from utils.arithmetic.roofline import (
    attainable_flops_per_s,
    matmul_intensity,
    matrix_unit_peak_flops_per_s,
    mbu,
    ridge_point,
    roofline_seconds,
)
from utils.arithmetic.shapes import ModelShape, pad_vocabulary
from utils.arithmetic.states import RECIPES, Recipe, state_bytes, zero_bytes
from utils.arithmetic.utilisation import (
    hfu,
    mfu,
    mfu_from_throughput,
    mpt_hfu,
    mpt_mfu,
    palm_flops_per_token,
    palm_mfu,
)

__all__ = [
    "MODELS",
    "RECIPES",
    "ModelShape",
    "Recipe",
    "activation_bytes_per_layer",
    "activation_table",
    "active_parameters",
    "attainable_flops_per_s",
    "attention_flops",
    "attention_share",
    "count_parameters",
    "days_to_train",
    "flops_6nd",
    "forward_flops",
    "hfu",
    "kv_cache_bytes",
    "kv_cache_bytes_per_token",
    "latent_cache_bytes_per_token",
    "matmul_intensity",
    "matmul_parameters",
    "matrix_unit_peak_flops_per_s",
    "mbu",
    "mfu",
    "mfu_from_throughput",
    "model",
    "mpt_hfu",
    "mpt_mfu",
    "pad_vocabulary",
    "palm_flops_per_token",
    "palm_mfu",
    "parameter_table",
    "petaflop_s_days",
    "ridge_point",
    "roofline_seconds",
    "state_bytes",
    "training_flops",
    "zero_bytes",
]
