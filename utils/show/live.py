"""A figure that follows a long computation: redrawn in place in a notebook, lines in a script."""

import time
from collections.abc import Callable, Sequence
from html import escape
from typing import Any

from utils.show.figure import Shown, in_notebook

PAUSE = 10.0  # times as long as a drawing took: so drawing costs at most a tenth of the time


class Live:
    """Call it with the state of something that goes on, as often as you like.

    draw: state -> one or more figures of `show.make`, shown side by side
    line: state -> the state as one line of text

    In a notebook the figures are redrawn in place, but never so often that drawing takes more
    than a tenth of the time: a state in between is skipped. In a script every line is printed.
    """

    def __init__(
        self, draw: Callable[[Any], Shown | Sequence[Shown]], line: Callable[[Any], str]
    ) -> None:
        for name, function in (("draw", draw), ("line", line)):
            if not callable(function):
                raise ValueError(f"{name} is {function!r}; it must be a function of the state.")
        self._draw, self._line = draw, line
        self._handle: Any = None
        self._next = 0.0

    def __call__(self, state: Any, *, last: bool = False) -> None:
        """Show this state. last: in any case, because no other will follow."""
        if not in_notebook():
            print(self._line(state), flush=True)
            return
        began = time.perf_counter()
        if began < self._next and not last:
            return
        shown = self._shown(state)
        if self._handle is None:
            from IPython.display import display

            self._handle = display(shown, display_id=True)
        else:
            self._handle.update(shown)
        now = time.perf_counter()
        self._next = now + PAUSE * (now - began)
        if last:  # whatever comes next has a place of its own
            self._handle, self._next = None, 0.0

    def _shown(self, state: Any) -> Shown:
        made, line = self._draw(state), self._line(state)
        figures = [made] if isinstance(made, Shown) else list(made)
        cells = "".join(
            f'<div style="flex:1 1 22em;min-width:0">{figure.html}</div>' for figure in figures
        )
        html = (
            f'<p class="readout" style="font-size:1.1em">{escape(line)}</p>'
            f'<div style="display:flex;flex-wrap:wrap;gap:1em">{cells}</div>'
        )
        return Shown("\n\n".join([line, *(figure.text for figure in figures)]), html, line)
