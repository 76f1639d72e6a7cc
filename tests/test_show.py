"""utils.show: every number says its kind, every picture has words, wrong inputs get a sentence."""

import html.parser
import os
import subprocess
import sys

import numpy as np
import pytest

from utils import ROOT, show
from utils.show import Point, Roof, Series, make
from utils.show.figure import Picture
from utils.show.marks import MARKS
from utils.show.numbers import plain

ROWS = [1, 2, 4, 8, 16, 32, 64, 128, 256]
SECONDS = [0.0011, 0.0011, 0.0011, 0.0012, 0.0013, 0.0018, 0.003, 0.006, 0.012]
CPU = Roof("this CPU bf16", 791e9, 36e9)
H100 = Roof("H100", 989.4e12, 3350e9, "published")
KINDS = list(MARKS)


def a_line(kind: str = "measured", **options) -> Picture:
    return make.line(ROWS, SECONDS, x="rows in the batch", y="seconds", kind=kind, **options)


def a_roofline() -> Picture:
    points = [Point("batch 1", 1, 30e9), Point("batch 64", 62, 207e12, "modelled")]
    return make.roofline([CPU, H100], points, "Decoding sits on the slope")


def some_bars(kind="published", **options) -> Picture:
    values = [65e12, 312e12, 989.4e12]
    return make.bars(
        ["T4", "A100", "H100"], values, unit="FLOP/s", kind=kind, title="Up", **options
    )


PICTURES = {
    "line": a_line,
    "line, log, spread": lambda: a_line(log=True, spread=[(s, 2 * s) for s in SECONDS]),
    "line, one value": lambda: make.line([3], [2.0], x="step", y="loss", log=True),
    "line, constant": lambda: make.line([1, 2], [2, 2], x="step", y="loss", log="y"),
    "lines": lambda: make.lines(
        [Series(ROWS, SECONDS, kind, kind) for kind in KINDS], x="rows", y="seconds", log=True
    ),
    "bars": some_bars,
    "bars, log": lambda: some_bars(KINDS, log=True, spread=[(6e13, 7e13)] * 3),
    "roofline": a_roofline,
    "roofline, two levels": lambda: make.roofline([CPU, Roof("L2", 791e9, 140e9)]),
}


class Elements(html.parser.HTMLParser):
    """The elements of some HTML: (tag, attributes); text is what a reader sees."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict]] = []
        self.text = ""
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.found.append((tag, dict(attrs)))

    def handle_data(self, data):
        self.text += data


@pytest.mark.parametrize("name", PICTURES)
def test_a_picture_is_a_png_with_alt_text_and_a_twin(name):
    picture = PICTURES[name]()
    assert picture.png.startswith(b"\x89PNG\r\n\x1a\n")
    assert len(picture.png) > 5000
    images = [attrs for tag, attrs in Elements(picture.html).found if tag == "img"]
    assert [image["alt"] for image in images] == [picture.alt]
    assert picture.title in picture.alt
    assert picture.text
    assert picture._repr_mimebundle_() == {"text/plain": picture.text, "text/html": picture.html}


def test_painting_leaves_nothing_behind():
    import matplotlib

    before = dict(matplotlib.rcParams)
    assert a_roofline().png
    assert dict(matplotlib.rcParams) == before
    script = "from utils.show import make; make.number(1, 's', 'measured')"
    script += "; make.line([1], [1], x='a', y='b').png; import sys"
    script += (
        "; assert 'matplotlib.figure' in sys.modules; assert 'matplotlib.pyplot' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", script], cwd=ROOT, check=True)


def test_importing_show_loads_nothing_heavy():
    script = "import sys; from utils import show; print([m for m in %r if m in sys.modules])"
    heavy = ("torch", "numpy", "matplotlib", "ipywidgets", "IPython")
    done = subprocess.run(
        [sys.executable, "-c", script % (heavy,)], cwd=ROOT, capture_output=True, text=True
    )
    assert done.stdout.strip() == "[]", done.stderr


def test_a_script_prints_the_twin_and_gets_none(capsys):
    shown = show.line(ROWS, SECONDS, x="rows in the batch", y="seconds", kind="measured", log=True)
    assert shown is None
    assert capsys.readouterr().out == a_line(log=True).text + "\n"


def test_a_small_alphabet_does_not_stop_a_print():
    script = "from utils import show; show.number(2e-6, 's', 'measured', 'π')"
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True,
        env=os.environ | {"PYTHONIOENCODING": "ascii"},
    )  # fmt: skip
    assert done.stdout == "2 ?s (measured: ?)\n", done.stderr


def test_the_twin_and_the_alt_text_hold_values_and_kinds():
    line = a_line("modelled")
    for words in ("1.1 ms", "12 ms", "256", "modelled"):
        assert words in line.text
        assert words in line.alt
    assert "9 points, from 1.1 ms at 1 to 12 ms at 256" in line.alt
    roofline = a_roofline()
    for words in ("791 GFLOP/s", "3.35 TB/s", "295", "batch 64", "207 TFLOP/s", *KINDS):
        assert words in roofline.text
        assert words in roofline.alt
    bars = some_bars(KINDS)
    for words in ("T4", "989 TFLOP/s", *KINDS):
        assert words in bars.text
        assert words in bars.alt


def test_the_twin_says_how_far_under_a_single_roof_a_point_is():
    text = make.roofline([CPU], [Point("decode", 1, 18e9), Point("train", 100, 791e9)]).text
    decode, train = (line for line in text.splitlines() if line.startswith(("decode", "train")))
    assert "50%" in decode and "the slope" in decode
    assert "100%" in train and "the flat part" in train


def test_a_long_series_is_thinned_in_the_twin_but_keeps_its_ends():
    text = make.line(range(1000), range(1000), x="step", y="tokens").text
    rows = text.splitlines()[3:]
    assert len(rows) <= 20
    assert rows[0].split()[0] == "0" and rows[-1].split()[0] == "999"


def test_kinds_differ_without_colour():
    for look in ("word", "symbol", "marker", "line", "hatch"):
        assert len({getattr(mark, look) for mark in MARKS.values()}) == len(MARKS), look


def test_kinds_differ_in_what_is_drawn():
    axes = PICTURES["lines"]().figure().axes[0]
    drawn = [line for line in axes.lines if line.get_marker() != "None"]
    assert len({line.get_linestyle() for line in drawn}) == 3
    assert len({line.get_marker() for line in drawn}) == 3
    assert {text.get_text().split(", ")[-1] for text in axes.texts} == set(KINDS)
    bars = some_bars(KINDS).figure().axes[0]
    assert len({bar.get_hatch() for bar in bars.patches}) == 3
    assert [text.get_text().split()[-1] for text in bars.texts] == KINDS


def test_axes_are_named_and_the_title_is_the_finding():
    figure = a_line(title="Sixteen rows cost what one does").figure()
    axes = figure.axes[0]
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("rows in the batch", "seconds")
    assert figure.get_suptitle() == "Sixteen rows cost what one does"
    assert a_roofline().figure().axes[0].get_xlabel() == "arithmetic intensity (FLOP per byte)"


def test_a_log_axis_of_powers_of_two_shows_them():
    axes = a_line(log=True).figure().axes[0]
    assert [axes.xaxis.get_major_formatter()(t, 0) for t in axes.get_xticks()] == [
        str(n) for n in ROWS
    ]
    assert {"2 ms", "5 ms"} <= {axes.yaxis.get_major_formatter()(t, 0) for t in axes.get_yticks()}


def test_labels_in_a_crowded_roofline_do_not_cover_each_other_or_the_points():
    points = [Point(f"decode, batch {2**i}", 0.99 * 2**i, CPU.at(2**i) * 0.85) for i in range(8)]
    figure = make.roofline([CPU, Roof("L2", 791e9, 140e9)], points).figure()
    axes = figure.axes[0]
    names = {point.label for point in points}
    boxes = [text.get_window_extent() for text in axes.texts if text.get_text() in names]
    assert len(boxes) == len(points)
    for i, box in enumerate(boxes):
        assert not any(box.overlaps(other) for other in boxes[i + 1 :])
        for point in points:
            assert not box.contains(*axes.transData.transform((point.intensity, point.flops_per_s)))


@pytest.mark.parametrize(
    ("value", "unit", "said"),
    [
        (3.35e12, "B/s", "3.35 TB/s"),
        (3.35e12, "bytes/s", "3.35 TB/s"),
        (989.4e12, "FLOP/s", "989 TFLOP/s"),
        (999.6e9, "FLOP/s", "1 TFLOP/s"),
        (1000, "B", "1 kB"),
        (0, "bytes", "0 B"),
        (0.0042, "seconds", "4.2 ms"),
        (1.5e-6, "s", "1.5 µs"),
        (90, "s", "90 s"),
        (7200, "s", "2 h"),
        (86400 * 26.04, "s", "26 days"),
        (9e20, "FLOP", "9e20 FLOP"),
        (6300, "tokens/s", "6,300 tokens/s"),
        (1557611200, "parameters", "1.56 billion parameters"),
        (0.6123, "times", "0.612 times"),
        (59.04, "%", "59%"),
        (-2.5e9, "B", "-2.5 GB"),
        (295.34, "FLOP per byte", "295 FLOP per byte"),
    ],
)
def test_si(value, unit, said):
    assert show.si(value, unit) == said


def test_plain_numbers():
    said = [plain(v) for v in (124439808, 989.4, 0.2, 0.61234567, 1e-7, 123456.7, 9e20, 0.0, 3.0)]
    assert said == ["124,439,808", "989.4", "0.2", "0.6123", "1e-7", "123,457", "9e20", "0", "3"]


def test_numbers_from_arrays_are_taken():
    import numpy

    values = numpy.array([1.0, 2.0], dtype=numpy.float32)
    assert make.line(values, values, x="step", y="loss").text == (
        make.line([1.0, 2.0], [1.0, 2.0], x="step", y="loss").text
    )
    table = make.table([{"n": numpy.int64(2**20), "share": numpy.float64(0.5)}])
    assert "1,048,576" in table.text and "0.5" in table.text


def test_number_says_its_kind_and_source(capsys):
    show.number(791e9, "FLOP/s", "measured")
    show.number(124439808, "parameters", "modelled", "the shapes of <GPT-2>")
    assert capsys.readouterr().out.splitlines() == [
        "791 GFLOP/s (measured)",
        "124,439,808 parameters (modelled: the shapes of <GPT-2>)",
    ]
    made = make.number(1, "s", "modelled", "<script>")
    assert "<script>" not in made.html
    assert "modelled" in made.html


def test_a_table_for_eyes_ears_and_terminals():
    rows = [
        {"card": "T4 <b>", "bf16": None, "bandwidth": 320, "native": False},
        {"card": "H100", "bf16": 989.4, "bandwidth": 3350, "native": True},
        {"card": "B200", "bf16": 2250.0, "bandwidth": 8000, "native": True},
    ]
    table = make.table(rows, caption='"Dense" & more', kinds={"bf16": "published"})
    assert table.text.splitlines() == [
        '"Dense" & more',
        "card         bf16  bandwidth  native",
        "        published",
        "------  ---------  ---------  ------",
        "T4 <b>          –        320  no",
        "H100        989.4      3,350  yes",
        "B200      2,250.0      8,000  yes",
    ]
    elements = Elements(table.html)
    tags = [tag for tag, _ in elements.found]
    assert "caption" in tags and "b" not in tags
    assert '"Dense" & more' in elements.text and "published" in elements.text
    scopes = [attrs.get("scope") for tag, attrs in elements.found if tag == "th"]
    assert scopes == ["col"] * 4 + ["row"] * 3
    cells = [attrs["style"] for tag, attrs in elements.found if tag == "td"]
    assert "text-align:right" in cells[0] and "text-align:left" in cells[2]


def test_quantities_with_units_are_right_aligned():
    text = make.table([{"what": "a", "size": "3 GB"}, {"what": "b", "size": "989 TB"}]).text
    assert text.splitlines()[2:] == ["a       3 GB", "b     989 TB"]


WRONG = {
    "lengths": (lambda: make.line([1, 2], [1], x="a", y="b"), "x_values"),
    "kind": (lambda: a_line("guessed"), "'guessed'; it must be one of measured, modelled"),
    "zero on a log axis": (lambda: make.line([0, 1], [1, 1], x="a", y="b", log=True), "above 0"),
    "spread below zero on a log axis": (
        lambda: make.line([1], [1], x="a", y="b", log="y", spread=[(0, 1)]), "above 0"),
    "empty": (lambda: make.line([], [], x="a", y="b"), "x_values is empty"),
    "text": (lambda: make.line("12", "12", x="a", y="b"), "x_values is '12'"),
    "nan": (lambda: make.line([1], [float("nan")], x="a", y="b"), "y_values[0] is nan"),
    "log": (lambda: a_line(log="z"), "log is 'z'"),
    "no series": (lambda: make.lines([], x="a", y="b"), "series is empty"),
    "spread": (lambda: make.line([1], [1], x="a", y="b", spread=[(2, 1)]), "(low, high)"),
    "spreads": (lambda: make.line([1], [1], x="a", y="b", spread=[]), "spread has 0 pairs for 1"),
    "bars: labels": (
        lambda: make.bars(["a"], [1, 2], unit="s", kind="measured", title=""), "labels has 1"),
    "bars: kinds": (lambda: some_bars(["measured"]), "kind has 1"),
    "bars: log of zero": (
        lambda: make.bars(["a"], [0], unit="s", kind="measured", title="", log=True), "above 0"),
    "no roof": (lambda: make.roofline([]), "roofs is empty"),
    "not a roof": (lambda: make.roofline([Point("a", 1, 1)]), "roofs holds"),
    "roof of zero": (lambda: Roof("a", 0, 1), "peak_flops_per_s is 0"),
    "point of zero": (lambda: Point("a", 0, 1), "intensity is 0"),
    "point's kind": (lambda: Point("a", 1, 1, ""), "kind is ''"),
    "no rows": (lambda: make.table([]), "rows is empty"),
    "rows of lists": (lambda: make.table([[1]]), "rows[0] is [1]"),
    "kinds": (lambda: make.table([{"a": 1}], kinds={"b": "measured"}), "the column 'b'"),
    "table's kind": (lambda: make.table([{"a": 1}], kinds={"a": "seen"}), "kind is 'seen'"),
    "number": (lambda: make.number(None, "s", "measured"), "value is None"),
    "si": (lambda: show.si(float("inf"), "s"), "value is inf"),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_wrong_inputs_get_a_sentence(name):
    call, words = WRONG[name]
    with pytest.raises(ValueError) as caught:
        call()
    assert words in str(caught.value)
    assert str(caught.value).endswith(".")


ONE = ([1, 2, 3], [3.0, 4.0, 5.0])
LABELS = ["a", "b", "c"]
MISTYPED = {
    "series": lambda bad: show.make.lines(bad, x="x", y="y"),
    "series holds": lambda bad: show.make.lines([bad], x="x", y="y"),
    "x": lambda bad: show.make.line(*ONE, x=bad, y="y"),
    "y": lambda bad: show.make.line(*ONE, x="x", y=bad),
    "title": lambda bad: show.make.bars(LABELS, ONE[1], unit="s", kind="measured", title=bad),
    "unit": lambda bad: show.make.bars(LABELS, ONE[1], unit=bad, kind="measured", title=""),
    "kind": lambda bad: show.make.bars(LABELS, ONE[1], unit="s", kind=bad, title=""),
    "labels": lambda bad: show.make.bars(bad, ONE[1], unit="s", kind="measured", title=""),
    "values": lambda bad: show.make.bars(LABELS, bad, unit="s", kind="measured", title=""),
    "spread": lambda bad: show.make.line(*ONE, x="x", y="y", spread=bad),
    "log": lambda bad: show.make.line(*ONE, x="x", y="y", log=bad),
    "caption": lambda bad: show.make.table([{"a": 1}], caption=bad),
    "kinds": lambda bad: show.make.table([{"a": 1}], kinds=bad),
    "source": lambda bad: show.make.number(3, "s", "measured", bad),
    "roofs": lambda bad: show.make.roofline(bad),
    "points": lambda bad: show.make.roofline([show.Roof("r", 1e12, 1e9, "measured")], bad),
    "options": lambda bad: show.Choice(bad),
    "start": lambda bad: show.Slider(1, 10, [bad]),
}


@pytest.mark.parametrize(
    "bad", [7, 2.5, object(), np.array(3.0)], ids=lambda bad: type(bad).__name__
)
@pytest.mark.parametrize("name", MISTYPED)
def test_a_wrong_kind_of_argument_is_named(name, bad):
    with pytest.raises(ValueError, match=name):
        MISTYPED[name](bad)


def test_a_table_takes_columns_and_numbers_of_any_size():
    said = show.make.table([{1: 10**400, None: float("inf")}]).text
    assert "000,000" in said and "inf" in said
