"""Axis ticks in real units, and labels that stay out of each other's way."""

import itertools
import math
import re
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from utils.show.figure import FAINT
from utils.show.numbers import PREFIXED, plain, prefixed, si

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure
    from matplotlib.transforms import Bbox

_MOST_TICKS = 12


def unit_of(label: str) -> str:
    """The unit an axis label ends with, if it takes a prefix: "seconds", "copied (bytes/s)"."""
    last = re.split(r"[\s(,]+", label.rstrip(" )"))[-1]
    return last if last in PREFIXED else ""


def said(value: float, label: str) -> str:
    """A value as the axis with this label would say it."""
    unit = unit_of(label)
    return si(value, unit) if unit else plain(value)


def tick(value: float, unit: str) -> str:
    """The text of one tick: short, and without minutes and hours, which are no round numbers."""
    symbol = PREFIXED.get(unit)
    if not symbol or (symbol == "s" and value >= 1):
        return f"{plain(float(f'{value:.6g}'))} {symbol or ''}".rstrip()
    return prefixed(value, symbol)


def make_log(
    axis: "Axis", low: float, high: float, unit: str, values: Sequence[float] = ()
) -> None:
    """Make an axis logarithmic from `low` to `high`, with readable ticks.

    `values` that are few and all powers of two become the ticks themselves.
    """
    from matplotlib.ticker import FixedLocator, MaxNLocator, NullLocator

    axis.axes.set(**{f"{axis.axis_name}scale": "log"})
    ticks = _log_ticks(low, high, values)
    axis.set_major_locator(FixedLocator(ticks) if ticks else MaxNLocator(5))
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(lambda value, _: tick(value, unit))


def _log_ticks(low: float, high: float, values: Sequence[float]) -> list[float]:
    """Powers of two, else powers of ten, else finer; none where the range is too short for it."""
    distinct = sorted(set(values))
    if 2 <= len(distinct) <= _MOST_TICKS and all(math.frexp(v)[0] == 0.5 for v in distinct):
        return distinct
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    for digits, enough in (((1,), 3), ((1, 2, 5), 4), (range(1, 10), 4)):
        ticks = [float(f"{d}e{p}") for p in powers for d in digits]
        ticks = [t for t in ticks if low / 1.1 <= t <= high * 1.1]
        if len(ticks) >= enough:  # "500 GFLOP/s" is wide: seven of those would overlap
            return ticks[:: math.ceil(len(ticks) / _MOST_TICKS)]
    return []


def make_linear(axis: "Axis", unit: str) -> None:
    """Give a linear axis ticks in its unit."""
    axis.set_major_formatter(lambda value, _: tick(value, unit))


def part_ticks(figure: "Figure", axis: "Axis") -> None:
    """Leave out every other tick of a horizontal axis until no two labels touch."""
    from matplotlib.ticker import FixedLocator

    for _ in range(4):
        figure.draw_without_rendering()
        low, high = axis.get_view_interval()
        ticks = [t for t in axis.get_majorticklocs() if low <= t <= high]
        boxes = [label.get_window_extent() for label in axis.get_ticklabels()]
        boxes = sorted((box for box in boxes if box.width > 1), key=lambda box: box.x0)
        if all(a.x1 + 8 < b.x0 for a, b in itertools.pairwise(boxes)):
            return
        axis.set_major_locator(FixedLocator(ticks[::2]))


def grid(axes: "Axes", which: str = "both") -> None:
    """Faint grid lines behind the data."""
    axes.grid(True, axis=which, color=FAINT, linewidth=0.7)


def halo() -> list:
    """For text that may cross a thin line: a white rim, so that it stays readable."""
    from matplotlib.patheffects import withStroke

    return [withStroke(linewidth=3, foreground="white")]


class Room:
    """Where labels may go: keeps the boxes already taken, in pixels, and finds a free place.

    Make it once the layout is final (after `figure.draw_without_rendering()`).
    """

    def __init__(self, axes: "Axes") -> None:
        self._axes = axes
        self._inside = axes.get_window_extent()
        self._taken: list[Bbox] = []

    def take(self, boxes: Iterable["Bbox"]) -> None:
        """Mark boxes as taken."""
        self._taken.extend(boxes)

    def take_line(self, xs: Sequence[float], ys: Sequence[float], width: float = 5.0) -> None:
        """Mark a line, given in data coordinates, as taken."""
        from matplotlib.transforms import Bbox

        points = self._axes.transData.transform(list(zip(xs, ys, strict=True)))
        for (x0, y0), (x1, y1) in itertools.pairwise(points):
            steps = max(1, int(math.hypot(x1 - x0, y1 - y0) / width))
            for i in range(steps + 1):
                x, y = x0 + (x1 - x0) * i / steps, y0 + (y1 - y0) * i / steps
                self._taken.append(Bbox.from_bounds(x - width / 2, y - width / 2, width, width))

    def place(self, move: Callable[..., list["Bbox"]], candidates: Sequence[tuple]) -> tuple:
        """Move a label to the first candidate that is free, else to where it covers least.

        `move(*candidate)` moves the label there and returns the boxes it fills, in pixels.
        """
        best, least = candidates[0], math.inf
        for candidate in candidates:
            cost = sum(map(self._cost, move(*candidate)))
            if cost < least:
                best, least = candidate, cost
            if cost == 0:
                break
        self._taken.extend(move(*best))
        return best

    def _cost(self, box: "Bbox") -> float:
        box = box.padded(2)
        inside = self._overlap(box, self._inside)
        outside = box.width * box.height - inside
        return 4 * max(0.0, outside) + sum(self._overlap(box, taken) for taken in self._taken)

    @staticmethod
    def _overlap(a: "Bbox", b: "Bbox") -> float:
        width = min(a.x1, b.x1) - max(a.x0, b.x0)
        height = min(a.y1, b.y1) - max(a.y0, b.y0)
        return width * height if width > 0 and height > 0 else 0.0
