"""Chapter 08: FlashAttention, forward, backward and in autograd."""

FLASH = []
