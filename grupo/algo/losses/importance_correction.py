"""Corrections for actions that another policy sampled: the engine's, not the trainer's.

With w = pi_old / pi_sampler, a correction is a weight on the loss of each action, held constant: w
truncated, w within an interval and 0 outside, or 1 where an estimate of the divergence is small
enough and 0 elsewhere. `level` says whose log-ratio counts: the action's own, or that of its row by
sum, mean or maximum. Corrections are corrected in turn: `CorrectedLoss(CorrectedLoss(loss, a), b)`.
"""

from collections.abc import Callable, Mapping

import torch
from torch import Tensor

from grupo.algo.aggregation import Aggregation, token_mean
from grupo.algo.losses.base import Loss, required_signals_of
from grupo.algo.token_level import Level, per_action
from grupo.core.batch import Batch, PerAction, Signals
from grupo.core.component import component

WeightFn = Callable[[Signals, Batch], Tensor]  # what an action's loss counts, (N, T)


@component
class TruncatedIS:
    """min(w, cap).

    >>> TruncatedIS(2.0)(torch.tensor([0.5, 3.0]))
    tensor([0.5000, 2.0000])
    """

    cap: float

    def __call__(self, weight: Tensor) -> Tensor:
        return weight.clamp(max=self.cap)


@component
class IntervalMask:
    """w between the two bounds, 0 outside.

    >>> IntervalMask(0.5, 2.0)(torch.tensor([0.4, 0.5, 3.0]))
    tensor([0.0000, 0.5000, 0.0000])
    """

    low: float
    high: float

    def __call__(self, weight: Tensor) -> Tensor:
        return torch.where((weight >= self.low) & (weight <= self.high), weight, 0.0)


@component
class ImportanceWeight:
    """bound(exp(level(log pi_old - log pi_sampler))).

    >>> from math import log
    >>> from grupo.testing.batch_sizes import batch_of, moved
    >>> batch = make_batch([0], length=[2], logp=0.0, signals={"logp@sampler": [[-log(4.0), log(2.0)]]})
    >>> pi = moved(batch, [[0.0, 0.0]])
    >>> ImportanceWeight(TruncatedIS(3.0))(pi, batch).tolist()
    [[3.0, 0.5]]
    >>> from grupo.algo.token_level import by_sum
    >>> ImportanceWeight(TruncatedIS(3.0), by_sum)(pi, batch).tolist()
    [[2.0, 2.0]]
    """

    bound: Callable[[Tensor], Tensor]
    level: Level = per_action

    @property
    def required_signals(self) -> frozenset[str]:
        return frozenset({"logp@sampler"})

    def __call__(self, pi: Signals, batch: Batch) -> PerAction:
        d = (batch.old_logp - batch.signals["logp@sampler"]).masked_fill(~batch.mask, 0.0)
        return self.bound(self.level(d, batch).exp()).expand_as(batch.old_logp)


@component
class RejectionMask:
    """1 where low <= level(estimate of KL(sampler, old)) <= high, 0 elsewhere: rejection.

    The estimate is k1, k2 or k3, so k1 is the log-ratio log pi_sampler - log pi_old itself.

    >>> from grupo.algo import divergences
    >>> from grupo.algo.token_level import by_mean
    >>> from grupo.testing.batch_sizes import batch_of, moved
    >>> batch = make_batch([0], length=[2], logp=-1.0, signals={"logp@sampler": [[-1.0, -0.5]]})
    >>> pi = moved(batch, [[0.0, 0.0]])
    >>> [RejectionMask(divergences.k1, by, max_kl=0.3)(pi, batch).tolist() for by in (by_action, by_mean)]
    [[[1.0, 0.0]], [[1.0, 1.0]]]
    """

    estimator: Callable[[Tensor, Tensor], Tensor]
    level: Level = per_action
    min_kl: float = -torch.inf
    max_kl: float = torch.inf

    @property
    def required_signals(self) -> frozenset[str]:
        return frozenset({"logp@sampler"})

    def __call__(self, pi: Signals, batch: Batch) -> PerAction:
        k = self.estimator(batch.signals["logp@sampler"], batch.old_logp).masked_fill(
            ~batch.mask, 0.0
        )
        k = self.level(k, batch)
        return (
            ((k >= self.min_kl) & (k <= self.max_kl)).to(batch.old_logp).expand_as(batch.old_logp)
        )


@component
class NormalisedWeight:
    """A weight divided by its mean over the minibatch, which leaves the size of the step alone.

    `mean` says how: over actions, or with `sequence_mean` over rows.

    >>> from math import log
    >>> from grupo.testing.batch_sizes import batch_of, moved
    >>> batch = make_batch([0, 0], logp=0.0, signals={"logp@sampler": [[0.0], [-log(3.0)]]})
    >>> NormalisedWeight(ImportanceWeight(TruncatedIS(5.0)))(moved(batch, [[0.0], [0.0]]), batch)
    tensor([[0.5000],
            [1.5000]], dtype=torch.float64)
    """

    weight: WeightFn
    aggregation: Aggregation = token_mean

    @property
    def required_signals(self) -> frozenset[str]:
        return required_signals_of(self.weight)

    @property
    def couples_rows(self) -> bool:
        return True

    @property
    def needs_whole_batch(self) -> bool:
        return True

    def __call__(self, pi: Signals, batch: Batch) -> PerAction:
        w = self.weight(pi, batch)
        mean = (self.aggregation(batch) * w).sum()
        return w / torch.where(mean > 0, mean, 1.0)


@component
class CorrectedLoss(Loss):
    """weight x loss, the weight of each action held constant, 0 of an infinite loss 0.

    >>> from math import log
    >>> from grupo.algo.losses import Reinforce
    >>> from grupo.testing.batch_sizes import batch_of, moved
    >>> batch = make_batch([0], advantage=[1.0], logp=-1.0, signals={"logp@sampler": [[-4.0]]})
    >>> CorrectedLoss(Reinforce(), ImportanceWeight(TruncatedIS(2.0)))(moved(batch, [[0.0]]), batch).tolist()
    [[2.0]]
    """

    loss: Loss
    weight: WeightFn

    @property
    def zero_if_no_advantage(self) -> bool:
        return self.loss.zero_if_no_advantage

    def __call__(self, pi: Signals, batch: Batch) -> PerAction:
        w = self.weight(pi, batch).detach()
        return torch.where(w > 0, w * self.loss(pi, batch), 0.0)

    def metrics(self, pi: Signals, batch: Batch) -> Mapping[str, Tensor]:
        w, inner = self.weight(pi, batch), self.loss.metrics(pi, batch)
        return {
            **inner,
            "is_correction/weight_mean": w,
            "is_correction/rejected_frac": (w == 0).to(w),
        }
