"""Second, differently written correct answers to chapter 06's exercises."""

from fractions import Fraction
from math import ceil


def launch_bound_below(launch_seconds, n_inputs, bytes_per_element, bytes_per_s):
    seconds_per_element = Fraction(bytes_per_element) / Fraction(bytes_per_s) * (1 + n_inputs)
    return ceil(Fraction(launch_seconds) / seconds_per_element)


def fusion_bytes(n_elements, other_inputs, bytes_per_element):
    fused = unfused = 0
    for position, others in enumerate(other_inputs):
        fused += others + (position == 0)
        unfused += 1 + others + 1
    return {
        "fused": bytes_per_element * n_elements * (fused + 1),
        "unfused": bytes_per_element * n_elements * unfused,
    }


def sectors(offset, stride, size, lanes):
    per_sector = 32 // size
    found, last = 0, None
    for element in sorted(offset + lane * stride for lane in range(lanes)):
        if element // per_sector != last:
            found, last = found + 1, element // per_sector
    return found


def coalesced_transpose_order(step, lane):
    """32 words a row, and the column turned by the row: no word is wasted."""
    return {
        "load": [step, lane],
        "put": 32 * step + (lane ^ step),
        "take": 32 * lane + (step ^ lane),
        "store": [step, lane],
    }


def occupancy(registers, threads, shared_bytes, limits):
    warps = (threads + 31) // 32
    units = (registers * 32 + 255) // 256
    quarter = limits["registers"] // 4 // 256
    shared_units = limits["shared_bytes"] // limits["shared_unit"]
    shared = shared_bytes + limits["shared_reserved"]
    block_units = (shared + limits["shared_unit"] - 1) // limits["shared_unit"]
    counts = [
        (limits["threads"] // 32 // warps, 0, "threads"),
        (quarter // units * 4 // warps, 1, "registers"),
        (shared_units // block_units if block_units else 10**6, 2, "shared_bytes"),
        (limits["blocks"], 3, "blocks"),
    ]
    blocks, _, name = sorted(counts)[0]
    return {
        "limited_by": name,
        "blocks": blocks,
        "occupancy": 32 * warps * blocks / limits["threads"],
    }


def waves(blocks, multiprocessors, blocks_per_multiprocessor):
    places = multiprocessors * blocks_per_multiprocessor
    number = (blocks + places - 1) // places
    return {"efficiency": blocks / places / number, "waves": number}


def reduction_tree(values):
    def fold(values, steps):
        if len(values) == 1:
            return values[0], steps
        half = len(values) - len(values) // 2
        lower, upper = values[:half], values[half:]
        folded = [a + b for a, b in zip(lower, upper, strict=False)]
        return fold(folded + lower[len(folded) :], steps + 1)

    total, steps = fold(list(values), 0)
    return {"sum": total, "steps": steps}
