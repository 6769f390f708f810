"""Clip bounds that are not constants: per token probability, or searched for each minibatch."""

from collections.abc import Iterator

import torch
from torch import Tensor

from grupo.algo import ratios
from grupo.algo.losses.base import Loss
from grupo.core.batch import Batch, PerAction, Signals
from grupo.core.component import component
from grupo.core.numbers import Fraction, NonNegative, NumberOrSchedule, PositiveInt
from grupo.core.requires import Requires


@component
class DynamicClipBounds:
    """Bounds (1 + sqrt(max(1 - 4 clip_low / q, 0))) / 2 and (1 + sqrt(1 + 4 clip_high / q)) / 2.

    q = pi_old(a|s). They bound |r - 1| r q, where r q is the token's new probability, by
    `clip_low` and `clip_high`. For `ClipWithin`; both are (N, T).
    Source: DCPO, Yang et al., arXiv:2509.02333.

    Args:
        clip_low: bound of |r - 1| r q for r < 1.
        clip_high: bound of |r - 1| r q for r > 1.

    >>> from math import log
    >>> from grupo.testing.batches import make_batch
    >>> low, high = DynamicClipBounds(0.1875, 0.75)(make_batch(group=[0], logp=log(1.0)))
    >>> low.tolist(), high.tolist()
    ([[0.75]], [[1.5]])
    """

    clip_low: NonNegative
    clip_high: NonNegative

    def __call__(self, batch: Batch) -> tuple[Tensor, Tensor]:
        q = batch.old_logp.exp()
        low = (1 - 4 * self.clip_low / q).clamp(min=0)
        high = 1 + 4 * self.clip_high / q
        return (1 + low.sqrt()) / 2, (1 + high.sqrt()) / 2


@component
class AdaptiveClip(Loss):
    """-min(r A, clip(r, low, high) A) with bounds searched for each minibatch, (N, T).

    The search starts at `narrow_bounds` and ends at `wide_bounds`: first the lower bound moves, in
    `search_steps[0]` steps, then the upper one, in `search_steps[1]` steps. It stops at the first
    bounds at which tokens with A > 0 are at least `positive_share` of the sum of |clipped r A|.
    Source: BAPO, Xi et al., arXiv:2510.18927.

    Args:
        narrow_bounds: first lower and upper bound of r.
        wide_bounds: last lower and upper bound of r.
        positive_share: share of the loss that tokens with A > 0 must reach, in [0, 1].
        search_steps: number of steps of the lower and of the upper bound.

    >>> from grupo.testing.batches import make_batch, perturb_logp
    >>> batch = make_batch(group=[0, 0], advantage=[1.0, -2.0])
    >>> pi = perturb_logp(batch, [[1.0], [0.0]])  # r = 2.7 and 1: A > 0 contributes 1.2 to 2.5
    >>> AdaptiveClip((0.5, 1.25), (0.5, 2.5), search_steps=(1, 1))(pi, batch).tolist()
    [[-2.5], [2.0]]
    """

    narrow_bounds: tuple[NumberOrSchedule, NumberOrSchedule] = (0.6, 1.2)
    wide_bounds: tuple[NumberOrSchedule, NumberOrSchedule] = (0.9, 3.0)
    positive_share: Fraction = 0.5
    search_steps: tuple[PositiveInt, PositiveInt] = (6, 18)

    # the bounds are searched on the minibatch
    requires = Requires(coupled_rows=True, whole_batch=True)

    def __call__(self, pi: Signals, batch: Batch) -> PerAction:
        r = ratios.token(pi, batch)
        A = batch.advantage
        return -torch.min(r * A, r.clamp(*self.bounds(r.detach(), A)) * A)

    def bounds(self, ratio: Tensor, advantage: Tensor) -> tuple[float, float]:
        """First candidate at which positive tokens have their share, or the last candidate."""
        candidates = list(self._candidate_bounds())
        for low, high in candidates:
            if _positive_share(ratio, advantage, low, high) >= self.positive_share:
                return low, high
        return candidates[-1]

    def _candidate_bounds(self) -> Iterator[tuple[float, float]]:
        low, high = self.narrow_bounds
        last_low, last_high = self.wide_bounds
        low_steps, high_steps = self.search_steps
        for k in range(low_steps + 1):
            yield low + (last_low - low) * k / low_steps, high
        for k in range(1, high_steps + 1):
            yield last_low, high + (last_high - high) * k / high_steps


def _positive_share(ratio: Tensor, advantage: Tensor, low: float, high: float) -> float:
    """Share of tokens with A > 0 in the sum of |clipped r A|; 1 if that sum is 0."""
    positive = (ratio.clamp(max=high) * advantage).clamp(min=0).sum()
    negative = (ratio.clamp(min=low) * -advantage).clamp(min=0).sum()
    total = positive + negative
    return torch.where(total == 0, 1.0, positive / total).item()
