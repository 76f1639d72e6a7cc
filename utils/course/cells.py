"""The text of every cell that this notebook ran, in that order.

IPython's history holds only what its front end asked it to store, and nbval, which runs the
notebooks in the tests, asks for nothing. So each cell is noted as it begins.
"""

from __future__ import annotations

import ast
import sys
from pathlib import Path
from typing import Any

_ran: list[str] = []


def ran() -> list[str]:
    """The cells that ran so far, the current one last, without magics; or the script that runs."""
    shell = _shell()
    if shell is not None:
        return [_python(shell, cell) for cell in _ran]
    script = getattr(sys.modules["__main__"], "__file__", None)
    return [Path(script).read_text(encoding="utf-8")] if script else []


def name_of(thing: Any, likely: str) -> str | None:
    """A name by which the notebook or the script knows this very object, `likely` where it can."""
    shell = _shell()
    names = shell.user_ns if shell is not None else vars(sys.modules["__main__"])
    try:
        first = [likely, thing.__name__]
    except Exception:  # it need not have one, and may be of a class that breaks when asked
        first = [likely]
    others = [name for name in names if not name.startswith("_")]
    return next(
        (x for x in [*first, *others] if isinstance(x, str) and names.get(x) is thing), None
    )


def passed_inline(id: str) -> str | None:
    """What the current cell hands to `check(id, ...)`, as text: a lambda has no name to find."""
    for cell in ran()[-1:]:
        for node in ast.walk(ast.parse(cell)):
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "check":
                texts = [ast.unparse(one) for one in node.args]
                if len(texts) > 1 and texts[0] == repr(id):
                    return texts[1]
    return None


def _shell() -> Any:
    ipython = sys.modules.get("IPython")
    return ipython.get_ipython() if ipython else None


def _python(shell: Any, cell: str) -> str:
    try:
        return shell.transform_cell(cell)
    except SyntaxError:
        return cell


def _listen() -> None:
    """From now on; what ran before, and the cell that imports this, are in the history."""
    shell = _shell()
    if shell is not None:
        _ran.extend(shell.history_manager.input_hist_raw)
        shell.events.register("pre_run_cell", lambda cell: _ran.append(cell.raw_cell))


_listen()
