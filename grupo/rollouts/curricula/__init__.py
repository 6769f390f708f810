"""Curricula: which tasks come next, and how many attempts each."""

from grupo.rollouts.curricula.base import Ask, Curriculum, Refilled, Shuffled, upcoming
from grupo.rollouts.curricula.difficulty import Thompson, Undecided, promised, tracked
from grupo.rollouts.curricula.knapsack import Knapsack

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
