"""Bytes that training keeps for every parameter, and ZeRO's way to share them out.

GB is 10^9 bytes everywhere, GiB is 2^30. Functions return bytes, so nobody has to guess.
"""

from dataclasses import dataclass

from utils.arithmetic import checks
from utils.arithmetic.models import named


@dataclass(frozen=True)
class Recipe:
    """Bytes per parameter of each thing training keeps, and what the recipe gives up.

    weights, gradients: as the forward and backward pass use them
    master: a second, wider copy of the weights that the optimizer updates; 0 without one
    adam_m, adam_v: the optimizer's running averages; 0 where it has none. SGD's momentum is
      one average, counted as adam_m
    Raises ValueError naming a field that is not a number of bytes.
    """

    name: str
    weights: float
    gradients: float
    master: float
    adam_m: float
    adam_v: float
    gives_up: str

    def __post_init__(self) -> None:
        for field in ("weights", "gradients", "master", "adam_m", "adam_v"):
            checks.not_negative(field, getattr(self, field))
        checks.positive("weights", self.weights)

    @property
    def optimizer_bytes_per_parameter(self) -> float:
        """Master weights and averages: what ZeRO calls K, 12 for mixed-precision Adam."""
        return self.master + self.adam_m + self.adam_v

    @property
    def bytes_per_parameter(self) -> float:
        """Everything together."""
        return self.weights + self.gradients + self.optimizer_bytes_per_parameter


_LOST_UPDATES = (
    "No master copy: bf16 keeps 8 significant bits, so an update smaller than 1/512 to 1/256 "
    "of its weight rounds away."
)

RECIPES: dict[str, Recipe] = {
    recipe.name: recipe
    for recipe in [
        Recipe("bf16 + fp32 Adam", 2, 2, 0, 4, 4, _LOST_UPDATES),
        # arXiv 1910.02054, section 3.1: 2 + 2 + K with K = 12, so 16
        Recipe(
            "bf16 + fp32 master", 2, 2, 4, 4, 4,
            "4 bytes more than without the master copy. Gradients still add up in bf16 when "
            "several micro-batches make one step.",
        ),
        Recipe(
            "bf16 + fp32 master and gradients", 2, 4, 4, 4, 4,
            "Nothing in precision. 18 bytes, the most of all recipes here.",
        ),
        Recipe(
            "fp32", 4, 4, 0, 4, 4,
            "Speed: matrix units run narrower dtypes faster, and activations take 4 bytes.",
        ),
        # arXiv 2110.02861: 8-bit blockwise averages
        Recipe(
            "bf16 + 8-bit Adam", 2, 2, 0, 1, 1,
            _LOST_UPDATES + " Averages have 8 bits and one fp32 scale a block of 2048 values "
            "(0.002 byte a value, not counted here).",
        ),
        Recipe(
            "bf16 + fp32 master, 8-bit Adam", 2, 2, 4, 1, 1,
            "Averages have 8 bits and one fp32 scale a block of 2048 values (0.002 byte a "
            "value, not counted here). Embeddings often keep 32-bit averages.",
        ),
        Recipe(
            "bf16 everything", 2, 2, 0, 2, 2,
            _LOST_UPDATES + " With beta2 = 0.999 a step shrinks v by at most a thousandth, which "
            "bf16 rounds away: v can rise but not fall.",
        ),
        # arXiv 1912.03194: why Adam wins on attention models
        Recipe(
            "fp32 SGD with momentum", 4, 4, 0, 4, 0,
            "Adam's step size per parameter, without which transformers train worse.",
        ),
        Recipe(
            "fp32 SGD", 4, 4, 0, 0, 0,
            "Adam's step size per parameter, and momentum.",
        ),
        Recipe(
            "bf16 SGD", 2, 2, 0, 0, 0,
            _LOST_UPDATES + " No momentum, no step size per parameter.",
        ),
    ]
}  # fmt: skip


def recipe_named(recipe: str | Recipe) -> Recipe:
    """The recipe itself, or the one of that name. ValueError with near names otherwise.

    >>> recipe_named("fp32").bytes_per_parameter
    16
    """
    return recipe if isinstance(recipe, Recipe) else named("recipe", recipe, RECIPES, "RECIPES")


def state_bytes(n_params: float, recipe: str | Recipe) -> float:
    """Bytes of weights, gradients and optimizer states on one GPU. No activations.

    For a mixture of experts n_params is all of them: idle experts have states too.
    Raises ValueError naming a wrong argument.

    >>> state_bytes(1.5e9, "bf16 + fp32 Adam") / 1e9
    18.0
    >>> state_bytes(1.5e9, "bf16 + fp32 master") / 1e9
    24.0
    """
    n_params = checks.positive("n_params", n_params)
    return n_params * recipe_named(recipe).bytes_per_parameter


def zero_bytes(
    n_params: float, n_rank: int, stage: int, recipe: str | Recipe = "bf16 + fp32 master"
) -> float:
    """Bytes of states on each of n_rank data-parallel GPUs under ZeRO.

    stage: 0 shares nothing; 1 the optimizer states (master, m, v); 2 the gradients too;
      3 the weights too. Even shares, without the padding that real buffers add.
    Raises ValueError naming a wrong argument. Source: arXiv 1910.02054, figure 1 and table 1.

    >>> zero_bytes(7.5e9, 64, 1) / 1e9
    31.40625
    """
    n_params = checks.positive("n_params", n_params)
    n_rank = checks.whole("n_rank", n_rank)
    stage = checks.whole("stage", stage, 0, 3)
    recipe = recipe_named(recipe)
    parts = [recipe.optimizer_bytes_per_parameter, recipe.gradients, recipe.weights]
    shared, kept = sum(parts[:stage]), sum(parts[stage:])
    return n_params * (kept + shared / n_rank)
