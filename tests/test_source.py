"""Reading a chapter's source, and every rule that it can break."""

import subprocess
import sys
from pathlib import Path

import jupytext
import pytest

from utils.exercises.source import SourceError, chapter, chapters, read

SAMPLE = '''\
# ---
# jupyter:
#   course:
#     title: "3. Is it bytes or FLOPs?"
#     minutes: 70
#     hardware: "none; a GPU | measured"
#     needs: chapter 0
#     leaves_with: "the roof: yours"
#   jupytext:
#     formats: py
# ---

# %% [markdown] key="title"
# # 3. Is it bytes or FLOPs?
#
# One picture says when a machine waits: `a != b`, $n!$, <!-- aside! -->.

# %% key="setup" tags=["setup"]
import sys

def check(id, answer):
    return answer


# %% [markdown] key="double-intro"
# ## Exercise: double
#
# ```python
# # no heading, print("!")
# ```

# %% key="double" tags=["exercise"]
def double(x: float) -> float:
    """Twice x."""
    if x == 0:
        ### BEGIN SOLUTION
        # nothing doubles to nothing
        return 0.0
        ### END SOLUTION
    ### BEGIN SOLUTION
    return 2 * x
    ### END SOLUTION

# %% key="double-check" tags=["check"]
double = check("03.double", double)

# %% key="use"
print("four is", double(2))
'''


def write(folder: Path, text: str = SAMPLE, name: str = "03_roofline.py") -> Path:
    """A course in `folder` with one chapter; returns the chapter's path."""
    (folder / "source").mkdir(exist_ok=True)
    path = folder / "source" / name
    path.write_text(text, encoding="utf-8", newline="\n")
    return path


def test_a_chapter_is_read_whole(tmp_path):
    found = read(write(tmp_path))
    assert (found.number, found.name, found.stem) == ("03", "roofline", "03_roofline")
    assert found.meta == {
        "title": "3. Is it bytes or FLOPs?",
        "minutes": 70,
        "hardware": "none; a GPU | measured",
        "needs": "chapter 0",
        "leaves_with": "the roof: yours",
    }
    keys = ["title", "setup", "double-intro", "double", "double-check", "use"]
    assert [cell.key for cell in found.cells] == keys
    assert [cell.kind for cell in found.cells] == ["markdown", "code"] * 2 + ["code"] * 2
    assert found.cell("setup").tags == ("setup",)
    assert found.exercises == [found.cell("double")]
    assert found.cell("title").text.startswith("# 3. Is it bytes or FLOPs?\n\nOne picture")
    lines = SAMPLE.split("\n")
    for cell in found.cells:
        assert lines[cell.line - 1].endswith(cell.text.split("\n")[0])


def test_stub_raises_where_each_region_was_and_solved_has_no_markers(tmp_path):
    cell = read(write(tmp_path)).cell("double")
    your_turn = 'raise NotImplementedError("your turn")'
    head = 'def double(x: float) -> float:\n    """Twice x."""\n    if x == 0:\n'
    assert cell.stub == f"{head}        {your_turn}\n    {your_turn}"
    assert "SOLUTION" not in cell.solved
    space: dict = {}
    exec(cell.stub, space)
    for x in (0, 1):
        with pytest.raises(NotImplementedError, match="your turn"):
            space["double"](x)
    exec(cell.solved, space)
    assert space["double"](0) == 0 and space["double"](4) == 8


def test_windows_line_ends_change_nothing(tmp_path):
    plain = read(write(tmp_path))
    path = write(tmp_path)
    path.write_bytes(SAMPLE.replace("\n", "\r\n").encode())
    assert read(path) == plain


def test_jupytext_reads_the_same_cells(tmp_path):
    path = write(tmp_path)
    theirs = jupytext.reads(path.read_text(encoding="utf-8"), fmt="py:percent").cells
    ours = read(path).cells
    assert [(x.cell_type, x.source, x.metadata["key"]) for x in theirs] == [
        (x.kind, x.text, x.key) for x in ours
    ]
    assert [tuple(x.metadata.get("tags", ())) for x in theirs] == [x.tags for x in ours]


def test_chapters_are_found_by_number(tmp_path):
    write(tmp_path)
    first = SAMPLE.replace("3. Is", "0. Is").replace('"03.', '"00.')
    write(tmp_path, first, "00_your_machine.py")
    assert [x.stem for x in chapters(tmp_path)] == ["00_your_machine", "03_roofline"]
    assert chapter(3, tmp_path) == chapter("3", tmp_path) == chapter("03", tmp_path)
    with pytest.raises(ValueError, match=r"no chapter '07'\. The chapters here: 00, 03\."):
        chapter("07", tmp_path)
    with pytest.raises(ValueError, match="here: none"):
        chapter("07", tmp_path / "nowhere")
    write(tmp_path, SAMPLE, "03_roof.py")
    with pytest.raises(SourceError, match="has the number 03 already"):
        chapters(tmp_path)


TAG = ' tags=["exercise"]'
FIRST_REGION = """\
        ### BEGIN SOLUTION
        # nothing doubles to nothing
        return 0.0
        ### END SOLUTION
"""
LONG = "x = '" + 75 * "a" + "'"
BROKEN = {
    # what is wrong: (text to replace, its replacement, line of the error, part of the sentence)
    "no header": ("# ---\n# jupyter", "# jupyter", 1, "does not begin with a header"),
    "header not closed": (
        "#     formats: py\n# ---",
        "#     formats: py",
        1,
        "no closing line",
    ),
    "field missing": ("#     needs: chapter 0\n", "", 10, "no needs."),
    "two fields missing": (
        '#     needs: chapter 0\n#     leaves_with: "the roof: yours"\n',
        "",
        9,
        "no needs, leaves_with.",
    ),
    "field twice": ("#     minutes: 70", "#     title: 3. Is", 5, "one new `name: value` a line"),
    "no colon": ("minutes: 70", "minutes 70", 5, "one new `name: value` a line"),
    "nested value": ("#     minutes: 70", "#       minutes: 70", 5, "not nested"),
    "list": ("chapter 0", "[chapter 0]", 7, 'plain words or a "string"'),
    "open string": ('"the roof: yours"', '"the roof', 8, "not one quoted string"),
    "unquoted colon": ('"the roof: yours"', "the roof: yours", 8, 'plain words or a "string"'),
    "minutes in words": ("minutes: 70", "minutes: many", 11, "not a whole number"),
    "another number": ('"3. Is', '"4. Is', 1, 'begins with "3. "'),
    "another title": ("# # 3. Is", "# # 3. Was", 14, "the first cell is prose"),
    "first cell is code": ('[markdown] key="title"', 'key="title"', 14, "the first cell is prose"),
    "text before cells": ("# ---\n\n# %%", "# ---\n\nimport os\n# %%", 13, "text before the first"),
    "cell line misspelt": ("# %% key", "#%% key", 18, "a cell begins with"),
    "markdown misspelt": ("[markdown]", "[md]", 13, "a cell begins with"),
    "single quotes": ('key="use"', "key='use'", 47, "a cell begins with"),
    "unknown option": ('key="use"', 'key="use" id="use"', 47, "no id, only key and tags"),
    "no key": (' key="use"', "", 47, "has no key"),
    "bad key": ('key="use"', 'key="Use it"', 47, "small letters"),
    "long key": ('key="use"', f'key="{65 * "a"}"', 47, "1 to 64"),
    "tags are not strings": ('tags=["setup"]', "tags=[1]", 18, "tags is"),
    "tags are not JSON": ('tags=["setup"]', "tags=[setup]", 18, "tags is"),
    "repeated key": ('key="use"', 'key="setup"', 48, "'setup' is used twice"),
    "kept key": ('key="use"', 'key="about"', 48, "'about' is kept for"),
    "empty cell": ('print("four is", double(2))\n', "", 47, "is empty"),
    "prose not a comment": ("# One picture", "One picture", 16, "begins with '# '"),
    "begin twice": (
        "        return 0.0",
        "        ### BEGIN SOLUTION",
        38,
        "inside the region of line 36",
    ),
    "no end": (
        "    return 2 * x\n    ### END SOLUTION\n",
        "    return 2 * x\n",
        40,
        "without ### END",
    ),
    "no begin": ("    ### BEGIN SOLUTION\n    return 2", "    return 2", 41, "without ### BEGIN"),
    "empty region": ("        return 0.0\n", "", 38, "region is empty"),
    "marker misspelt": ("        ### BEGIN", "        # BEGIN", 36, "a marker is exactly"),
    "marker in prose": (
        "# One picture",
        "# ### BEGIN SOLUTION\n# One picture",
        16,
        "without ### END",
    ),
    "region without tag": (TAG, "", 33, "'double' has a solution region but no exercise tag"),
    "tag without region": ('tags=["setup"]', 'tags=["exercise"]', 19, "'setup' has no solution"),
    "not Python": ("return 2 * x", "return 2 *", 41, "the solved cell 'double' is not Python"),
    "stub not Python": (
        FIRST_REGION + "    ### BEGIN SOLUTION\n    return",
        "    ### BEGIN SOLUTION\n        pass\n    ### END SOLUTION\n"
        "    ### BEGIN SOLUTION\n    return",
        36,
        "the stub cell 'double' is not Python",
    ),
    "magic": ("import sys", "%matplotlib inline", 19, "magics do not run"),
    "commented magic": ("import sys", "# !pip install x", 19, "magics do not run"),
    "long line": ("import sys", LONG, 19, f"{len(LONG)} columns, at most 79"),
    "another name": ("def double(", "def twice(", 33, "one function or class named double"),
    "import beside it": ("def double(", "import os\ndef double(", 33, "one function or class"),
    "check of another chapter": (
        '"03.double"',
        '"04.double"',
        45,
        '`double = check("03.double", double)`',
    ),
    "check not assigned": (
        "double = check(",
        "check(",
        45,
        '`double = check("03.double", double)`',
    ),
    "check of nothing": (
        'double = check("03.double", double)',
        "pass",
        45,
        "a check cell is `name = ",
    ),
    "check without exercise": (
        'double = check("03.double", double)',
        'triple = check("03.triple", triple)',
        45,
        "no exercise named triple",
    ),
    "wordy": ("# One picture", "# " + "word " * 110, 14, "121 words, at most 120"),
    "exclamation": ("machine waits:", "machine waits!", 16, "no exclamation marks"),
    "heading jumps": ("# ## Exercise", "# ### Exercise", 26, "level 3 follows one of level 1"),
    "role": ("machine waits:", "{ref}`roof`:", 16, "prints literally"),
    "directive": ("# One picture", "# ```{note}\n# One picture", 16, "prints literally"),
}


@pytest.mark.parametrize("what", BROKEN)
def test_every_rule_has_its_sentence(tmp_path, what):
    old, new, line, sentence = BROKEN[what]
    assert old in SAMPLE
    path = write(tmp_path, SAMPLE.replace(old, new, 1))
    with pytest.raises(SourceError) as caught:
        read(path)
    assert str(caught.value).startswith(f"source/03_roofline.py:{line}: ")
    assert sentence in str(caught.value)
    assert caught.value.line == line


def test_a_file_name_and_an_empty_file_are_refused(tmp_path):
    with pytest.raises(SourceError, match="is named NN_name"):
        read(write(tmp_path, name="3-Roofline.py"))
    with pytest.raises(SourceError, match="does not begin with a header"):
        read(write(tmp_path, ""))
    header = SAMPLE[: SAMPLE.index("# %%")]
    with pytest.raises(SourceError, match="has no cell"):
        read(write(tmp_path, header))


def test_what_prose_may_hold(tmp_path):
    allowed = (
        "![a plot](a.png) and `a! b` and $n!$ and [words](03_roofline.ipynb#a-b!), x != y\n"
        "#\n# <details><summary>Hint</summary>\n#\n# Text.\n#\n# </details>\n# One picture"
    )
    assert read(write(tmp_path, SAMPLE.replace("One picture", allowed)))
    code = "x " * 200
    assert read(write(tmp_path, SAMPLE.replace("One picture", f"`{code}` $${code}$$ One picture")))


def test_a_class_and_a_decorated_function_are_exercises(tmp_path):
    decorated = SAMPLE.replace("def double(", "@staticmethod\ndef double(")
    assert read(write(tmp_path, decorated)).cell("double").stub.startswith("@staticmethod")
    start, end = SAMPLE.index("def double("), SAMPLE.index('# %% key="double-check"')
    a_class = (
        "class double:\n    ### BEGIN SOLUTION\n    def forward(self):\n        return 1\n"
        "    ### END SOLUTION\n\n"
    )
    found = read(write(tmp_path, SAMPLE[:start] + a_class + SAMPLE[end:]))
    assert found.cell("double").stub == 'class double:\n    raise NotImplementedError("your turn")'


def test_a_source_runs_as_a_plain_script(tmp_path):
    path = write(tmp_path)
    done = subprocess.run([sys.executable, path], capture_output=True, text=True, timeout=60)
    assert (done.stdout, done.stderr, done.returncode) == ("four is 4\n", "", 0)


@pytest.mark.parametrize("path", sorted(Path(__file__).parents[1].glob("source/*.py")), ids=str)
def test_every_chapter_of_the_course_keeps_the_rules(path):
    assert read(path).exercises


def test_a_teachers_edit_that_breaks_a_rule_of_style_stops_no_check(tmp_path):
    path = write(tmp_path, SAMPLE.replace("# # 3.", "# " + "word " * 130 + "\n# # 3.", 1))
    with pytest.raises(SourceError):
        read(path)
    assert chapter("03", tmp_path).exercises
