"""Named sizes of the GPT. A configuration is a ModelShape, so every count applies to it."""

from utils.arithmetic import ModelShape
from utils.arithmetic.models import named

N_BYTES = 256  # the vocabulary: one token is one byte

CONFIGS: dict[str, ModelShape] = {
    # two minutes of training on two CPU cores
    "1M": ModelShape(4, 128, 4, N_BYTES, seq_len=128, bias=False),
    # one GPU, minutes
    "10M": ModelShape(6, 384, 6, N_BYTES, seq_len=256, bias=False),
    "30M": ModelShape(10, 512, 8, N_BYTES, seq_len=512, bias=False),
    # GPT-2's published shape, vocabulary and all, so that its speed can be compared with what
    # others publish. Trained on bytes it uses 256 of its 50257 rows.
    "124M": ModelShape(12, 768, 12, 50257, seq_len=1024),
}


def configuration(name: str) -> ModelShape:
    """The shape of that name. Raises ValueError with near names when CONFIGS has none.

    >>> configuration("1M").d_model
    128
    """
    return named("name", name, CONFIGS, "CONFIGS")
