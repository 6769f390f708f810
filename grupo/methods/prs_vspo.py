"""VSPO: uninformative groups give way to tasks of value. Su et al., 2025, arXiv:2512.07478."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from statistics import fmean, pstdev

from torch import Tensor

from grupo.algo.advantages import Center, ScaleByStd, chain
from grupo.algo.filters import keep_nonzero_std
from grupo.algo.losses import KL, Clip
from grupo.core.batch import Batch
from grupo.core.component import component
from grupo.core.numbers import NonNegative, PositiveInt
from grupo.core.paper import Paper, Source
from grupo.core.requires import Provides, Requires
from grupo.core.task_statistic import ScoredGroup, StatisticState, TaskStatistic
from grupo.core.types import Group, Task
from grupo.method import Method
from grupo.rollouts.curricula import Curriculum, CurriculumRequest, ShuffledTasks
from grupo.rollouts.samplers import GroupSampler
from grupo.util.rng import make_rng


def prs_vspo(
    group_size: PositiveInt = 5,
    reward_max: float = 1.0,
    max_resample_rounds: PositiveInt = 10,
    clip_eps: NonNegative = 0.2,
    kl_coef: NonNegative = 0.001,
) -> Method:
    """GRPO whose groups of equal rewards are replaced by new groups of tasks drawn by their value.

    V = (reward_max - mean(r)) std(r) over the latest group of a task, and
    A = (r - mean(r)) / std(r) / n
    for a task with n groups in the batch.
    loss = mean over answers of mean over tokens of
      -min(R A, clip(R, 1 - clip_eps, 1 + clip_eps) A) + kl_coef k3.

    Args:
        group_size: rollouts per task.
        reward_max: the largest reward that a rollout can have.
        max_resample_rounds: most rounds of generation in a step (our choice).
        clip_eps: ratios are clipped to [1 - clip_eps, 1 + clip_eps].
        kl_coef: weight of the KL divergence from the reference policy.
    """
    return Method(
        curriculum=ValueRefill(ShuffledTasks(), reward_max, max_resample_rounds),
        sampler=GroupSampler(group_size),
        filter=InformativeCopies(),
        advantage=chain(Center(), ScaleByStd(), DivideByCopies()),
        loss=Clip(clip_eps, clip_eps) + kl_coef * KL(),
    )


COPIES = "copies"


def mean_and_std(rewards: Sequence[float]) -> tuple[float, float]:
    """Mean and population standard deviation.

    >>> mean_and_std([1.0, 0.0])
    (0.5, 0.5)
    """
    return fmean(rewards), pstdev(rewards)


@component
class LatestRewards(TaskStatistic):
    """Mean and population standard deviation of the rewards of a task's latest group."""

    @property
    def initial_state(self) -> StatisticState:
        return (0.0, 0.0)

    def __call__(self, state: StatisticState, group: ScoredGroup) -> StatisticState:
        return mean_and_std(group.rewards)


@component
class ValueRefill:
    """Tasks drawn with probability V / sum V in place of groups that the filter dropped.

    V = (reward_max - mean) x standard deviation of the rewards of a task's latest group, of this
    step or of an earlier one. A task may be drawn several times in a step. A step without tasks of
    value ends with the groups that it has.

    Args:
        inner: Chooses the tasks of a step's first round.
        reward_max: The largest reward that a rollout can have.
        max_resample_rounds: Largest number of rounds per step, the first included.
    """

    inner: Curriculum
    reward_max: float = 1.0
    max_resample_rounds: PositiveInt = 10

    requires = Requires(task_statistics=(LatestRewards(),))

    def __call__(self, request: CurriculumRequest) -> Sequence[Task]:
        if not request.round_index:
            return self.inner(request)
        if request.num_tasks < 1 or request.round_index >= self.max_resample_rounds:
            return []
        values = self.values(request)
        if not any(values):
            return []
        rng = make_rng(request.seed, "value-refill", request.history.num_steps, request.round_index)
        return rng.choices(request.tasks, values, k=request.num_tasks)

    def values(self, request: CurriculumRequest) -> Sequence[float]:
        """V of each task; 0 for a task without groups."""
        statistic = LatestRewards()
        latest = {group.task.key: mean_and_std(group.rewards) for group in request.groups}
        states = [
            latest.get(task.key) or request.history.statistics_of_task(task).state(statistic)
            for task in request.tasks
        ]
        return [max(0.0, self.reward_max - mean) * std for mean, std in states]


@component
class InformativeCopies:
    """Keeps groups whose rewards differ, with the reward term `copies`.

    It is the number of groups of the same task among those that the step trains on.
    """

    provides = Provides(reward_terms=(COPIES,))

    def __call__(self, groups: Sequence[Group]) -> Sequence[Group]:
        return keep_nonzero_std(groups)

    def finish_step(
        self, kept: Sequence[Group], sampled: Sequence[Group], num_groups: int
    ) -> Sequence[Group]:
        """The first `num_groups` kept groups, with the number of copies."""
        trained = kept[:num_groups]
        copies = Counter(group.task.key for group in trained)
        return [_with_term(group, copies[group.task.key]) for group in trained]


def _with_term(group: Group, copies: int) -> Group:
    rollouts = (
        replace(r, reward_terms={**r.reward_terms, COPIES: float(copies)}) for r in group.rollouts
    )
    return replace(group, rollouts=tuple(rollouts))


@component
class DivideByCopies:
    """x / n for the rollouts of a task that has n groups in the batch, (R,)."""

    requires = Requires(reward_terms=(COPIES,), bounded_rewards=(COPIES,))

    def __call__(self, x: Tensor, batch: Batch) -> Tensor:
        return x / batch.reward_terms[COPIES].clamp(min=1.0)


PAPER = Paper(
    title="Enhancing Agentic RL with Progressive Reward Shaping and Value-based Sampling Policy "
    "Optimization",
    use="Many groups have equal rewards, and tasks recur.",
    tags=("filtering", "curriculum"),
    checked=("golden", "properties", "run"),
    catalogue=("prs-vspo",),
    source=Source(
        "third_party",
        "a public note of the paper in a collection of daily papers: V, the purpose of the damping,"
        " group size, KL weight and clip; the abstract for the stages of the reward",
    ),
    plan="not stated in any source that was opened; one update per step",
    missing=("The judge of long answers: `ProgressiveReward(answer=Judge(…))`, with no test.",),
    deviations=(
        "The draw in proportion to V, V of the latest group of a task, the division by the number"
        " of copies and the number of rounds are our choice.",
        "The mean over answers and the estimator k3 are our choice.",
        "sigma is the standard deviation: the note calls it the variance.",
        "The rewards of the stages and the form of the length-aware BLEU are our choice:"
        " grupo/rewards/progressive.py.",
    ),
    audit="V, group size, KL weight and clip compared with the note",
    shown=(
        "docs/guidance_shown/prs_vspo.md#vspo-without-its-damping",
        "docs/guidance_shown/both_budgets.md#two-methods-at-both-budgets",
        "tests/methods/test_prs_vspo.py::test_no_group_of_a_run_has_a_zero_gradient",
        "tests/rewards/test_progressive.py"
        "::test_a_stage_counts_only_where_the_earlier_ones_are_passed",
    ),
)
