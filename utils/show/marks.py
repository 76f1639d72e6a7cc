"""What measured, modelled and published look like, in print and in plots. The one place for it.

Each kind has a word, a symbol, a marker, a line style and a hatch of its own, so a figure still
reads right without colour. Colours are Okabe and Ito's, made to survive colour blindness
(Okabe and Ito, "Color Universal Design", 2008).
"""

from dataclasses import dataclass

BLUE, VERMILLION, GREEN, PURPLE = "#0072B2", "#D55E00", "#009E73", "#CC79A7"
ORANGE, SKY, BLACK = "#E69F00", "#56B4E9", "#000000"

# For several series or roofs in one plot. Okabe and Ito's yellow is left out: too pale on white.
SEQUENCE = (BLUE, VERMILLION, GREEN, PURPLE, ORANGE, SKY, BLACK)


@dataclass(frozen=True)
class Mark:
    """How one kind of number looks.

    `symbol` is for text and looks like `marker`; `filled` says whether marker and bar are filled.
    """

    word: str
    colour: str
    symbol: str
    marker: str
    filled: bool
    line: str
    hatch: str


MARKS: dict[str, Mark] = {
    "measured": Mark("measured", BLUE, "●", "o", True, "-", ""),
    "modelled": Mark("modelled", VERMILLION, "□", "s", False, "--", "///"),
    "published": Mark("published", GREEN, "▲", "^", True, ":", ".."),
}


def mark(kind: str) -> Mark:
    """The look of one kind. Raises ValueError when `kind` is not one of the three words."""
    if not isinstance(kind, str) or kind not in MARKS:
        raise ValueError(f"kind is {kind!r}; it must be one of {', '.join(MARKS)}.")
    return MARKS[kind]
