"""What scores that were given on the way have come to."""

from collections.abc import Mapping

import torch
from torch import Tensor

from grupo.core.batch import Batch
from grupo.core.component import component


@component
class CountByBin:
    """x as it is; reported is how often scores were seen and right, by as many bins of [0, 1].

    The score is the part `quality_term`, below 0 where none was given; right is a reward above `right`.

    >>> from grupo.testing.batch_sizes import batch_of
    >>> batch = make_batch([0, 0, 0], [1.0, 0.0, 1.0], reward_terms={"quality": [0.7, 1.0, -1.0]})
    >>> {name: x for name, x in CountByBin(2).report(batch).items() if x}
    {'value_bins/correct/1': 1.0, 'value_bins/count/1': 2.0}
    """

    num_bins: int
    success_threshold: float = 0.5
    required_reward_terms = ("quality",)

    def __call__(self, x: Tensor, batch: Batch) -> Tensor:
        return x

    def metrics(self, batch: Batch) -> Mapping[str, float]:
        """`value_bins/correct/b` and `value_bins/count/b`, of every bin b."""
        score = batch.reward_terms["quality"]
        given = score >= 0
        bins = (score[given] * self.num_bins).long().clamp(max=self.num_bins - 1)
        right = (batch.reward[given] > self.success_threshold).to(torch.float64)
        counts = {
            "right": bins.bincount(right, self.num_bins),
            "seen": bins.bincount(None, self.num_bins),
        }
        return {
            f"quality/{what}/{b}": float(n)
            for what, numbers in counts.items()
            for b, n in enumerate(numbers)
        }
