"""show.explore: the controls redraw, errors are said, and there is a form that needs no kernel."""

import subprocess
import sys
import types

import pytest

from utils import ROOT, show
from utils.show import Choice, Slider
from utils.show.widgets import Exploration


def draw(batch, dtype):
    if batch == 4:
        raise ValueError("batch is 4; that <batch> is refused.")
    if batch == 8:
        raise KeyError("eight")
    seconds = batch * {"bf16": 0.001, "fp32": 0.004}[dtype]
    picture = show.make.line([1, batch + 1], [0.001, seconds], x="rows", y="seconds", title="Grows")
    return picture, f"{batch} rows in {dtype} take {show.si(seconds, 's')}."


CONTROLS = {
    "batch": Slider(1, 1024, 2, log2=True, label="rows in the batch", unit="rows"),
    "dtype": Choice(["bf16", "fp32"]),
}


@pytest.fixture
def live():
    """The widgets of an exploration, and the exploration: (batch, dtype, readout, picture)."""
    return Exploration(draw, CONTROLS).widget().children


def test_a_script_prints_the_static_form(capsys):
    assert show.explore(draw, **CONTROLS) is None
    out = capsys.readouterr().out
    assert "rows" in out and "2 ms" in out  # the picture's twin
    assert "2 rows in bf16 take 2 ms." in out  # the readout at the first settings
    assert "1024 rows in bf16 take 1.02 s." in out  # one control at its end
    assert "2 rows in fp32 take 8 ms." in out  # the other control moved
    assert "Traceback" not in out


def test_a_script_needs_no_frontend_and_no_matplotlib():
    script = (
        "import sys; from utils import show\n"
        "draw = lambda n: show.make.line([1, 2], [n, n], x='a', y='b')\n"
        "show.explore(draw, n=show.Slider(1, 3))\n"
        "print([m for m in ('matplotlib', 'ipywidgets') if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines()[-1] == "[]"
    assert "n 1" in done.stdout


def test_the_static_html_has_the_picture_the_readouts_and_is_folded():
    html = Exploration(draw, CONTROLS).static().html
    assert html.startswith('<details class="static-form"><summary>')
    assert html.count("<img ") == 1 and 'alt="Line plot: Grows.' in html
    assert "2 rows in fp32 take 8 ms." in html
    assert "<batch>" not in html


def test_the_title_stands_in_for_a_missing_readout():
    made = Exploration(lambda n: draw(n, "bf16")[0], {"n": Slider(1, 2)})
    assert made.static().text.count("Grows") == 3  # the twin's caption, and both settings


def test_moving_a_slider_changes_picture_and_readout(live):
    batch, dtype, readout, picture = live
    assert batch.description == "rows in the batch"
    assert [label for label, _ in batch.options[:3]] == ["1 rows", "2 rows", "4 rows"]
    assert batch.options[-1] == ("1,024 rows", 1024)
    before = picture.value
    assert before.startswith('<img src="data:image/png;base64,')
    batch.value = 1024
    assert picture.value != before
    assert "1024 rows in bf16 take 1.02 s." in readout.value
    dtype.value = "fp32"
    assert "1024 rows in fp32" in readout.value
    assert "readout" in readout._dom_classes


def test_an_error_is_one_sentence_and_the_next_setting_works(live):
    batch, _, readout, picture = live
    before = picture.value
    batch.value = 4
    assert "batch is 4; that &lt;batch&gt; is refused." in readout.value
    assert "ValueError" not in readout.value
    assert picture.value == before
    batch.value = 8
    assert "KeyError" in readout.value
    batch.value = 16
    assert "16 rows in bf16" in readout.value


def test_an_error_at_the_first_setting_does_not_stop_the_chapter(capsys):
    def broken(n):
        raise NotImplementedError("your turn")

    show.explore(broken, n=Slider(1, 3))
    assert "NotImplementedError: your turn" in capsys.readouterr().out
    assert "your turn" in Exploration(broken, {"n": Slider(1, 3)}).widget().children[1].value


def test_a_draw_that_returns_no_picture_is_told(capsys):
    show.explore(lambda n: None, n=Slider(1, 3))
    assert "draw returned NoneType, not a figure of show.make" in capsys.readouterr().out


def test_a_table_can_be_explored():
    made = Exploration(lambda n: show.make.table([{"n": n}]), {"n": Slider(1, 3)})
    assert "<table" in made.widget().children[-1].value


def test_a_notebook_gets_the_widget_and_the_folded_static_form(monkeypatch):
    import IPython
    import IPython.display

    shown = []
    monkeypatch.setattr(IPython, "get_ipython", lambda: types.SimpleNamespace(kernel=object()))
    monkeypatch.setattr(IPython.display, "display", lambda what, raw=False: shown.append(what))
    show.explore(draw, **CONTROLS)
    widget, static = shown
    assert "application/vnd.jupyter.widget-view+json" in widget
    assert "need a running kernel" in widget["text/plain"]
    assert static.html.startswith("<details")


@pytest.mark.parametrize(
    ("slider", "values"),
    [
        (Slider(1, 8, log2=True), (1, 2, 4, 8)),
        (Slider(3, 13, log2=True), (3, 6, 12)),
        (Slider(1, 4), (1, 2, 3, 4)),
        (Slider(0.1, 0.4, step=0.1), (0.1, 0.2, 0.3, 0.4)),
        (Slider(0, 100, step=25), (0, 25, 50, 75, 100)),
    ],
)
def test_the_values_of_a_slider(slider, values):
    assert slider.values == values
    assert slider.first == values[0]


WRONG = {
    "empty range": (lambda: Slider(2, 2), "low must be below high"),
    "log of zero": (lambda: Slider(0, 8, log2=True), "starts above 0"),
    "log with a step": (lambda: Slider(1, 8, step=2, log2=True), "doubles"),
    "step of zero": (lambda: Slider(1, 8, step=0), "step is 0"),
    "too many values": (lambda: Slider(1, 1e6), "more than 1000"),
    "start between": (lambda: Slider(1, 1024, 100, log2=True), "The nearest is 128."),
    "not a number": (lambda: Slider("1", 8), "low is '1'"),
    "no options": (lambda: Choice([]), "options is []"),
    "an option that is not there": (lambda: Choice(["a"], "b"), "start is 'b'"),
    "no controls": (lambda: show.explore(draw), "controls is empty"),
    "not a control": (lambda: show.explore(draw, batch=3), "batch is 3"),
    "not a function": (lambda: show.explore(3, n=Slider(1, 2)), "draw is 3"),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_controls_get_a_sentence(name):
    call, words = WRONG[name]
    with pytest.raises(ValueError) as caught:
        call()
    assert words in str(caught.value)
    assert str(caught.value).endswith(".")
