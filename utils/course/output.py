"""What a reader is told: a few lines with a mood, in a notebook as HTML, in a script as text."""

from __future__ import annotations

from html import escape

from utils.show.figure import Shown, in_notebook
from utils.show.figure import display as show

__all__ = ["Message", "in_notebook", "show"]

MARKS = {"pass": "✓", "fail": "✗", "open": "○", "note": "·"}
# Okabe-Ito colours, told apart by everyone; the mark and the words say the same.
COLOURS = {"pass": "#009E73", "fail": "#D55E00", "open": "#0072B2", "note": "#777777"}


class Message(Shown):
    """Lines of text with a mood: pass, fail, open or note. The first line is the title."""

    def __init__(self, mood: str, lines: list[str], code: str = "") -> None:
        super().__init__(_text(mood, lines, code), _html(mood, lines, code), lines[0])


def _text(mood: str, lines: list[str], code: str) -> str:
    first, *rest = lines
    text = [f"{MARKS[mood]} {first}", *(f"  {line}" for line in rest)]
    if code:
        text += ["", *(f"    {line}" for line in code.rstrip().splitlines())]
    return "\n".join(text)


def _html(mood: str, lines: list[str], code: str) -> str:
    first, *rest = map(escape, lines)
    colour = COLOURS[mood]
    body = "".join(f"<div>{line}</div>" for line in rest)
    if code:
        body += f"<pre style='margin:6px 0 0 0'>{escape(code.rstrip())}</pre>"
    return (
        f"<div class='check check-{mood}' role='status' style='border-left:4px solid "
        f"{colour};padding:4px 10px;margin:4px 0;overflow-wrap:anywhere'>"
        f"<div><b><span aria-hidden='true' style='color:{colour}'>{MARKS[mood]}</span> "
        f"{first}</b></div>{body}</div>"
    )
