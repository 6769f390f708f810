"""Pass@k Training: its advantage in closed form. Chen et al., 2025, arXiv:2508.10751."""

import torch
from torch import Tensor

from grupo.algo.aggregation import token_mean
from grupo.algo.losses import Clip
from grupo.core import group_ops
from grupo.core.batch import Batch
from grupo.core.component import component
from grupo.core.numbers import NonNegative, NumberOrSchedule, PositiveInt
from grupo.core.paper import Paper, Source
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler


def passk_training(
    group_size: PositiveInt = 8,
    k: PositiveInt = 4,
    clip_low: NonNegative = 0.2,
    clip_high: NonNegative = 0.28,
) -> Method:
    """The advantage is a rollout's effect on pass@k of its group, not on its own reward (section
    2.4).

    loss = mean over tokens of -min(R A, clip(R, 1 - clip_low, 1 + clip_high) A).

    Args:
        group_size: rollouts per task (our choice).
        k: attempts of which one must be correct (our choice; the paper runs several).
        clip_low: ratios are clipped below at 1 - clip_low (DAPO's value).
        clip_high: ratios are clipped above at 1 + clip_high (DAPO's value).
    """
    # The paper keeps clip-higher and the token mean of DAPO (section 2.1).
    return Method(
        sampler=GroupSampler(group_size),
        advantage=PassAtK(k),
        loss=Clip(clip_low, clip_high),
        aggregation=token_mean,
    )


@component
class PassAtK:
    """Mean advantage of the random k-subsets with this rollout; a subset's reward is its maximum.

    R = 1 - C(wrong, k) / C(n, k), s = sqrt(R (1 - R)); a correct rollout (reward above 0) gets (1 -
    R) / s, a wrong one (1 - R - C(wrong - 1, k - 1) / C(n - 1, k - 1)) / s. A group of fewer than k
    counts as if k were its size.

    Args:
        k: size of the subsets.
        eps: added to the denominator.
    """

    k: PositiveInt
    eps: NumberOrSchedule = 1e-6

    def __call__(self, x: Tensor, batch: Batch) -> Tensor:
        right = (x > 0).to(x)
        n = group_ops.count(x, batch.group)
        wrong = n - group_ops.sum(right, batch.group)
        k = n.clamp(max=self.k)
        fail = self._all_wrong(wrong, n, k)
        siblings_fail = self._all_wrong(wrong - 1, n - 1, k - 1)
        return (fail - (1 - right) * siblings_fail) / ((fail * (1 - fail)).sqrt() + self.eps)

    def _all_wrong(self, wrong: Tensor, n: Tensor, k: Tensor) -> Tensor:
        """C(wrong, k) / C(n, k): probability that k of n are all wrong, exactly 1 where all are."""
        j = torch.arange(self.k)
        probabilities = (wrong[:, None] - j).clamp(min=0) / (n[:, None] - j).clamp(min=1)
        return torch.where(j < k[:, None], probabilities, torch.ones_like(probabilities)).prod(1)


PAPER = Paper(
    title="Pass@k Training for Adaptively Balancing Exploration and Exploitation of Large "
    "Reasoning Models",
    use="Several attempts will be made at each task, and one correct answer is enough.",
    tags=("advantage", "exploration"),
    checked=("golden", "properties", "reference", "run"),
    source=Source(
        "code",
        "RUCAIBox/Passk_Training: code/passk_adv.py and README; sections 2.1 and 2.4 of the paper",
    ),
    plan=(
        "not stated in any source that was opened (the repository has no run script); one "
        "update per step, in which the clip does not act"
    ),
    missing=("The two other forms: sampling k times as many rollouts, and bootstrap of subsets.",),
    deviations=(
        "A group of fewer than k counts as if k were its size: the code has no case for it.",
        "A reward above 0 counts as correct; in the code a reward of exactly 1, and one that is "
        "neither 0 nor 1 stays as the advantage.",
    ),
    audit=(
        "both advantages and eps 1e-6 compared with passk_adv.py and the README's formulas;"
        " clips and token mean with the file's own account of section 2.1"
    ),
    shown=("docs/claims.md#modes",),
)
