"""Chapter 06: how many blocks a multiprocessor holds, and in how many waves a grid runs."""

from __future__ import annotations

import math
from fractions import Fraction

from .spec import Exercise, Mistake

WARP = 32


def _limits(threads, blocks, shared_kib, reserved, unit):
    return {
        "threads": threads,
        "registers": 65_536,
        "shared_bytes": shared_kib * 1024,
        "blocks": blocks,
        "shared_reserved": reserved,
        "shared_unit": unit,
    }


LIMITS = {
    "7.5": _limits(1024, 16, 64, 0, 256),
    "8.0": _limits(2048, 32, 164, 1024, 128),
    "8.9": _limits(1536, 24, 100, 1024, 128),
    "9.0": _limits(2048, 32, 228, 1024, 128),
}


def _occupancy(registers, threads, shared_bytes, limits):
    """Fill one multiprocessor block by block until something is used up."""
    warps = math.ceil(Fraction(threads, WARP))
    each = math.ceil(Fraction(registers * WARP, 256)) * 256
    unit = limits["shared_unit"]
    shared = math.ceil(Fraction(shared_bytes + limits["shared_reserved"], unit)) * unit
    room = {
        "threads": limits["threads"] // WARP,
        "registers": sum(limits["registers"] // 4 // each for _ in range(4)),
        "shared_bytes": limits["shared_bytes"],
        "blocks": limits["blocks"],
    }
    need = {"threads": warps, "registers": warps, "shared_bytes": shared, "blocks": 1}
    blocks = 0
    while all((blocks + 1) * need[name] <= room[name] for name in need):
        blocks += 1
    limited_by = next(name for name in need if (blocks + 1) * need[name] > room[name])
    return {
        "blocks": blocks,
        "occupancy": Fraction(blocks * warps, limits["threads"] // WARP),
        "limited_by": limited_by,
    }


def occupancy_like(
    warps=lambda threads: -(-threads // WARP),
    registers_of_a_warp=lambda registers: -(-registers * WARP // 256) * 256,
    warps_of_registers=lambda limit, each: 4 * (limit // 4 // each),
    reserved=True,
    rounded=True,
    most_blocks=True,
    occupancy=lambda blocks, warps, most: blocks * warps / most,
):
    """An answer with one rule changed."""

    def answer(registers, threads, shared_bytes, limits):
        n_warps, most = warps(threads), limits["threads"] // WARP
        shared = shared_bytes + (limits["shared_reserved"] if reserved else 0)
        if rounded:
            shared = -(-shared // limits["shared_unit"]) * limits["shared_unit"]
        held = warps_of_registers(limits["registers"], registers_of_a_warp(registers))
        allowed = {
            "threads": int(most // n_warps),
            "registers": int(held // n_warps),
            "shared_bytes": int(limits["shared_bytes"] // shared) if shared else 10**9,
            "blocks": limits["blocks"] if most_blocks else 10**9,
        }
        least = min(allowed, key=allowed.get)
        blocks = allowed[least]
        return {
            "blocks": blocks,
            "occupancy": occupancy(blocks, n_warps, most),
            "limited_by": least,
        }

    return answer


def _occupancy_cases(rng):
    some = [
        (
            int(rng.integers(16, 256)),
            int(32 * rng.integers(1, 33)),
            int(rng.integers(0, 30_000)),
            LIMITS[str(rng.choice([*LIMITS]))],
        )
        for _ in range(5)
    ]
    return [
        (32, 256, 0, LIMITS["8.0"]),
        (33, 256, 0, LIMITS["8.0"]),  # a register more is eight more
        (96, 32, 0, LIMITS["8.0"]),  # the quarters hold 20 warps, the whole would hold 21
        (32, 32, 0, LIMITS["9.0"]),  # blocks
        (40, 48, 0, LIMITS["8.9"]),  # half a warp
        (32, 128, 22_500, LIMITS["9.0"]),
        (32, 128, 41 * 1024, LIMITS["8.0"]),  # 42 KiB with the reserved one
        (24, 64, 6_609, LIMITS["8.0"]),  # 47 bytes short of a unit
        (64, 256, 33_000, LIMITS["7.5"]),
        (24, 64, 4_000, LIMITS["8.9"]),
        (24, 64, 4_900, LIMITS["7.5"]),  # neither the unit nor what is reserved is the others'
        (255, 1024, 0, LIMITS["8.0"]),  # does not fit
        (72, 128, 8_100, LIMITS["9.0"]),
        *some,
    ]


OCCUPANCY = Exercise(
    id="06.occupancy",
    points=4,
    minutes=12,
    difficulty=3,
    teaches="the scarcest of four resources decides how many blocks an SM holds",
    cases=_occupancy_cases,
    expect=_occupancy,
    tolerance=1e-9,
    mistakes=[
        Mistake(
            occupancy_like(registers_of_a_warp=lambda registers: registers * WARP),
            "A warp's registers are handed out in units of 256: round registers·32 up. 33 "
            "registers a thread cost as much as 40.",
        ),
        Mistake(
            occupancy_like(warps_of_registers=lambda limit, each: limit // each),
            "You divided the whole register file. It is in four quarters, and a warp's registers "
            "lie in one of them: round down in each quarter.",
        ),
        Mistake(
            occupancy_like(warps=lambda threads: threads / WARP),
            "A block is made of whole warps: 48 threads take the room of 64.",
        ),
        Mistake(
            occupancy_like(reserved=False),
            "You forgot the shared memory that the system takes for itself in every block.",
        ),
        Mistake(
            occupancy_like(rounded=False),
            "Shared memory is handed out in units: round a block's bytes, the reserved ones "
            "included, up to a multiple of limits['shared_unit'].",
        ),
        Mistake(
            occupancy_like(most_blocks=False),
            "An SM holds only so many blocks, however small: limits['blocks'].",
        ),
        Mistake(
            occupancy_like(occupancy=lambda blocks, warps, most: blocks * warps),
            "These are the warps that are there. Occupancy is their share of the most there can "
            "be, limits['threads'] / 32.",
        ),
    ],
    hints=[
        "Four questions: how many blocks would fit if only threads counted? Only registers? Only "
        "shared memory? Only the number of blocks?",
        "warps = ceil(threads / 32). A warp takes ceil(32·registers / 256)·256 registers, and each "
        "quarter of the file holds (limit // 4) // that many warps. Shared memory: add the "
        "reserved bytes, round up to the unit, divide. The smallest of the four counts.",
        "fits = {'threads': limits['threads'] // 32 // warps, 'registers': 4 * (limits['registers']"
        " // 4 // per_warp) // warps, 'shared_bytes': ..., 'blocks': ...}; "
        "limited_by = min(fits, key=fits.get)",
    ],
)


def _waves(blocks, multiprocessors, blocks_per_multiprocessor):
    at_once = multiprocessors * blocks_per_multiprocessor
    whole, rest = divmod(blocks, at_once)
    waves = whole + (rest > 0)
    return {"waves": waves, "efficiency": Fraction(blocks, waves * at_once)}


def _waves_like(count, efficiency=None):
    def answer(blocks, multiprocessors, per):
        at_once = multiprocessors * per
        waves = count(blocks, multiprocessors, per)
        share = efficiency(blocks, at_once) if efficiency else blocks / (waves * at_once)
        return {"waves": waves, "efficiency": share}

    return answer


def _whole_waves(blocks, multiprocessors, per):
    return -(-blocks // (multiprocessors * per))


WAVES = Exercise(
    id="06.waves",
    points=2,
    minutes=5,
    difficulty=1,
    teaches="a grid runs in whole waves, and one block too many costs another one",
    cases=lambda rng: [
        (132, 132, 1),
        (133, 132, 1),
        (1, 108, 2),
        (4_000, 132, 8),
        (264, 132, 2),
        (10**18 + 1, 100, 10),
        *(
            (int(rng.integers(1, 5000)), int(rng.choice([40, 108, 132])), int(rng.integers(2, 17)))
            for _ in range(5)
        ),
    ],
    expect=_waves,
    tolerance=1e-12,
    mistakes=[
        Mistake(
            _waves_like(lambda blocks, sms, per: max(1, blocks // (sms * per))),
            "Round up: the blocks that are left over need a wave of their own.",
        ),
        Mistake(
            _waves_like(
                lambda blocks, sms, per: -(-blocks // sms),
                lambda blocks, at_once: blocks / (-(-blocks // at_once) * at_once),
            ),
            "An SM runs several blocks at once: a wave has multiprocessors times "
            "blocks_per_multiprocessor of them.",
        ),
        Mistake(
            _waves_like(
                _whole_waves, lambda blocks, at_once: (blocks % at_once or at_once) / at_once
            ),
            "This is how full the last wave is. Efficiency is over all waves: blocks over the "
            "places that the waves offer.",
        ),
        Mistake(
            _waves_like(lambda blocks, sms, per: blocks / (sms * per), lambda blocks, at_once: 1.0),
            "A wave takes its time whether it is full or not: round the number of waves up.",
        ),
        Mistake(
            _waves_like(
                _whole_waves, lambda blocks, at_once: -(-blocks // at_once) * at_once / blocks
            ),
            "This is places over blocks, the inverse. An efficiency is at most 1.",
        ),
    ],
    hints=[
        "How many blocks run at the same time? What happens to the first one that finds no place?",
        "at_once = multiprocessors · blocks_per_multiprocessor. Waves: blocks over at_once, "
        "rounded up. Efficiency: blocks over waves · at_once.",
        "waves = -(-blocks // at_once); efficiency = blocks / (waves * at_once)",
    ],
)
