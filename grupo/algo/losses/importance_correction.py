"""Importance-sampling corrections for the mismatch between the inference engine and the trainer.

With w = pi_old / pi_sampler, a correction is a constant weight on each token's loss: w truncated,
w inside an interval and 0 outside (masking), or 1 where an estimate of the divergence is within
bounds and 0 elsewhere (rejection). `level` chooses the log-ratio: per token, or the sum, mean or
maximum of the row (`grupo.algo.token_level`). Corrections nest:
`CorrectedLoss(CorrectedLoss(loss, a), b)`.
"""

from collections.abc import Callable, Mapping

import torch
from torch import Tensor

from grupo.algo.aggregation import Aggregation, token_mean
from grupo.algo.losses.base import Loss
from grupo.algo.token_level import Level, per_action
from grupo.core.batch import Batch, PerAction, Signals
from grupo.core.component import check_field, component
from grupo.core.dynamic_number import DynamicNumber
from grupo.core.numbers import NonNegative, NumberOrSchedule
from grupo.core.requires import Requires

WeightFn = Callable[[Signals, Batch], Tensor]  # weight of each token's loss, (N, T)


@component
class TruncatedIS:
    """min(w, cap): truncated importance sampling.

    Args:
        cap: largest weight.

    >>> TruncatedIS(2.0)(torch.tensor([0.5, 3.0]))
    tensor([0.5000, 2.0000])
    """

    cap: NonNegative

    def __call__(self, weight: Tensor) -> Tensor:
        return weight.clamp(max=self.cap)


@component
class BoundedIS:
    """min(max(w, low), high): importance sampling with weights bounded on both sides.

    Args:
        low: smallest weight.
        high: largest weight.

    >>> BoundedIS(0.5, 2.0)(torch.tensor([0.1, 1.5, 3.0]))
    tensor([0.5000, 1.5000, 2.0000])
    """

    low: NumberOrSchedule
    high: NumberOrSchedule

    def __post_init__(self) -> None:
        check_order(self)

    def __call__(self, weight: Tensor) -> Tensor:
        return weight.clamp(self.low, self.high)


@component
class IntervalMask:
    """w if low <= w <= high, else 0: masked importance sampling.

    Args:
        low: smallest weight that is kept.
        high: largest weight that is kept.

    >>> IntervalMask(0.5, 2.0)(torch.tensor([0.4, 0.5, 3.0]))
    tensor([0.0000, 0.5000, 0.0000])
    """

    low: NumberOrSchedule
    high: NumberOrSchedule

    def __post_init__(self) -> None:
        check_order(self)

    def __call__(self, weight: Tensor) -> Tensor:
        return torch.where((weight >= self.low) & (weight <= self.high), weight, 0.0)


def check_order(bounds: BoundedIS | IntervalMask) -> None:
    """Raise `ConfigError` if `high` is less than `low`; schedules are not compared."""
    if not any(isinstance(bound, DynamicNumber) for bound in (bounds.low, bounds.high)):
        check_field(bounds, "high", bounds.high >= bounds.low, f"low, {bounds.low}, or more")


@component
class ImportanceWeight:
    """bound(exp(level(log pi_old - log pi_sampler))), (N, T).

    Args:
        bound: function of the weights, `TruncatedIS`, `BoundedIS` or `IntervalMask`.
        level: span of the log-ratio, a function of `grupo.algo.token_level`.

    >>> from math import log
    >>> from grupo.algo.token_level import row_sum
    >>> from grupo.testing.batches import make_batch, perturb_logp
    >>> sampler = {"logp@sampler": [[-log(4.0), log(2.0)]]}
    >>> batch = make_batch([0], length=[2], logp=0.0, signals=sampler)
    >>> pi = perturb_logp(batch, [[0.0, 0.0]])
    >>> ImportanceWeight(TruncatedIS(3.0))(pi, batch).tolist()
    [[3.0, 0.5]]
    >>> ImportanceWeight(TruncatedIS(3.0), row_sum)(pi, batch).tolist()
    [[2.0, 2.0]]
    """

    bound: Callable[[Tensor], Tensor]
    level: Level = per_action

    requires = Requires(signals=("logp@sampler",))

    def __call__(self, pi: Signals, batch: Batch) -> PerAction:
        log_ratio = batch.old_logp - batch.signals["logp@sampler"]
        log_ratio = log_ratio.masked_fill(~batch.mask, 0.0)
        return self.bound(self.level(log_ratio, batch).exp()).expand_as(batch.old_logp)


def old_policy(pi: Signals, batch: Batch) -> PerAction:
    """log pi_old, (N, T): the policy before the first update of the step."""
    return batch.old_logp


def current_policy(pi: Signals, batch: Batch) -> PerAction:
    """log pi, (N, T), without gradient: the policy in the present update."""
    return pi.logp.detach()


@component
class RejectionMask:
    """1 where min_kl <= level(estimate of KL(sampler || old)) <= max_kl, else 0, (N, T).

    With k1 the estimate is the log-ratio log pi_sampler - log pi_old itself. With
    `policy=current_policy` the estimate follows the updates of a step, as in a run that takes the
    sampler's log-probabilities for the old ones (verl's bypass mode).

    Args:
        estimator: k1, k2 or k3 of `grupo.algo.divergences`.
        level: span of the estimate, a function of `grupo.algo.token_level`.
        min_kl: smallest estimate that is kept, in nats.
        max_kl: largest estimate that is kept, in nats.
        policy: the policy that is compared with the sampler.

    >>> from grupo.algo import divergences
    >>> from grupo.algo.token_level import row_mean
    >>> from grupo.testing.batches import make_batch, perturb_logp
    >>> sampler = {"logp@sampler": [[-1.0, -0.5]]}
    >>> batch = make_batch([0], length=[2], logp=-1.0, signals=sampler)
    >>> pi = perturb_logp(batch, [[0.0, 0.0]])
    >>> RejectionMask(divergences.k1, max_kl=0.3)(pi, batch).tolist()
    [[1.0, 0.0]]
    >>> RejectionMask(divergences.k1, row_mean, max_kl=0.3)(pi, batch).tolist()
    [[1.0, 1.0]]
    """

    estimator: Callable[[Tensor, Tensor], Tensor]
    level: Level = per_action
    min_kl: NumberOrSchedule = -torch.inf
    max_kl: NumberOrSchedule = torch.inf
    policy: Callable[[Signals, Batch], PerAction] = old_policy

    requires = Requires(signals=("logp@sampler",))

    def __call__(self, pi: Signals, batch: Batch) -> PerAction:
        kl = self.estimator(batch.signals["logp@sampler"], self.policy(pi, batch))
        kl = self.level(kl.masked_fill(~batch.mask, 0.0), batch)
        keep = (kl >= self.min_kl) & (kl <= self.max_kl)
        return keep.to(batch.old_logp).expand_as(batch.old_logp)


@component
class NormalisedWeight:
    """w / mean(w), with the mean over the minibatch: the scale of the update is unchanged, (N, T).

    Args:
        weight: the weight w.
        aggregation: weights of the mean; over tokens by default, over rows with `sequence_mean`.

    >>> from math import log
    >>> from grupo.testing.batches import make_batch, perturb_logp
    >>> sampler = {"logp@sampler": [[0.0], [-log(3.0)]]}
    >>> batch = make_batch([0, 0], logp=0.0, signals=sampler)
    >>> weight = NormalisedWeight(ImportanceWeight(TruncatedIS(5.0)))
    >>> weight(perturb_logp(batch, [[0.0], [0.0]]), batch)
    tensor([[0.5000],
            [1.5000]], dtype=torch.float64)
    """

    weight: WeightFn
    aggregation: Aggregation = token_mean

    requires = Requires(coupled_rows=True, whole_batch=True)

    def __call__(self, pi: Signals, batch: Batch) -> PerAction:
        w = self.weight(pi, batch)
        mean = (self.aggregation(batch) * w).sum()
        return w / torch.where(mean > 0, mean, 1.0)


@component
class CorrectedLoss(Loss):
    """sg(w) x loss, (N, T): a loss with an importance weight; 0 where w = 0, never NaN.

    Args:
        loss: the loss to correct.
        weight: w, a function `(pi, batch) -> (N, T)`.

    >>> from grupo.algo.losses import Reinforce
    >>> from grupo.testing.batches import make_batch, perturb_logp
    >>> sampler = {"logp@sampler": [[-4.0]]}
    >>> batch = make_batch([0], advantage=[1.0], logp=-1.0, signals=sampler)
    >>> loss = CorrectedLoss(Reinforce(), ImportanceWeight(TruncatedIS(2.0)))
    >>> loss(perturb_logp(batch, [[0.0]]), batch).tolist()
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
        w = self.weight(pi, batch)
        return {
            **self.loss.metrics(pi, batch),
            "is_correction/weight_mean": w,
            "is_correction/rejected_frac": (w == 0).to(w),
        }
