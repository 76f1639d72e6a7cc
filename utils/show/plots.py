"""Line and bar plots, each with axis labels, alt text made from the data, and a text twin.

The `make_` functions check and return a Picture; `show.line` and the others display it.
"""

import itertools
import math
import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from utils.show.axes import grid, halo, make_linear, make_log, part_ticks, said, unit_of
from utils.show.figure import INK, Picture, new_figure
from utils.show.marks import SEQUENCE, mark
from utils.show.numbers import finites, several, si, text
from utils.show.tables import make_table

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_MOST_ROWS = 16  # of a text twin; a longer series is thinned, first and last kept


@dataclass(frozen=True)
class Series:
    """One line of a plot.

    x_values, y_values: equally many numbers; kind: "measured", "modelled" or "published";
    spread: a (low, high) pair for each y value, or None.
    """

    x_values: Iterable[float]
    y_values: Iterable[float]
    label: str
    kind: str = "measured"
    spread: Sequence[tuple[float, float]] | None = None

    def __post_init__(self) -> None:
        name = f"of {self.label!r}" if self.label else ""
        x_values = finites(self.x_values, f"x_values {name}".strip())
        y_values = finites(self.y_values, f"y_values {name}".strip())
        if len(x_values) != len(y_values):
            raise ValueError(
                f"x_values {name} has {len(x_values)} numbers and y_values {len(y_values)}; "
                "they must be equally many."
            )
        mark(self.kind)
        spread = check_spread(self.spread, len(y_values))
        for field, value in (("x_values", x_values), ("y_values", y_values), ("spread", spread)):
            object.__setattr__(self, field, value)

    @property
    def name(self) -> str:
        """What the plot calls it: its label and its kind."""
        return f"{self.label}, {self.kind}" if self.label else self.kind


def make_line(
    x_values: Iterable[float],
    y_values: Iterable[float],
    *,
    x: str,
    y: str,
    kind: str = "measured",
    log: bool | str = False,
    title: str = "",
    label: str = "",
    spread: Sequence[tuple[float, float]] | None = None,
) -> Picture:
    """One line. See `make_lines`, which does the work.

    x, y: what the axes show, ending in the unit ("time (seconds)"); log: both axes (True), "x" or
    "y"; title: the finding; spread: a (low, high) pair for each y value.
    Raises ValueError when lengths differ, nothing is given, a value is not finite, or a
    logarithmic axis gets zero or less.
    """
    one = Series(x_values, y_values, label, kind, spread)
    return make_lines([one], x=x, y=y, title=title, log=log)


def make_lines(
    series: Sequence[Series], *, x: str, y: str, title: str = "", log: bool | str = False
) -> Picture:
    """Several lines in one plot, each labelled at its end with its name and its kind.

    x, y: what the axes show, ending in the unit. log: both axes (True), "x" or "y". Ticks of
    seconds, bytes, FLOP and the like get prefixes. Raises ValueError as `make_line` does.
    """
    series = several(series, "series")
    if not series:
        raise ValueError("series is empty; a plot needs at least one Series.")
    for one in series:
        if not isinstance(one, Series):
            raise ValueError(f"series holds {one!r:.80}; it must hold only Series.")
    for name, given in (("x", x), ("y", y), ("title", title)):
        text(given, name)
    if not isinstance(log, bool | str) or log not in (True, False, "x", "y"):
        raise ValueError(f'log is {log!r}; it must be True, False, "x" or "y".')
    log_x, log_y = log in (True, "x"), log in (True, "y")
    for one in series:
        lows = [low for low, _ in one.spread or ()]
        check_positive(one.x_values, f"x_values of {one.name!r}", log_x)
        check_positive((*one.y_values, *lows), f"y_values of {one.name!r}", log_y)
    title = title or f"{y} by {x}"
    rows = [row for one in series for row in _rows(one, x, y, many=len(series) > 1)]
    table = make_table(rows, caption=title)
    axes_said = {
        (True, True): ", both axes logarithmic", (True, False): ", x axis logarithmic",
        (False, True): ", y axis logarithmic", (False, False): "",
    }[log_x, log_y]  # fmt: skip
    alt = f"Line plot: {title}. {y} by {x}{axes_said}. " + " ".join(
        _describe(one, x, y) for one in series
    )

    def paint() -> "Figure":
        figure, axes = new_figure(title, x, y)
        colours = [SEQUENCE[number % len(SEQUENCE)] for number in range(len(series))]
        if len(series) == 1:
            colours = [mark(series[0].kind).colour]
        for one, colour in zip(series, colours, strict=True):
            _draw(axes, one, colour)
        _scale(axes, series, x, y, log_x, log_y)
        grid(axes)
        _label_ends(figure, axes, series, colours)
        return figure

    return Picture(title=title, alt=alt, text=table.text, numbers=table.html, paint=paint)


def make_bars(
    labels: Sequence[str],
    values: Iterable[float],
    *,
    unit: str,
    kind: str | Sequence[str],
    title: str,
    spread: Sequence[tuple[float, float]] | None = None,
    log: bool = False,
) -> Picture:
    """Horizontal bars, the first on top, each with its value, its kind's hatch and word.

    kind: one for all bars or one for each; spread: a (low, high) pair for each bar. Raises
    ValueError when lengths differ, nothing is given, a kind is unknown, or a logarithmic axis
    gets zero or less.
    """
    labels = [str(label) for label in several(labels, "labels")]
    numbers = finites(values, "values")
    kinds = [kind] * len(numbers) if isinstance(kind, str) else several(kind, "kind")
    for name, given in (("unit", unit), ("title", title)):
        text(given, name)
    for name, given in (("labels", labels), ("kind", kinds)):
        if len(given) != len(numbers):
            raise ValueError(
                f"{name} has {len(given)} entries and values {len(numbers)}; "
                "they must be equally many."
            )
    for one in kinds:
        mark(one)
    pairs = check_spread(spread, len(numbers))
    check_positive((*numbers, *(low for low, _ in pairs or ())), "values", log)
    rows = []
    for i, (label, value) in enumerate(zip(labels, numbers, strict=True)):
        row = {"name": label, unit: si(value, unit), "kind": kinds[i]}
        if pairs:
            row["from"], row["to"] = (si(end, unit) for end in pairs[i])
        rows.append(row)
    table = make_table(rows, caption=title)
    alt = f"Bar plot{', logarithmic axis' if log else ''}: {title}. " + " ".join(
        f"{label}, {one}: {si(value, unit)}."
        for label, value, one in zip(labels, numbers, kinds, strict=True)
    )

    def paint() -> "Figure":
        axis = f"{unit}, logarithmic" if log else unit
        figure, axes = new_figure(title, axis, "", height_inches=1.5 + 0.4 * len(numbers))
        _draw_bars(axes, labels, numbers, kinds, pairs, unit, log)
        part_ticks(figure, axes.xaxis)
        return figure

    return Picture(title=title, alt=alt, text=table.text, numbers=table.html, paint=paint)


def check_spread(spread: Any, count: int) -> tuple[tuple[float, float], ...] | None:
    """The (low, high) pairs as floats. Raises ValueError when they are not that."""
    if spread is None:
        return None
    pairs = [finites(pair, "spread") for pair in several(spread, "spread")]
    if len(pairs) != count:
        raise ValueError(f"spread has {len(pairs)} pairs for {count} values; give one for each.")
    for pair in pairs:
        if len(pair) != 2 or pair[0] > pair[1]:
            raise ValueError(f"spread holds {pair}; every entry must be a (low, high) pair.")
    return tuple((low, high) for low, high in pairs)


def check_positive(values: Iterable[float], name: str, needed: bool) -> None:
    """Raises ValueError when a logarithmic axis is asked to show zero or less."""
    least = min(values)
    if needed and least <= 0:
        raise ValueError(f"{name} holds {least:g}; a logarithmic axis shows only numbers above 0.")


def _rows(one: Series, x: str, y: str, many: bool) -> list[dict[str, Any]]:
    rows = []
    for i in _thinned(len(one.x_values)):
        row = {"line": one.label or one.kind} if many else {}
        row |= {x: said(one.x_values[i], x), y: said(one.y_values[i], y)}
        if one.spread:
            row["from"], row["to"] = (said(end, y) for end in one.spread[i])
        rows.append(row | {"kind": one.kind})
    return rows


def _thinned(count: int) -> list[int]:
    if count <= _MOST_ROWS:
        return list(range(count))
    return sorted({round(i * (count - 1) / (_MOST_ROWS - 1)) for i in range(_MOST_ROWS)})


def _describe(one: Series, x: str, y: str) -> str:
    points = list(zip(one.y_values, one.x_values, strict=True))

    def at(point: tuple[float, float]) -> str:
        return f"{said(point[0], y)} at {said(point[1], x)}"

    if len(points) == 1:
        return f"{one.name}: one point, {at(points[0])}."
    return (
        f"{one.name}: {len(points)} points, from {at(points[0])} to {at(points[-1])}; "
        f"lowest {at(min(points))}, highest {at(max(points))}."
    )


def _draw(axes: "Axes", one: Series, colour: str) -> None:
    look, crowded = mark(one.kind), len(one.x_values) > 60
    axes.plot(
        one.x_values, one.y_values, color=colour, linestyle=look.line,
        linewidth=1 if crowded else 2.2, marker=look.marker, markersize=3 if crowded else 7,
        markeredgecolor=colour, markeredgewidth=0.8 if crowded else 1.6,
        markerfacecolor=colour if look.filled else "white",
    )  # fmt: skip
    if one.spread:
        for value, (low, high) in zip(one.x_values, one.spread, strict=True):
            axes.plot([value, value], [low, high], color=colour, linewidth=1.2, marker="_", ms=7)


def _scale(axes: "Axes", series: list[Series], x: str, y: str, log_x: bool, log_y: bool) -> None:
    xs = [value for one in series for value in one.x_values]
    ys = [value for one in series for value in one.y_values]
    ys += [end for one in series for pair in one.spread or () for end in pair]
    for axis, values, label, log in ((axes.xaxis, xs, x, log_x), (axes.yaxis, ys, y, log_y)):
        if log:
            marked = values if axis is axes.xaxis else ()
            make_log(axis, min(values), max(values), unit_of(label), marked)
        else:
            make_linear(axis, unit_of(label))
    if not log_y and 0 <= min(ys) < max(ys) / 2:
        axes.set_ylim(bottom=0)


def _label_ends(figure: "Figure", axes: "Axes", series: list[Series], colours: list[str]) -> None:
    """Name every line right of the plot, near the height of its last point."""
    axes.set(xlim=axes.get_xlim(), ylim=axes.get_ylim())  # the limits stay as they are from here
    figure.draw_without_rendering()
    to_axes = axes.transAxes.inverted()
    names = [textwrap.fill(one.name, 22) for one in series]
    ends = [
        to_axes.transform(axes.transData.transform((one.x_values[-1], one.y_values[-1])))
        for one in series
    ]
    heights = [0.062 * (name.count("\n") + 1) for name in names]
    middles = _spread_out([end[1] for end in ends], heights)
    for name, end, middle, colour in zip(names, ends, middles, colours, strict=True):
        axes.plot(
            [end[0], 1.025], [end[1], middle], transform=axes.transAxes, color=colour,
            linewidth=0.8, clip_on=False, zorder=1,
        )  # fmt: skip
        axes.text(1.035, middle, name, transform=axes.transAxes, va="center", color=INK)


def _spread_out(wanted: list[float], heights: list[float]) -> list[float]:
    """Centres near the wanted ones, in the same order, so that no two labels overlap."""
    order = sorted(range(len(wanted)), key=lambda i: wanted[i])
    placed = list(wanted)
    for _ in range(50):
        for below, above in itertools.pairwise(order):
            gap = (heights[below] + heights[above]) / 2 - (placed[above] - placed[below])
            if gap > 1e-6:
                placed[below] -= gap / 2
                placed[above] += gap / 2
    return placed


def _draw_bars(
    axes: "Axes", labels: list[str], values: Sequence[float], kinds: list[str],
    spread: Sequence[tuple[float, float]] | None, unit: str, log: bool,
) -> None:  # fmt: skip
    ends = [pair[1] for pair in spread] if spread else values
    low = 10 ** math.floor(math.log10(min(values) / 2)) if log else min(0.0, *values)
    if log:
        make_log(axes.xaxis, low, max(ends), unit)
        axes.set_xlim(low, max(ends) * (max(ends) / low) ** 0.04)
    else:
        make_linear(axes.xaxis, unit)
    for row, (value, kind) in enumerate(zip(values, kinds, strict=True)):
        look = mark(kind)
        axes.barh(
            row, value - low, left=low, height=0.62, linewidth=1.4, edgecolor=look.colour,
            facecolor=look.colour if not look.hatch else "white", hatch=look.hatch,
        )  # fmt: skip
        if spread:
            axes.plot(spread[row], [row, row], color=INK, linewidth=1.4, marker="|", markersize=8)
        axes.annotate(
            f"{si(value, unit)}, {kind}", (max(value, ends[row]), row), xytext=(6, 0),
            textcoords="offset points", va="center", color=INK, fontsize=10, path_effects=halo(),
        )  # fmt: skip
    axes.set_yticks(range(len(labels)), [textwrap.fill(x, 26) for x in labels], fontsize=11)
    axes.tick_params(axis="y", length=0)
    axes.invert_yaxis()
    axes.spines["left"].set_visible(not log)
    grid(axes, "x")
