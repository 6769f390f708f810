"""Corrections for actions that another policy sampled: the engine's, not the trainer's.

With w = pi_old / pi_sampler, a correction is a weight on the loss of each action, held constant: w
truncated, w within an interval and 0 outside, or 1 where an estimate of the divergence is small
enough and 0 elsewhere. `level` says whose log-ratio counts: the action's own, or that of its row by
sum, mean or maximum. Corrections are corrected in turn: `Corrected(Corrected(loss, a), b)`.
"""

from collections.abc import Callable, Mapping

import torch
from torch import Tensor

from grupo.algo.aggregation import Weigh, token_mean
from grupo.algo.losses.base import Loss, needs
from grupo.algo.token_level import Level, by_action
from grupo.core.batch import Batch, PerAction, Signals
from grupo.core.component import piece

Weight = Callable[[Signals, Batch], Tensor]  # what an action's loss counts, (N, T)


@piece
class Truncated:
    """min(w, cap).

    >>> Truncated(2.0)(torch.tensor([0.5, 3.0]))
    tensor([0.5000, 2.0000])
    """

    cap: float

    def __call__(self, weight: Tensor) -> Tensor:
        return weight.clamp(max=self.cap)


@piece
class Within:
    """w between the two bounds, 0 outside.

    >>> Within(0.5, 2.0)(torch.tensor([0.4, 0.5, 3.0]))
    tensor([0.0000, 0.5000, 0.0000])
    """

    low: float
    high: float

    def __call__(self, weight: Tensor) -> Tensor:
        return torch.where((weight >= self.low) & (weight <= self.high), weight, 0.0)


@piece
class Importance:
    """bound(exp(level(log pi_old - log pi_sampler))).

    >>> from math import log
    >>> from grupo.testing.batches import batch_of, moved
    >>> batch = batch_of([0], length=[2], logp=0.0, seen={"logp@sampler": [[-log(4.0), log(2.0)]]})
    >>> pi = moved(batch, [[0.0, 0.0]])
    >>> Importance(Truncated(3.0))(pi, batch).tolist()
    [[3.0, 0.5]]
    >>> from grupo.algo.token_level import by_sum
    >>> Importance(Truncated(3.0), by_sum)(pi, batch).tolist()
    [[2.0, 2.0]]
    """

    bound: Callable[[Tensor], Tensor]
    level: Level = by_action

    @property
    def needs(self) -> frozenset[str]:
        return frozenset({"logp@sampler"})

    def __call__(self, pi: Signals, batch: Batch) -> PerAction:
        d = (batch.old_logp - batch.seen["logp@sampler"]).masked_fill(~batch.mask, 0.0)
        return self.bound(self.level(d, batch).exp()).expand_as(batch.old_logp)


@piece
class Accepted:
    """1 where low <= level(estimate of KL(sampler, old)) <= high, 0 elsewhere: rejection.

    The estimate is k1, k2 or k3, so k1 is the log-ratio log pi_sampler - log pi_old itself.

    >>> from grupo.algo import divergences
    >>> from grupo.algo.token_level import by_mean
    >>> from grupo.testing.batches import batch_of, moved
    >>> batch = batch_of([0], length=[2], logp=-1.0, seen={"logp@sampler": [[-1.0, -0.5]]})
    >>> pi = moved(batch, [[0.0, 0.0]])
    >>> [Accepted(divergences.k1, by, high=0.3)(pi, batch).tolist() for by in (by_action, by_mean)]
    [[[1.0, 0.0]], [[1.0, 1.0]]]
    """

    estimate: Callable[[Tensor, Tensor], Tensor]
    level: Level = by_action
    low: float = -torch.inf
    high: float = torch.inf

    @property
    def needs(self) -> frozenset[str]:
        return frozenset({"logp@sampler"})

    def __call__(self, pi: Signals, batch: Batch) -> PerAction:
        k = self.estimate(batch.seen["logp@sampler"], batch.old_logp).masked_fill(~batch.mask, 0.0)
        k = self.level(k, batch)
        return ((k >= self.low) & (k <= self.high)).to(batch.old_logp).expand_as(batch.old_logp)


@piece
class Normalised:
    """A weight divided by its mean over the minibatch, which leaves the size of the step alone.

    `mean` says how: over actions, or with `sequence_mean` over rows.

    >>> from math import log
    >>> from grupo.testing.batches import batch_of, moved
    >>> batch = batch_of([0, 0], logp=0.0, seen={"logp@sampler": [[0.0], [-log(3.0)]]})
    >>> Normalised(Importance(Truncated(5.0)))(moved(batch, [[0.0], [0.0]]), batch)
    tensor([[0.5000],
            [1.5000]], dtype=torch.float64)
    """

    weight: Weight
    mean: Weigh = token_mean

    @property
    def needs(self) -> frozenset[str]:
        return needs(self.weight)

    @property
    def couples_rows(self) -> bool:
        return True

    @property
    def reads_whole_batch(self) -> bool:
        return True

    def __call__(self, pi: Signals, batch: Batch) -> PerAction:
        w = self.weight(pi, batch)
        mean = (self.mean(batch) * w).sum()
        return w / torch.where(mean > 0, mean, 1.0)


@piece
class Corrected(Loss):
    """weight x loss, the weight of each action held constant, 0 of an infinite loss 0.

    >>> from math import log
    >>> from grupo.algo.losses import Reinforce
    >>> from grupo.testing.batches import batch_of, moved
    >>> batch = batch_of([0], advantage=[1.0], logp=-1.0, seen={"logp@sampler": [[-4.0]]})
    >>> Corrected(Reinforce(), Importance(Truncated(2.0)))(moved(batch, [[0.0]]), batch).tolist()
    [[2.0]]
    """

    loss: Loss
    weight: Weight

    @property
    def follows_advantage(self) -> bool:
        return self.loss.follows_advantage

    def __call__(self, pi: Signals, batch: Batch) -> PerAction:
        w = self.weight(pi, batch).detach()
        return torch.where(w > 0, w * self.loss(pi, batch), 0.0)

    def report(self, pi: Signals, batch: Batch) -> Mapping[str, Tensor]:
        w, inner = self.weight(pi, batch), self.loss.report(pi, batch)
        return {**inner, "correction/weight": w, "correction/left_out": (w == 0).to(w)}
