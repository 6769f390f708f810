"""Credits made of credits."""

from collections.abc import Callable
from dataclasses import replace
from typing import Protocol

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from grupo.core.batch import Batch
from grupo.core.component import component, to_code


class AdvantageEstimator(Protocol):
    """From the credit so far to the next, (R,) or (N, T)."""

    def __call__(self, x: Tensor, batch: Batch, /) -> Tensor: ...


def identity(x: Tensor, batch: Batch) -> Tensor:
    """The reward itself: plain REINFORCE."""
    return x


@component
class Chain:
    """Credits applied from left to right."""

    estimators: tuple[AdvantageEstimator, ...]

    def __call__(self, x: Tensor, batch: Batch) -> Tensor:
        for step in self.estimators:
            x = step(x, batch)
        return x

    def __repr__(self) -> str:
        return f"chain({', '.join(map(to_code, self.estimators))})"


def chain(*estimators: AdvantageEstimator) -> Chain:
    """Apply `steps` from left to right; chains within chains are laid flat.

    >>> from grupo.algo.advantages import Center, ScaleByStd
    >>> chain(Center(), ScaleByStd())
    chain(Center(), ScaleByStd(eps=1e-06))
    """
    return Chain(
        tuple(
            s
            for step in estimators
            for s in (step.estimators if isinstance(step, Chain) else (step,))
        )
    )


@component
class PerRewardTerm:
    """Credit every component of the reward on its own, then add them up: sum_k w_k credit(r_k).

    >>> from grupo.algo.advantages import Center
    >>> from grupo.testing.batch_sizes import batch_of
    >>> batch = make_batch(group=[0, 0], reward_terms={"right": [1.0, 0.0], "short": [0.0, 4.0]})
    >>> PerRewardTerm(Center(), (("right", 1.0), ("short", 0.5)))(batch.reward, batch).tolist()
    [-0.5, 0.5]
    """

    estimator: AdvantageEstimator
    weights: tuple[tuple[str, float], ...]

    @property
    def required_reward_terms(self) -> tuple[str, ...]:
        """The components of the reward that it reads, by name."""
        return tuple(name for name, _ in self.weights)

    def __call__(self, x: Tensor, batch: Batch) -> Tensor:
        return torch.stack(
            [w * self.estimator(batch.reward_terms[name], batch) for name, w in self.weights]
        ).sum(0)


@component
class UseRewardTerm:
    """The component `part` of the reward; what came is left.

    >>> from grupo.testing.batch_sizes import batch_of
    >>> batch = make_batch(group=[0, 0], reward=[5.0, 5.0], reward_terms={"right": [1.0, 0.0]})
    >>> UseRewardTerm("right")(batch.reward, batch).tolist()
    [1.0, 0.0]
    """

    reward_term: str

    @property
    def required_reward_terms(self) -> tuple[str, ...]:
        """The component it takes."""
        return (self.reward_term,)

    def __call__(self, x: Tensor, batch: Batch) -> Tensor:
        return batch.reward_terms[self.reward_term].to(x)


@component
class ByRewardTerm:
    """Labels of (group, component of the reward): who is alike in the component `part`.

    >>> import torch
    >>> from grupo.testing.batch_sizes import batch_of
    >>> ByRewardTerm("mode")(make_batch(group=[0, 0, 0, 1], reward_terms={"mode": [1.0, 2.0, 1.0, 1.0]}))
    tensor([0, 1, 0, 2])
    """

    reward_term: str

    @property
    def required_reward_terms(self) -> tuple[str, ...]:
        """The component it reads."""
        return (self.reward_term,)

    def __call__(self, batch: Batch) -> Int[Tensor, "R"]:
        pairs = torch.stack(
            [batch.group.double(), batch.reward_terms[self.reward_term].double()], dim=1
        )
        return pairs.unique(dim=0, return_inverse=True)[1]


@component
class GroupedBy:
    """Credit as if others were compared: `by` answers a new group label (R,) for each rollout.

    >>> from grupo.algo.advantages import Center
    >>> from grupo.testing.batch_sizes import batch_of
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
    """Credit where `keep` (R,) holds, 0 elsewhere.

    >>> from grupo.algo.advantages import Center
    >>> from grupo.testing.batch_sizes import batch_of
    >>> def short(batch):
    ...     return batch.lengths < 2
    >>> batch = make_batch(group=[0, 0], length=[1, 2])
    >>> MaskAdvantage(Center(), short)(torch.tensor([0.0, 1.0]), batch)
    tensor([-0.5000,  0.0000])
    """

    estimator: AdvantageEstimator
    keep: Callable[[Batch], Bool[Tensor, "R"]]

    def __call__(self, x: Tensor, batch: Batch) -> Tensor:
        kept = self.keep(batch)
        credited = self.estimator(x, batch)
        return credited * (kept if credited.ndim == 1 else kept[batch.rollout, None])


@component
class ClampAdvantage:
    """Credit so far, held between two bounds.

    >>> from grupo.testing.batch_sizes import batch_of
    >>> ClampAdvantage(-1.0, 2.0)(torch.tensor([-3.0, 0.5]), make_batch(group=[0, 0]))
    tensor([-1.0000,  0.5000])
    """

    low: float
    high: float

    def __call__(self, x: Tensor, batch: Batch) -> Tensor:
        return x.clamp(self.low, self.high)
