"""QAE: a quantile of the group is the baseline. Wu et al., 2025, arXiv:2509.22611."""

from math import ceil

import torch
from torch import Tensor

from grupo.algo.aggregation import token_mean
from grupo.algo.filters import keep_nonzero_std
from grupo.algo.losses import Clip
from grupo.algo.minibatches import Updates
from grupo.core import group_ops
from grupo.core.batch import Batch
from grupo.core.component import component
from grupo.core.numbers import Fraction, NonNegative, NumberOrSchedule, PositiveInt
from grupo.core.paper import Paper, Source
from grupo.method import Method
from grupo.rollouts.curricula import DynamicSampling, ShuffledTasks
from grupo.rollouts.samplers import GroupSampler


def qae(
    group_size: PositiveInt = 16,
    quantile_level: Fraction = 0.4,
    clip_low: NonNegative = 0.2,
    clip_high: NonNegative = 0.28,
    max_resample_rounds: PositiveInt = 10,
) -> Method:
    """A = (r - b) / std(r), b the quantile of the group's rewards at quantile_level.

    Hard prompts are trained on their rare successes, easy ones on their last failures (eq. 4).

    A step makes 16 updates, one on each of 16 minibatches.

    Args:
        group_size: rollouts per task (DAPO's value).
        quantile_level: level of the quantile (K in the paper) (paper: 0.4).
        clip_low: ratios are clipped below at 1 - clip_low (DAPO's value).
        clip_high: ratios are clipped above at 1 + clip_high (DAPO's value).
        max_resample_rounds: most rounds of dynamic sampling in a step (DAPO's value).
    """
    return Method(
        curriculum=DynamicSampling(ShuffledTasks(), max_resample_rounds),
        sampler=GroupSampler(group_size),
        filter=keep_nonzero_std,
        advantage=QuantileBaseline(quantile_level),
        loss=Clip(clip_low, clip_high),
        aggregation=token_mean,
        updates=Updates(minibatches=16),
    )


@component
class QuantileBaseline:
    """(x - b) / (std(x) + eps), b the quantile of the group at quantile_level.

    b = inf{v : F(v) >= quantile_level}: 0 for rewards 0 and 1 of which at most 1 - level are 1.

    Args:
        quantile_level: level of the quantile, in [0, 1].
        eps: added to the denominator.
    """

    quantile_level: Fraction
    eps: NumberOrSchedule = 1e-6

    def __call__(self, x: Tensor, batch: Batch) -> Tensor:
        b = torch.zeros_like(x)
        for label in batch.group.unique():
            members = batch.group == label
            # 1e-9 guards against rounding: 0.4 of 5 is 2
            nth = ceil(self.quantile_level * int(members.sum()) - 1e-9)
            b[members] = x[members].sort().values[max(nth, 1) - 1]
        return (x - b) / (group_ops.std(x, batch.group) + self.eps)


PAPER = Paper(
    title="Quantile Advantage Estimation: Stabilizing RLVR for LLM Reasoning",
    use="The policy's entropy collapses, or explodes once the clip is raised.",
    tags=("advantage", "entropy"),
    checked=("golden", "properties", "run"),
    source=Source("paper", "eq. 4; the README of junkangwu/QAE, which quotes the changed line"),
    plan=(
        "the README adds one option to verl's DAPO scripts: 512 prompts in minibatches of 32: 16 "
        "updates per step; the release's own scripts could not be opened"
    ),
    missing=("DAPO's overlong penalty and dual clip.",),
    deviations=(
        (
            "The quantile is the paper's, inf {v : F(v) >= K}; the release interpolates "
            "(torch.quantile), which is equal in groups of 16 and not in groups of 8."
        ),
    ),
    audit="baseline compared with the line of core_algos.py that the README quotes",
    shown=("docs/claims.md#difficulty",),
)
