"""Pairs of rollouts: which rollout of a group is preferred to which.

A pairing is a function `batch -> Pairs`. On-policy groups and given pairs, whose rewards are 1 and
0, are paired by the same functions.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from grupo.algo.advantages.constraints import argmax_share
from grupo.core import group_ops
from grupo.core.batch import Batch, PerRollout
from grupo.core.component import component
from grupo.core.requires import Requires


@dataclass(frozen=True)
class PairSide:
    """The chosen or the rejected rollouts of K pairs, as E entries.

    Rollouts that share one side of a pair, such as equally good ones, have an entry each.

    Args:
        rollout: Rollout of each entry, (E,).
        pair: Pair of each entry, (E,), in 0..K-1.
        share: Share of the rollout in its side of the pair, (E,); the shares of a side sum to 1.
    """

    rollout: Int[Tensor, "E"]
    pair: Int[Tensor, "E"]
    share: Float[Tensor, "E"]

    def mean(self, x: PerRollout, num_pairs: int) -> Float[Tensor, "K"]:
        """Mean of `x` over the side's rollouts of each pair, by their shares."""
        values = x[self.rollout] * self.share.to(x)
        return x.new_zeros(num_pairs).index_add(0, self.pair, values)


@dataclass(frozen=True)
class Pairs:
    """K pairs of a chosen and a rejected rollout, or of two averages of rollouts.

    Args:
        chosen: The chosen rollouts.
        rejected: The rejected rollouts.
        group: Group of each pair, (K,).
    """

    chosen: PairSide
    rejected: PairSide
    group: Int[Tensor, "K"]

    @classmethod
    def of_rollouts(
        cls, chosen: Int[Tensor, "K"], rejected: Int[Tensor, "K"], group: Int[Tensor, "R"]
    ) -> "Pairs":
        """A pair for each entry of two lists of rollouts; `group` is that of every rollout."""
        pair = torch.arange(len(chosen), device=group.device)
        share = torch.ones(len(chosen), device=group.device)
        return cls(PairSide(chosen, pair, share), PairSide(rejected, pair, share), group[chosen])

    @classmethod
    def of_shares(
        cls, chosen: PerRollout, rejected: PerRollout, group: Int[Tensor, "R"]
    ) -> "Pairs":
        """A pair for each group in which both shares are positive for some rollout.

        The shares of a group sum to 1, or are all 0.
        """
        has_pair = (group_ops.max(chosen, group) > 0) & (group_ops.max(rejected, group) > 0)
        labels, pair = group[has_pair].unique(return_inverse=True)
        rollout = has_pair.nonzero()[:, 0]

        def side(share: Tensor) -> PairSide:
            entries = share > 0
            return PairSide(rollout[entries], pair[entries], share[entries])

        return cls(side(chosen[has_pair]), side(rejected[has_pair]), labels)

    def __len__(self) -> int:
        return len(self.group)

    def differences(self, x: PerRollout) -> Float[Tensor, "K"]:
        """`x` of the chosen minus `x` of the rejected rollout, of each pair.

        >>> pairs = Pairs.of_rollouts(torch.tensor([1]), torch.tensor([0]), torch.tensor([0, 0]))
        >>> pairs.differences(torch.tensor([2.0, 5.0]))
        tensor([3.])
        """
        return self.chosen.mean(x, len(self)) - self.rejected.mean(x, len(self))

    def group_means(
        self, values: Float[Tensor, "K"], group: Int[Tensor, "R"]
    ) -> Float[Tensor, "R"]:
        """Mean over the pairs of each rollout's group; 0 for a group without a pair."""
        num_groups = int(group.max()) + 1 if group.numel() else 0
        total = values.new_zeros(num_groups).index_add(0, self.group, values)
        count = values.new_zeros(num_groups).index_add(0, self.group, torch.ones_like(values))
        return (total / count.clamp(min=1))[group]


Pairing = Callable[[Batch], Pairs]


def best_against_worst(batch: Batch) -> Pairs:
    """One pair per group: the highest reward against the lowest; ties share their place.

    A group of equal rewards has no pair.

    >>> from grupo.testing.batches import make_batch
    >>> pairs = best_against_worst(make_batch([0, 0, 0, 1, 1], reward=[1.0, 0.0, 3.0, 2.0, 2.0]))
    >>> pairs.chosen.rollout.tolist(), pairs.rejected.rollout.tolist(), pairs.group.tolist()
    ([2], [1], [0])
    """
    x, group = batch.reward, batch.group
    differ = group_ops.max(x, group) > group_ops.min(x, group)
    return Pairs.of_shares(argmax_share(x, differ, group), argmax_share(-x, differ, group), group)


def all_ordered_pairs(batch: Batch) -> Pairs:
    """Every two rollouts of a group whose rewards differ, the higher reward as the chosen one.

    >>> from grupo.testing.batches import make_batch
    >>> pairs = all_ordered_pairs(make_batch([0, 0, 0], reward=[1.0, 0.0, 1.0]))
    >>> pairs.chosen.rollout.tolist(), pairs.rejected.rollout.tolist()
    ([0, 2], [1, 1])
    """
    same_group = batch.group[:, None] == batch.group[None]
    return _pairs_of(same_group & (batch.reward[:, None] > batch.reward[None]), batch)


def adjacent_pairs(batch: Batch) -> Pairs:
    """Every two rollouts of a group with no other reward of the group between their rewards.

    >>> from grupo.testing.batches import make_batch
    >>> pairs = adjacent_pairs(make_batch([0, 0, 0], reward=[1.0, 0.0, 5.0]))
    >>> pairs.chosen.rollout.tolist(), pairs.rejected.rollout.tolist()
    ([0, 2], [1, 0])
    """
    same_group = batch.group[:, None] == batch.group[None]
    levels = torch.stack([batch.group.to(batch.reward), batch.reward], 1)
    level = levels.unique(dim=0, return_inverse=True)[1]  # in the order of group, then reward
    return _pairs_of(same_group & (level[:, None] == level[None] + 1), batch)


def successes_against_failures(batch: Batch) -> Pairs:
    """One pair per group: the mean of its positive rewards' rollouts against that of the others.

    A group without a success, or without a failure, has no pair.

    >>> from grupo.testing.batches import make_batch
    >>> pairs = successes_against_failures(make_batch([0, 0, 0], reward=[1.0, 0.0, 1.0]))
    >>> pairs.differences(torch.tensor([4.0, 1.0, 2.0]))
    tensor([2.])
    """
    success = batch.reward > 0
    shares = (_equal_shares(success, batch.group), _equal_shares(~success, batch.group))
    return Pairs.of_shares(*shares, batch.group)


@component
class BestFeasibleAgainstWorst:
    """One pair per group: the best feasible rollout against the worst infeasible one.

    The worst of all rollouts is rejected where all are feasible; a group without a feasible rollout
    has no pair. Ties share their place. Source: CODPO of CGPO, Xu et al., arXiv:2409.20370.

    Args:
        reward_term: name of the reward term that is 1 where all judges accept, else 0.

    >>> from grupo.testing.batches import make_batch
    >>> terms = {"feasible": [1.0, 1.0, 0.0, 1.0, 1.0]}
    >>> batch = make_batch([0, 0, 0, 1, 1], [1.0, 2.0, 3.0, 1.0, 2.0], reward_terms=terms)
    >>> pairs = BestFeasibleAgainstWorst()(batch)
    >>> pairs.chosen.rollout.tolist(), pairs.rejected.rollout.tolist()
    ([1, 4], [2, 3])
    """

    reward_term: str = "feasible"

    @property
    def requires(self) -> Requires:
        return Requires(reward_terms=(self.reward_term,))

    def __call__(self, batch: Batch) -> Pairs:
        feasible = batch.reward_terms[self.reward_term] == 1
        all_feasible = group_ops.min(feasible.to(batch.reward), batch.group) == 1
        chosen = argmax_share(batch.reward, feasible, batch.group)
        rejected = argmax_share(-batch.reward, ~feasible | all_feasible, batch.group)
        return Pairs.of_shares(chosen, rejected, batch.group)


def _pairs_of(is_pair: Bool[Tensor, "R R"], batch: Batch) -> Pairs:
    chosen, rejected = is_pair.nonzero(as_tuple=True)
    return Pairs.of_rollouts(chosen, rejected, batch.group)


def _equal_shares(selected: Bool[Tensor, "R"], group: Int[Tensor, "R"]) -> PerRollout:
    share = selected.to(torch.float64)
    return share / group_ops.sum(share, group).clamp(min=1)
