"""Surrogates: losses whose gradient is the policy gradient."""

from collections.abc import Callable, Mapping

import torch
from torch import Tensor

from grupo.algo import ratios
from grupo.algo.losses.base import Loss
from grupo.core.batch import Batch, PerAction, Signals
from grupo.core.component import component


@component
class Clip(Loss):
    """PPO's clipped surrogate, -min(r A, clip(r, 1 - low, 1 + high) A).

    Schulman et al., arXiv:1707.06347, eq. 7.

    >>> from grupo.testing.batch_sizes import batch_of, moved
    >>> batch = make_batch(group=[0, 0], advantage=[1.0, -1.0])
    >>> Clip(clip_low=0.2, clip_high=0.2)(moved(batch, [[0.5], [0.5]]), batch).tolist()  # r = e^0.5 = 1.6487
    [[-1.2], [1.6487212707001282]]
    """

    clip_low: float = 0.2
    clip_high: float = 0.2
    ratio: Callable[[Signals, Batch], Tensor] = ratios.token

    @property
    def zero_if_no_advantage(self) -> bool:
        return True

    def __call__(self, pi: Signals, batch: Batch) -> PerAction:
        r, A = self.ratio(pi, batch), batch.advantage
        return -torch.min(r * A, r.clamp(1 - self.clip_low, 1 + self.clip_high) * A)

    def metrics(self, pi: Signals, batch: Batch) -> Mapping[str, Tensor]:
        r, A = self.ratio(pi, batch), batch.advantage
        return {
            "clip_frac/low": ((r < 1 - self.clip_low) & (A < 0)).to(A),
            "clip_frac/high": ((r > 1 + self.clip_high) & (A > 0)).to(A),
        }


@component
class ClipWithin(Loss):
    """-min(r A, clip(r, low, high) A) between `bounds`, a low and a high for each action or row.

    `bounds` is a function of the batch alone: what it needs is measured before the update and lies
    in `batch.seen`, and no gradient flows through it.

    >>> from grupo.testing.batch_sizes import batch_of, moved
    >>> def by_length(batch):
    ...     return -batch.mask.sum(1, keepdim=True), 0.5 * batch.mask.sum(1, keepdim=True)
    >>> batch = make_batch(group=[0, 0], length=[2, 4], advantage=[1.0, 1.0])
    >>> ClipWithin(by_length, ratios.sequence_clip)(moved(batch, [[1.0] * 4] * 2), batch)[:, 0].tolist()
    [-1.0, -2.0]
    """

    bounds: Callable[[Batch], tuple[Tensor, Tensor]]
    ratio: Callable[[Signals, Batch], Tensor] = ratios.token

    @property
    def zero_if_no_advantage(self) -> bool:
        return True

    def __call__(self, pi: Signals, batch: Batch) -> PerAction:
        r, A, (low, high) = self.ratio(pi, batch), batch.advantage, self.bounds(batch)
        return -torch.min(r * A, r.clamp(low.to(r), high.to(r)) * A)

    def metrics(self, pi: Signals, batch: Batch) -> Mapping[str, Tensor]:
        r, A, (low, high) = self.ratio(pi, batch), batch.advantage, self.bounds(batch)
        return {
            "clip_frac/low": ((r < low) & (A < 0)).to(A),
            "clip_frac/high": ((r > high) & (A > 0)).to(A),
        }


@component
class Reinforce(Loss):
    """-A log pi: no ratio, no clip; exact on policy. Williams, 1992.

    >>> from grupo.testing.batch_sizes import batch_of, moved
    >>> batch = make_batch(group=[0], advantage=[2.0], logp=-1.0)
    >>> Reinforce()(moved(batch, [[0.5]]), batch).tolist()
    [[1.0]]
    """

    @property
    def zero_if_no_advantage(self) -> bool:
        return True

    def __call__(self, pi: Signals, batch: Batch) -> PerAction:
        return -batch.advantage * pi.logp


@component
class WeightedReinforce(Loss):
    """-sg(w) A log pi: REINFORCE whose actions count by a weight, (N, T) or (N, 1), held constant.

    With w = r it has the gradient of r A: what a paper does to r, by clip, mask or damping, is w.

    >>> from grupo.testing.batch_sizes import batch_of, moved
    >>> batch = make_batch(group=[0, 0], advantage=[1.0, -1.0])
    >>> WeightedReinforce(ratios.Capped(2.0))(moved(batch, [[1.0], [0.0]]), batch).tolist()  # log pi 0, -1
    [[-0.0], [-1.0]]
    """

    weight: Callable[[Signals, Batch], Tensor]

    @property
    def has_stop_gradient(self) -> bool:
        return True

    @property
    def zero_if_no_advantage(self) -> bool:
        return True

    def __call__(self, pi: Signals, batch: Batch) -> PerAction:
        return -self.weight(pi, batch).detach() * batch.advantage * pi.logp

    def metrics(self, pi: Signals, batch: Batch) -> Mapping[str, Tensor]:
        return {"weight": self.weight(pi, batch).expand_as(batch.advantage)}


@component
class ClipPreserveGradient:
    """A weight: r where PPO's clip lets a gradient pass, a multiple of the bound where it does not.

    w = `above` (1 + `high`) where A > 0 and r is above, `below` (1 - `low`) where A < 0 and r is
    below. GPPO (arXiv:2508.07629) and CE-GPPO (arXiv:2509.20712).

    >>> from grupo.testing.batch_sizes import batch_of, moved
    >>> batch = make_batch(group=[0, 0], advantage=[1.0, -1.0])
    >>> ClipPreserveGradient(0.2, 0.2, 0.5, 1.0)(moved(batch, [[0.5], [-0.5]]), batch).tolist()
    [[1.2], [0.4]]
    """

    clip_low: float = 0.2
    clip_high: float = 0.2
    low_scale: float = 1.0
    high_scale: float = 1.0

    def __call__(self, pi: Signals, batch: Batch) -> PerAction:
        r, A = ratios.token(pi, batch), batch.advantage
        w = torch.where(
            (A > 0) & (r > 1 + self.clip_high), self.high_scale * (1 + self.clip_high), r
        )
        return torch.where(
            (A < 0) & (r < 1 - self.clip_low), self.low_scale * (1 - self.clip_low), w
        )
