"""What a cell of prose may hold, so that it renders alike everywhere. Standard library only."""

import re

MOST_WORDS = 120

_FENCE = re.compile(r"^(```|~~~).*?^\1", re.DOTALL | re.MULTILINE)
_NOT_PROSE = re.compile(
    r"<!--.*?-->"  # comments
    r"|(`+).+?\1"  # code
    r"|\$\$.+?\$\$|\$[^$\n]+?\$"  # mathematics
    r"|<[^<>\n]+>"  # tags
    r"|(?<=\])\([^()\s]*\)"  # the address of a link
    r"|!(?=\[)|!=",  # an image, unequal
    re.DOTALL,
)
_MYST = re.compile(r"\{[a-z][\w:-]*\}`|^[ \t]*(```+|~~~+|:::+)\{|^:::", re.MULTILINE)


def _blank(match: re.Match) -> str:
    """As many line breaks as the match had, so that line numbers stay."""
    return "\n" * match[0].count("\n") or " "


def headings(text: str) -> list[tuple[int, int]]:
    """(line from 0, level 1 to 6) of each heading, outside code."""
    lines = _FENCE.sub(_blank, text).split("\n")
    found = ((i, re.match(r"(#{1,6}) ", line)) for i, line in enumerate(lines))
    return [(i, len(match[1])) for i, match in found if match]


def words(text: str) -> int:
    """How many words a reader reads: outside code, mathematics, tags and addresses."""
    plain = _NOT_PROSE.sub(_blank, _FENCE.sub(_blank, text))
    return sum(any(letter.isalnum() for letter in word) for word in plain.split())


def first_problem(text: str) -> tuple[int, str] | None:
    """(line from 0, sentence) of the first rule that the text breaks, or None."""
    match = _MYST.search(text)
    if match:
        line = text.count("\n", 0, match.start())
        return line, "a MyST role or directive prints literally in a notebook."
    plain = _NOT_PROSE.sub(_blank, _FENCE.sub(_blank, text))
    for line, content in enumerate(plain.split("\n")):
        if "!" in content:
            return line, "prose has no exclamation marks."
    count = words(text)
    if count > MOST_WORDS:
        return 0, f"the cell has {count} words, at most {MOST_WORDS} are allowed."
    return None
