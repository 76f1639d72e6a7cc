"""Exercises: what one is (spec), how it is judged (grade), where an answer runs (worker)."""

from __future__ import annotations

import difflib
import importlib
import pkgutil
from types import ModuleType

from .spec import Exercise, Mistake, Question, Quiz

__all__ = ["Exercise", "Mistake", "Question", "Quiz", "all_exercises", "get", "get_quiz"]


def _modules(prefix: str) -> list[ModuleType]:
    names = sorted(m.name for m in pkgutil.iter_modules(__path__) if m.name.startswith(prefix))
    return [importlib.import_module(f"{__name__}.{name}") for name in names]


def all_exercises() -> list[Exercise]:
    """Every exercise of the course, in the order of the chapters."""
    return [exercise for module in _modules("ch") for exercise in module.EXERCISES]


def get(id: str) -> Exercise:
    """The exercise with this id, such as '03.mbu'. ValueError names the near ones."""
    for module in _modules(f"ch{str(id)[:2]}_"):
        for exercise in module.EXERCISES:
            if exercise.id == id:
                return exercise
    known = [exercise.id for exercise in all_exercises()]
    near = difflib.get_close_matches(str(id), known, n=3, cutoff=0.5)
    nearby = f" Near: {', '.join(near)}." if near else ""
    raise ValueError(f"There is no exercise {id!r}.{nearby}")


def get_quiz(id: str) -> Quiz:
    """The recall questions with this id, such as '03.recall'."""
    quizzes = [module.QUIZ for module in _modules("ch")]
    for quiz in quizzes:
        if quiz.id == id:
            return quiz
    there = ", ".join(quiz.id for quiz in quizzes)
    raise ValueError(f"There is no quiz {id!r}. There are {there}.")
