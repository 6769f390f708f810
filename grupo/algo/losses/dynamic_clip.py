"""Bounds of clips that are no constants: by how likely a token was, by what the minibatch holds."""

from collections.abc import Iterator

import torch
from torch import Tensor

from grupo.algo import ratios
from grupo.algo.losses.base import Loss
from grupo.core.batch import Batch, PerAction, Signals
from grupo.core.component import component


@component
class DynamicClipBounds:
    """From (1 + sqrt(max(1 - 4 low / q, 0))) / 2 to (1 + sqrt(1 + 4 high / q)) / 2, q = pi_old.

    They hold |r - 1| r q, with r q the token's new probability, within low and high. For
    `ClipWithin`. DCPO, Yang et al., arXiv:2509.02333.

    >>> from math import log
    >>> from grupo.testing.batch_sizes import batch_of
    >>> low, high = DynamicClipBounds(0.1875, 0.75)(make_batch(group=[0], logp=log(1.0)))
    >>> low.tolist(), high.tolist()
    ([[0.75]], [[1.5]])
    """

    clip_low: float
    clip_high: float

    def __call__(self, batch: Batch) -> tuple[Tensor, Tensor]:
        q = batch.old_logp.exp()
        low, high = (1 - 4 * self.clip_low / q).clamp(min=0), 1 + 4 * self.clip_high / q
        return (1 + low.sqrt()) / 2, (1 + high.sqrt()) / 2


@component
class AdaptiveClip(Loss):
    """-min(r A, clip(r, c, d) A), (c, d) the first on the way from `narrow` to `wide` at which good
    tokens are `share` of the sum of |clipped r A|, or the last.

    c moves first, in as many of the `steps`; then d. BAPO, Xi et al., arXiv:2510.18927.

    >>> from grupo.testing.batch_sizes import batch_of, moved
    >>> batch = make_batch(group=[0, 0], advantage=[1.0, -2.0])
    >>> pi = moved(batch, [[1.0], [0.0]])  # r = 2.7 and 1: good tokens have 1.2 to 2.5 of 2
    >>> AdaptiveClip((0.5, 1.25), (0.5, 2.5), search_steps=(1, 1))(pi, batch).tolist()
    [[-2.5], [2.0]]
    """

    narrow_bounds: tuple[float, float] = (0.6, 1.2)
    wide_bounds: tuple[float, float] = (0.9, 3.0)
    positive_share: float = 0.5
    search_steps: tuple[int, int] = (6, 18)

    @property
    def couples_rows(self) -> bool:
        return True

    @property
    def needs_whole_batch(self) -> bool:
        """Yes: the bounds are those of the minibatch."""
        return True

    def __call__(self, pi: Signals, batch: Batch) -> PerAction:
        r, A = ratios.token(pi, batch), batch.advantage
        return -torch.min(r * A, r.clamp(*self.bounds(r.detach(), A)) * A)

    def bounds(self, ratio: Tensor, advantage: Tensor) -> tuple[float, float]:
        """The least bounds at which good tokens have their share."""
        tried = list(self._candidate_bounds())
        return next(
            (b for b in tried if _positive_share(ratio, advantage, *b) >= self.positive_share),
            tried[-1],
        )

    def _candidate_bounds(self) -> Iterator[tuple[float, float]]:
        (c, d), (last, top), (m, n) = self.narrow_bounds, self.wide_bounds, self.search_steps
        yield from ((c + (last - c) * k / m, d) for k in range(m + 1))
        yield from ((last, d + (top - d) * k / n) for k in range(1, n + 1))


def _positive_share(ratio: Tensor, advantage: Tensor, low: float, high: float) -> float:
    """The share of tokens with A > 0 in the sum of |clipped r A|; 1 of nothing."""
    good = (ratio.clamp(max=high) * advantage).clamp(min=0).sum()
    bad = (ratio.clamp(min=low) * -advantage).clamp(min=0).sum()
    return (good / (good + bad)).nan_to_num(1.0).item()
