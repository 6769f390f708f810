"""A curriculum that gives further rollouts to the tasks whose mean reward is most uncertain."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from math import log, sqrt
from statistics import stdev

from scipy.special import stdtrit

from grupo.core.component import check_field, component
from grupo.core.numbers import NonNegative, OpenFraction
from grupo.core.ranges import PositiveInt
from grupo.core.types import Task
from grupo.rollouts.curricula.base import Curriculum, CurriculumRequest


@component
class UncertaintyAllocation:
    """Begins groups of `first_group_size` rollouts, to which later phases of the step add rollouts.

    Each rollout of a later phase goes to the task with the largest priority
    h(n) - h(n + 1) + exploration_coef sqrt(ln(1 + N) / n). n is the number of rollouts of the task,
    and N is the number of rollouts of all tasks. h(n) = t s / sqrt(n) is half the width of the
    confidence interval of the task's mean reward. s is the standard deviation of its rewards, and t
    is the quantile of Student's distribution with n - 1 degrees of freedom. XRPO, Bamba et al.
    (arXiv:2510.06672).

    Args:
        inner: The curriculum that chooses the tasks of the step.
        first_group_size: Rollouts of each task before the first later phase, at least 2.
        mean_group_size: Mean number of rollouts of a task after the last phase.
        phases: Number of later phases, which share the added rollouts equally.
        confidence: Probability of the confidence interval.
        exploration_coef: Weight of the bonus for tasks with few rollouts.

    Raises:
        ConfigError: A group size is out of range.
    """

    inner: Curriculum
    first_group_size: PositiveInt = 4
    mean_group_size: PositiveInt = 8
    phases: PositiveInt = 2
    confidence: OpenFraction = 0.95
    exploration_coef: NonNegative = 0.1

    def __post_init__(self) -> None:
        check_field(self, "first_group_size", self.first_group_size >= 2, "2 or more")
        is_allowed = self.mean_group_size >= self.first_group_size
        allowed = f"first_group_size, {self.first_group_size}, or more"
        check_field(self, "mean_group_size", is_allowed, allowed)

    def __call__(self, request: CurriculumRequest) -> Sequence[Task]:
        if request.round_index > self.phases:
            return []
        if not request.round_index:
            return [replace(task, group_size=self.first_group_size) for task in self.inner(request)]
        tasks = {group.task.key: group.task for group in request.groups}
        rewards: dict[str, list[float]] = {key: [] for key in tasks}
        for group in request.groups:
            rewards[group.task.key] += group.rewards
        extra = self.allocate(rewards, self._phase_budget(len(tasks), request.round_index))
        return [
            replace(tasks[key], group_size=n, extends_group=True) for key, n in extra.items() if n
        ]

    def allocate(self, rewards: Mapping[str, Sequence[float]], budget: int) -> dict[str, int]:
        """The number of rollouts that a phase adds to each task, by the task's key.

        Args:
            rewards: Rewards of each task so far, by the task's key.
            budget: Number of rollouts to distribute.
        """
        deviations = {key: stdev(x) for key, x in rewards.items() if len(x) > 1}
        extra = dict.fromkeys(deviations, 0)
        total = sum(map(len, rewards.values()))
        for step in range(budget if extra else 0):
            priority = {
                key: self.priority(s, len(rewards[key]) + extra[key], total + step)
                for key, s in deviations.items()
            }
            extra[max(priority, key=lambda key: priority[key])] += 1
        return extra

    def priority(self, deviation: float, count: int, total: int) -> float:
        """The priority of a task: the fall of its uncertainty by one more rollout, plus a bonus.

        Args:
            deviation: Standard deviation s of the task's rewards.
            count: Number n of rollouts of the task.
            total: Number N of rollouts of all tasks.
        """
        drop = self._half_width(deviation, count) - self._half_width(deviation, count + 1)
        return drop + float(self.exploration_coef) * sqrt(log(1 + total) / count)

    def _half_width(self, deviation: float, count: int) -> float:
        return _quantile(float(self.confidence), count) * deviation / sqrt(count)

    def _phase_budget(self, num_tasks: int, phase: int) -> int:
        """Number of rollouts that a phase, counted from 1, adds to all tasks together."""
        budget = (self.mean_group_size - self.first_group_size) * num_tasks
        return budget * phase // self.phases - budget * (phase - 1) // self.phases


@lru_cache(maxsize=1024)
def _quantile(confidence: float, count: int) -> float:
    """Two-sided quantile of Student's distribution with count - 1 degrees of freedom."""
    return float(stdtrit(count - 1, 0.5 + confidence / 2))
