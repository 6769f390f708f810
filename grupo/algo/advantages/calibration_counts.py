"""What scores that were given on the way have come to."""

from collections.abc import Mapping

import torch
from torch import Tensor

from grupo.core.batch import Batch
from grupo.core.component import piece


@piece
class Tallied:
    """x as it is; reported is how often scores were seen and right, by as many bins of [0, 1].

    The score is the part `quality`, below 0 where none was given; right is a reward above `right`.

    >>> from grupo.testing.batches import batch_of
    >>> batch = batch_of([0, 0, 0], [1.0, 0.0, 1.0], parts={"quality": [0.7, 1.0, -1.0]})
    >>> {name: x for name, x in Tallied(2).report(batch).items() if x}
    {'quality/right/1': 1.0, 'quality/seen/1': 2.0}
    """

    bins: int
    right: float = 0.5
    reads_parts = ("quality",)

    def __call__(self, x: Tensor, batch: Batch) -> Tensor:
        return x

    def report(self, batch: Batch) -> Mapping[str, float]:
        """`quality/right/b` and `quality/seen/b`, of every bin b."""
        score = batch.parts["quality"]
        given = score >= 0
        bins = (score[given] * self.bins).long().clamp(max=self.bins - 1)
        right = (batch.reward[given] > self.right).to(torch.float64)
        counts = {"right": bins.bincount(right, self.bins), "seen": bins.bincount(None, self.bins)}
        return {
            f"quality/{what}/{b}": float(n)
            for what, numbers in counts.items()
            for b, n in enumerate(numbers)
        }
