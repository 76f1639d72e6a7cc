"""An answer as text: what of a notebook travels with it, whatever the order of its cells."""

import sys

import pytest

from utils.exercises.answer import NotFound, written
from utils.exercises.namespace import run_text

F = "def f(x):\n    return x + 1"


def text(*cells, name="f", given=(), imports=""):
    return written(name, list(cells), set(given), imports)


def run(*cells, argument=1, **more):
    """What the answer gives when its text runs where nothing else is known."""
    names = {"__name__": "answers_99"}
    run_text(text(*cells, **more), "<your f>", names)
    return names["f"](argument)


def test_only_the_definition_travels():
    assert text("import torch\nx = 3\n" + F + "\nprint(f(3))") == F + "\n"


def test_the_last_definition_counts():
    assert run(F, "def f(x):\n    return 10 * x") == 10
    assert run("def f(x):\n    return 0\n\ndef f(x):\n    return 7") == 7


RIGHT = {  # cells -> f(1) == 2
    "helper in another cell": ["def one():\n    return 1", "def f(x):\n    return x + one()"],
    "helper defined later": ["def f(x):\n    return x + one()", "def one():\n    return 1"],
    "helper of a helper": [
        "ONE = 1", "def one():\n    return ONE", "def f(x):\n    return x + one()",
    ],
    "import in another cell": ["import math as m", "def f(x):\n    return m.prod([x, 2])"],
    "import of a part": ["import os.path", "def f(x):\n    return 2 if os.path.sep else 0"],
    "from import": ["from math import prod as p", "def f(x):\n    return p([x, 2])"],
    "star import": ["from math import *", "def f(x):\n    return prod([x, 2])"],
    "star import, with a future": [
        "from math import *", "from __future__ import annotations",
        "def f(x: Unknown):\n    return prod([x, 2])",
    ],
    "lambda": ["f = lambda x: x + 1"],
    "annotated lambda": ["f: object = lambda x: x + 1"],
    "partial": ["import functools, operator\nf = functools.partial(operator.add, 1)"],
    "decorator": ["import functools", "@functools.cache\ndef f(x):\n    return x + 1"],
    "decorator applied by hand": ["import functools", F, "f = functools.cache(f)"],
    "decorator of one's own": [
        "def same(g):\n    def inner(*a):\n        return g(*a)\n    return inner", "@same\n" + F,
    ],
    "class with __call__": [
        "class F:\n    def __call__(self, x):\n        return x + 1", "f = F()",
    ],
    "made by a function": ["def make(n):\n    return lambda x: x + n", "f = make(1)"],
    "recursion": ["def f(x):\n    return 2 if x > 0 else f(x + 1)"],
    "two that call each other": [
        "def f(x):\n    return g(x)", "def g(x):\n    return x + 1 if x else f(1)",
    ],
    "default argument": ["ONE = 1", "def f(x, one=ONE):\n    return x + one"],
    "annotation": ["Number = int | float", "def f(x: Number) -> Number:\n    return x + 1"],
    "inside if": ["if True:\n    def f(x):\n        return x + 1"],
    "inside if, beside its check": [
        "if True:\n    def f(x):\n        return x + 1\n    f = check('99.f', f)",
    ],
    "inside try": ["try:\n    import numpi as np\nexcept ImportError:\n    one = 1",
                   "def f(x):\n    return x + one"],
    "inside with": ["import contextlib\nwith contextlib.suppress():\n    one = 1",
                    "def f(x):\n    return x + one"],
    "unpacked": ["one, (two, *rest) = 1, (2, 3)", "def f(x):\n    return x + one"],
    "walrus": ["print(one := 1)", "def f(x):\n    return x + one"],
    "walrus in a comprehension": ["[one := n for n in (0, 1)]", "def f(x):\n    return x + one"],
    "match": ["match 1:\n    case one:\n        pass", "def f(x):\n    return x + one"],
    "two statements on a line": ["a = 0; one = 1; b = 2", "def f(x):\n    return x + one"],
    "added to": ["one = 0", "one += 1", "def f(x):\n    return x + one"],
    "added to three times": ["one = -2", *["one += 1"] * 3, "def f(x):\n    return x + one"],
    "set again from itself": ["one = 2", "one = one - 1", "def f(x):\n    return x + one"],
    "dictionary filled later": [
        "table = {}", "table['one'] = 1", "def f(x):\n    return x + table['one']",
    ],
    "dictionary filled in a loop": [
        "table = {}\nfor n in (1, 2):\n    table[n] = n", "def f(x):\n    return x + table[1]",
    ],
    "list appended to": ["some = []", "some.append(1)", "def f(x):\n    return x + some[0]"],
    "attribute set": [
        "class Box: pass", "box = Box()", "box.one = 1", "def f(x):\n    return x + box.one",
    ],
    "started anew": ["one = 5", "one += 1", "one = 1", "def f(x):\n    return x + one"],
    "bare annotation": ["one = 1", "one: int", "def f(x):\n    return x + one"],
    "helper named like a builtin": [
        "def sum(a, b):\n    return a + b", "def f(x):\n    return sum(x, 1)",
    ],
    "builtin shadowed by a slip": ["sum = 0", "def f(x):\n    return sum([x, 1])"],
    "time magic": ["get_ipython().run_cell_magic('time', '', 'def f(x):\\n    return x + 1\\n')"],
    "line magic": ["get_ipython().run_line_magic('pip', 'list')\n" + F],
    "top-level await": ["import asyncio\nawait asyncio.sleep(0)\n" + F],
    "comments and blank lines": ["# a note\n\n\n" + F + "  # done\n\n"],
    "windows line ends": ["one = 1\r\ndef f(x):\r\n    return x + one\r\n"],
    "line separators in a text": ["note = 'a\u2028b\x85c\x0cd'\none = 1\n" + F],
    "tabs": ["def f(x):\n\treturn x + 1"],
    "a text over several lines": ['one = len("""\n""")', "def f(x):\n    return x + one"],
    "a continued line": ["one = \\\n    1", "def f(x):\n    return x + one"],
    "async helper": [
        "import asyncio\nasync def one(x):\n    return x + 1",
        "def f(x):\n    return asyncio.run(one(x))",
    ],
    "a cell that never ran": [F, "def f(x, x):\n    return 0", "return 5\ndef f(x): return 0"],
    "a cell that does not parse": ["def (", "%matplotlib inline", F],
    "an escape that warns": ["pattern = '\\d'", F],
}  # fmt: skip


@pytest.mark.parametrize("name", RIGHT)
@pytest.mark.filterwarnings("error")
def test_right_answers_travel_whole(name):
    assert run(*RIGHT[name]) == 2


def test_what_talks_to_the_notebook_stays():
    cells = [
        F + "\nf = check('99.f', f)",
        "start('99'); hint('99.f')",
        "for _ in range(3):\n    f = check('99.f', f)",
    ]
    assert text(*cells) == F + "\n"


def test_a_given_name_is_the_courses_unless_the_reader_made_another():
    given, imports = {"math", "model", "other"}, "import math\nfrom utils.arithmetic import model"
    cell = "def f(x):\n    return model(x) + math.pi + other(x)"
    more = {"given": given, "imports": imports}
    assert text("import math\nfrom utils.arithmetic import model", cell, **more) == cell + "\n"
    own = "def model(x):\n    return 0"
    assert own in text(imports, own, cell, **more)
    assert own not in text(own, imports, cell, **more), "the setup cell ran again"
    assert "import cmath as math" in text(imports, "import cmath as math", cell, **more)
    assert "def other" not in text("def other(x):\n    return 0", cell, **more), "it has a check"


def test_an_answer_that_is_not_there():
    with pytest.raises(NotFound, match="no cell of this notebook defines f"):
        text("x = 1", "print(f)")
    with pytest.raises(NotFound):
        text()


def test_a_long_notebook_is_read_at_once():
    cells = [f"x{n} = [{n}]\nx{n}.append({n})" for n in range(500)]
    assert text(*cells, F) == F + "\n"


@pytest.mark.skipif(sys.version_info < (3, 12), reason="syntax of Python 3.12")
def test_newer_syntax():
    assert run("type N = int", "def f[T](x: T) -> N:\n    return x + 1") == 2
