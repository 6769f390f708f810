"""A store of the states of statistics over the earlier groups of each task, or of each source."""

import json
from array import array
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain

import torch
from torch import Tensor

from grupo.core.batch import TaskHistory
from grupo.core.task_statistic import ScoredGroup, StatisticState, TaskStatistic
from grupo.util.errors import ConfigError


@dataclass(eq=False)
class TaskHistoryStore(Mapping[str, TaskHistory]):
    """The history of each task by its key, in the order in which tasks were first drawn.

    Another store has the history of each source of tasks by its name. A task takes the numbers of
    its statistics' states, however often it was drawn; without statistics nothing is stored.

    Args:
        statistics: The statistics whose states are stored.
        row_of_key: Position of each task among the tasks; shared with copies, which ignore later
            tasks.
        numbers: The states of all statistics of all tasks, as float64, task by task.
    """

    statistics: tuple[TaskStatistic, ...] = ()
    row_of_key: dict[str, int] = field(default_factory=dict)
    numbers: "array[float]" = field(default_factory=lambda: array("d"))

    def __getitem__(self, key: str) -> TaskHistory:
        size = self._numbers_per_task
        begin = self.row_of_key[key] * size
        if begin >= len(self.numbers):
            raise KeyError(key)
        return TaskHistory(states=self._states(self.numbers[begin : begin + size]))

    def __iter__(self) -> Iterator[str]:
        return iter([*self.row_of_key][: len(self)])

    def __len__(self) -> int:
        return len(self.numbers) // max(1, self._numbers_per_task)

    @property
    def history_of_new_task(self) -> TaskHistory:
        """The history of a task that was never drawn."""
        return TaskHistory(states=self._states(self._initial_numbers))

    def copy(self) -> "TaskHistoryStore":
        """A snapshot, which does not change when groups are appended to this store."""
        return TaskHistoryStore(self.statistics, self.row_of_key, self.numbers[:])

    def append(self, key: str, group: ScoredGroup) -> None:
        """Update the states of a task with one more group."""
        if not self.statistics:
            return
        if key not in self.row_of_key:
            self.row_of_key[key] = len(self.row_of_key)
            self.numbers.extend(self._initial_numbers)
        size = self._numbers_per_task
        begin = self.row_of_key[key] * size
        states = self._states(self.numbers[begin : begin + size])
        new_states = (_next_state(statistic, state, group) for statistic, state in states.items())
        self.numbers[begin : begin + size] = array("d", chain.from_iterable(new_states))

    def tensors(self) -> dict[str, Tensor]:
        """The store as tensors for a checkpoint."""
        keys = bytearray(json.dumps([*self.row_of_key]).encode())
        return {
            "numbers": torch.tensor(self.numbers, dtype=torch.float64),
            "keys": torch.frombuffer(keys, dtype=torch.uint8),
        }

    @classmethod
    def from_tensors(
        cls, tensors: Mapping[str, Tensor], statistics: tuple[TaskStatistic, ...]
    ) -> "TaskHistoryStore":
        """The store that `tensors` returned, with the same statistics."""
        keys = json.loads(tensors["keys"].numpy().tobytes())
        row_of_key = {key: row for row, key in enumerate(keys)}
        return cls(statistics, row_of_key, array("d", tensors["numbers"].tolist()))

    @property
    def _numbers_per_task(self) -> int:
        return len(self._initial_numbers)

    @cached_property
    def _initial_numbers(self) -> Sequence[float]:
        return [x for statistic in self.statistics for x in statistic.initial_state]

    def _states(self, numbers: Sequence[float]) -> dict[TaskStatistic, StatisticState]:
        remaining = iter(numbers)
        return {
            statistic: tuple(x for _, x in zip(statistic.initial_state, remaining, strict=False))
            for statistic in self.statistics
        }


def _next_state(
    statistic: TaskStatistic, state: StatisticState, group: ScoredGroup
) -> StatisticState:
    new = statistic(state, group)
    if len(new) != len(state):
        raise ConfigError(
            f"method: {statistic!r} returned {len(new)} numbers. Allowed: {len(state)}, as in its"
            " initial state."
        )
    return new
