"""Bounds of clips that are no constants: by how likely a token was, by what the minibatch holds."""

from collections.abc import Iterator

import torch
from torch import Tensor

from grupo.algo import ratios
from grupo.algo.losses.base import Loss
from grupo.core.batch import Batch, PerAction, Signals
from grupo.core.component import piece


@piece
class DynamicBounds:
    """From (1 + sqrt(max(1 - 4 low / q, 0))) / 2 to (1 + sqrt(1 + 4 high / q)) / 2, q = pi_old.

    They hold |r - 1| r q, with r q the token's new probability, within low and high. For
    `ClipWithin`. DCPO, Yang et al., arXiv:2509.02333.

    >>> from math import log
    >>> from grupo.testing.batches import batch_of
    >>> low, high = DynamicBounds(0.1875, 0.75)(batch_of(group=[0], logp=log(1.0)))
    >>> low.tolist(), high.tolist()
    ([[0.75]], [[1.5]])
    """

    low: float
    high: float

    def __call__(self, batch: Batch) -> tuple[Tensor, Tensor]:
        q = batch.old_logp.exp()
        low, high = (1 - 4 * self.low / q).clamp(min=0), 1 + 4 * self.high / q
        return (1 + low.sqrt()) / 2, (1 + high.sqrt()) / 2


@piece
class Balanced(Loss):
    """-min(r A, clip(r, c, d) A), (c, d) the first on the way from `narrow` to `wide` at which good
    tokens are `share` of the sum of |clipped r A|, or the last.

    c moves first, in as many of the `steps`; then d. BAPO, Xi et al., arXiv:2510.18927.

    >>> from grupo.testing.batches import batch_of, moved
    >>> batch = batch_of(group=[0, 0], advantage=[1.0, -2.0])
    >>> pi = moved(batch, [[1.0], [0.0]])  # r = 2.7 and 1: good tokens have 1.2 to 2.5 of 2
    >>> Balanced((0.5, 1.25), (0.5, 2.5), steps=(1, 1))(pi, batch).tolist()
    [[-2.5], [2.0]]
    """

    narrow: tuple[float, float] = (0.6, 1.2)
    wide: tuple[float, float] = (0.9, 3.0)
    share: float = 0.5
    steps: tuple[int, int] = (6, 18)

    @property
    def couples_rows(self) -> bool:
        return True

    @property
    def reads_whole_batch(self) -> bool:
        """Yes: the bounds are those of the minibatch."""
        return True

    def __call__(self, pi: Signals, batch: Batch) -> PerAction:
        r, A = ratios.token(pi, batch), batch.advantage
        return -torch.min(r * A, r.clamp(*self.bounds(r.detach(), A)) * A)

    def bounds(self, r: Tensor, A: Tensor) -> tuple[float, float]:
        """The least bounds at which good tokens have their share."""
        tried = list(self._widening())
        return next((b for b in tried if _good(r, A, *b) >= self.share), tried[-1])

    def _widening(self) -> Iterator[tuple[float, float]]:
        (c, d), (last, top), (m, n) = self.narrow, self.wide, self.steps
        yield from ((c + (last - c) * k / m, d) for k in range(m + 1))
        yield from ((last, d + (top - d) * k / n) for k in range(1, n + 1))


def _good(r: Tensor, A: Tensor, low: float, high: float) -> float:
    """The share of tokens with A > 0 in the sum of |clipped r A|; 1 of nothing."""
    good = (r.clamp(max=high) * A).clamp(min=0).sum()
    bad = (r.clamp(min=low) * -A).clamp(min=0).sum()
    return (good / (good + bad)).nan_to_num(1.0).item()
