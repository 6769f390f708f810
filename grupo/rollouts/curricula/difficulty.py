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
    """Two decayed sums over the rollouts of a task: a of the rewards r, and b of 1 - r.

    Both sums begin at 1/2. A rollout with the reward r in [0, 1] replaces a by `decay * a + r`, and
    b by `decay * b + (1 - r)`.

    Args:
        decay: Factor from 0 to 1 by which each rollout reduces the weight of earlier rollouts.
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
        decay_per_group: Factor from 0 to 1 by which each group of a task reduces its counts.
        decay_per_step: Factor from 0 to 1 by which each training step reduces all counts.
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
        """The counts (a, b) of correct and of wrong rollouts, decayed until a step."""
        a, b, last_step = state
        decay = self.decay_per_step ** (step - last_step)
        return decay * a, decay * b


@component
class UncertaintyWeighted:
    """Samples tasks without replacement, with weights sqrt(v (1 - v)) + 0.05.

    v is the estimated success rate of the task (`beta_mean`). Only the first request of a step
    returns tasks. Single-stream PO (arXiv:2509.13232).

    Args:
        decay: Factor from 0 to 1 by which each rollout reduces the weight of earlier rollouts.
    """

    decay: Probability

    @property
    def requires(self) -> Requires:
        return Requires(task_statistics=(BetaCounts(self.decay),), reward_range=(0.0, 1.0))

    def __call__(self, request: CurriculumRequest) -> Sequence[Task]:
        if request.round_index:
            return []
        # the name of the random stream is kept, so that runs repeat
        rng = make_rng(request.seed, "undecided", request.history.num_tasks_drawn)
        histories = [request.history.statistics_of_task(task) for task in request.tasks]
        success_rates = [beta_mean(task_history, self.decay) for task_history in histories]
        # Efraimidis and Spirakis: the largest u^(1 / weight) are a weighted sample
        sort_keys = [
            rng.random() ** (1 / (max(v * (1 - v), 0.0) ** 0.5 + 0.05)) for v in success_rates
        ]
        order = sorted(range(len(sort_keys)), key=lambda i: -sort_keys[i])
        return [request.tasks[i] for i in order[: request.num_tasks]]


@component
class Thompson:
    """Thompson sampling: the tasks of a random pool with the largest gain p (1 - p)^2.

    The success rate p of a task is drawn from Beta(a + 1, b + 1), where a and b are its
    `decayed_counts`. Only the first request of a step returns tasks. VADE, Hu et al.
    (arXiv:2511.18902).

    Args:
        decay_per_group: Factor from 0 to 1 by which each group of a task reduces its counts.
        decay_per_step: Factor from 0 to 1 by which each training step reduces all counts.
        pool_factor: Number of tasks in the pool for each requested task.
        success_threshold: A rollout is correct if its reward is above this.
    """

    decay_per_group: Probability = 0.9
    decay_per_step: Probability = 0.999
    pool_factor: PositiveInt = 16
    success_threshold: float = 0.5

    @property
    def requires(self) -> Requires:
        return Requires(task_statistics=(self._statistic,))

    def __call__(self, request: CurriculumRequest) -> Sequence[Task]:
        if request.round_index:
            return []
        run_history = request.history
        rng = make_rng(request.seed, "thompson", run_history.num_tasks_drawn)
        num_tasks = len(request.tasks)
        pool = rng.sample(range(num_tasks), min(num_tasks, self.pool_factor * request.num_tasks))
        gains: list[float] = []
        for i in pool:
            task_history = run_history.statistics_of_task(request.tasks[i])
            a, b = self.decayed_counts(task_history, run_history.num_steps)
            gains.append(task_gain(rng.betavariate(a + 1, b + 1)))
        order = sorted(range(len(pool)), key=lambda k: -gains[k])
        return [request.tasks[pool[k]] for k in order[: request.num_tasks]]

    def decayed_counts(self, task_history: TaskHistory, step: int) -> tuple[float, float]:
        """The decayed counts (a, b) of correct and of wrong rollouts of a task.

        Args:
            task_history: The history of the task, with the states of its statistics.
            step: Index of the step that draws the tasks, until which the counts decay.
        """
        statistic = self._statistic
        return statistic.counts_at(task_history.state(statistic), step)

    @property
    def _statistic(self) -> DecayedCounts:
        return DecayedCounts(self.decay_per_group, self.decay_per_step, self.success_threshold)


def beta_mean(task_history: TaskHistory, decay: float) -> float:
    """Mean a / (a + b) of the `BetaCounts` of a task.

    The mean estimates the success rate of the task. Recent rewards count more than earlier ones.

    >>> history = TaskHistory(steps=(0,), rewards=((1.0,),))
    >>> beta_mean(history, decay=0.5)  # (0.25 + 1) / (0.25 + 1 + 0.25)
    0.8333333333333334
    """
    a, b = task_history.state(BetaCounts(decay))
    return a / (a + b)


def task_gain(success_rate: float) -> float:
    """p (1 - p)^2: the gain from a task with success rate p, largest at p = 1/3.

    >>> task_gain(0.5), round(task_gain(1 / 3), 4)
    (0.125, 0.1481)
    """
    return success_rate * (1 - success_rate) ** 2
