"""Chapter 08: FlashAttention, forward, backward and in autograd."""

from __future__ import annotations

from ._ch08_flash_autograd import FLASH_ATTENTION
from ._ch08_flash_backward import FLASH_BACKWARD
from ._ch08_flash_forward import FLASH_FORWARD

FLASH = [FLASH_FORWARD, FLASH_BACKWARD, FLASH_ATTENTION]
