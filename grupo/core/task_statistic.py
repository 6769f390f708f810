"""Statistics over a task's earlier groups: states of constant size, which the history keeps."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field

StatisticState = tuple[float, ...]


@dataclass(frozen=True)
class ScoredGroup:
    """The rewards of one group, without its failed and unfinished rollouts.

    Args:
        step: Training step of the group.
        rewards: Reward of each rollout.
        reward_terms: The components of these rewards, by name.
    """

    step: int
    rewards: tuple[float, ...]
    reward_terms: Mapping[str, tuple[float, ...]] = field(default_factory=dict)


class TaskStatistic(ABC):
    """A summary of a task's earlier groups: a fixed number of floats, updated by each group.

    A component that reads it declares it as `Requires(task_statistics=(statistic,))` and reads its
    state as `batch.history[p].state(statistic)`, or in a curriculum as
    `request.history.statistics_of_task(task).state(statistic)`. Declared as `source_statistics`,
    the same statistic summarises all tasks of a source:
    `request.history.statistics_of_source(task.source).state(statistic)`.
    Statistics are components: equal statistics share their state.
    """

    @property
    @abstractmethod
    def initial_state(self) -> StatisticState:
        """The state of a task without groups; every state has as many numbers."""
        ...

    @abstractmethod
    def __call__(self, state: StatisticState, group: ScoredGroup) -> StatisticState:
        """The state after one more group."""
        ...
