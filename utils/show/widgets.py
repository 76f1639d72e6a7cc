"""Figures to play with: sliders and choices that redraw a picture, and a form that needs no kernel.

A chapter writes a function of plain values that returns a picture made by `show.make`, and, if it
likes, a sentence; `explore` does the rest:

    def draw(batch, dtype):
        points = [...]
        return show.make.roofline(roofs, points), f"At batch {batch} ..."

    show.explore(draw, batch=Slider(1, 1024, log2=True, unit="rows"),
                 dtype=Choice(["bf16", "int8"]))
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any

from utils.show.figure import Picture, Shown, display, in_notebook
from utils.show.numbers import finite, is_number, joined, plain, several, si
from utils.show.tables import make_table

if TYPE_CHECKING:
    from ipywidgets import Dropdown, SelectionSlider, VBox

_MOST_VALUES = 1000
_STATIC_SETTINGS = 5  # of each control in the static form


@dataclass(frozen=True)
class Slider:
    """A control for a number from `low` to `high`, in steps, or doubling when `log2`.

    start: where it stands at first (default: low); step: 1 unless given, and not with log2;
    label: default the argument's name; unit: printed after the number.
    Raises ValueError when the range is empty or start is not one of its values.
    """

    low: float
    high: float
    start: float | None = None
    step: float | None = None
    log2: bool = False
    label: str = ""
    unit: str = ""

    def __post_init__(self) -> None:
        low, high = finite(self.low, "low"), finite(self.high, "high")
        if low >= high:
            raise ValueError(f"low is {low:g} and high is {high:g}; low must be below high.")
        if self.log2 and (low <= 0 or self.step is not None):
            raise ValueError(
                f"low is {low:g} and step is {self.step}; a log2 slider starts above 0 and doubles."
            )
        if self.step is not None and finite(self.step, "step") <= 0:
            raise ValueError(f"step is {self.step:g}; it must be above 0.")
        if self.step is not None and self.step > high - low:
            raise ValueError(f"step is {self.step:g}; from {low:g} to {high:g} it takes no step.")
        if not self.log2 and (high - low) / (self.step or 1) > _MOST_VALUES:
            raise ValueError(
                f"step is {self.step or 1:g}; from {low:g} to {high:g} that is more than "
                f"{_MOST_VALUES} values. Give a larger step, or log2=True."
            )
        if self.start is not None:
            finite(self.start, "start")
        if self.first not in self.values:
            near = min(self.values, key=lambda value: abs(value - self.start))
            raise ValueError(
                f"start is {self.start:g}; the slider stands on {plain(self.values[0])}, "
                f"{plain(self.values[1])} and so on to {plain(self.values[-1])}. "
                f"The nearest is {plain(near)}."
            )

    @property
    def values(self) -> tuple[float, ...]:
        """Every value it can stand on; whole numbers stay int."""
        if self.log2:
            return tuple(self.low * 2**i for i in range(int(math.log2(self.high / self.low)) + 1))
        step = self.step or 1
        count = math.floor((self.high - self.low) / step + 1e-9)
        values = [self.low + i * step for i in range(count + 1)]
        return tuple(v if isinstance(v, int) else float(f"{v:.12g}") for v in values)

    @property
    def first(self) -> float:
        return self.low if self.start is None else self.start

    def say(self, value: float) -> str:
        """A value with its unit: exact below a million, to three digits above."""
        return joined(plain(value), self.unit) if abs(value) < 1e6 else si(value, self.unit)


@dataclass(frozen=True)
class Choice:
    """A control for one of several options; start: default the first; label: the argument's name.

    Raises ValueError when there are no options or start is not among them.
    """

    options: Sequence[Any]
    start: Any = None
    label: str = ""

    def __post_init__(self) -> None:
        if not several(self.options, "options"):
            raise ValueError(f"options is {self.options!r}; it must be a list of at least one.")
        if self.start is not None and self.start not in self.values:
            raise ValueError(f"start is {self.start!r}; it must be one of {self.values}.")

    @property
    def values(self) -> tuple[Any, ...]:
        return tuple(self.options)

    @property
    def first(self) -> Any:
        return self.values[0] if self.start is None else self.start

    def say(self, value: Any) -> str:
        """A value as text."""
        return plain(value) if is_number(value) else str(value)


Draw = Callable[..., Shown | tuple[Shown, str]]


def explore(draw: Draw, **controls: Slider | Choice) -> None:
    """Show a picture that its controls redraw, and a static form that needs no kernel.

    `draw(**values)` gets one value for each control, by name, and returns what a function of
    `show.make` returned, or a pair of that and a sentence (the readout). An error in it is said
    in the readout. In a script the static form is printed: the picture at the first settings, as
    text, and the readout at a few settings of each control. Raises ValueError for a wrong control.
    """
    exploration = Exploration(draw, controls)
    static = exploration.static()
    if not in_notebook():
        display(static)
        return
    from IPython.display import display as display_in_notebook

    widget = exploration.widget()._repr_mimebundle_()
    widget["text/plain"] = "The sliders need a running kernel. The static form works without one."
    display_in_notebook(widget, raw=True)
    display(static)


class StaticForm(Shown):
    """What stands in for the widget where no kernel runs. Its picture is painted when looked at."""

    def __init__(self, *, text: str, title: str, shown: Shown | None, after: str) -> None:
        super().__init__(text, after, title)
        self._shown = shown

    @property
    def html(self) -> str:
        return (
            '<details class="static-form"><summary>Static form, for a page without a running '
            f"kernel</summary>\n\n{self._shown.html if self._shown else ''}{self._html}"
            "\n\n</details>"
        )


class Exploration:
    """What `explore` shows, as parts: `widget()` for a live notebook, `static()` for the rest."""

    def __init__(self, draw: Draw, controls: dict[str, Slider | Choice]) -> None:
        if not callable(draw):
            raise ValueError(f"draw is {draw!r}; it must be a function.")
        if not controls:
            raise ValueError("controls is empty; give at least one Slider or Choice by name.")
        for name, control in controls.items():
            if not isinstance(control, Slider | Choice):
                raise ValueError(f"{name} is {control!r}; it must be a Slider or a Choice.")
        self._draw = draw
        self._controls = controls

    def _label(self, name: str) -> str:
        return self._controls[name].label or name.replace("_", " ")

    def _at(self, values: dict[str, Any], paint: bool = False) -> tuple[Shown | None, str]:
        """The picture and the readout at these values; no picture where it cannot be drawn."""
        try:
            made = self._draw(**values)
            shown, readout = made if isinstance(made, tuple) else (made, "")
            if not isinstance(shown, Shown):
                raise TypeError(f"draw returned {type(shown).__name__}, not a figure of show.make")
            if paint and isinstance(shown, Picture):
                shown.png  # noqa: B018 (painted here, so that an error in it is said too)
            return shown, str(readout)
        except Exception as error:
            said = " ".join(str(error).split()) or "it gave no reason"
            if not isinstance(error, ValueError):  # a ValueError is a sentence already
                said = f"{type(error).__name__}: {said}"
            return None, f"Nothing to draw at this setting. {said}"

    def static(self) -> Shown:
        """The picture at the first settings, and the readout at a few settings of each control."""
        first = {name: control.first for name, control in self._controls.items()}
        shown, readout = self._at(first)
        rows = []
        for name, control in self._controls.items():
            for value in _a_few(control.values, control.first):
                here, said = self._at(first | {name: value})
                rows.append(
                    {
                        "control": self._label(name),
                        "setting": control.say(value),
                        "readout": said or (here.title if here else ""),
                    }
                )
        at = ", ".join(
            f"{self._label(name)} {control.say(control.first)}"
            for name, control in self._controls.items()
        )
        table = make_table(rows, caption=f"One control moved, the others at: {at}")
        text = [shown.text if shown else "", readout, table.text]
        return StaticForm(
            text="\n\n".join(part for part in text if part),
            title=at,
            shown=shown,
            after=f"<p>{escape(readout)}</p>{table.html}",
        )

    def widget(self) -> "VBox":
        """The controls, the readout and the picture, as ipywidgets."""
        from ipywidgets import HTML, VBox

        inputs = {name: self._input(name) for name in self._controls}
        readout, picture = HTML(), HTML()
        readout.add_class("readout")

        def redraw(_: Any = None) -> None:
            shown, said = self._at({name: box.value for name, box in inputs.items()}, paint=True)
            if shown:
                picture.value = shown.img if isinstance(shown, Picture) else shown.html
            elif picture.value:
                said += " The picture shows the setting before."
            readout.value = f'<span role="status" style="font-size:1.1em">{escape(said)}</span>'

        for box in inputs.values():
            box.observe(redraw, names="value")
        redraw()
        return VBox([*inputs.values(), readout, picture])

    def _input(self, name: str) -> "SelectionSlider | Dropdown":
        from ipywidgets import Dropdown, Layout, SelectionSlider

        control = self._controls[name]
        widest = max(len(self._label(other)) for other in self._controls)
        kind = SelectionSlider if isinstance(control, Slider) else Dropdown
        return kind(
            options=[(control.say(value), value) for value in control.values],
            value=control.first,
            description=self._label(name),
            style={"description_width": f"{0.6 * widest + 1:.1f}em"},
            layout=Layout(width="min(100%, 36em)"),
        )


def _a_few(values: Sequence[Any], first: Any) -> list[Any]:
    """About five of the values, evenly spread, with both ends and the first setting."""
    last = len(values) - 1
    parts = min(_STATIC_SETTINGS - 1, last) or 1
    picks = {round(i * last / parts) for i in range(parts + 1)} | {values.index(first)}
    return [values[i] for i in sorted(picks)]
