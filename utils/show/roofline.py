"""The roofline plot: FLOP/s against arithmetic intensity, with the roofs that limit them.

Williams, Waterman and Patterson, "Roofline: an insightful visual performance model for multicore
architectures", Communications of the ACM 52(4), 2009.
"""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from utils.arithmetic import attainable_flops_per_s, ridge_point
from utils.show.axes import Room, grid, halo, make_log
from utils.show.figure import INK, Picture, new_figure
from utils.show.marks import MARKS, SEQUENCE, mark
from utils.show.numbers import finite, plain, several, si, text
from utils.show.tables import make_table

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.transforms import Bbox

_NEAR = 18  # points: a label further from its point than this gets a line to it
_X, _Y = "arithmetic intensity (FLOP per byte)", "FLOP/s"


@dataclass(frozen=True)
class Roof:
    """What a machine can do: its peak in FLOP/s and its bandwidth in bytes/s."""

    name: str
    peak_flops_per_s: float
    bytes_per_s: float
    kind: str = "measured"

    def __post_init__(self) -> None:
        _check_above_zero(self, "peak_flops_per_s", "bytes_per_s")
        mark(self.kind)

    @property
    def ridge(self) -> float:
        """FLOP per byte at which the slope meets the flat part."""
        return ridge_point(self.peak_flops_per_s, self.bytes_per_s)

    def at(self, intensity: float) -> float:
        """FLOP/s under this roof at an intensity in FLOP per byte."""
        return attainable_flops_per_s(intensity, self.peak_flops_per_s, self.bytes_per_s)


@dataclass(frozen=True)
class Point:
    """Something that ran, or would run: its FLOP per byte and its FLOP/s."""

    label: str
    intensity: float
    flops_per_s: float
    kind: str = "measured"

    def __post_init__(self) -> None:
        _check_above_zero(self, "intensity", "flops_per_s")
        mark(self.kind)


def make_roofline(roofs: Sequence[Roof], points: Sequence[Point] = (), title: str = "") -> Picture:
    """A log-log plot of one or more roofs and any number of points.

    Roofs may be several machines, several dtypes, or several levels of one memory. Each ridge is
    marked. Raises ValueError when there is no roof or an entry is not a Roof or a Point.
    """
    roofs, points = several(roofs, "roofs"), several(points, "points")
    text(title, "title")
    if not roofs:
        raise ValueError("roofs is empty; a roofline needs at least one Roof.")
    for name, given, wanted in (("roofs", roofs, Roof), ("points", points, Point)):
        for one in given:
            if not isinstance(one, wanted):
                raise ValueError(f"{name} holds {one!r}; it must hold only {wanted.__name__}.")
    title = title or f"The roof of {', '.join(roof.name for roof in roofs)}"
    texts, tables = [], []
    for rows in (_roof_rows(roofs), _point_rows(roofs, points)):
        if rows:
            table = make_table(rows, caption="" if texts else title)
            texts.append(table.text)
            tables.append(table.html)
    return Picture(
        title=title,
        alt=_alt(roofs, points, title),
        text="\n\n".join(texts),
        numbers="".join(tables),
        paint=lambda: _paint(roofs, points, title),
    )


def _check_above_zero(given: Roof | Point, *names: str) -> None:
    for name in names:
        value = finite(getattr(given, name), name)
        if value <= 0:
            raise ValueError(f"{name} is {value:g}; it must be above 0.")
        object.__setattr__(given, name, value)


def _roof_rows(roofs: list[Roof]) -> list[dict]:
    return [
        {
            "roof": roof.name,
            "peak": si(roof.peak_flops_per_s, "FLOP/s"),
            "bandwidth": si(roof.bytes_per_s, "B/s"),
            "ridge (FLOP per byte)": plain(roof.ridge, 3),
            "kind": roof.kind,
        }
        for roof in roofs
    ]


def _point_rows(roofs: list[Roof], points: list[Point]) -> list[dict]:
    rows = []
    for point in points:
        row = {
            "point": point.label,
            "FLOP per byte": plain(point.intensity, 3),
            "rate": si(point.flops_per_s, "FLOP/s"),
        }
        if len(roofs) == 1:
            roof = roofs[0]
            row["of the roof"] = f"{point.flops_per_s / roof.at(point.intensity):.0%}"
            row["under"] = "the slope" if point.intensity < roof.ridge else "the flat part"
        rows.append(row | {"kind": point.kind})
    return rows


def _alt(roofs: list[Roof], points: list[Point], title: str) -> str:
    said = [f"Roofline plot, both axes logarithmic: {title}. FLOP/s by FLOP per byte."]
    said += [
        f"Roof {roof.name}, {roof.kind}: rises at {si(roof.bytes_per_s, 'B/s')} to its ridge at "
        f"{plain(roof.ridge, 3)} FLOP per byte, then flat at {si(roof.peak_flops_per_s, 'FLOP/s')}."
        for roof in roofs
    ]
    said += [
        f"Point {point.label}, {point.kind}: {si(point.flops_per_s, 'FLOP/s')} at "
        f"{plain(point.intensity, 3)} FLOP per byte."
        for point in points
    ]
    return " ".join(said)


def _limits(roofs: list[Roof], points: list[Point]) -> tuple[float, float, float, float]:
    ridges = [roof.ridge for roof in roofs]
    intensities = [point.intensity for point in points]
    x_low = min([min(ridges) / 30, *(x / 2.5 for x in intensities)])
    x_high = max([max(ridges) * 20, *(x * 8 for x in intensities)])
    rates = [point.flops_per_s for point in points]
    y_low = min([*(roof.at(x_low) for roof in roofs), *(rate / 2.5 for rate in rates)])
    y_high = max([*(roof.peak_flops_per_s for roof in roofs), *rates])
    return x_low, x_high, y_low, y_high * (y_high / y_low) ** 0.12


def _paint(roofs: list[Roof], points: list[Point], title: str) -> "Figure":
    figure, axes = new_figure(title, _X, _Y, height_inches=5.2)
    x_low, x_high, y_low, y_high = _limits(roofs, points)
    make_log(axes.xaxis, x_low, x_high, "")
    make_log(axes.yaxis, y_low, y_high, "FLOP/s")
    axes.set_xlim(x_low, x_high)
    axes.set_ylim(y_low, y_high)
    grid(axes)
    for roof, colour in zip(roofs, SEQUENCE * len(roofs), strict=False):
        xs = [x_low, roof.ridge, x_high]
        axes.plot(xs, [roof.at(x) for x in xs], color=colour, ls=mark(roof.kind).line, lw=2.4)
        axes.plot([roof.ridge] * 2, [y_low, roof.peak_flops_per_s], color=colour, lw=0.9, alpha=0.6)
        axes.plot(roof.ridge, roof.peak_flops_per_s, "D", color=colour, ms=6)
    for point in points:
        look = mark(point.kind)
        axes.plot(
            point.intensity, point.flops_per_s, look.marker, color=INK, ms=8, zorder=6,
            markerfacecolor=INK if look.filled else "white", markeredgewidth=1.6,
        )  # fmt: skip
    _legend(axes, roofs, points)
    figure.draw_without_rendering()
    _label(axes, roofs, points, (x_low, x_high, y_low))
    return figure


def _legend(axes: "Axes", roofs: list[Roof], points: list[Point]) -> None:
    """What line style and marker mean, for the kinds that are there."""
    from matplotlib.lines import Line2D

    handles = []
    for kind, look in MARKS.items():
        has_roof = any(roof.kind == kind for roof in roofs)
        has_point = any(point.kind == kind for point in points)
        if has_roof or has_point:
            handle = Line2D([], [], color=INK, linewidth=2.2, markersize=8, label=kind)
            handle.set_linestyle(look.line if has_roof else "none")
            handle.set_marker(look.marker if has_point else "none")
            handle.set_markerfacecolor(INK if look.filled else "white")
            handles.append(handle)
    handles.append(Line2D([], [], color=INK, linestyle="none", marker="D", ms=6, label="ridge"))
    axes.legend(handles=handles, loc="upper left", handlelength=2.6)


def _label(
    axes: "Axes", roofs: list[Roof], points: list[Point], limits: tuple[float, float, float]
) -> None:
    """Name flat parts, slopes, ridges and points, each where there is room."""
    from matplotlib.transforms import Bbox

    x_low, x_high, y_low = limits
    room = Room(axes)
    room.take([axes.get_legend().get_window_extent()])
    for roof in roofs:
        xs = [x_low, roof.ridge, x_high]
        room.take_line(xs, [roof.at(x) for x in xs])
    to_pixels = axes.transData.transform
    for point in points:
        x, y = to_pixels((point.intensity, point.flops_per_s))
        room.take([Bbox.from_bounds(x - 7, y - 7, 14, 14)])

    peaks = Counter(roof.peak_flops_per_s for roof in roofs)
    for peak in peaks:
        sharing = [roof for roof in roofs if roof.peak_flops_per_s == peak]
        name = f"{sharing[0].name}: " if len(sharing) == 1 else ""
        start = max(roof.ridge for roof in sharing)
        along = [start * (x_high / start) ** share for share in (1, 0.9, 0.8, 0.7, 0.6)]
        spots = [(x, peak, -4, dy, "right") for dy in (7, -15) for x in along]
        spots += [(start, peak, -8, 7, "right")]
        _put(axes, room, f"{name}{si(peak, 'FLOP/s')} {sharing[0].kind}", spots)
    for point in sorted(points, key=lambda point: (point.intensity, point.flops_per_s)):
        spots = [
            (point.intensity, point.flops_per_s, dx, dy, side)
            for far in (1, 2, 3.2, 4.5)
            for dx, dy, side in _around(far)
        ]
        _put(axes, room, point.label, spots, pointer=True)
    for bandwidth in dict.fromkeys(roof.bytes_per_s for roof in roofs):
        sharing = [roof for roof in roofs if roof.bytes_per_s == bandwidth]
        alone = len(sharing) == 1 and peaks[sharing[0].peak_flops_per_s] > 1
        _put_on_slope(axes, room, sharing, x_low, f"{sharing[0].name}: " if alone else "")
    for roof in roofs:
        spots = [(roof.ridge, y_low, 4, dy, "left") for dy in (4, 18, 32)]
        spots += [(roof.ridge, y_low, -4, dy, "right") for dy in (4, 18, 32)]
        _put(axes, room, f"ridge {plain(roof.ridge, 3)}", spots, size=9)


def _around(far: float) -> list[tuple[float, float, str]]:
    out, up = 9 * far, 13 * (far - 1)
    return [
        (out, -4, "left"), (-out, -4, "right"), (out, -8 - up, "left"), (out, 2 + up, "left"),
        (-out, 2 + up, "right"), (-out, -8 - up, "right"), (0, -19 - up, "center"),
        (0, 9 + up, "center"),
    ]  # fmt: skip


def _put(
    axes: "Axes", room: Room, text: str, spots: list[tuple], size: float = 10, pointer: bool = False
) -> None:
    """Put a text at the first spot (x, y, dx, dy in points, side) that is free."""
    label = axes.text(*spots[0][:2], text, fontsize=size, color=INK, zorder=5, path_effects=halo())
    label.set_in_layout(False)
    shift = axes.figure.dpi / 72

    def move(x: float, y: float, dx: float, dy: float, side: str) -> list["Bbox"]:
        here = axes.transData.transform((x, y))
        there = (here[0] + dx * shift, here[1] + dy * shift)
        label.set_position(axes.transData.inverted().transform(there))
        label.set_horizontalalignment(side)
        return [label.get_window_extent()]

    x, y, dx, dy, _ = room.place(move, spots)
    if pointer and math.hypot(dx, dy) > _NEAR:
        axes.annotate(
            "", (x, y), xytext=(dx, dy + size / 3), textcoords="offset points",
            arrowprops={"arrowstyle": "-", "color": "#808080", "lw": 0.8, "shrinkB": 4},
        ).set_in_layout(False)  # fmt: skip


def _put_on_slope(axes: "Axes", room: Room, sharing: list[Roof], x_low: float, name: str) -> None:
    """Write a bandwidth along its slope."""
    from matplotlib.transforms import Bbox

    ridge, slope = max(roof.ridge for roof in sharing), sharing[0].bytes_per_s
    (x0, y0), (x1, y1) = axes.transData.transform([(x_low, x_low * slope), (ridge, ridge * slope)])
    angle = math.atan2(y1 - y0, x1 - x0)
    label = axes.text(
        x_low, x_low * slope, f"{name}{si(slope, 'B/s')}", fontsize=10, color=INK, ha="center",
        va="center",
    )  # fmt: skip
    label.set_in_layout(False)
    length, height = label.get_window_extent().size
    label.set_rotation(math.degrees(angle))
    label.set_rotation_mode("anchor")

    def move(share: float, side: int) -> list["Bbox"]:
        x = x0 + (x1 - x0) * share - side * math.sin(angle) * (height * 0.75 + 2)
        y = y0 + (y1 - y0) * share + side * math.cos(angle) * (height * 0.75 + 2)
        label.set_position(axes.transData.inverted().transform((x, y)))
        steps = [length * (i / 8 - 0.5) for i in range(9)]
        return [
            Bbox.from_bounds(
                x + step * math.cos(angle) - height / 3,
                y + step * math.sin(angle) - height / 3,
                height / 1.5,
                height / 1.5,
            )
            for step in steps
        ]

    shares = (0.4, 0.5, 0.6, 0.7, 0.8, 0.3, 0.2)
    room.place(move, [(share, side) for side in (1, -1) for share in shares])
