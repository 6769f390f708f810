"""Shaping: what is added to a reward before it is compared."""

from torch import Tensor

from grupo.batch import Batch
from grupo.piece import piece


@piece
class OverlongPenalty:
    """x + (0 up to `limit - margin` actions, then linearly down to -1 at `limit`).

    DAPO (arXiv:2503.14476), eq. 13.

    >>> import torch
    >>> from grupo.testing import batch_of
    >>> batch = batch_of(group=[0, 0, 0], length=[2, 3, 4])
    >>> OverlongPenalty(limit=4, margin=2)(torch.zeros(3), batch)
    tensor([ 0.0000, -0.5000, -1.0000])
    """

    limit: int
    margin: int

    def __call__(self, x: Tensor, batch: Batch) -> Tensor:
        return x + ((self.limit - self.margin - batch.lengths) / self.margin).clamp(-1, 0).to(x)
