"""Weights of groups by their difficulty: largest where half of the reward is earned.

Source: PC-GRPO, Jeddi et al., 2025, arXiv:2512.14944, which names the signals; the formulas are
ours.
"""

from torch import Tensor

from grupo.core import group_ops
from grupo.core.batch import Batch, PerRollout
from grupo.core.component import component
from grupo.core.requires import Requires


@component
class MediumDifficulty:
    """4 r (1 - r) d x, r the group's mean of a reward term from 0 to 1, d its diversity, (R,).

    d = (U - 1) / (G - 1) for the number U of different answers in a group of G; 1 without
    `answer_term`. Groups in which all answers agree, or are all right or all wrong, weigh nothing.

    Args:
        reward_term: The reward term, 0 for wrong and 1 for right answers.
        answer_term: A number that differs where answers differ, such as "tiles/permutation" of a
            term "tiles" with `PlacedTiles`; "" where answers are only right or wrong.

    >>> import torch
    >>> from grupo.testing.batches import make_batch
    >>> batch = make_batch(group=[0, 0, 0, 0], reward_terms={"correct": [1.0, 0.0, 0.0, 0.0]})
    >>> MediumDifficulty("correct")(torch.ones(4), batch)
    tensor([0.7500, 0.7500, 0.7500, 0.7500])
    """

    reward_term: str
    answer_term: str = ""

    @property
    def requires(self) -> Requires:
        return Requires(reward_terms=tuple(filter(None, (self.reward_term, self.answer_term))))

    def __call__(self, x: Tensor, batch: Batch) -> Tensor:
        mean = group_ops.mean(batch.reward_terms[self.reward_term], batch.group)
        weight = 4 * mean * (1 - mean)
        if self.answer_term:
            weight = weight * _diversity(batch.reward_terms[self.answer_term], batch)
        return x * weight.to(x)


def _diversity(answer: PerRollout, batch: Batch) -> PerRollout:
    """(U - 1) / (G - 1) of each rollout's group; 0 in groups of one."""
    equal = group_ops.count_equal(answer, batch.group)
    different = group_ops.sum(1 / equal, batch.group)
    return (different - 1) / (group_ops.count(answer, batch.group) - 1).clamp(min=1)
