"""Losses on a subset of the actions or rollouts, and masks that select them."""

from collections.abc import Callable, Mapping

import torch
from torch import Tensor

from grupo.algo.losses.base import Loss
from grupo.core import group_ops
from grupo.core.batch import Batch, PerAction, Signals
from grupo.core.component import component
from grupo.core.numbers import NumberOrSchedule
from grupo.core.requires import Requires


@component
class WhereLoss(Loss):
    """The loss where a mask is True, 0 elsewhere, (N, T).

    Args:
        loss: the loss.
        where: function `batch -> mask`, (N, T) or (N, 1).

    >>> from grupo.algo.divergences import k1
    >>> from grupo.algo.losses.regularizers import KL
    >>> from grupo.testing.batches import make_batch, perturb_logp
    >>> ref = {"logp@ref": [[-2.0], [-2.0]]}
    >>> batch = make_batch(group=[0, 0], advantage=[1.0, -1.0], signals=ref)
    >>> loss = WhereLoss(KL(k1), negative_advantage)
    >>> loss(perturb_logp(batch, [[0.0], [0.0]]), batch).tolist()
    [[0.0], [1.0]]
    """

    loss: Loss
    where: Callable[[Batch], Tensor]

    @property
    def zero_if_no_advantage(self) -> bool:
        return self.loss.zero_if_no_advantage

    def __call__(self, pi: Signals, batch: Batch) -> PerAction:
        loss = self.loss(pi, batch)
        return torch.where(self.where(batch), loss, torch.zeros_like(loss))

    def metrics(self, pi: Signals, batch: Batch) -> Mapping[str, Tensor]:
        return self.loss.metrics(pi, batch)


def negative_advantage(batch: Batch) -> Tensor:
    """Mask of actions with A < 0, (N, T).

    >>> from grupo.testing.batches import make_batch
    >>> negative_advantage(make_batch(group=[0, 0], advantage=[1.0, -1.0])).tolist()
    [[False], [True]]
    """
    return batch.advantage < 0


def positive_advantage(batch: Batch) -> Tensor:
    """Mask of actions with A > 0, (N, T).

    >>> from grupo.testing.batches import make_batch
    >>> positive_advantage(make_batch(group=[0, 0], advantage=[1.0, -1.0])).tolist()
    [[True], [False]]
    """
    return batch.advantage > 0


@component
class IncorrectRollouts:
    """Mask of incorrect rollouts, (N, 1).

    Args:
        reward_term: name of the reward term that measures correctness.
        success_threshold: a rollout is incorrect if that term is at most this.

    >>> from grupo.testing.batches import make_batch
    >>> batch = make_batch(group=[0, 0], reward_terms={"correct": [1.0, 0.0]})
    >>> IncorrectRollouts()(batch).tolist()
    [[False], [True]]
    """

    reward_term: str = "correct"
    success_threshold: NumberOrSchedule = 0.5

    @property
    def requires(self) -> Requires:
        return Requires(reward_terms=(self.reward_term,))

    def __call__(self, batch: Batch) -> Tensor:
        is_incorrect = batch.reward_terms[self.reward_term] <= self.success_threshold
        return is_incorrect[batch.rollout, None]


@component
class AllIncorrectGroups:
    """Mask of the rollouts of groups without a correct rollout, (N, 1).

    Args:
        reward_term: name of the reward term that measures correctness.
        success_threshold: a rollout is incorrect if that term is at most this.

    >>> from grupo.testing.batches import make_batch
    >>> batch = make_batch(group=[0, 0, 1], reward_terms={"correct": [1.0, 0.0, 0.0]})
    >>> AllIncorrectGroups()(batch).tolist()
    [[False], [False], [True]]
    """

    reward_term: str = "correct"
    success_threshold: NumberOrSchedule = 0.5

    @property
    def requires(self) -> Requires:
        return Requires(reward_terms=(self.reward_term,))

    def __call__(self, batch: Batch) -> Tensor:
        best = group_ops.max(batch.reward_terms[self.reward_term], batch.group)
        return (best <= self.success_threshold)[batch.rollout, None]
