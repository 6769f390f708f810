"""Sources: own rollouts and demonstrations, told apart, credited apart and weighed apart.

An action that the policy did not draw has `sampled` 0 in `batch.seen`, and log-probability 0 in
`old_logp`; a rollout without a drawn action is a demonstration. What a demonstration is credited
with is how much it is imitated.
"""

from collections.abc import Callable
from dataclasses import replace

import torch
from jaxtyping import Bool
from torch import Tensor

from grupo.core import group_ops
from grupo.core.batch import Batch, PerAction, broadcast_to_tokens
from grupo.core.component import component
from grupo.core.types import Rollout

REQUIRES_SAMPLED, REQUIRES_OFF_CONTEXT = frozenset({"sampled"}), frozenset({"moved"})
AdvantageFn = Callable[[Tensor, Batch], Tensor]


def sampled_mask(batch: Batch) -> Bool[Tensor, "N T"]:
    """Actions that the policy drew itself; where masked, whatever stands there.

    >>> from grupo.testing.batch_sizes import batch_of
    >>> sampled_mask(make_batch(group=[0, 0], signals={"sampled": [[1.0], [0.0]]})).tolist()
    [[True], [False]]
    """
    return batch.signals["sampled"] > 0


def off_context_mask(batch: Batch) -> Bool[Tensor, "N T"]:
    """Actions drawn in another context or at an earlier step: guided, refined, replayed ones.

    >>> from grupo.testing.batch_sizes import batch_of
    >>> off_context_mask(make_batch(group=[0, 0], signals={"moved": [[1.0], [0.0]]})).tolist()
    [[True], [False]]
    """
    return batch.signals["moved"] > 0


def is_demonstration(batch: Batch) -> Bool[Tensor, "R"]:
    """Rollouts that acted, but drew none of their actions.

    >>> from grupo.testing.batch_sizes import batch_of
    >>> is_demonstration(make_batch(group=[0, 0], signals={"sampled": [[1.0], [0.0]]})).tolist()
    [False, True]
    """
    own = (batch.mask & sampled_mask(batch)).sum(1).to(batch.reward)
    count = torch.zeros_like(batch.reward).index_add(0, batch.rollout, own)
    return (batch.lengths > 0) & (count == 0)


def has_sampled_action(rollout: Rollout) -> bool:
    """Did the policy draw any of its actions? Then it is no demonstration.

    >>> from grupo.core.types import Action
    >>> has_sampled_action(Rollout((("?", Action((1,), (0.0,), sampled=False)),)))
    False
    """
    return any(action.sampled for _, action in rollout.turns)


def unit_advantage(x: Tensor, batch: Batch) -> Tensor:
    """1 for every rollout: imitate all alike.

    >>> from grupo.testing.batch_sizes import batch_of
    >>> unit_advantage(torch.tensor([0.0, 3.0]), make_batch(group=[0, 0]))
    tensor([1., 1.])
    """
    return torch.ones_like(x)


@component
class SeparateDemos:
    """Credit own rollouts as if there were no demonstrations; demonstrations by `theirs`.

    `theirs` sees the whole group and says how much they are imitated: 1 unless told otherwise.

    >>> from grupo.algo.advantages import Center
    >>> from grupo.testing.batch_sizes import batch_of
    >>> batch = make_batch(group=[0, 0, 0], signals={"sampled": [[1.0], [1.0], [0.0]]})
    >>> SeparateDemos(Center())(torch.tensor([1.0, 0.0, 5.0]), batch).flatten()
    tensor([ 0.5000, -0.5000,  1.0000])
    """

    policy_advantage: AdvantageFn
    demo_advantage: AdvantageFn = unit_advantage

    @property
    def required_signals(self) -> frozenset[str]:
        """It reads who drew what."""
        return REQUIRES_SAMPLED

    def __call__(self, x: Tensor, batch: Batch) -> Tensor:
        theirs = is_demonstration(batch)
        mine = batch.mask & ~theirs[batch.rollout, None]
        alone = replace(batch, group=2 * batch.group + theirs.long(), mask=mine)
        own = broadcast_to_tokens(self.policy_advantage(x, alone), batch)
        imitated = broadcast_to_tokens(self.demo_advantage(x, batch), batch)
        return torch.where(theirs[batch.rollout, None], imitated, own)


@component
class TooFewCorrect:
    """Rollouts (R,) of groups in which fewer than `min_correct` of the own rollouts are right.

    >>> from grupo.testing.batch_sizes import batch_of
    >>> right = {"correct": [0.0, 1.0, 0.0]}
    >>> batch = make_batch([0, 0, 1], reward_terms=right, signals={"sampled": [[1.0], [0.0], [1.0]]})
    >>> TooFewCorrect()(batch).tolist(), TooFewCorrect(min_correct=0)(batch).tolist()
    ([True, True, True], [False, False, False])
    """

    min_correct: int = 1
    reward_term: str = "correct"
    success_threshold: float = 0.5

    @property
    def required_signals(self) -> frozenset[str]:
        """It reads who drew what."""
        return REQUIRES_SAMPLED

    @property
    def required_reward_terms(self) -> tuple[str, ...]:
        """The component that says who is right."""
        return (self.reward_term,)

    def __call__(self, batch: Batch) -> Bool[Tensor, "R"]:
        right = (batch.reward_terms[self.reward_term] > self.success_threshold) & ~is_demonstration(
            batch
        )
        return group_ops.sum(right.to(batch.reward), batch.group) < self.min_correct


@component
class EnoughCorrect(TooFewCorrect):
    """Rollouts (R,) of the other groups: `min_correct` of the own rollouts are right, or more.

    >>> from grupo.testing.batch_sizes import batch_of
    >>> batch = make_batch([0, 1], reward_terms={"correct": [1.0, 0.0]}, signals={"sampled": [[1.0], [1.0]]})
    >>> EnoughCorrect()(batch).tolist()
    [True, False]
    """

    def __call__(self, batch: Batch) -> Bool[Tensor, "R"]:
        return ~super().__call__(batch)


@component
class PerSourceMean:
    """Own actions and demonstrated ones weighed as if the others were not there, and both kept.

    >>> from grupo.testing.batch_sizes import batch_of
    >>> from grupo.algo.aggregation import token_mean
    >>> batch = make_batch(group=[0, 0, 0], signals={"sampled": [[1.0], [1.0], [0.0]]})
    >>> PerSourceMean(token_mean)(batch).flatten().tolist()
    [0.5, 0.5, 1.0]
    """

    aggregation: Callable[[Batch], Tensor]

    @property
    def required_signals(self) -> frozenset[str]:
        """It reads who drew what."""
        return REQUIRES_SAMPLED

    def __call__(self, batch: Batch) -> PerAction:
        own = sampled_mask(batch)
        sources = (batch.mask & own, batch.mask & ~own)
        mine, theirs = (self.aggregation(replace(batch, mask=mask)) for mask in sources)
        return mine + theirs
