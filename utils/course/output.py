"""Show a message in a notebook as HTML with a text twin, and in a script as text."""

from __future__ import annotations

import html
from typing import Any

MARKS = {"pass": "✓", "fail": "✗", "open": "○", "note": "·"}
# Okabe-Ito colours, told apart by everyone; the mark and the words say the same.
COLOURS = {"pass": "#009E73", "fail": "#D55E00", "open": "#0072B2", "note": "#777777"}


class Message:
    """Lines of text with a mood: pass, fail, open or note. The first line is the title."""

    def __init__(self, mood: str, lines: list[str], code: str = "") -> None:
        self.mood, self.lines, self.code = mood, lines, code

    def __repr__(self) -> str:
        first, *rest = self.lines
        text = [f"{MARKS[self.mood]} {first}", *(f"  {line}" for line in rest)]
        if self.code:
            text += ["", *(f"    {line}" for line in self.code.rstrip().splitlines())]
        return "\n".join(text)

    def _repr_html_(self) -> str:
        first, *rest = (html.escape(line) for line in self.lines)
        colour = COLOURS[self.mood]
        body = "".join(f"<div>{line}</div>" for line in rest)
        if self.code:
            body += f"<pre style='margin:6px 0 0 0'>{html.escape(self.code.rstrip())}</pre>"
        return (
            f"<div class='check check-{self.mood}' role='status' style='border-left:4px solid "
            f"{colour};padding:4px 10px;margin:4px 0;overflow-wrap:anywhere'>"
            f"<div><b><span aria-hidden='true' style='color:{colour}'>{MARKS[self.mood]}</span> "
            f"{first}</b></div>{body}</div>"
        )


def in_notebook() -> bool:
    """True where a Jupyter kernel runs this code, so that HTML and widgets have a place."""
    try:
        from IPython import get_ipython
    except ImportError:
        return False
    shell = get_ipython()
    return shell is not None and hasattr(shell, "kernel")


def show(thing: Any) -> None:
    """Display in a notebook, print elsewhere."""
    if in_notebook():
        from IPython.display import display

        display(thing)
    else:
        print(thing)
