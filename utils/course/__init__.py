"""What a reader meets in every chapter."""

from .checking import check, mine
from .helping import hint, reveal
from .predicting import against_prediction, predict
from .progressing import progress
from .quizzing import quiz
from .starting import start

__all__ = [
    "against_prediction",
    "check",
    "hint",
    "mine",
    "predict",
    "progress",
    "quiz",
    "reveal",
    "start",
]
