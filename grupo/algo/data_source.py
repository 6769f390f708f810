"""Policy rollouts and demonstrations in one batch: masks, advantages and weights for each source.

The signal `sampled` is 1 for an action that the policy generated, 0 for an action that was given;
a given action has log-probability 0 in `old_logp`, or the policy's own if it is a forced text that
is trained on with a ratio. A demonstration is a rollout without any generated action; its advantage
is the weight of its imitation.
The signal `off_context` is 1 for an action that was generated in another context (hinted,
refined) or at an earlier step (replayed).
"""

from collections.abc import Callable
from dataclasses import replace

import torch
from jaxtyping import Bool
from torch import Tensor

from grupo.core import group_ops
from grupo.core.batch import Batch, PerAction, broadcast_to_tokens
from grupo.core.component import component
from grupo.core.numbers import NonNegativeInt, NumberOrSchedule
from grupo.core.requires import Requires
from grupo.core.types import Rollout

REQUIRES_SAMPLED = Requires(signals=("sampled",))
REQUIRES_OFF_CONTEXT = Requires(signals=("off_context",))
AdvantageFn = Callable[[Tensor, Batch], Tensor]


def sampled_mask(batch: Batch) -> Bool[Tensor, "N T"]:
    """True for actions that the policy generated; arbitrary where `batch.mask` is False.

    >>> from grupo.testing.batches import make_batch
    >>> sampled_mask(make_batch(group=[0, 0], signals={"sampled": [[1.0], [0.0]]})).tolist()
    [[True], [False]]
    """
    return batch.signals["sampled"] > 0


def off_context_mask(batch: Batch) -> Bool[Tensor, "N T"]:
    """True for actions that were generated in another context or at an earlier step.

    >>> from grupo.testing.batches import make_batch
    >>> off_context_mask(make_batch(group=[0, 0], signals={"off_context": [[1.0], [0.0]]})).tolist()
    [[True], [False]]
    """
    return batch.signals["off_context"] > 0


def is_demonstration(batch: Batch) -> Bool[Tensor, "R"]:
    """True for rollouts with unmasked actions, none of which the policy generated.

    >>> from grupo.testing.batches import make_batch
    >>> is_demonstration(make_batch(group=[0, 0], signals={"sampled": [[1.0], [0.0]]})).tolist()
    [False, True]
    """
    sampled_per_row = (batch.mask & sampled_mask(batch)).sum(1).to(batch.reward)
    count = torch.zeros_like(batch.reward).index_add(0, batch.rollout, sampled_per_row)
    return (batch.lengths > 0) & (count == 0)


def has_sampled_response(rollout: Rollout) -> bool:
    """True if the policy generated any action of the rollout, which is then no demonstration.

    >>> from grupo.core.types import Response
    >>> has_sampled_response(Rollout((("?", Response((1,), (0.0,), sampled=False)),)))
    False
    """
    return any(action.sampled for _, action in rollout.turns)


def unit_advantage(x: Tensor, batch: Batch) -> Tensor:
    """Advantage 1 for every rollout, whatever its reward: imitate all demonstrations equally.

    >>> from grupo.testing.batches import make_batch
    >>> unit_advantage(torch.tensor([0.0, 3.0]), make_batch(group=[0, 0]))
    tensor([1., 1.])
    """
    return torch.ones_like(x)


@component
class SeparateDemos:
    """Estimate advantages of policy rollouts without the demonstrations of their group.

    Args:
        policy_advantage: estimator for the policy's rollouts; demonstrations are masked and in
            groups of their own.
        demo_advantage: estimator for demonstrations; it reads the whole group. Default: 1.

    >>> from grupo.algo.advantages import Center
    >>> from grupo.testing.batches import make_batch
    >>> batch = make_batch(group=[0, 0, 0], signals={"sampled": [[1.0], [1.0], [0.0]]})
    >>> SeparateDemos(Center())(torch.tensor([1.0, 0.0, 5.0]), batch).flatten()
    tensor([ 0.5000, -0.5000,  1.0000])
    """

    policy_advantage: AdvantageFn
    demo_advantage: AdvantageFn = unit_advantage

    requires = REQUIRES_SAMPLED

    def __call__(self, x: Tensor, batch: Batch) -> Tensor:
        is_demo = is_demonstration(batch)
        demo_rows = is_demo[batch.rollout, None]
        group = 2 * batch.group + is_demo.long()
        without_demos = replace(batch, group=group, mask=batch.mask & ~demo_rows)
        policy = broadcast_to_tokens(self.policy_advantage(x, without_demos), batch)
        demo = broadcast_to_tokens(self.demo_advantage(x, batch), batch)
        return torch.where(demo_rows, demo, policy)


@component
class TooFewCorrect:
    """True (R,) for rollouts of groups with fewer than `min_correct` correct policy rollouts.

    Args:
        min_correct: number of correct policy rollouts from which a group needs no help.
        reward_term: name of the reward term that measures correctness.
        success_threshold: a rollout is correct if that term is above this.

    >>> from grupo.testing.batches import make_batch
    >>> correct, sampled = {"correct": [0.0, 1.0, 0.0]}, {"sampled": [[1.0], [0.0], [1.0]]}
    >>> batch = make_batch([0, 0, 1], reward_terms=correct, signals=sampled)
    >>> TooFewCorrect()(batch).tolist(), TooFewCorrect(min_correct=0)(batch).tolist()
    ([True, True, True], [False, False, False])
    """

    min_correct: NonNegativeInt = 1
    reward_term: str = "correct"
    success_threshold: NumberOrSchedule = 0.5

    @property
    def requires(self) -> Requires:
        return REQUIRES_SAMPLED | Requires(reward_terms=(self.reward_term,))

    def __call__(self, batch: Batch) -> Bool[Tensor, "R"]:
        is_correct = batch.reward_terms[self.reward_term] > self.success_threshold
        is_correct = is_correct & ~is_demonstration(batch)
        return group_ops.sum(is_correct.to(batch.reward), batch.group) < self.min_correct


@component
class EnoughCorrect(TooFewCorrect):
    """True (R,) for rollouts of groups with at least `min_correct` correct policy rollouts.

    The arguments are those of `TooFewCorrect`, whose negation this is.

    >>> from grupo.testing.batches import make_batch
    >>> correct, sampled = {"correct": [1.0, 0.0]}, {"sampled": [[1.0], [1.0]]}
    >>> batch = make_batch([0, 1], reward_terms=correct, signals=sampled)
    >>> EnoughCorrect()(batch).tolist()
    [True, False]
    """

    def __call__(self, batch: Batch) -> Bool[Tensor, "R"]:
        return ~super().__call__(batch)


@component
class PerSourceMean:
    """Aggregate generated and given actions separately, and add the two sets of weights.

    Args:
        aggregation: weights (N, T) of a batch; applied once with the given actions masked and once
            with the generated ones masked.

    >>> from grupo.algo.aggregation import token_mean
    >>> from grupo.testing.batches import make_batch
    >>> batch = make_batch(group=[0, 0, 0], signals={"sampled": [[1.0], [1.0], [0.0]]})
    >>> PerSourceMean(token_mean)(batch).flatten().tolist()
    [0.5, 0.5, 1.0]
    """

    aggregation: Callable[[Batch], Tensor]

    requires = REQUIRES_SAMPLED

    def __call__(self, batch: Batch) -> PerAction:
        sampled = sampled_mask(batch)
        policy = self.aggregation(replace(batch, mask=batch.mask & sampled))
        demo = self.aggregation(replace(batch, mask=batch.mask & ~sampled))
        return policy + demo
