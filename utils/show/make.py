"""The same functions as in `show`, but they return what they made instead of displaying it.

`show.explore` wants these: `show.make.line`, `lines`, `bars`, `roofline`, `table`, `number`.
"""

from utils.show.numbers import make_number as number
from utils.show.plots import make_bars as bars
from utils.show.plots import make_line as line
from utils.show.plots import make_lines as lines
from utils.show.roofline import make_roofline as roofline
from utils.show.tables import make_table as table

__all__ = ["bars", "line", "lines", "number", "roofline", "table"]
