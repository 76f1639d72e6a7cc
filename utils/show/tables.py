"""Tables: HTML with a caption and scopes for screen readers, and an aligned text twin."""

import math
import re
from collections.abc import Mapping, Sequence
from html import escape
from numbers import Integral
from typing import Any

from utils.show.figure import Shown
from utils.show.marks import mark
from utils.show.numbers import is_number, plain
from utils.show.numbers import text as checked_text

EMPTY = "–"
_QUANTITY = re.compile(r"[-+]?\d[\d,.]*(e-?\d+)?%?( \S+){0,2}$")


def make_table(
    rows: Sequence[Mapping[str, Any]],
    *,
    caption: str = "",
    kinds: Mapping[str, str] | None = None,
) -> Shown:
    """A table as an object to show. See `show.table`."""
    columns = _columns(rows)
    checked_text(caption, "caption")
    if not isinstance(kinds, Mapping | None):
        raise ValueError(f"kinds is {kinds!r:.80}; it must be a dict of column to kind.")
    kinds = dict(kinds or {})
    for column, kind in kinds.items():
        if column not in columns:
            raise ValueError(f"kinds names the column {column!r}; the columns are {columns}.")
        mark(kind)
    cells = {column: _cells([row.get(column) for row in rows]) for column in columns}
    right = {column: _is_numeric([row.get(column) for row in rows]) for column in columns}
    return Shown(
        text=_text(columns, cells, right, kinds, caption),
        html=_html(columns, cells, right, kinds, caption),
        title=caption,
    )


def _columns(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    if isinstance(rows, str | Mapping) or not isinstance(rows, Sequence):
        raise ValueError(f"rows is a {type(rows).__name__}; it must be a list of dicts.")
    for i, row in enumerate(rows):
        if not isinstance(row, Mapping):
            raise ValueError(f"rows[{i}] is {row!r}; every row must be a dict of column to value.")
    columns = list(dict.fromkeys(column for row in rows for column in row))
    if not columns:
        raise ValueError("rows is empty; a table needs at least one row with one column.")
    return columns


def _is_numeric(values: list[Any]) -> bool:
    """Whether a column is right-aligned: numbers, or text such as "3.35 TB/s"."""
    known = [value for value in values if value is not None]
    return bool(known) and all(is_number(value) or _QUANTITY.match(str(value)) for value in known)


def _cells(values: list[Any]) -> list[str]:
    """One column as text. Numbers share their decimals where that needs three or fewer."""
    cells = [_cell(value) for value in values]
    numbers = [cell for cell, value in zip(cells, values, strict=True) if is_number(value)]
    decimals = max((len(cell.partition(".")[2]) for cell in numbers), default=0)
    if not 0 < decimals <= 3 or any("e" in cell for cell in numbers):
        return cells
    return [
        f"{value:,.{decimals}f}"
        if is_number(value) and not isinstance(value, Integral) and math.isfinite(value)
        else cell
        for cell, value in zip(cells, values, strict=True)
    ]


def _cell(value: Any) -> str:
    if value is None:
        return EMPTY
    if isinstance(value, bool):
        return "yes" if value else "no"
    if not is_number(value):
        return str(value)
    finite = isinstance(value, Integral) or math.isfinite(value)
    return plain(value) if finite else str(float(value))


def _text(
    columns: list[str],
    cells: dict[str, list[str]],
    right: dict[str, bool],
    kinds: dict[str, str],
    caption: str,
) -> str:
    heads = [[str(column), kinds.get(column, "")] for column in columns]
    if not kinds:
        heads = [[str(column)] for column in columns]
    blocks = []
    for column, head in zip(columns, heads, strict=True):
        words = [" ".join(part.split()) for part in (*head, *cells[column])]
        width = max(map(len, words))
        side = str.rjust if right[column] else str.ljust
        lines = [side(word, width) for word in words]
        blocks.append([*lines[: len(head)], "-" * width, *lines[len(head) :]])
    lines = ["  ".join(parts).rstrip() for parts in zip(*blocks, strict=True)]
    return "\n".join([caption, *lines] if caption else lines)


def _html(
    columns: list[str],
    cells: dict[str, list[str]],
    right: dict[str, bool],
    kinds: dict[str, str],
    caption: str,
) -> str:
    def style(column: str) -> str:
        side = "right" if right[column] else "left"
        return f'style="text-align:{side};padding:0.3em 0.8em;vertical-align:top"'

    def kind_of(column: str) -> str:
        if column not in kinds:
            return ""
        look = mark(kinds[column])
        return (
            f'<br><span style="font-weight:normal"><span aria-hidden="true">{look.symbol}</span> '
            f"{look.word}</span>"
        )

    head = "".join(
        f'<th scope="col" {style(column)}>{escape(str(column))}{kind_of(column)}</th>'
        for column in columns
    )
    body = []
    for i in range(len(cells[columns[0]])):
        first, *rest = (escape(cells[column][i]) for column in columns)
        others = "".join(
            f"<td {style(column)}>{cell}</td>"
            for column, cell in zip(columns[1:], rest, strict=True)
        )
        body.append(f'<tr><th scope="row" {style(columns[0])}>{first}</th>{others}</tr>')
    wrap = "nowrap" if len(caption) <= 60 else "normal"  # a narrow table would break it
    title = (
        f'<caption style="text-align:left;font-weight:bold;padding:0.3em 0.8em;caption-side:top;'
        f'white-space:{wrap}">{escape(caption)}</caption>'
        if caption
        else ""
    )
    return (
        '<table class="shown-table" style="border-collapse:collapse;margin:0.5em 0;'
        f'font-variant-numeric:tabular-nums">{title}'
        f"<thead><tr>{head}</tr></thead><tbody>{''.join(body)}</tbody></table>"
    )
