"""DLER: the simplest length penalty, optimised well. Liu et al., 2025, arXiv:2510.15110."""

from collections.abc import Sequence

import torch
from torch import Tensor

from grupo.algo.advantages import Center, Whiten, chain
from grupo.algo.aggregation import token_mean
from grupo.algo.divergences import k2
from grupo.algo.losses import KL, Clip
from grupo.algo.minibatches import Updates
from grupo.core import group_ops
from grupo.core.batch import Batch
from grupo.core.component import check_field, component
from grupo.core.numbers import NonNegative, PositiveInt
from grupo.core.paper import Paper, Source
from grupo.core.ranges import Probability
from grupo.core.types import Group
from grupo.method import Method
from grupo.rollouts.curricula import DynamicSampling, ShuffledTasks
from grupo.rollouts.samplers import GroupSampler


def dler(
    max_length: PositiveInt = 4000,
    group_size: PositiveInt = 16,
    clip_low: NonNegative = 0.2,
    clip_high: NonNegative = 0.28,
    kl_coef: NonNegative = 0.0005,
) -> Method:
    """A = (a - mean(a)) / std(a) over all tokens, a = r - mean(r) over the group.

    r = 0 for answers of more than max_length tokens.
    loss = token mean of -min(R A, clip(R, 1 - clip_low, 1 + clip_high) A) + kl_coef k2 over groups
    whose r differ, refilled in at most 10 rounds (eq. 3, sections 3.1 to 3.4); eight updates per
    step. `difficulty_aware_dler` is section 3.5.

    Args:
        max_length: largest length with a reward, in tokens.
        group_size: rollouts per task.
        clip_low: ratios are at least 1 - clip_low.
        clip_high: ratios are at most 1 + clip_high.
        kl_coef: weight of the KL divergence from the reference policy (table 4).
    """
    lengths = TruncationLengths((max_length,))
    return Method(
        curriculum=DynamicSampling(ShuffledTasks(), 10),  # DAPO's value
        sampler=GroupSampler(group_size),
        filter=KeepInformativeWithinLength(lengths),
        advantage=chain(ZeroOverlongReward(lengths), Center(), Whiten()),
        loss=Clip(clip_low, clip_high) + kl_coef * KL(k2),
        aggregation=token_mean,
        updates=Updates(minibatches=8),
    )


def difficulty_aware_dler(
    max_lengths: tuple[PositiveInt, ...] = (4000, 2000),
    thresholds: tuple[Probability, ...] = (0.5,),
    group_size: PositiveInt = 16,
) -> Method:
    """DLER whose truncation length depends on the fraction of correct answers (section 3.5).

    Args:
        max_lengths: largest lengths with a reward, in tokens, of the hardest groups first.
        thresholds: fractions of correct answers between them, ascending.
        group_size: rollouts per task.
    """
    lengths = TruncationLengths(max_lengths, thresholds)
    return dler(group_size=group_size).replace(
        filter=KeepInformativeWithinLength(lengths),
        advantage=chain(ZeroOverlongReward(lengths), Center(), Whiten()),
    )


@component
class TruncationLengths:
    """The largest length with a reward, by the fraction of correct rollouts of a group.

    Args:
        max_lengths: largest lengths in tokens, of the hardest groups first.
        thresholds: fractions of correct rollouts between them, ascending.
        success_threshold: a rollout is correct if its reward is above this.

    Raises:
        ConfigError: There is not one length more than thresholds, or these do not ascend.

    >>> TruncationLengths((4000, 2000), (0.5,))(torch.tensor([0.25, 0.5])).tolist()
    [4000, 2000]
    """

    max_lengths: tuple[PositiveInt, ...]
    thresholds: tuple[Probability, ...] = ()
    success_threshold: float = 0.5

    def __post_init__(self) -> None:
        count = len(self.thresholds) + 1
        check_field(self, "max_lengths", len(self.max_lengths) == count, f"{count} lengths")
        ascending = [*self.thresholds] == sorted({*self.thresholds})
        check_field(self, "thresholds", ascending, "ascending numbers")

    def __call__(self, correct_fraction: Tensor) -> Tensor:
        lengths = torch.tensor(self.max_lengths, device=correct_fraction.device)
        thresholds = correct_fraction.new_tensor(self.thresholds)
        return lengths[torch.bucketize(correct_fraction, thresholds, right=True)]

    def is_correct(self, reward: Tensor) -> Tensor:
        """1 for correct rollouts, 0 for others, of the type of the rewards."""
        return (reward > self.success_threshold).to(reward)


@component
class ZeroOverlongReward:
    """x, or 0 for a rollout of more tokens than the group's truncation length, (R,).

    Args:
        lengths: truncation length by the fraction of correct rollouts.
    """

    lengths: TruncationLengths

    def __call__(self, x: Tensor, batch: Batch) -> Tensor:
        fraction = group_ops.mean(self.lengths.is_correct(x), batch.group)
        return x * (batch.lengths <= self.lengths(fraction))


@component
class KeepInformativeWithinLength:
    """Filter: keep groups whose rewards differ after `ZeroOverlongReward`.

    Args:
        lengths: truncation length by the fraction of correct rollouts.
    """

    lengths: TruncationLengths

    def __call__(self, groups: Sequence[Group]) -> Sequence[Group]:
        return [group for group in groups if len(self._distinct_rewards(group)) > 1]

    def _distinct_rewards(self, group: Group) -> set[float]:
        rewards = torch.tensor(group.rewards, dtype=torch.float64)
        max_length = self.lengths(self.lengths.is_correct(rewards).mean()).item()
        return {r.reward * (r.length <= max_length) for r in group.rollouts}


PAPER = Paper(
    title="DLER: Doing Length pEnalty Right - Incentivizing More Intelligence per Token via"
    " Reinforcement Learning",
    use="Answers are correct but far too long, and length penalties have reduced accuracy.",
    tags=("length", "filtering", "advantage", "clipping"),
    checked=("golden", "properties", "run"),
    source=Source("paper", "eq. 3, sections 3.1 to 3.5 and 4.1, table 4"),
    plan="Table 4, and NVlabs/DLER dler_slurm.sh: batch of 512 prompts, minibatches of 64, one"
    " epoch: 8 updates per step.",
    missing=(
        "The merge of trained with original weights (for policies trained on other data).",
        "The dual clip of 10 of the released script.",
    ),
    deviations=(
        "After 10 rounds of generation a step trains on fewer groups; section 3.3 refills until the"
        " batch is full, and DAPO's script ends with an error after 10 batches.",
        "The KL divergence is k2, the mse of table 4; the released script leaves verl's low_var_kl,"
        " which is k3.",
        "A correctness ratio equal to a threshold of difficulty-aware DLER counts as the easier"
        " side; section 3.5 does not decide it.",
        "A round generates the missing groups only, in the released script 384 prompts, in as many"
        " rounds as it takes.",
        "The mean is over the tokens of a minibatch, in the release over those of a micro-batch,"
        " which counts by its share of the answers.",
        "r is 0 beyond max_length, as in the paper, and the filter reads this r. The release"
        " multiplies the reward of a truncated answer by 0.1 (stop_properly_penalty), and filters"
        " by the rewards before that.",
    ),
    audit="Formula and constants compared with the full text and with dler_slurm.sh.",
    shown=("docs/claims.md#padded",),
)
