"""Chapter 08: the order in which programs take the tiles of a product."""

from __future__ import annotations

from .spec import Exercise, Mistake


def drive_order(answer, tiles_m, tiles_n, group):
    """What the answer says of every program of the launch, in turn."""
    placed = []
    for pid in range(tiles_m * tiles_n):
        tile_row, tile_column = answer(pid, tiles_m, tiles_n, group)
        placed.append([tile_row, tile_column])
    return placed


def order(tiles_m, tiles_n, group):
    """Walk the tiles and write down where program 0, 1, 2 ... stands."""
    placed = []
    for first in range(0, tiles_m, group):
        for column in range(tiles_n):
            for row in range(first, min(first + group, tiles_m)):
                placed.append([row, column])
    return placed


def _cases(rng):
    drawn = [tuple(int(size) for size in rng.integers(2, 10, 2)) for _ in range(4)]
    return [
        (4, 3, 2),
        (5, 7, 4),
        (3, 4, 1),
        (1, 6, 4),
        (6, 1, 2),
        (2, 3, 8),
        *((m, n, int(rng.integers(1, m + 2))) for m, n in drawn),
    ]


def _full_last_group(pid, tiles_m, tiles_n, group):
    inside = pid % (group * tiles_n)
    return pid // (group * tiles_n) * group + inside % group, inside // group


def _groups_of_columns(pid, tiles_m, tiles_n, group):
    first = pid // (group * tiles_m) * group
    inside = pid % (group * tiles_m)
    width = min(group, tiles_n - first)
    return inside // width, first + inside % width


def _column_then_row(pid, tiles_m, tiles_n, group):
    first = pid // (group * tiles_n) * group
    inside = pid % (group * tiles_n)
    height = min(group, tiles_m - first)
    return inside // height, first + inside % height


def _inside_a_group(pid, tiles_m, tiles_n, group):
    first = pid // (group * tiles_n) * group
    inside = pid % (group * tiles_n)
    height = min(group, tiles_m - first)
    return inside % height, inside // height


def _group_not_scaled(pid, tiles_m, tiles_n, group):
    first = pid // (group * tiles_n)
    inside = pid % (group * tiles_n)
    height = min(group, tiles_m - first * group)
    return first + inside % height, inside // height


GROUPED_ORDER = Exercise(
    id="08.grouped_order",
    points=2,
    minutes=12,
    difficulty=2,
    teaches="programs that run at the same time should share strips of both inputs",
    cases=_cases,
    expect=order,
    tolerance=0,
    drive=drive_order,
    mistakes=[
        Mistake(
            _full_last_group,
            "The last group is taken to be full. When group does not divide tiles_m it has only "
            "tiles_m minus its first row: use the smaller of the two.",
        ),
        Mistake(
            lambda pid, tiles_m, tiles_n, group: (pid // tiles_n, pid % tiles_n),
            "This is row after row, as if group were 1. Inside a group go down its rows first, "
            "then on to the next column.",
        ),
        Mistake(
            lambda pid, tiles_m, tiles_n, group: (pid % tiles_m, pid // tiles_m),
            "This is column after column, as if all rows were one group.",
        ),
        Mistake(
            _groups_of_columns,
            "You group columns of tiles. A group is a band of tile rows.",
        ),
        Mistake(
            _column_then_row,
            "The right numbers the wrong way round: return the tile's row, then its column.",
        ),
        Mistake(
            _inside_a_group,
            "The row is counted from the top of its group. Add the group's first row.",
        ),
        Mistake(
            _group_not_scaled,
            "The number of the group is added as if a group were one row high. Its first row is "
            "the number times group.",
        ),
    ],
    hints=[
        "How many programs does a full group take? Which group is program pid in, and which "
        "program of that group is it?",
        "first = the group's first row, pid // (group * tiles_n) * group. Its height is group, or "
        "what is left of tiles_m. The rest of pid divided by the height gives the column.",
        "inside = pid % (group * tiles_n); height = min(group, tiles_m - first); "
        "return first + inside % height, inside // height",
    ],
)
