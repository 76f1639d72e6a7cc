"""Plots, tables and widgets. Each says what is measured, modelled or published.

Everything has a text twin, which is what a plain script prints. Importing this loads no
matplotlib and no ipywidgets; the first picture does. Every function here displays and returns
None; `show.make` has the same functions returning what they made.
"""

import functools
import inspect
from collections.abc import Callable

from utils.show import make
from utils.show.figure import Shown, display
from utils.show.live import Live
from utils.show.numbers import si
from utils.show.plots import Series
from utils.show.roofline import Point, Roof
from utils.show.widgets import Choice, Slider, explore


def _displaying(make_it: Callable[..., Shown]) -> Callable[..., None]:
    """The function that displays what `make_it` makes; same arguments, same errors."""

    @functools.wraps(make_it)
    def show_it(*arguments, **options) -> None:
        display(make_it(*arguments, **options))

    show_it.__name__ = show_it.__qualname__ = make_it.__name__.removeprefix("make_")
    show_it.__signature__ = inspect.signature(make_it).replace(return_annotation=None)
    return show_it


line = _displaying(make.line)
lines = _displaying(make.lines)
bars = _displaying(make.bars)
roofline = _displaying(make.roofline)
table = _displaying(make.table)
number = _displaying(make.number)

__all__ = [
    "Choice", "Live", "Point", "Roof", "Series", "Slider", "bars", "explore", "line", "lines",
    "make", "number", "roofline", "si", "table",
]  # fmt: skip
