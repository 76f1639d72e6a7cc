"""Chapter 06: which pieces of memory a warp touches, and in which order a tile is turned."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .spec import Exercise, Mistake

SECTOR_BYTES, BANKS, TILE = 32, 32, 32


def _sectors(offset, stride, size, lanes):
    """Mark the sector of every single byte."""
    touched = set()
    for lane in range(lanes):
        element = offset + lane * stride
        touched |= {byte // SECTOR_BYTES for byte in range(element * size, (element + 1) * size)}
    return len(touched)


def _sectors_cases(rng):
    return [
        (0, 1, 4, 32),
        (0, 2, 4, 32),
        (1, 1, 4, 32),
        (3, 5, 8, 32),
        (640, -1, 4, 32),
        (9, 0, 4, 32),
        (0, 1000, 2, 32),
        (0, 1, 2, 17),
        (7, 1, 1, 1),
        (5, 3, 2, 32),
        *(
            (
                int(rng.integers(0, 100)),
                int(rng.integers(1, 20)),
                int(rng.choice([1, 2, 4, 8])),
                int(rng.integers(8, 33)),
            )
            for _ in range(5)
        ),
    ]


def _sectors_like(address=lambda o, i, stride, size: (o + i * stride) * size, unit=SECTOR_BYTES):
    def answer(offset, stride, size, lanes):
        return len({address(offset, i, stride, size) // unit for i in range(lanes)})

    return answer


def _span(offset, stride, size, lanes):
    ends = sorted(((offset * size) // 32, ((offset + (lanes - 1) * stride) * size) // 32))
    return ends[1] - ends[0] + 1


SECTORS = Exercise(
    id="06.sectors",
    points=3,
    minutes=8,
    difficulty=2,
    teaches="memory moves in aligned pieces of 32 bytes, whatever share of them is wanted",
    cases=_sectors_cases,
    expect=_sectors,
    tolerance=0,
    mistakes=[
        Mistake(
            _sectors_like(lambda o, i, stride, size: i * stride * size),
            "You left out the offset. An access that starts in the middle of a sector touches one "
            "more at its end.",
        ),
        Mistake(
            lambda offset, stride, size, lanes: -(-lanes * size // SECTOR_BYTES),
            "You counted the bytes that are wanted. With a stride the wanted bytes lie apart, and "
            "the bytes between them come along.",
        ),
        Mistake(
            _sectors_like(lambda o, i, stride, size: o + i * stride),
            "You divided an element's index by 32. A sector has 32 bytes: turn the index into a "
            "byte address first.",
        ),
        Mistake(
            lambda offset, stride, size, lanes: lanes,
            "You counted one sector for each lane. Lanes whose addresses lie in one sector share "
            "it.",
        ),
        Mistake(
            _sectors_like(unit=128),
            "You counted pieces of 128 bytes. That is the length of a cache line; what is fetched "
            "of it are sectors of 32 bytes.",
        ),
        Mistake(
            lambda offset, stride, size, lanes: _sectors(offset, stride, size, 32),
            "You counted 32 lanes. Only the first `lanes` of them take part; the mask silences the "
            "others.",
        ),
        Mistake(
            _sectors_like(lambda o, i, stride, size: o * size + i * stride),
            "You took the stride as bytes. It counts elements: multiply it by the size as well.",
        ),
        Mistake(
            _span,
            "You counted every sector between the first and the last address. Those that no lane "
            "asks for are not fetched.",
        ),
    ],
    hints=[
        "At which byte does lane i read? And which sector holds that byte?",
        "Lane i reads the element offset + i·stride, so the byte address (offset + i·stride)·size. "
        "Sector numbers are addresses // 32. How many different ones?",
        "len({(offset + i * stride) * size // 32 for i in range(lanes)})",
    ],
)


def drive_transpose(answer: Callable[..., Any], tile: list, row_elements: int) -> dict:
    """Play a warp: 32 loads by 32 lanes, a barrier, 32 stores. What comes out, and its cost.

    The tile lies at the top left of a matrix whose rows have row_elements float32 numbers; the
    transposed tile goes to a matrix with rows of the same length.
    """
    plan = {
        (step, lane): _told(answer(step, lane), step, lane)
        for step in range(TILE)
        for lane in range(TILE)
    }
    shared: dict[int, Any] = {}
    out = [[None] * TILE for _ in range(TILE)]
    cost = dict.fromkeys(("sectors loaded", "sectors stored", "turns to put", "turns to take"), 0)
    for step in range(TILE):
        lanes = [plan[step, lane] for lane in range(TILE)]
        cost["sectors loaded"] += _touched([load for load, _, _, _ in lanes], row_elements)
        cost["turns to put"] += _turns([put for _, put, _, _ in lanes])
        for (row, column), put, _, _ in lanes:
            shared[put] = tile[row][column]
    for step in range(TILE):
        lanes = [plan[step, lane] for lane in range(TILE)]
        cost["sectors stored"] += _touched([store for _, _, _, store in lanes], row_elements)
        cost["turns to take"] += _turns([take for _, _, take, _ in lanes])
        for _, _, take, (row, column) in lanes:
            out[row][column] = shared.get(take)
    return {"out": out, **cost}


def _told(plan: Any, step: int, lane: int) -> tuple:
    """The four entries of a plan. Raises ValueError naming the one that is not usable."""
    words = ("load", "put", "take", "store")
    if not isinstance(plan, dict) or set(plan) != set(words):
        raise ValueError(f"step {step}, lane {lane}: return a dictionary with {', '.join(words)}")
    for word in ("load", "store"):
        pair = plan[word]
        if not isinstance(pair, tuple | list) or len(pair) != 2:
            raise ValueError(f"step {step}, lane {lane}: {word} is a pair (row, column)")
        if not all(n in range(TILE) for n in pair):
            raise ValueError(f"step {step}, lane {lane}: {word} {tuple(pair)} is outside the tile")
    for word in ("put", "take"):
        if plan[word] not in range(TILE * (TILE + 1)):
            raise ValueError(
                f"step {step}, lane {lane}: {word} {plan[word]} is no word from 0 to 1055"
            )
    return tuple(plan["load"]), plan["put"], plan["take"], tuple(plan["store"])


def _touched(places: list[tuple[int, int]], row_elements: int) -> int:
    return len({(row * row_elements + column) * 4 // SECTOR_BYTES for row, column in places})


def _turns(words: list[int]) -> int:
    """How often the busiest bank must answer: once for each of its different words."""
    banks: dict[int, set[int]] = {}
    for word in words:
        banks.setdefault(word % BANKS, set()).add(word)
    return max(map(len, banks.values()))


def _transpose_expect(tile, row_elements):
    wanted = [[row[i] for row in tile] for i in range(TILE)]
    fewest = TILE * TILE * 4 // SECTOR_BYTES
    return {
        "out": wanted,
        "sectors loaded": fewest,
        "sectors stored": fewest,
        "turns to put": TILE,
        "turns to take": TILE,
    }


def _transpose_cases(rng):
    return [
        (rng.integers(1, 10**6, (TILE, TILE)).tolist(), int(8 * rng.integers(4, 500)))
        for _ in range(2)
    ]


def _plan(load_rows=True, store_rows=True, pitch=TILE + 1, turned=True):
    """A plan in which lanes run along rows or columns on each side."""

    def answer(step, lane):
        load = (step, lane) if load_rows else (lane, step)
        store = (step, lane) if store_rows else (lane, step)
        source = store[::-1] if turned else store
        put, take = (row * pitch + column for row, column in (load, source))
        return {"load": load, "put": put, "take": take, "store": store}

    return answer


COALESCED_TRANSPOSE_ORDER = Exercise(
    id="06.coalesced_transpose_order",
    points=4,
    minutes=12,
    difficulty=4,
    teaches="shared memory lets lanes run along rows on both sides of a transpose",
    cases=_transpose_cases,
    expect=_transpose_expect,
    drive=drive_transpose,
    tolerance=0,
    mistakes=[
        Mistake(
            _plan(store_rows=False),
            "Your loads are coalesced, your stores are not: in one step the lanes write down a "
            "column of the output. Let lane run along its rows too, and take another word.",
        ),
        Mistake(
            _plan(load_rows=False),
            "Your stores are coalesced, your loads are not: in one step the lanes read down a "
            "column of the input. Let lane run along its rows too, and put elsewhere.",
        ),
        Mistake(
            _plan(pitch=TILE),
            "Right and coalesced, but with 32 words a row a column of the tile lies in one bank, "
            "and 32 lanes wait for each other. Give a row of the shared tile 33 words.",
        ),
        Mistake(
            _plan(turned=False),
            "This copies the tile and turns nothing. The output's (row, column) is the input's "
            "(column, row): take the word where that one was put.",
        ),
        Mistake(
            lambda step, lane: _plan()(step, lane) | {"take": lane * TILE + step},
            "You put into rows of 33 words and take from rows of 32. Both sides must use one "
            "layout.",
        ),
    ],
    hints=[
        "Coalesced means: when lane grows by one, the column grows by one. On which sides can you "
        "have that, if each element may rest in shared memory between the two?",
        "Load (step, lane) and store (step, lane). What is stored at (step, lane) was loaded from "
        "(lane, step). Then count banks: word % 32 must differ between lanes on both sides.",
        "load=(step, lane), put=step*33 + lane, take=lane*33 + step, store=(step, lane)",
    ],
)
