"""quiz: three recall questions on earlier chapters, answered in the cell's output."""

from __future__ import annotations

from typing import Any

from utils.exercises import Question, get_quiz

from . import store
from .output import Message, in_notebook, show

LETTERS = "abcdef"


def quiz(id: str, answers: str | None = None) -> None:
    """Ask the questions of `id`, such as '03.recall'.

    In a notebook each question has buttons and answers at once. Anywhere else (and on a page
    without a kernel) it shows the questions as text; `quiz(id, answers="bac")` answers them.
    """
    try:
        asked = get_quiz(id)
    except ValueError as error:
        show(Message("fail", [str(error)]))
        return
    if answers is not None:
        _answer_all(id, asked.questions, answers)
        return
    if in_notebook():
        for number, question in enumerate(asked.questions):
            _buttons(id, number, question)
        return
    for number, question in enumerate(asked.questions):
        show(_asked(number, question))
    show(Message("note", [f'Answer with quiz("{id}", answers="abc"): a letter a question.']))


def _answer_all(id: str, questions: list[Question], answers: str) -> None:
    picks = [LETTERS.find(letter) for letter in str(answers).replace(" ", "").lower()]
    counts = [len(question.options) for question in questions]
    if len(picks) != len(questions) or any(
        not 0 <= pick < count for pick, count in zip(picks, counts, strict=True)
    ):
        letters = ", ".join(f"a to {LETTERS[count - 1]}" for count in counts)
        said = f"answers is {answers!r}; it must be a letter a question: {letters}."
        show(Message("fail", [said]))
        return
    for number, (question, pick) in enumerate(zip(questions, picks, strict=True)):
        show(_feedback(id, number, question, pick))


def _feedback(id: str, number: int, question: Question, pick: int) -> Message:
    text, why = question.options[pick]
    right = pick == question.correct
    with store.change() as data:
        data["quizzes"].setdefault(id, {}).setdefault(str(number), right)  # the first try counts
    return Message("pass" if right else "fail", [f"{'Yes' if right else 'No'}: {text}", why])


def _buttons(id: str, number: int, question: Question) -> None:
    import ipywidgets
    from IPython.display import display

    said = ipywidgets.HTML()

    def button(pick: int, text: str) -> ipywidgets.Button:
        narrow = ipywidgets.Layout(width="48px")
        one = ipywidgets.Button(description=LETTERS[pick], layout=narrow, tooltip=text)

        def picked(_: Any) -> None:
            said.value = _feedback(id, number, question, pick).html

        one.on_click(picked)
        return one

    show(_asked(number, question))
    choices = [button(pick, text) for pick, (text, _) in enumerate(question.options)]
    display(ipywidgets.VBox([ipywidgets.HBox(choices), said]))


def _asked(number: int, question: Question) -> Message:
    options = [f"{LETTERS[i]}) {text}" for i, (text, _) in enumerate(question.options)]
    return Message("open", [f"{number + 1}. {question.text}", *options])
