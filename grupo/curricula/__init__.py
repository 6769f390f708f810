"""Curricula: which tasks come next, and how many attempts each."""

from grupo.curricula.attempts import Knapsack
from grupo.curricula.base import Ask, Curriculum, Refilled, Shuffled, upcoming
from grupo.curricula.chosen import Thompson, Undecided, promised, tracked

__all__ = [
    "Ask",
    "Curriculum",
    "Knapsack",
    "Refilled",
    "Shuffled",
    "Thompson",
    "Undecided",
    "promised",
    "tracked",
    "upcoming",
]
