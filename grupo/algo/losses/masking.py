"""Where a loss acts: on some actions or rollouts, and not on the others."""

from collections.abc import Callable, Mapping

import torch
from torch import Tensor

from grupo.algo.losses.base import Loss
from grupo.core import group_ops
from grupo.core.batch import Batch, PerAction, Signals
from grupo.core.component import component


@component
class WhereLoss(Loss):
    """The loss where `where` (N, T) or (N, 1) holds, 0 elsewhere.

    >>> from grupo.algo.divergences import k1
    >>> from grupo.algo.losses.regularizers import KL
    >>> from grupo.testing.batch_sizes import batch_of, moved
    >>> batch = make_batch(group=[0, 0], advantage=[1.0, -1.0], signals={"logp@ref": [[-2.0], [-2.0]]})
    >>> WhereLoss(KL(k1), falling)(moved(batch, [[0.0], [0.0]]), batch).tolist()
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
    """Where the advantage is negative: what is made less likely.

    >>> from grupo.testing.batch_sizes import batch_of
    >>> negative_advantage(make_batch(group=[0, 0], advantage=[1.0, -1.0])).tolist()
    [[False], [True]]
    """
    return batch.advantage < 0


def positive_advantage(batch: Batch) -> Tensor:
    """Where the advantage is positive: what is made more likely.

    >>> from grupo.testing.batch_sizes import batch_of
    >>> positive_advantage(make_batch(group=[0, 0], advantage=[1.0, -1.0])).tolist()
    [[True], [False]]
    """
    return batch.advantage > 0


@component
class IncorrectRollouts:
    """Where the rollout is wrong: its `part` is not above `right`.

    >>> from grupo.testing.batch_sizes import batch_of
    >>> IncorrectRollouts()(make_batch(group=[0, 0], reward_terms={"correct": [1.0, 0.0]})).tolist()
    [[False], [True]]
    """

    reward_term: str = "correct"
    success_threshold: float = 0.5

    @property
    def required_reward_terms(self) -> tuple[str, ...]:
        """The component that says who is right."""
        return (self.reward_term,)

    def __call__(self, batch: Batch) -> Tensor:
        return (batch.reward_terms[self.reward_term] <= self.success_threshold)[batch.rollout, None]


@component
class AllIncorrectGroups:
    """Where every rollout of the group is wrong.

    >>> from grupo.testing.batch_sizes import batch_of
    >>> AllIncorrectGroups()(make_batch(group=[0, 0, 1], reward_terms={"correct": [1.0, 0.0, 0.0]})).tolist()
    [[False], [False], [True]]
    """

    reward_term: str = "correct"
    success_threshold: float = 0.5

    @property
    def required_reward_terms(self) -> tuple[str, ...]:
        """The component that says who is right."""
        return (self.reward_term,)

    def __call__(self, batch: Batch) -> Tensor:
        best = group_ops.max(batch.reward_terms[self.reward_term], batch.group)
        return (best <= self.success_threshold)[batch.rollout, None]
