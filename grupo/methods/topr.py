"""TOPR: tapered importance ratios for bad rollouts. Le Roux et al., 2025, arXiv:2503.14286."""

import torch
from torch import Tensor

from grupo.algo import ratios
from grupo.algo.losses import WeightedReinforce
from grupo.algo.token_level import SEQUENCES
from grupo.core.batch import Batch, Signals
from grupo.core.component import component
from grupo.core.numbers import NonNegative, NumberOrSchedule, PositiveInt
from grupo.core.paper import Paper, Source
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler


def topr(group_size: PositiveInt = 8, baseline: NonNegative = 0.5) -> Method:
    """loss = mean over rollouts of -sg(w) (r - baseline) log pi(rollout) / L, w = 1 for good ones.

    L is the rollout's length. For r < baseline w = min(pi(rollout) / old(rollout), 1): rollouts
    that have become unlikely are not lowered further.

    Args:
        group_size: rollouts per task (our choice; paper: 16 for GSM8K, 32 for MATH).
        baseline: a greater one raises the weight of bad rollouts.
    """
    # There is no comparison within groups.
    return Method(
        sampler=GroupSampler(group_size),
        advantage=SubtractConstant(baseline),
        loss=WeightedReinforce(TaperedRatio()),
    )


@component
class SubtractConstant:
    """x - baseline, a constant.

    Args:
        baseline: the constant.
    """

    baseline: NumberOrSchedule

    def __call__(self, x: Tensor, batch: Batch) -> Tensor:
        return x - self.baseline


@component
class TaperedRatio:
    """1 where A >= 0, min(w, 1) elsewhere, with w the product of the sequence's ratios."""

    requires = SEQUENCES

    def __call__(self, pi: Signals, batch: Batch) -> Tensor:
        w = ratios.product(pi, batch).clamp(max=1.0)
        return torch.where(batch.advantage >= 0, 1.0, w)


PAPER = Paper(
    title="Tapered Off-Policy REINFORCE: Stable and efficient reinforcement learning for LLMs",
    use="Rollouts are old or from another policy, and there is no reference to stay near.",
    tags=("off-policy", "importance-sampling"),
    checked=("golden", "properties", "run"),
    source=Source(
        "third_party",
        "a public excerpt of the paper's version 2: eq. 4, 7 and 8, table 1, sections 4.1 to 4.4; "
        "public summaries that quote the gradient and the effect of the baseline",
    ),
    plan=(
        "sections 4.1 and 4.2: one epoch over each generated data set, in minibatches whose size "
        "is in no source that was opened; one update per step here, at which w is 1"
    ),
    missing=("Training on recorded rollouts, and their selection with a share of negative ones.",),
    deviations=(
        (
            "The division by the length is that of the experiments (sections 4.1 and 4.2); the "
            "gradient of eq. 8 has none."
        ),
        (
            "The paper's rewards are 1 and -1 without a baseline; 1 and 0 less 1/2 are the same, "
            "halved."
        ),
    ),
    audit="gradient compared with two public summaries that quote it, division by the length with"
    " the excerpt and with verl's compute_policy_loss_topr, whose ratio is a geometric mean",
    shown=("docs/claims.md#reuse",),
)
