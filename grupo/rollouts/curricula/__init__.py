"""Curricula, which choose the next tasks and may set the number of rollouts of each task."""

from grupo.rollouts.curricula.base import (
    Curriculum,
    CurriculumRequest,
    DynamicSampling,
    ShuffledTasks,
    UnfinishedFirst,
    next_tasks,
)
from grupo.rollouts.curricula.difficulty import (
    BetaCounts,
    Thompson,
    UncertaintyWeighted,
    beta_mean,
    task_gain,
)
from grupo.rollouts.curricula.gaussian_window import GaussianWindow
from grupo.rollouts.curricula.knapsack import Knapsack
from grupo.rollouts.curricula.length_budget import StatedBudget
from grupo.rollouts.curricula.sources import RecentAdvantages, SourceBandit
from grupo.rollouts.curricula.uncertainty import UncertaintyAllocation
from grupo.rollouts.curricula.variance import OutcomeAndDiversity, VarianceAware

__all__ = [
    "BetaCounts",
    "Curriculum",
    "CurriculumRequest",
    "DynamicSampling",
    "GaussianWindow",
    "Knapsack",
    "OutcomeAndDiversity",
    "RecentAdvantages",
    "ShuffledTasks",
    "SourceBandit",
    "StatedBudget",
    "Thompson",
    "UncertaintyAllocation",
    "UncertaintyWeighted",
    "UnfinishedFirst",
    "VarianceAware",
    "beta_mean",
    "next_tasks",
    "task_gain",
]
