"""An answer as text: the cell that defines it and whatever else of the notebook it needs.

Text can be saved, read in a year, and run in another process, which a function object cannot.
"""

from __future__ import annotations

import ast
import builtins
import symtable

# Statements that call these show something or talk to the notebook. They never travel.
_COURSE_CALLS = {"check", "mine", "start", "predict", "against_prediction", "quiz", "progress"}

# A name bound inside one of these is not a name of the notebook.
_SCOPES = (
    ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda,
    ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp,
)  # fmt: skip


class NotFound(ValueError):
    """The answer's text is not in the notebook; the message says what to do."""


def written(name: str, cells: list[str], given: set[str]) -> str:
    """The self-contained text of the answer called `name`.

    cells: what was executed, in that order; the last statement that binds a name counts.
    given: names that every answer of the chapter sees anyway.
    """
    bindings: dict[str, str] = {}
    for cell in cells:
        for text, bound in _statements(cell):
            bindings.update(dict.fromkeys(bound, text))
    if name not in bindings:
        raise NotFound(
            f"no cell of this notebook defines {name}. Run the one that does, then this."
        )
    wanted: list[str] = []
    _collect(name, bindings, given, wanted, set())
    return "\n\n".join(dict.fromkeys(wanted)) + "\n"


def _collect(
    name: str, bindings: dict[str, str], given: set[str], wanted: list[str], seen: set[str]
) -> None:
    seen.add(name)
    text = bindings[name]
    for other in sorted(_used(text) - seen - given):
        if other in bindings:
            _collect(other, bindings, given, wanted, seen)
    wanted.append(text)


def _statements(cell: str) -> list[tuple[str, set[str]]]:
    """The top-level statements of a cell that bind names: their text and those names."""
    try:
        tree = ast.parse(cell)
    except (SyntaxError, ValueError):
        return []
    lines = cell.splitlines(keepends=True)
    found = []
    for node in tree.body:
        bound = _bound(node)
        if bound and not _talks_to_course(node):
            decorators = getattr(node, "decorator_list", [])
            first = min([node.lineno] + [d.lineno for d in decorators])
            text = "".join(lines[first - 1 : node.end_lineno]).rstrip()
            alone = len(ast.parse(text).body) == 1 if text[:1].strip() else False
            found.append((text if alone else ast.unparse(node), bound))
    return found


def _bound(node: ast.stmt) -> set[str]:
    """The names that a statement binds in the notebook, not those of a scope inside it."""
    if isinstance(node, _SCOPES):
        return {node.name} if hasattr(node, "name") else set()
    names = set()
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
        names.add(node.id)
    elif isinstance(node, ast.Import | ast.ImportFrom):
        names |= {(alias.asname or alias.name).split(".")[0] for alias in node.names}
    for child in ast.iter_child_nodes(node):
        names |= _bound(child)
    return names


def _talks_to_course(node: ast.stmt) -> bool:
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return False
    calls = (c.func.id for c in ast.walk(node) if isinstance(c, ast.Call) and _is_name(c.func))
    return any(call in _COURSE_CALLS for call in calls)


def _is_name(node: ast.expr) -> bool:
    return isinstance(node, ast.Name)


def _used(text: str) -> set[str]:
    """The notebook's names that a text looks up: not the locals of its functions."""
    top = symtable.symtable(text, "<answer>", "exec")
    names = {symbol.get_name() for symbol in top.get_symbols() if symbol.is_referenced()}
    inner = list(top.get_children())
    while inner:
        table = inner.pop()
        names |= {symbol.get_name() for symbol in table.get_symbols() if symbol.is_global()}
        inner += table.get_children()
    return names - set(dir(builtins))
