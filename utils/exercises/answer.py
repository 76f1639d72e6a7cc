"""An answer as text: the cell that defines it and whatever else of the notebook it needs.

Text can be saved, read in a year, and run in another process, which a function object cannot.
"""

from __future__ import annotations

import ast
import builtins
import symtable
import warnings
from collections.abc import Iterator
from dataclasses import dataclass

# Statements that call these show something or talk to the notebook. They never travel.
_COURSE_CALLS = {
    "check", "mine", "start", "predict", "against_prediction", "quiz", "progress", "hint", "reveal",
}  # fmt: skip

# A name bound inside one of these is not a name of the notebook.
_SCOPES = (
    ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda,
    ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp,
)  # fmt: skip
_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)

_MAYBE = (ast.If, ast.Try, ast.Match)  # what they bind may also stay as it was

# Methods that change what a name holds: `SIZES.update(fp8=1)` belongs to SIZES.
_CHANGES = {"add", "append", "extend", "insert", "update", "setdefault", "pop", "remove", "clear"}

_PYTHON_MAGICS = {"time", "capture", "prun"}  # cell magics that run their cell as Python


class NotFound(ValueError):
    """The answer's text is not in the notebook; the message says what to do."""


@dataclass(frozen=True, eq=False)
class _Statement:
    """One top-level statement: its text, the names it binds or changes, the names it reads."""

    text: str
    bound: frozenset[str]
    helper: bool  # a def, a class, a lambda or an import: meant to be called
    continues: frozenset[str]  # of `bound`, those whose old value it builds on


def written(name: str, cells: list[str], given: set[str], imports: str = "") -> str:
    """The self-contained text of the answer called `name`.

    cells: what was executed, in that order; the last statement that binds a name counts, with
        those that changed its value since.
    given: names that every answer of the chapter sees anyway. The notebook's own counts instead
        where it is no longer one of `imports`, the import statements behind some of those names.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a reader has seen the warnings of a cell already
        return _written(name, cells, given, _imported(imports))


def _written(name: str, cells: list[str], given: set[str], known: dict[str, tuple]) -> str:
    found = [statement for cell in cells for statement in _statements(cell)]
    bindings: dict[str, list[_Statement]] = {}
    for statement in found:
        for one in statement.bound:
            earlier = bindings.get(one, []) if one in statement.continues else []
            bindings[one] = [*earlier, statement]
    if name not in bindings:
        raise NotFound(
            f"no cell of this notebook defines {name}. Run the one that does, then this."
        )
    for one, chain in list(bindings.items()):
        same = one in known and _imported(chain[-1].text).get(one) == known[one]
        if one != name and (same or (one in given and one not in known)):
            del bindings[one]
        elif one in dir(builtins) and not chain[-1].helper:
            del bindings[one]  # `sum = 0` in some other cell is a slip, not a helper
    wanted: dict[_Statement, None] = {}
    missing = _collect(name, bindings, wanted, set()) - given - set(dir(builtins))
    first = [s.text for s in found if s.text.startswith("from __future__ ")]
    if missing:
        first += [s.text for s in found if "*" in s.bound]
    return "\n\n".join([*dict.fromkeys(first), *(s.text for s in wanted)]) + "\n"


def _collect(
    name: str, bindings: dict[str, list[_Statement]], wanted: dict[_Statement, None], seen: set[str]
) -> set[str]:
    """Add what `name` needs, then its own statements. Returns the names nothing binds."""
    seen.add(name)
    missing = set()
    for statement in bindings[name]:
        for other in sorted(_used(statement.text) - seen):
            if other in bindings:
                missing |= _collect(other, bindings, wanted, seen)
            else:
                missing.add(other)
        wanted[statement] = None
    return missing


def _statements(cell: str) -> Iterator[_Statement]:
    """The top-level statements of a cell that bind or change names. None where it never ran."""
    cell = cell.replace("\r\n", "\n").replace("\r", "\n")
    try:
        compile(cell, "<cell>", "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)
        tree = ast.parse(cell)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return
    lines = cell.split("\n")
    for node in tree.body:
        inner = _cell_of_magic(node)
        if inner is not None:
            yield from _statements(inner)
            continue
        kept = _without_course_calls(node)
        bound, changed = bound_names(kept), _changed(kept)
        if bound | changed:
            text = ast.unparse(kept) if kept is not node else _text(node, lines)
            from_before = bound if isinstance(node, _MAYBE) else bound & _read_at_once(text)
            yield _Statement(
                text=text,
                bound=frozenset(bound | changed),
                helper=_is_helper(node),
                continues=frozenset(changed | from_before),
            )


def _text(node: ast.stmt, lines: list[str]) -> str:
    """The statement as it was written, with its decorators, or its equal where lines are shared."""
    decorators = getattr(node, "decorator_list", [])
    first = min([node.lineno, *(decorator.lineno for decorator in decorators)])
    text = "\n".join(lines[first - 1 : node.end_lineno]).rstrip()
    try:
        alone = ast.dump(ast.parse(text)) == ast.dump(ast.Module([node], []))
    except SyntaxError:
        alone = False
    return text if alone else ast.unparse(node)


def _cell_of_magic(node: ast.stmt) -> str | None:
    """The cell below a `%%time`, as IPython hands it on; None for any other statement."""
    call = getattr(node, "value", None)
    if not isinstance(call, ast.Call) or getattr(call.func, "attr", "") != "run_cell_magic":
        return None
    texts = [one.value for one in call.args if isinstance(one, ast.Constant)]
    return texts[2] if len(texts) == 3 and texts[0] in _PYTHON_MAGICS else None


def _without_course_calls(node: ast.stmt) -> ast.stmt:
    """The statement less those inside it that talk to the course; `pass` where nothing is left."""
    if isinstance(node, _DEFINITIONS) or not _talks_to_course(node):
        return node
    if not hasattr(node, "body"):
        return ast.Pass()
    parts = {
        field: [_without_course_calls(one) for one in getattr(node, field)]
        for field in ("body", "orelse", "finalbody")
        if getattr(node, field, None)
    }
    fields = {field: getattr(node, field) for field in node._fields if hasattr(node, field)}
    kept = ast.copy_location(type(node)(**fields | parts), node)
    return ast.Pass() if _talks_to_course(kept) else kept


def bound_names(node: ast.AST) -> set[str]:
    """The names that a statement binds in the notebook, not those of a scope inside it."""
    if isinstance(node, _SCOPES):
        walrus = (child for child in ast.walk(node) if isinstance(child, ast.NamedExpr))
        inside = (bound_names(child) for child in walrus)
        own = {node.name} if hasattr(node, "name") else set()
        return own if isinstance(node, (*_DEFINITIONS, ast.Lambda)) else own.union(*inside)
    names = set()
    if isinstance(node, ast.AnnAssign) and node.value is None:
        return names
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
        names.add(node.id)
    elif isinstance(node, ast.Import | ast.ImportFrom):
        names |= {(alias.asname or alias.name).split(".")[0] for alias in node.names}
    elif isinstance(node, ast.ExceptHandler | ast.MatchAs | ast.MatchStar) and node.name:
        names.add(node.name)
    for child in ast.iter_child_nodes(node):
        names |= bound_names(child)
    return names


def _is_helper(node: ast.stmt) -> bool:
    value = getattr(node, "value", None)
    return isinstance(node, (*_DEFINITIONS, ast.Import, ast.ImportFrom)) or isinstance(
        value, ast.Lambda
    )


def _changed(node: ast.stmt) -> set[str]:
    """The names whose value a statement changes in place: SIZES["fp8"] = 1, SIZES.update(...)."""
    names = set()
    if isinstance(node, _SCOPES):
        return names
    if isinstance(node, ast.Subscript | ast.Attribute) and isinstance(node.ctx, ast.Store):
        names.add(_base(node))
    elif isinstance(node, ast.Call) and getattr(node.func, "attr", "") in _CHANGES:
        names.add(_base(node.func))
    elif isinstance(node, ast.AugAssign):
        names.add(_base(node.target))
    for child in ast.iter_child_nodes(node):
        names |= _changed(child)
    return names - {""}


def _base(node: ast.expr) -> str:
    """The name at the left end of `a.b[c].d`, or nothing."""
    while isinstance(node, ast.Subscript | ast.Attribute):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""


def _talks_to_course(node: ast.AST) -> bool:
    called = (inner.func for inner in ast.walk(node) if isinstance(inner, ast.Call))
    return any(isinstance(name, ast.Name) and name.id in _COURSE_CALLS for name in called)


def _imported(text: str) -> dict[str, tuple]:
    """Each name that import statements bind, with what it stands for."""
    names = {}
    for node in ast.parse(text).body:
        if isinstance(node, ast.Import | ast.ImportFrom):
            source = (getattr(node, "module", None), getattr(node, "level", 0))
            for alias in node.names:
                bound = (alias.asname or alias.name).split(".")[0]
                names[bound] = (*source, alias.name, alias.asname)
    return names


def _read_at_once(text: str) -> set[str]:
    """The names that a statement reads as it runs: not those inside its functions' bodies."""
    top = _table(text)
    return {symbol.get_name() for symbol in top.get_symbols() if symbol.is_referenced()}


def _table(text: str) -> symtable.SymbolTable:
    return symtable.symtable(text, "<answer>", "exec")


def _used(text: str) -> set[str]:
    """The notebook's names that a text looks up: not the locals of its functions."""
    names = _read_at_once(text)
    inner = list(_table(text).get_children())
    while inner:
        table = inner.pop()
        names |= {symbol.get_name() for symbol in table.get_symbols() if symbol.is_global()}
        inner += table.get_children()
    return names
