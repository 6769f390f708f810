"""HAPO: entropy sets each token's clip and advantage. Liu et al., 2025, arXiv:2509.16591."""

import torch
from torch import Tensor

from grupo.algo.advantages import Center, ScaleByStd
from grupo.algo.aggregation import token_mean
from grupo.algo.filters import keep_nonzero_std
from grupo.algo.losses import EntropyAdaptiveClip
from grupo.algo.minibatches import Updates
from grupo.core import group_ops
from grupo.core.batch import Batch
from grupo.core.component import component
from grupo.core.numbers import NonNegative, NumberOrSchedule, Positive, PositiveInt
from grupo.core.paper import Paper, Source
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler


def hapo_token(
    group_size: PositiveInt = 16, clip_eps: NonNegative = 0.2, dual_clip: Positive = 10.0
) -> Method:
    """A = (r - m) / s over the group's tokens; clip and A are then modulated by token entropy.

    h in [-1, 1] is the log entropy relative to its 0.8-quantile. Upper bound 1 + clip_eps (1 +
    max(h, 0)), lower bound 1 - clip_eps (1 + max(-h, 0)). The advantage is A (1 + h) where h > 0
    and R is more than half way to a bound, or h <= 0 and it is not; A elsewhere. loss = token mean
    of the surrogate, at most -dual_clip A where A < 0.

    A step has 16 updates, each on a minibatch of its groups.

    Args:
        group_size: rollouts per task (authors' code: 16).
        clip_eps: clip at h = 0 (authors' code: 0.2).
        dual_clip: bound on the ratio where A < 0 (authors' code: 10.0).
    """
    return Method(
        sampler=GroupSampler(group_size),
        filter=keep_nonzero_std,
        advantage=StandardiseOnTokens(),
        loss=EntropyAdaptiveClip(clip_eps, dual_clip),
        aggregation=token_mean,
        updates=Updates(minibatches=16),
    )


@component
class StandardiseOnTokens:
    """(x - m) / (s + 1e-6), m and s over the group's tokens; GRPO's z-score for extreme groups.

    Extreme groups are those where |A| reaches max_advantage.

    Args:
        max_advantage: |A| from which GRPO's z-score is used.
    """

    max_advantage: NumberOrSchedule = 5.0

    def __call__(self, x: Tensor, batch: Batch) -> Tensor:
        weight = batch.lengths / group_ops.sum(batch.lengths, batch.group).clamp(min=1)
        centred = x - group_ops.sum(weight * x, batch.group)
        A = centred / (group_ops.sum(weight * centred**2, batch.group).sqrt() + 1e-6)
        z_score = ScaleByStd()(Center()(x, batch), batch)
        return torch.where(group_ops.max(A.abs(), batch.group) >= self.max_advantage, z_score, A)


PAPER = Paper(
    title="From Uniform to Heterogeneous: Tailoring Policy Optimization to Every Token's Nature",
    use="A DAPO run explores too little at its forking tokens and drifts on its routine tokens.",
    tags=("entropy", "clipping", "advantage"),
    checked=("golden", "properties", "reference", "run"),
    catalogue=("hapo-token",),
    source=Source(
        "code",
        "starriver030515/HAPO: verl/trainer/ppo/core_algos.py, recipe/train.md, "
        "recipe/qwen2.5_math_7b.sh",
    ),
    plan="recipe/qwen2.5_math_7b.sh: 512 prompts per step in minibatches of 32, 16 updates",
    missing=(
        "The sampling temperature that depends on entropy (temperature_tau 0.05).",
        "Refilling from up to 16 generation batches, which the scripts ask for.",
        (
            "The overlong penalty of the Qwen scripts (buffer 4,096 tokens, factor 1; off in "
            "the Llama scripts)."
        ),
    ),
    deviations=(
        (
            "Low entropy has h < 0, as the recipe's text describes: the code divides negative h"
            " by a negative number, so it comes out positive."
        ),
        "Groups without signal are dropped, as the scripts ask. No file of the released code reads "
        "filter_groups: there they stay, and their tokens count in the mean with A = 0.",
        (
            "The release's test of |A| >= 5 includes padding, whose reward counts as 0. Groups"
            " whose rewards differ little and are far from 0, such as wrong answers with an"
            " overlong penalty, get GRPO's z-score there and not here."
        ),
        "The scripts filter by accuracy, the method by the reward.",
        "h and the token mean are those of a minibatch, in the release of a micro-batch.",
    ),
    audit=(
        "advantage, clip, redistribution, dual clip and the 0.8 quantile compared with "
        "core_algos.py, constants and plan with the run scripts"
    ),
)
