"""Chapter 08: the tiled matrix product, its program order and its epilogue."""

MATMUL = []
