"""Chapter 04: the bytes that attention moves, unfused and in tiles."""

from __future__ import annotations

from fractions import Fraction

from .spec import Exercise, Mistake


def _hbm_bytes(seq_len, head_dim, bytes_per_element, block_q, block_k, causal):
    """Row by row: every query row carries its share of what its tile reads."""
    if block_q is None:
        rows = seq_len * head_dim
        elements = (2 * rows + seq_len**2) + 2 * seq_len**2 + (seq_len**2 + rows + rows)
        return elements * bytes_per_element
    elements = Fraction(0)
    for start in range(0, seq_len, block_q):
        end = min(start + block_q, seq_len)
        keys = seq_len
        if causal:
            keys = sum(min(j + block_k, seq_len) - j for j in range(0, seq_len, block_k) if j < end)
        elements += 2 * (end - start) * head_dim + 2 * keys * head_dim
    return int(elements) * bytes_per_element


def _bytes_like(unfused=lambda t, d: 4 * t * d + 4 * t * t, tiled=None, size=lambda b: b):
    def exact(t, d, bq, bk, causal):
        return _hbm_bytes(t, d, 1, bq, bk, causal)

    def answer(seq_len, head_dim, bytes_per_element, block_q, block_k, causal):
        if block_q is None:
            return unfused(seq_len, head_dim) * size(bytes_per_element)
        count = tiled or exact
        return int(count(seq_len, head_dim, block_q, block_k, causal)) * size(bytes_per_element)

    return answer


def _read_once(t, d, bq, bk, causal):
    return 4 * t * d


def _keys_only(t, d, bq, bk, causal):
    return t * d + _hbm_bytes(t, d, 1, bq, bk, causal) // 2


def _no_skip(t, d, bq, bk, causal):
    return _hbm_bytes(t, d, 1, bq, bk, False)


def _half(t, d, bq, bk, causal):
    everything = _no_skip(t, d, bq, bk, causal)
    return 2 * t * d + (everything - 2 * t * d) // 2 if causal else everything


def _keys_outside(t, d, bq, bk, causal):
    """Key tiles in the outer loop, as if q were read for each of them and k, v once."""
    return 2 * t * d + 2 * t * d * -(-t // bk)


HBM_BYTES = Exercise(
    id="04.hbm_bytes",
    points=2,
    minutes=8,
    difficulty=2,
    teaches="a larger query tile reads keys and values less often",
    cases=lambda rng: [
        (1024, 64, 2, None, None, False),
        (1024, 64, 2, None, None, True),
        (1024, 64, 2, 128, 64, False),
        (1024, 64, 2, 128, 64, True),
        (1000, 80, 4, 64, 128, True),
        (1, 8, 1, 16, 16, True),
        *(
            (
                int(rng.integers(50, 400)),
                int(rng.integers(1, 100)),
                int(rng.choice([1, 2, 4])),
                int(rng.integers(3, 30)),
                int(rng.integers(3, 30)),
                causal,
            )
            for causal in (True, False, True)
        ),
        (16_384, 128, 2, 256, 128, True),
        (131_072, 128, 2, None, None, False),
    ],
    expect=_hbm_bytes,
    tolerance=0,
    mistakes=[
        Mistake(
            _bytes_like(tiled=_read_once),
            "You read keys and values once. They do not stay on the chip: every query tile reads "
            "them again.",
        ),
        Mistake(
            _bytes_like(tiled=_keys_only),
            "Values are read with the keys: two arrays for every key tile.",
        ),
        Mistake(
            _bytes_like(tiled=_no_skip),
            "With causal=True a query tile skips every key tile that begins after its last row.",
        ),
        Mistake(
            _bytes_like(tiled=_half),
            "Causal is not exactly half: the tiles on the diagonal are read whole. Count them "
            "query tile by query tile.",
        ),
        Mistake(
            _bytes_like(tiled=_keys_outside),
            "You put the key tiles into the outer loop, with queries read again for each. Here "
            "each query tile stays, and keys and values pass by.",
        ),
        Mistake(
            _bytes_like(unfused=lambda t, d: 4 * t * d + 2 * t * t),
            "Unfused, the softmax is a kernel of its own: it reads the scores and writes the "
            "weights, 2 · seq_len² elements more.",
        ),
        Mistake(
            _bytes_like(unfused=lambda t, d: 4 * t * d),
            "Unfused, the scores go to memory and come back, and so do the weights: four times "
            "seq_len² elements.",
        ),
        Mistake(
            _bytes_like(size=lambda b: 1),
            "These are elements. Multiply by bytes_per_element.",
        ),
    ],
    hints=[
        "Unfused: list what each of the three kernels reads and writes. Tiled: what does one "
        "query tile read and write in all?",
        "Unfused 4·T·d + 4·T² elements. Tiled: each query tile of r rows moves 2·r·d, plus 2·d "
        "for every key of every key tile that it visits.",
        "causal: the last row is end - 1, so the keys visited are min(ceil(end / block_k) · "
        "block_k, seq_len)",
    ],
)
