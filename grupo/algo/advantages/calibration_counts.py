"""Calibration counts: how often rollouts with a given quality score turned out correct."""

from collections.abc import Mapping

import torch
from torch import Tensor

from grupo.core.batch import Batch
from grupo.core.component import component
from grupo.core.numbers import NumberOrSchedule, PositiveInt
from grupo.core.requires import Requires


@component
class CountByBin:
    """Return x unchanged, and log how many rollouts of each score bin exist and are correct.

    The score is the reward term `quality` in [0, 1], negative for a rollout without a score.

    Args:
        num_bins: bins of equal width over [0, 1].
        success_threshold: a rollout is correct if its reward is above this.

    >>> from grupo.testing.batches import make_batch
    >>> batch = make_batch([0, 0, 0], [1.0, 0.0, 1.0], reward_terms={"quality": [0.7, 1.0, -1.0]})
    >>> {name: x for name, x in CountByBin(2).metrics(batch).items() if x}
    {'value_bins/correct/1': 1.0, 'value_bins/count/1': 2.0}
    """

    num_bins: PositiveInt
    success_threshold: NumberOrSchedule = 0.5

    requires = Requires(reward_terms=("quality",))

    def __call__(self, x: Tensor, batch: Batch) -> Tensor:
        return x

    def metrics(self, batch: Batch) -> Mapping[str, float]:
        """`value_bins/correct/b` and `value_bins/count/b` for every bin b."""
        score = batch.reward_terms["quality"]
        has_score = score >= 0
        bins = (score[has_score] * self.num_bins).long().clamp(max=self.num_bins - 1)
        is_correct = (batch.reward[has_score] > self.success_threshold).to(torch.float64)
        counts = {
            "correct": bins.bincount(is_correct, self.num_bins),
            "count": bins.bincount(None, self.num_bins),
        }
        return {
            f"value_bins/{name}/{b}": float(n)
            for name, numbers in counts.items()
            for b, n in enumerate(numbers)
        }
