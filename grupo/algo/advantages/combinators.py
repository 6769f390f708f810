"""Advantage estimators made of other estimators: chain, per reward term, regroup, mask, clamp."""

from collections.abc import Callable
from dataclasses import replace
from typing import Protocol

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from grupo.core.batch import Batch
from grupo.core.component import component, to_code
from grupo.core.numbers import NumberOrSchedule
from grupo.core.requires import Requires


class AdvantageEstimator(Protocol):
    """Maps rewards, or the advantage so far, to the next advantage.

    Args:
        x: rewards or advantages, (R,) per rollout or (N, T) per token.
        batch: the batch they belong to.

    Returns:
        The advantage, (R,) or (N, T).
    """

    def __call__(self, x: Tensor, batch: Batch, /) -> Tensor: ...


def identity(x: Tensor, batch: Batch) -> Tensor:
    """Return `x` unchanged: the advantage is the reward, as in plain REINFORCE."""
    return x


@component
class Chain:
    """Apply advantage estimators from left to right; `chain` builds it.

    Args:
        estimators: the estimators in the order of application.
    """

    estimators: tuple[AdvantageEstimator, ...]

    def __call__(self, x: Tensor, batch: Batch) -> Tensor:
        for estimator in self.estimators:
            x = estimator(x, batch)
        return x

    def __repr__(self) -> str:
        return f"chain({', '.join(map(to_code, self.estimators))})"


def chain(*estimators: AdvantageEstimator) -> Chain:
    """Compose advantage estimators: each takes the result of the one before.

    Chains within chains are flattened.

    Args:
        estimators: the estimators, applied from left to right.

    >>> from grupo.algo.advantages import Center, ScaleByStd
    >>> chain(Center(), ScaleByStd())
    chain(Center(), ScaleByStd(eps=1e-06))
    """
    flat: list[AdvantageEstimator] = []
    for estimator in estimators:
        flat.extend(estimator.estimators if isinstance(estimator, Chain) else [estimator])
    return Chain(tuple(flat))


@component
class PerRewardTerm:
    """sum_k w_k A(r_k): estimate the advantage of each reward term separately, then add.

    The incoming `x` is ignored.

    Args:
        estimator: A, applied to each reward term (R,).
        weights: pairs of reward-term name and weight w_k.

    >>> from grupo.algo.advantages import Center
    >>> from grupo.testing.batches import make_batch
    >>> batch = make_batch(group=[0, 0], reward_terms={"right": [1.0, 0.0], "short": [0.0, 4.0]})
    >>> PerRewardTerm(Center(), (("right", 1.0), ("short", 0.5)))(batch.reward, batch).tolist()
    [-0.5, 0.5]
    """

    estimator: AdvantageEstimator
    weights: tuple[tuple[str, NumberOrSchedule], ...]

    @property
    def requires(self) -> Requires:
        return Requires(reward_terms=tuple(name for name, _ in self.weights))

    def __call__(self, x: Tensor, batch: Batch) -> Tensor:
        terms = [w * self.estimator(batch.reward_terms[name], batch) for name, w in self.weights]
        return torch.stack(terms).sum(0)


@component
class UseRewardTerm:
    """Replace the advantage by one reward term, (R,).

    Args:
        reward_term: name of the reward term.

    >>> from grupo.testing.batches import make_batch
    >>> batch = make_batch(group=[0, 0], reward=[5.0, 5.0], reward_terms={"right": [1.0, 0.0]})
    >>> UseRewardTerm("right")(batch.reward, batch).tolist()
    [1.0, 0.0]
    """

    reward_term: str

    @property
    def requires(self) -> Requires:
        return Requires(reward_terms=(self.reward_term,))

    def __call__(self, x: Tensor, batch: Batch) -> Tensor:
        return batch.reward_terms[self.reward_term].to(x)


@component
class ByRewardTerm:
    """Group labels (R,) of rollouts that share both the group and the value of a reward term.

    Args:
        reward_term: name of the reward term; its values are compared for equality.

    >>> import torch
    >>> from grupo.testing.batches import make_batch
    >>> batch = make_batch(group=[0, 0, 0, 1], reward_terms={"mode": [1.0, 2.0, 1.0, 1.0]})
    >>> ByRewardTerm("mode")(batch)
    tensor([0, 1, 0, 2])
    """

    reward_term: str

    @property
    def requires(self) -> Requires:
        return Requires(reward_terms=(self.reward_term,))

    def __call__(self, batch: Batch) -> Int[Tensor, "R"]:
        value = batch.reward_terms[self.reward_term].double()
        pairs = torch.stack([batch.group.double(), value], dim=1)
        return pairs.unique(dim=0, return_inverse=True)[1]


@component
class GroupedBy:
    """Estimate advantages with another grouping of the rollouts.

    Args:
        estimator: advantage estimator.
        labels: function of the batch that returns the new group of each rollout, (R,).

    >>> from grupo.algo.advantages import Center
    >>> from grupo.testing.batches import make_batch
    >>> batch = make_batch(group=[0, 0, 0], reward_terms={"mode": [1.0, 2.0, 1.0]})
    >>> GroupedBy(Center(), ByRewardTerm("mode"))(torch.tensor([1.0, 5.0, 3.0]), batch)
    tensor([-1.,  0.,  1.])
    """

    estimator: AdvantageEstimator
    labels: Callable[[Batch], Int[Tensor, "R"]]

    def __call__(self, x: Tensor, batch: Batch) -> Tensor:
        return self.estimator(x, replace(batch, group=self.labels(batch)))


@component
class MaskAdvantage:
    """The advantage of `estimator` for the rollouts in `keep`, 0 for the others.

    Args:
        estimator: advantage estimator; it reads all rollouts.
        keep: function of the batch that returns a mask of rollouts, (R,).

    >>> from grupo.algo.advantages import Center
    >>> from grupo.testing.batches import make_batch
    >>> def short(batch):
    ...     return batch.lengths < 2
    >>> batch = make_batch(group=[0, 0], length=[1, 2])
    >>> MaskAdvantage(Center(), short)(torch.tensor([0.0, 1.0]), batch)
    tensor([-0.5000,  0.0000])
    """

    estimator: AdvantageEstimator
    keep: Callable[[Batch], Bool[Tensor, "R"]]

    def __call__(self, x: Tensor, batch: Batch) -> Tensor:
        keep = self.keep(batch)
        advantage = self.estimator(x, batch)
        return advantage * (keep if advantage.ndim == 1 else keep[batch.rollout, None])


@component
class ClampAdvantage:
    """min(max(x, low), high).

    Args:
        low: smallest advantage.
        high: largest advantage.

    >>> from grupo.testing.batches import make_batch
    >>> ClampAdvantage(-1.0, 2.0)(torch.tensor([-3.0, 0.5]), make_batch(group=[0, 0]))
    tensor([-1.0000,  0.5000])
    """

    low: NumberOrSchedule
    high: NumberOrSchedule

    def __call__(self, x: Tensor, batch: Batch) -> Tensor:
        return x.clamp(self.low, self.high)
