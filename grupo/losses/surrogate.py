"""Surrogates: losses whose gradient is the policy gradient."""

from collections.abc import Callable, Mapping

import torch
from torch import Tensor

from grupo import ratios
from grupo.batch import Batch, PerAction, Signals
from grupo.losses.base import Loss
from grupo.piece import piece


@piece
class Clip(Loss):
    """PPO's clipped surrogate, -min(r A, clip(r, 1 - low, 1 + high) A).

    Schulman et al., arXiv:1707.06347, eq. 7.

    >>> from grupo.testing import batch_of, moved
    >>> batch = batch_of(group=[0, 0], advantage=[1.0, -1.0])
    >>> Clip(low=0.2, high=0.2)(moved(batch, [[0.5], [0.5]]), batch).tolist()  # r = e^0.5 = 1.6487
    [[-1.2], [1.6487212707001282]]
    """

    low: float = 0.2
    high: float = 0.2
    ratio: Callable[[Signals, Batch], Tensor] = ratios.token

    def __call__(self, pi: Signals, batch: Batch) -> PerAction:
        r, A = self.ratio(pi, batch), batch.advantage
        return -torch.min(r * A, r.clamp(1 - self.low, 1 + self.high) * A)

    def report(self, pi: Signals, batch: Batch) -> Mapping[str, Tensor]:
        r, A = self.ratio(pi, batch), batch.advantage
        return {
            "clip/low": ((r < 1 - self.low) & (A < 0)).to(A),
            "clip/high": ((r > 1 + self.high) & (A > 0)).to(A),
        }


@piece
class Reinforce(Loss):
    """-A log pi: no ratio, no clip; exact on policy. Williams, 1992."""

    def __call__(self, pi: Signals, batch: Batch) -> PerAction:
        return -batch.advantage * pi.logp
