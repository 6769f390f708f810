"""HBPO: rollouts explore under several budgets at once. Lyu et al., 2025, arXiv:2507.15844."""

import math

import torch
from torch import Tensor

from grupo.algo.advantages import ByPart, Center, ScaleByStd, chain
from grupo.algo.losses import Clip
from grupo.core import group_ops
from grupo.core.batch import Batch
from grupo.core.component import piece
from grupo.core.paper import Paper
from grupo.method import Method
from grupo.rollouts.samplers import Independent

PAPER = Paper(
    title="Hierarchical Budget Policy Optimization for Adaptive Reasoning",
    use="Prompts can state a budget of tokens; the policy shall learn how much each task needs.",
    checked=("golden", "laws", "reference", "run"),
    catalogue=("hbpo",),
)
NORM = chain(Center(), ScaleByStd())


@piece
class Budgeted:
    """mean(R | same budget b) - f2(b) + (R - mean(R)) / std(R), f2(b) = beta cos(pi b / 2 limit).

    R of a right answer of n actions is f2(b) up to n = b, then beta cos(pi n / 2 limit) -
    alpha (n - b) up to `limit`; beyond that, and of a wrong one, it is 0.
    """

    limit: int
    beta: float
    alpha: float
    reads_parts = ("correct", "budget")

    def __call__(self, x: Tensor, batch: Batch) -> Tensor:
        R, full = self.reward(batch), self._cosine(batch.parts["budget"])
        return group_ops.mean(R, ByPart("budget")(batch)) - full + NORM(R, batch)

    def reward(self, batch: Batch) -> Tensor:
        """R of each rollout."""
        b, n = batch.parts["budget"], batch.lengths
        R = self._cosine(torch.max(n, b)) - self.alpha * (n - b).clamp(min=0)
        return torch.where((batch.parts["correct"] > 0.5) & (n <= self.limit), R, 0.0)

    def _cosine(self, n: Tensor) -> Tensor:
        return self.beta * (math.pi * n / (2 * self.limit)).cos()


def hbpo(group: int = 16, limit: int = 4096, beta: float = 4.0, alpha: float = 1 / 4096) -> Method:
    """A = how far a budget's rollouts fall short of its full reward + the group's (R - mean) / std.

    The environment tells each quarter of them to think within 512, 1024, 2048 or 2560 tokens.
    """
    # The paper's text. Its code adds the first term twice, and its R is min(f1(n, b), f2(b)).
    credit, loss = Budgeted(limit, beta, alpha), Clip(0.2, 0.28)
    return Method(sample=Independent(group), credit=credit, loss=loss)
