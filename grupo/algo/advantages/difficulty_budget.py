"""Budgets of tokens that depend on a task's difficulty and on the policy's uncertainty.

Source: PixelThink, Wang et al., arXiv:2505.23727.
"""

import torch
from torch import Tensor

from grupo.core.batch import Batch, PerRollout
from grupo.core.component import check_field, component
from grupo.core.numbers import NonNegative, Positive
from grupo.core.requires import Requires

MARGIN = "top2_margin"


def uncertainty(batch: Batch) -> PerRollout:
    """Mean over a rollout's tokens of 1 - (p_1 - p_2), p the two largest probabilities, (R,).

    >>> from grupo.testing.batches import make_batch
    >>> signals = {"top2_margin": [[0.5, 1.0]]}
    >>> uncertainty(make_batch([0], length=[2], signals=signals)).tolist()
    [0.25]
    """
    doubt = (1 - batch.signals[MARGIN]).masked_fill(~batch.mask, 0.0).sum(1)
    total = doubt.new_zeros(len(batch.reward)).index_add(0, batch.rollout, doubt)
    return total / batch.lengths.clamp(min=1)


@component
class DifficultyBudget:
    """x clip(1 - (L - b) / slope, 0, 1), L the length in tokens and b the budget, (R,).

    b = hard_budget + uncertainty_coef u for difficulties from `hard_from`, u the `uncertainty`;
    easy_budget below `medium_from`; between the two x is unchanged.

    Args:
        medium_from: difficulty below which a task is easy (authors' code: 3.5 on a scale to 10).
        hard_from: difficulty from which it is hard (authors' code: 5).
        easy_budget: tokens of easy tasks (authors' code: 96 words).
        hard_budget: tokens of hard tasks (authors' code: 256 words).
        uncertainty_coef: further tokens of hard tasks for each unit of uncertainty (25).
        slope: tokens beyond the budget at which the factor is 0 (500).
        difficulty_term: reward term with the difficulty.

    >>> from grupo.testing.batches import make_batch
    >>> terms = {"difficulty": [2.0, 4.0]}
    >>> signals = {"top2_margin": [[1.0] * 4] * 2}
    >>> batch = make_batch([0, 1], length=[4, 4], reward_terms=terms, signals=signals)
    >>> DifficultyBudget(easy_budget=2.0, slope=10.0)(torch.tensor([5.0, 5.0]), batch).tolist()
    [4.0, 5.0]
    """

    medium_from: float = 3.5
    hard_from: float = 5.0
    easy_budget: NonNegative = 96.0
    hard_budget: NonNegative = 256.0
    uncertainty_coef: NonNegative = 25.0
    slope: Positive = 500.0
    difficulty_term: str = "difficulty"

    def __post_init__(self) -> None:
        check_field(self, "hard_from", self.hard_from >= self.medium_from, "at least medium_from")

    @property
    def requires(self) -> Requires:
        return Requires(signals=(MARGIN,), reward_terms=(self.difficulty_term,))

    def __call__(self, x: Tensor, batch: Batch) -> Tensor:
        difficulty = batch.reward_terms[self.difficulty_term]
        hard = self.hard_budget + self.uncertainty_coef * uncertainty(batch)
        easy = torch.full_like(hard, self.easy_budget)
        budget = torch.where(difficulty >= self.hard_from, hard, easy)
        factor = (1 - (batch.lengths - budget) / self.slope).clamp(0, 1)
        is_medium = (difficulty >= self.medium_from) & (difficulty < self.hard_from)
        return x * torch.where(is_medium, 1.0, factor).to(x)
