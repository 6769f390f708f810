"""DCPO: wider clips for rare tokens, task history. Yang et al., 2025, arXiv:2509.02333."""

import torch
from torch import Tensor

from grupo.algo.advantages import Center, ScaleByStd, chain
from grupo.algo.aggregation import group_sum
from grupo.algo.losses import ClipWithin, DynamicClipBounds
from grupo.algo.minibatches import Updates
from grupo.algo.ratios import CappedRatio
from grupo.core.batch import Batch
from grupo.core.component import component
from grupo.core.numbers import NonNegative, NumberOrSchedule, Positive, PositiveInt
from grupo.core.paper import Paper, Source
from grupo.core.requires import Requires
from grupo.core.task_statistic import ScoredGroup, StatisticState, TaskStatistic
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler


def dcpo_dynamic_clip(
    group_size: PositiveInt = 16,
    clip_low: NonNegative = 0.16,
    clip_high: NonNegative = 0.2,
    cap: Positive = 10.0,
) -> Method:
    """-min(r A, clip(r, lower(q), upper(q)) A), q the token's old probability.

    lower = (1 + sqrt(max(1 - 4 clip_low / q, 0))) / 2, upper = (1 + sqrt(1 + 4 clip_high / q)) / 2.
    A is the smaller of ((i - 1) A_new + A_total) / i and (A_new + (i - 1) A_total) / i at a task's
    i-th group; A_total is standardised over all groups of the task so far.

    A step makes 16 updates, one on each of 16 minibatches.

    Args:
        group_size: rollouts per task (authors' scripts: 16).
        clip_low: constant of the lower bound (authors' README: 0.16; scripts: 0.2).
        clip_high: constant of the upper bound (authors' README: 0.2; scripts: 0.28).
        cap: largest ratio (authors' scripts: 10).
    """
    loss = ClipWithin(DynamicClipBounds(clip_low, clip_high), CappedRatio(cap))
    return Method(
        sampler=GroupSampler(group_size),
        advantage=SmoothStandardise(),
        loss=loss,
        aggregation=group_sum,
        updates=Updates(minibatches=16),
    )


@component
class GroupStatistics(TaskStatistic):
    """Number of a task's groups, the mean of their means, and the sums of the squared deviations of
    these means and of the variances within groups.

    Groups count the same, whatever their size.
    """

    @property
    def initial_state(self) -> StatisticState:
        return (0.0, 0.0, 0.0, 0.0)

    def __call__(self, state: StatisticState, group: ScoredGroup) -> StatisticState:
        i, mean, between, within = state
        x = group.rewards
        group_mean = sum(x) / len(x)
        deviation = group_mean - mean
        mean += deviation / (i + 1)
        between += deviation * (group_mean - mean)  # Welford, 1962
        within += sum((r - group_mean) ** 2 for r in x) / max(len(x) - 1, 1)
        return (i + 1, mean, between, within)


@component
class SmoothStandardise:
    """The smaller, in size, of two mixtures of x standardised in its group and over its task, (R,).

    Args:
        eps: added to the standard deviations.
    """

    eps: NumberOrSchedule = 1e-6

    requires = Requires(task_statistics=(GroupStatistics(),))

    def __call__(self, x: Tensor, batch: Batch) -> Tensor:
        new = chain(Center(), ScaleByStd(self.eps))(x, batch)
        i, mean, std = _history_statistics(x, batch)
        total = (x - mean) / (std + self.eps)
        a = ((i - 1) * new + total) / i
        b = (new + (i - 1) * total) / i
        return torch.where(a.abs() < b.abs(), a, b)


def _history_statistics(x: Tensor, batch: Batch) -> Tensor:
    """Number of groups of each rollout's task so far, their mean and standard deviation, (3, R)."""
    statistic = GroupStatistics()
    statistics = x.new_zeros(3, len(batch.history))
    for p in batch.group.unique().tolist():
        now = ScoredGroup(0, tuple(x[batch.group == p].tolist()))
        i, mean, between, within = statistic(batch.history[p].state(statistic), now)
        statistics[:, p] = x.new_tensor([i, mean, ((within + between) / i) ** 0.5])
    return statistics[:, batch.group]


PAPER = Paper(
    title="DCPO: Dynamic Clipping Policy Optimization",
    use="Tasks recur, many groups have equal rewards, and rare tokens are clipped away.",
    tags=("clipping", "advantage"),
    checked=("golden", "properties", "reference", "run"),
    source=Source(
        "code",
        "lime-RL/DCPO, README.md, recipe/dcpo/run_dcpo.sh, run_base.sh and "
        "verl/trainer/ppo/core_algos.py",
    ),
    plan=(
        "run_base.sh: train batch 512, minibatch 32 prompts: 16 updates per step (run_dcpo.sh: "
        "minibatch 8 for each node)"
    ),
    missing=(
        "The reward of run_dcpo.sh: 1 for a correct answer, -1 where no answer is found, else 0.",
    ),
    deviations=(
        "Clip constants are those of the README's table; the scripts have 0.2 and 0.28.",
        (
            "A task's history acts, as in the README. run_base.sh leaves "
            "reward_model.use_old_mean.enable False, at which each group counts as the first."
        ),
        (
            "Rows count the same, as the README has it. The code's only-token-mean is the mean "
            "over the tokens of a micro-batch, which counts by its share of the answers."
        ),
        ("The rows of a group are summed; the code's loss is smaller by the group size, 16."),
        (
            "Standard deviations gain 1e-6; the release adds nothing, and sets the advantage to 0 "
            "where the deviation is 0."
        ),
    ),
    audit=(
        "bounds, cap and loss compared with core_algos.py, smoothed advantages with the README "
        "and with compute_dcpo_outcome_advantage, batch sizes with the scripts"
    ),
    shown=("docs/claims.md#reuse",),
)
