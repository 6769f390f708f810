"""GFPO: samples more and trains on the shortest. Shrivastava et al., 2025, arXiv:2508.09726."""

import math
from collections.abc import Callable, Sequence

from grupo.algo.advantages import Center, ScaleByStd, chain
from grupo.algo.aggregation import token_mean
from grupo.algo.filters import KeepBest
from grupo.algo.losses import KL, Clip, Entropy
from grupo.core import group_ops
from grupo.core.component import check_field, component
from grupo.core.controllers import GROUP_REWARD_METRIC, Quantile
from grupo.core.numbers import NonNegative, NumberOrSchedule, PositiveInt
from grupo.core.paper import Paper, Source
from grupo.core.types import Group, Rollout
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler


def gfpo(
    group_size: PositiveInt = 16,
    num_kept: PositiveInt = 8,
    clip_eps: NonNegative = 0.2,
    kl_coef: NonNegative = 0.001,
) -> Method:
    """Trains on the num_kept shortest rollouts of each group; A = (r - mean) / std among them.

    loss = mean over their tokens of -min(R A, clip(R) A) + kl_coef k3 - 0.001 entropy (eq. 2).
    `.replace(filter=KeepBest(num_kept, efficiency))` keeps the highest reward per token instead,
    `.replace(filter=KeepBestByDifficulty())` 8, 8, 6 or 4 from very hard to easy (algorithm 2).

    Args:
        group_size: rollouts per task (paper: 16).
        num_kept: rollouts of a group that are trained on (paper: 8).
        clip_eps: ratios are clipped to [1 - clip_eps, 1 + clip_eps].
        kl_coef: weight of the KL divergence from the reference policy.
    """
    # the std of eq. 2 is that of the population
    return Method(
        sampler=GroupSampler(group_size),
        filter=KeepBest(num_kept, shortness),
        advantage=chain(Center(), ScaleByStd(std=group_ops.population_std)),
        loss=Clip(clip_eps, clip_eps) + kl_coef * KL() + (-0.001) * Entropy(),
        aggregation=token_mean,
    )


MIN_GROUPS = 320  # five steps of the paper's batch; it states "a few warmup training steps"


QUARTILES = tuple(Quantile(GROUP_REWARD_METRIC, q, math.inf, MIN_GROUPS) for q in (0.25, 0.5, 0.75))


def shortness(rollout: Rollout) -> float:
    """-L: the shortest rollouts rank first."""
    return -rollout.length


def efficiency(rollout: Rollout) -> float:
    """r / L: reward per token."""
    return rollout.reward / max(rollout.length, 1)


@component
class KeepBestByDifficulty:
    """Filter: keep more rollouts of harder groups, by the quartiles of mean rewards (algorithm 2).

    Args:
        num_kept: rollouts kept of very hard, hard, medium and easy groups.
        quartiles: mean rewards between these, ascending; infinite ones make every group very hard.
        score: function of a rollout; larger is better.

    Raises:
        ConfigError: There is not one number more than quartiles.
    """

    num_kept: tuple[PositiveInt, ...] = (8, 8, 6, 4)
    quartiles: tuple[NumberOrSchedule, ...] = QUARTILES
    score: Callable[[Rollout], float] = shortness

    def __post_init__(self) -> None:
        count = len(self.quartiles) + 1
        check_field(self, "num_kept", len(self.num_kept) == count, f"{count} numbers")

    def __call__(self, groups: Sequence[Group]) -> Sequence[Group]:
        return [kept for group in groups for kept in self._filter(group)([group])]

    def _filter(self, group: Group) -> KeepBest:
        mean = sum(group.rewards) / len(group.rewards)
        return KeepBest(self.num_kept[sum(mean >= q for q in self.quartiles)], self.score)


PAPER = Paper(
    title="Sample More to Think Less: Group Filtered Policy Optimization for Concise Reasoning",
    use="Answers grow while they improve, and sampling is cheap.",
    tags=("filtering", "length"),
    trl="GFPOTrainer, experimental, gone by 1.10: num_remains_in_group and a group_filter_func",
    checked=("golden", "properties", "run"),
    source=Source("paper", "eq. 2, algorithms 1 and 2, section 4"),
    plan="Section 4: a batch of 64 questions for 100 steps, 6,400 questions in all; minibatches are"
    " not stated: one update per step.",
    missing=(
        "The length-aware accuracy reward in [-1, 1] and the repetition penalty of eq. 3.",
        "The modified clip of footnote 1, for negative advantages with large ratios.",
    ),
    deviations=(
        "Eq. 2 divides by the tokens of all rollouts; here only those of the kept rollouts count.",
        "Eq. 2 prints the KL divergence from the old policy; here it is that from the reference"
        " policy, as in verl, which the paper uses: on policy the printed one has no gradient.",
        "Algorithm 2 estimates quartiles by a t-digest that includes the group itself; here they"
        " are exact, over the last 8,192 groups of earlier steps.",
    ),
    audit="Equations, algorithms and constants compared with the full text.",
    shown=("docs/claims.md#padded",),
)
