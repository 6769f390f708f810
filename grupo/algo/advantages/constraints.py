"""Constraints: rewards that count only where judges accept, or near the reference.

Constrained RLHF as CGPO has it, Xu et al., arXiv:2409.20370.
"""

import torch
from torch import Tensor

from grupo.algo.advantages.intrinsic import ref_log_ratio
from grupo.core import group_ops
from grupo.core.batch import Batch
from grupo.core.component import component


def argmax_share(x: Tensor, candidates: Tensor, group: Tensor) -> Tensor:
    """1 for the greatest of the group `masks` some, shared among equals; 0 for the rest.

    >>> x, feasible = torch.tensor([5.0, 2.0, 2.0]), torch.tensor([False, True, True])
    >>> argmax_share(x, feasible, torch.tensor([0, 0, 0]))
    tensor([0.0000, 0.5000, 0.5000])
    """
    first = (candidates & (x == group_ops.max(x.masked_fill(~candidates, -torch.inf), group))).to(x)
    return first / group_ops.sum(first, group).clamp(min=1)


def best_of_group(x: Tensor, batch: Batch) -> Tensor:
    """x for the greatest of each group, shared among equals; 0 for the rest.

    >>> from grupo.testing.batch_sizes import batch_of
    >>> best_of_group(torch.tensor([3.0, 1.0, 4.0, 4.0]), make_batch(group=[0, 0, 1, 1]))
    tensor([3., 0., 2., 2.])
    """
    return x * argmax_share(x, torch.ones_like(x).bool(), batch.group)


@component
class CalibratedReward:
    """F sigmoid(r - r_ref): how likely the answer beats the prompt's baseline, 0 if infeasible.

    >>> from grupo.testing.batch_sizes import batch_of
    >>> batch = make_batch(group=[0, 0], reward_terms={"feasible": [1.0, 0.0], "baseline": [2.0, 2.0]})
    >>> CalibratedReward()(torch.tensor([2.0, 9.0]), batch).tolist()
    [0.5, 0.0]
    """

    feasible: str = "feasible"
    baseline: str = "baseline"

    @property
    def required_reward_terms(self) -> tuple[str, ...]:
        """1 where all judges accept, else 0; the reward of the prompt's baseline answer."""
        return (self.feasible, self.baseline)

    def __call__(self, x: Tensor, batch: Batch) -> Tensor:
        return (batch.reward_terms[self.feasible] == 1) * (
            x - batch.reward_terms[self.baseline]
        ).sigmoid()


@component
class KLDiscounted:
    """x max(0, 1 - k / limit), k = log pi_old(y) - log pi_ref(y) of the whole rollout y.

    >>> from grupo.testing.batch_sizes import batch_of
    >>> batch = make_batch(group=[0], logp=-1.0, signals={"logp@ref": [[-1.5]]})  # k = 0.5
    >>> KLDiscounted(2.0)(torch.tensor([4.0]), batch).tolist()
    [3.0]
    """

    max_kl: float

    @property
    def required_signals(self) -> frozenset[str]:
        """The reference."""
        return frozenset({"logp@ref"})

    def __call__(self, x: Tensor, batch: Batch) -> Tensor:
        return x * (1 - ref_log_ratio(batch).to(x) / self.max_kl).clamp(min=0)


@component
class KLGated:
    """x where k = log pi_old(y) - log pi_ref(y) is at most `limit`, else 0.

    >>> from grupo.testing.batch_sizes import batch_of
    >>> batch = make_batch(group=[0, 0], logp=-1.0, signals={"logp@ref": [[-1.5], [-4.0]]})
    >>> KLGated(2.0)(torch.tensor([4.0, 4.0]), batch).tolist()  # k = 0.5 and 3
    [4.0, 0.0]
    """

    max_kl: float

    @property
    def required_signals(self) -> frozenset[str]:
        """The reference."""
        return frozenset({"logp@ref"})

    def __call__(self, x: Tensor, batch: Batch) -> Tensor:
        return x * (ref_log_ratio(batch) <= self.max_kl)
