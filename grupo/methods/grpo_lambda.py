"""GRPO-lambda: what is solved best is to be solved shorter. Dai et al., 2025, arXiv:2505.18086."""

from math import ceil

import torch
from torch import Tensor

from grupo.algo.advantages import Center, ScaleByStd, chain
from grupo.core import group_ops
from grupo.core.batch import Batch
from grupo.core.component import piece
from grupo.core.paper import Paper
from grupo.method import Method
from grupo.rollouts.samplers import Independent

PAPER = Paper(
    title="Stable Reinforcement Learning for Efficient Reasoning",
    use="A length penalty shortens answers, and then accuracy collapses.",
    checked=("golden", "laws", "run"),
    catalogue=("grpo-lambda-length",),
)


@piece
class ShorterWhereSolved:
    """r = 1 - weight sigmoid(z) for who is right in the best `share` of the groups, else 1 or 0.

    z = (L - mean) / std of the lengths of those of the group who are right.
    """

    share: float
    weight: float
    part: str = "correct"
    reads_whole_batch = True  # groups are ranked by their accuracy

    @property
    def reads_parts(self) -> tuple[str, ...]:
        """Who is right: above 1/2."""
        return (self.part,)

    def __call__(self, x: Tensor, batch: Batch) -> Tensor:
        right, L, g = batch.parts[self.part] > 0.5, batch.lengths, batch.group
        away = L - group_ops.mean_where(right, L, g)
        z = away / group_ops.mean_where(right, away**2, g).sqrt().clamp(min=1e-4)
        return right * (1 - self.weight * torch.sigmoid(z) * self._solved(right.to(L), g))

    def _solved(self, right: Tensor, group: Tensor) -> Tensor:
        """Is the group among the best? Groups of equal accuracy are, or are not, together."""
        accuracy, count = group_ops.mean(right, group), group_ops.count(right, group)
        better = ((accuracy[None] > accuracy[:, None]) / count[None]).sum(1).round()  # groups
        return better < ceil(self.share * len(group.unique()) - 1e-9)


def grpo_lambda(group: int = 8, share: float = 0.2, weight: float = 0.2) -> Method:
    """r of length in the `share` of the groups solved best, r = right or wrong in all others."""
    # The share is the paper's. Its weight was not seen: 0.2 is our choice, a public code has 0.6.
    credit = chain(ShorterWhereSolved(share, weight), Center(), ScaleByStd())
    return Method(sample=Independent(group), credit=credit)
