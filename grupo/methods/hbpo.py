"""HBPO: rollouts explore under several token budgets. Lyu et al., 2025, arXiv:2507.15844."""

import math

import torch
from torch import Tensor

from grupo.algo.advantages import ByRewardTerm, Center, ScaleByStd, chain
from grupo.algo.losses import Clip
from grupo.core import group_ops
from grupo.core.batch import Batch
from grupo.core.component import component
from grupo.core.numbers import NonNegative, Number, Positive, PositiveInt
from grupo.core.paper import Paper
from grupo.core.requires import Requires
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler

PAPER = Paper(
    title="Hierarchical Budget Policy Optimization for Adaptive Reasoning",
    use="Prompts can state a token budget; the policy should learn how much each task needs.",
    tags=("length", "reward"),
    checked=("golden", "properties", "reference", "run"),
    catalogue=("hbpo",),
)
ZSCORE = chain(Center(), ScaleByStd())


@component
class BudgetReward:
    """mean(R | same budget b) - f2(b) + (R - mean(R)) / std(R), f2(b) = reward_scale cos(pi b / 2
    M).

    M is max_length. R of a correct answer of n tokens is f2(b) up to n = b, then f2(n) -
    length_coef (n - b) up to M; R is 0 beyond M and for a wrong answer.

    Args:
        max_length: length limit of an answer, in tokens.
        reward_scale: largest reward (beta in the paper).
        length_coef: penalty per token over the budget (alpha in the paper).
    """

    max_length: PositiveInt
    reward_scale: NonNegative
    length_coef: Number

    requires = Requires(reward_terms=("correct", "budget"))

    def __call__(self, x: Tensor, batch: Batch) -> Tensor:
        R = self.reward(batch)
        full = self._cosine(batch.reward_terms["budget"])
        return group_ops.mean(R, ByRewardTerm("budget")(batch)) - full + ZSCORE(R, batch)

    def reward(self, batch: Batch) -> Tensor:
        """R of each rollout."""
        b = batch.reward_terms["budget"]
        n = batch.lengths
        R = self._cosine(torch.max(n, b)) - self.length_coef * (n - b).clamp(min=0)
        return torch.where((batch.reward_terms["correct"] > 0.5) & (n <= self.max_length), R, 0.0)

    def _cosine(self, n: Tensor) -> Tensor:
        return self.reward_scale * (math.pi * n / (2 * self.max_length)).cos()


def hbpo(
    group_size: PositiveInt = 16,
    max_length: PositiveInt = 4096,
    reward_scale: Positive = 4.0,
    length_coef: NonNegative = 1 / 4096,
) -> Method:
    """A = a budget's shortfall from its full reward + (R - mean) / std of the group.

    The environment assigns each quarter of a group a budget of 512, 1024, 2048 or 2560 tokens.

    Args:
        group_size: rollouts per task.
        max_length: length limit of an answer, in tokens.
        reward_scale: largest reward (beta in the paper).
        length_coef: penalty per token over the budget (alpha in the paper).
    """
    # The paper's text is followed. Its code adds the first term twice, and its R is min(f1(n, b),
    # f2(b)).
    return Method(
        sampler=GroupSampler(group_size),
        advantage=BudgetReward(max_length, reward_scale, length_coef),
        loss=Clip(0.2, 0.28),
    )
