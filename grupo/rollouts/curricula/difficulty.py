"""Curricula that choose tasks by the rewards of their earlier rollouts."""

from collections.abc import Sequence

from grupo.core.batch import TaskHistory
from grupo.core.component import component
from grupo.core.ranges import PositiveInt, Probability
from grupo.core.requires import Requires
from grupo.core.task_statistic import ScoredGroup, StatisticState, TaskStatistic
from grupo.core.types import Task
from grupo.rollouts.curricula.base import CurriculumRequest
from grupo.util.rng import make_rng


@component
class BetaCounts(TaskStatistic):
    """a <- decay a + r, b <- decay b + (1 - r) for each reward r in [0, 1] of a task, from 1/2.

    Args:
        decay: Factor per rollout on the weight of earlier rollouts, 0 to 1.
    """

    decay: Probability

    @property
    def initial_state(self) -> StatisticState:
        return (0.5, 0.5)

    def __call__(self, state: StatisticState, group: ScoredGroup) -> StatisticState:
        a, b = state
        for r in group.rewards:
            a = self.decay * a + r
            b = self.decay * b + 1 - r
        return a, b


@component
class DecayedCounts(TaskStatistic):
    """Decayed counts of correct and wrong rollouts of a task, and the step of its last group.

    Args:
        decay_per_group: Factor per group on earlier counts of the task, 0 to 1.
        decay_per_step: Factor per training step on earlier counts of the task, 0 to 1.
        success_threshold: A rollout is correct if its reward is above this.
    """

    decay_per_group: Probability
    decay_per_step: Probability
    success_threshold: float

    @property
    def initial_state(self) -> StatisticState:
        return (0.0, 0.0, 0.0)

    def __call__(self, state: StatisticState, group: ScoredGroup) -> StatisticState:
        a, b = self.counts_at(state, group.step)
        num_correct = sum(r > self.success_threshold for r in group.rewards)
        a = self.decay_per_group * a + num_correct
        b = self.decay_per_group * b + len(group.rewards) - num_correct
        return a, b, float(group.step)

    def counts_at(self, state: StatisticState, step: int) -> tuple[float, float]:
        """The counts of correct and wrong rollouts, decayed until this step."""
        a, b, last_step = state
        decay = self.decay_per_step ** (step - last_step)
        return decay * a, decay * b


@component
class UncertaintyWeighted:
    """Tasks sampled without replacement with weights sqrt(v (1 - v)) + 0.05, v = `beta_mean`.

    One request per step. Single-stream PO (arXiv:2509.13232).

    Args:
        decay: Factor per rollout on the weight of earlier rollouts, 0 to 1.
    """

    decay: Probability

    @property
    def requires(self) -> Requires:
        return Requires(task_statistics=(BetaCounts(self.decay),), reward_range=(0.0, 1.0))

    def __call__(self, request: CurriculumRequest) -> Sequence[Task]:
        if request.round_index:
            return []
        rng = make_rng(request.seed, "undecided", request.history.num_tasks_drawn)
        v = [beta_mean(request.history.task_history(task), self.decay) for task in request.tasks]
        keys = [rng.random() ** (1 / (max(p * (1 - p), 0.0) ** 0.5 + 0.05)) for p in v]
        order = sorted(range(len(keys)), key=lambda i: -keys[i])
        return [request.tasks[i] for i in order[: request.num_tasks]]


@component
class Thompson:
    """Thompson sampling: the tasks with the largest gain p (1 - p)^2 in a random pool.

    p ~ Beta(a + 1, b + 1) with a and b of `beta_counts`. One request per step. VADE, Hu et al.
    (arXiv:2511.18902).

    Args:
        decay_per_group: Factor per group on earlier counts of the task, 0 to 1.
        decay_per_step: Factor per training step on earlier counts of the task, 0 to 1.
        pool_factor: Size of the pool, in requested tasks.
        success_threshold: A rollout is correct if its reward is above this.
    """

    decay_per_group: Probability = 0.9
    decay_per_step: Probability = 0.999
    pool_factor: PositiveInt = 16
    success_threshold: float = 0.5

    @property
    def requires(self) -> Requires:
        return Requires(task_statistics=(self._counts,))

    def __call__(self, request: CurriculumRequest) -> Sequence[Task]:
        if request.round_index:
            return []
        history = request.history
        rng = make_rng(request.seed, "thompson", history.num_tasks_drawn)
        count = len(request.tasks)
        pool = rng.sample(range(count), min(count, self.pool_factor * request.num_tasks))
        gains: list[float] = []
        for i in pool:
            task_history = history.task_history(request.tasks[i])
            a, b = self.beta_counts(task_history, history.num_steps)
            gains.append(expected_gain(rng.betavariate(a + 1, b + 1)))
        order = sorted(range(len(pool)), key=lambda k: -gains[k])
        return [request.tasks[pool[k]] for k in order[: request.num_tasks]]

    def beta_counts(self, history: TaskHistory, step: int) -> tuple[float, float]:
        """Decayed counts of correct and wrong rollouts of a task.

        Args:
            history: The task's earlier groups.
            step: The current step; counts decay until then.
        """
        return self._counts.counts_at(history.state(self._counts), step)

    @property
    def _counts(self) -> DecayedCounts:
        return DecayedCounts(self.decay_per_group, self.decay_per_step, self.success_threshold)


def beta_mean(history: TaskHistory, decay: float) -> float:
    """Mean a / (a + b) of the `BetaCounts` of a task.

    Tracks how often a task is solved, from its rewards r in [0, 1], oldest first.

    >>> beta_mean(TaskHistory((0,), ((1.0,),)), decay=0.5)
    0.8333333333333334
    """
    a, b = history.state(BetaCounts(decay))
    return a / (a + b)


def expected_gain(success_rate: float) -> float:
    """p (1 - p)^2: the expected gain from a task solved at rate p, largest at p = 1/3.

    >>> expected_gain(0.5), round(expected_gain(1 / 3), 4)
    (0.125, 0.1481)
    """
    return success_rate * (1 - success_rate) ** 2
