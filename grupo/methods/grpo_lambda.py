"""GRPO-lambda: what is solved best is to be solved shorter. Dai et al., 2025, arXiv:2505.18086."""

from math import ceil

import torch
from torch import Tensor

from grupo.algo.advantages import Center, ScaleByStd, chain
from grupo.core import group_ops
from grupo.core.batch import Batch
from grupo.core.component import component
from grupo.core.paper import Paper
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler

PAPER = Paper(
    title="Stable Reinforcement Learning for Efficient Reasoning",
    use="A length penalty shortens answers, and then accuracy collapses.",
    checked=("golden", "laws", "run"),
    catalogue=("grpo-lambda-length",),
)


@component
class LengthRewardWhereSolved:
    """r = 1 - weight sigmoid(z) for who is right in the best `share` of the groups, else 1 or 0.

    z = (L - mean) / std of the lengths of those of the group who are right.
    """

    top_group_fraction: float
    length_coef: float
    reward_term: str = "correct"
    needs_whole_batch = True  # groups are ranked by their accuracy

    @property
    def required_reward_terms(self) -> tuple[str, ...]:
        """Who is right: above 1/2."""
        return (self.reward_term,)

    def __call__(self, x: Tensor, batch: Batch) -> Tensor:
        right, L, g = batch.reward_terms[self.reward_term] > 0.5, batch.lengths, batch.group
        away = L - group_ops.mean_where(right, L, g)
        z = away / group_ops.mean_where(right, away**2, g).sqrt().clamp(min=1e-4)
        return right * (
            1 - self.length_coef * torch.sigmoid(z) * self._is_top_group(right.to(L), g)
        )

    def _is_top_group(self, correct: Tensor, group: Tensor) -> Tensor:
        """Is the group among the best? Groups of equal accuracy are, or are not, together."""
        accuracy, count = group_ops.mean(correct, group), group_ops.count(correct, group)
        better = ((accuracy[None] > accuracy[:, None]) / count[None]).sum(1).round()  # groups
        return better < ceil(self.top_group_fraction * len(group.unique()) - 1e-9)


def grpo_lambda(
    group_size: int = 8, top_group_fraction: float = 0.2, length_coef: float = 0.2
) -> Method:
    """r of length in the `share` of the groups solved best, r = right or wrong in all others."""
    # The share is the paper's. Its weight was not seen: 0.2 is our choice, a public code has 0.6.
    credit = chain(LengthRewardWhereSolved(top_group_fraction, length_coef), Center(), ScaleByStd())
    return Method(sampler=GroupSampler(group_size), advantage=credit)
