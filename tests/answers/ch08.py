"""A second correct answer to every exercise of chapter 08, written differently."""

from tests.answers._ch08_flash import *  # noqa: F403
from tests.answers._ch08_matmul import *  # noqa: F403
