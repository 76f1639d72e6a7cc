"""predict and against_prediction: commit to a number, then see the measured one beside it."""

from __future__ import annotations

import math
import re
import time
from typing import Any

from utils.show.numbers import joined

from . import store
from .output import Message, in_notebook, show


def predict(id: str, question: str, unit: str = "", answer: float | None = None) -> None:
    """Ask for a number before it is measured. Without one the chapter goes on.

    In a notebook: a field and a button. Anywhere: `predict(id, question, answer=12)`.
    """
    id, question, unit = str(id), str(question), str(unit)
    if answer is not None:
        show(_keep(id, answer, unit))
        return
    stored = store.read()["predictions"].get(id)
    lines = [question, f"Answer here, or in code: predict({id!r}, ..., answer=your_number)."]
    if stored:
        lines.append(f"So far you said {_with_unit(stored['value'], unit)}.")
    show(Message("open", lines))
    if in_notebook():
        _field(id, question, unit)


def _field(id: str, question: str, unit: str) -> None:
    import ipywidgets
    from IPython.display import display

    text = ipywidgets.Text(placeholder="a number", description="I predict", tooltip=question)
    button = ipywidgets.Button(description="Commit")
    said = ipywidgets.HTML()

    def commit(_: Any) -> None:
        said.value = _keep(id, text.value, unit).html

    button.on_click(commit)
    display(ipywidgets.VBox([ipywidgets.HBox([text, ipywidgets.Label(unit), button]), said]))


def _keep(id: str, answer: Any, unit: str) -> Message:
    value = number(answer, unit)
    if value is None:
        said = (
            "The field is empty."
            if isinstance(answer, str) and not answer.strip()
            else f"{answer!r:.60} is not a number."
        )
        return Message("fail", [f"{said} Write it like 12, 0.5 or 3e9."])
    with store.change() as data:
        when = time.strftime("%Y-%m-%d %H:%M:%S")
        data["predictions"][id] = {"value": value, "unit": unit, "when": when}
    return Message("note", [f"You predict {_with_unit(value, unit)}. Now measure."])


def number(text: Any, unit: str = "") -> float | None:
    """What a reader typed, as a number: '1,200', '3e9', '1/8', '25%', or '7 ms' where `unit` is ms.

    Else None. So is '1,5': a comma only parts thousands, and nobody should be heard as 15.
    """
    try:
        if isinstance(text, str):
            text = text.strip().lower().removesuffix(unit.lower()).rstrip().replace("_", "")
            if re.match(r"[-+]?0+,", text):
                return None
            text = re.sub(r"(?<=\d),(?=\d{3}(?!\d))", "", text)
            if text.endswith("%"):
                value = float(text[:-1]) / 100
            elif "/" in text:
                above, below = text.split("/")
                value = float(above) / float(below)
            else:
                value = float(text)
        else:
            value = float(text)
    except Exception:  # whatever float() makes of a stranger's object
        return None
    return value if math.isfinite(value) else None


def against_prediction(id: str, measured: float, unit: str = "", kind: str = "measured") -> None:
    """Show the number beside the reader's prediction. `kind` is measured, modelled or published."""
    found = number(measured)
    if found is None:
        said = f"measured is {measured!r:.60}; it must be a number, so there is nothing to compare."
        show(Message("fail", [said]))
        return
    measured, unit = found, str(unit)
    stored = store.read()["predictions"].get(str(id))
    if not stored:
        show(Message("note", [f"{kind}: {_with_unit(measured, unit)}", "You made no prediction."]))
        return
    said = stored["value"]
    both = f"{kind}: {_with_unit(measured, unit)}, you predicted: {_with_unit(said, unit)}"
    show(Message("note", [both, _apart(said, measured)]))


def _apart(said: float, measured: float) -> str:
    if said == measured:
        return "Exactly so."
    if said <= 0 or measured <= 0:
        return f"You were off by {said - measured:+.3g}."
    ratio = max(said, measured) / min(said, measured)  # infinite where they are worlds apart
    if ratio < 1.1:
        return "Within 10%."
    side = "too high" if said > measured else "too low"
    return f"You were {side} by a factor of {ratio:.3g}."


def _with_unit(value: float, unit: str) -> str:
    digits = ",.0f" if 1e4 <= abs(value) < 1e6 else ",.4g"
    return joined(f"{value:{digits}}", unit)
