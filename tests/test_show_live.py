"""show.Live: lines in a script; in a notebook one output that is redrawn, not too often."""

import pytest

from utils import show
from utils.show import live as module


def draw(state):
    table = show.make.table([{"step": state, "loss": 5.5 / state}], caption="a run")
    return [table, show.make.number(state, "steps", "measured")]


def line(state):
    return f"step <{state}>"


class Notebook:
    """Stands in for IPython's display: keeps what was shown, and what each output holds now."""

    def __init__(self, monkeypatch):
        import IPython.display

        self.now, self.drawings, self.clock = [], 0, 0.0
        monkeypatch.setattr(module, "in_notebook", lambda: True)
        monkeypatch.setattr(IPython.display, "display", self.display)
        monkeypatch.setattr(module.time, "perf_counter", lambda: self.clock)

    def display(self, shown, display_id):
        assert display_id is True
        self.now.append(shown)
        place = len(self.now) - 1
        notebook = self

        class Handle:
            def update(self, shown):
                notebook.now[place] = shown

        return Handle()

    def draw(self, state):
        self.drawings += 1
        self.clock += 0.2  # what a drawing costs
        return draw(state)


def test_a_script_prints_every_line(capsys):
    live = show.Live(draw, line)
    for state in (1, 2, 3):
        live(state, last=state == 3)
    assert capsys.readouterr().out.splitlines() == ["step <1>", "step <2>", "step <3>"]


def test_a_notebook_redraws_one_output_with_line_and_figures(monkeypatch):
    notebook = Notebook(monkeypatch)
    live = show.Live(notebook.draw, line)
    live(1)
    notebook.clock += 10
    live(2)
    (shown,) = notebook.now
    assert "step &lt;2&gt;" in shown.html and "a run" in shown.html and "2 steps" in shown.html
    assert shown.text.startswith("step <2>") and "2.75" in shown.text
    assert "step <1>" not in shown.text


def test_drawing_takes_at_most_a_tenth_of_the_time_and_the_last_state_is_drawn(monkeypatch):
    notebook = Notebook(monkeypatch)
    live = show.Live(notebook.draw, line)
    for state in range(1, 1001):
        live(state)
        notebook.clock += 0.01
    assert 3 <= notebook.drawings <= 7  # 10 s of work, 0.2 s a drawing
    live(1001, last=True)
    assert "1001" in notebook.now[-1].text
    live(1002)
    assert len(notebook.now) == 2, "after the last state, the next is shown in a new place"


@pytest.mark.parametrize(("arguments", "name"), [((None, line), "draw"), ((draw, "x"), "line")])
def test_it_wants_functions(arguments, name):
    with pytest.raises(ValueError, match=f"{name} is .*must be a function"):
        show.Live(*arguments)
