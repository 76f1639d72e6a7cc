"""From a matplotlib figure to something a notebook, a screen reader and a terminal can all show.

matplotlib is imported when the first picture is painted, and never through pyplot: there is no
global state, and a figure is gone once its PNG is made.
"""

import base64
import io
import sys
import textwrap
from collections.abc import Callable
from functools import cached_property
from html import escape
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

WIDTH_INCHES, DPI = 8.0, 110
INK, FAINT = "#222222", "#D0D0D0"
# Everything that a reader's own matplotlib settings could make illegible is set here. parse_math
# is off so that "$2 an hour" in a title stays what it is.
_STYLE = {
    "font.size": 11, "font.family": "sans-serif", "font.sans-serif": ["DejaVu Sans"],
    "text.color": INK, "text.parse_math": False, "text.usetex": False,
    "axes.labelsize": 11, "axes.labelcolor": INK, "axes.edgecolor": "#808080",
    "axes.facecolor": "white", "axes.spines.top": False, "axes.spines.right": False,
    "axes.axisbelow": True, "axes.grid": False,
    "xtick.labelsize": 10, "ytick.labelsize": 10, "xtick.color": INK, "ytick.color": INK,
    "legend.fontsize": 10, "legend.frameon": False, "hatch.linewidth": 1.2,
    "figure.facecolor": "white", "savefig.facecolor": "white", "lines.linewidth": 2.0,
}  # fmt: skip


class Shown:
    """What a function of `show` made: HTML for a notebook, a text twin for everything else."""

    def __init__(self, text: str, html: str, title: str = "") -> None:
        self.text = text
        self.title = title
        self._html = html

    @property
    def html(self) -> str:
        return self._html

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        return {"text/plain": self.text, "text/html": self.html}


class Picture(Shown):
    """A figure with alt text and its numbers. It is painted when first looked at.

    `paint` returns a matplotlib Figure; `numbers` is the HTML table of what is plotted.
    """

    def __init__(
        self, *, title: str, alt: str, text: str, numbers: str, paint: Callable[[], "Figure"]
    ) -> None:
        super().__init__(text, "", title)
        self.alt = alt
        self._numbers = numbers
        self._paint = paint

    def figure(self) -> "Figure":
        """A fresh matplotlib Figure of this picture."""
        import matplotlib

        with matplotlib.rc_context(_STYLE):
            return self._paint()

    @cached_property
    def png(self) -> bytes:
        """The picture as PNG bytes."""
        import matplotlib

        buffer = io.BytesIO()
        with matplotlib.rc_context(_STYLE):
            self._paint().savefig(buffer, format="png", dpi=DPI)
        return buffer.getvalue()

    @cached_property
    def img(self) -> str:
        """The picture as one <img> element with its alt text, the PNG inside it."""
        data = base64.b64encode(self.png).decode("ascii")
        return (
            f'<img src="data:image/png;base64,{data}" alt="{escape(self.alt)}" '
            f'width="{round(WIDTH_INCHES * DPI)}" style="max-width:100%;height:auto">'
        )

    @property
    def html(self) -> str:
        return (
            f'<div class="shown-picture">{self.img}<details><summary>The numbers in this picture'
            f"</summary>{self._numbers}</details></div>"
        )


def in_notebook() -> bool:
    """Whether a Jupyter kernel runs this code (a script or a terminal does not count)."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython else None
    return hasattr(shell, "kernel")


def display(shown: Shown) -> None:
    """Show it: as HTML in a notebook, as its text twin in a script or a terminal."""
    if in_notebook():
        from IPython.display import display as display_in_notebook

        display_in_notebook(shown)
        return
    try:
        print(shown.text)
    except UnicodeEncodeError:  # a terminal with a small alphabet, as on some Windows machines
        encoding = sys.stdout.encoding or "ascii"
        print(shown.text.encode(encoding, "replace").decode(encoding))


def new_figure(title: str, x: str, y: str, height_inches: float = 4.6) -> tuple["Figure", "Axes"]:
    """An empty figure of the course's width, with a title on the left and both axes named."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(WIDTH_INCHES, height_inches), dpi=DPI, layout="constrained")
    FigureCanvasAgg(figure)
    figure.get_layout_engine().set(w_pad=0.12, h_pad=0.1)
    figure.suptitle(
        textwrap.fill(title, 72), x=0.015, ha="left", fontsize=13, fontweight="bold", color=INK
    )
    axes = figure.add_subplot()
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    return figure, axes
