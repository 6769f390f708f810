"""A store of what task statistics have computed from the earlier groups of each task or source."""

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
class StatisticStore(Mapping[str, TaskHistory]):
    """The states of the statistics of each task, by the task's key.

    A statistic has one state for each task. The number of values in a state does not grow with the
    number of groups. A store without statistics is empty. A run has a second store, with the names
    of sources (`Task.source`) as keys: its states cover the groups of all tasks of a source.

    Args:
        statistics: The statistics whose states are stored.
        row_of_key: Index of each task's row in `state_values`, in the order of their first groups.
            A copy of a store shares this dictionary, and ignores the tasks that are added later.
        state_values: All rows, one after another, as float64; a row has all states of a task.
    """

    statistics: tuple[TaskStatistic, ...] = ()
    row_of_key: dict[str, int] = field(default_factory=dict)
    state_values: "array[float]" = field(default_factory=lambda: array("d"))

    def __getitem__(self, key: str) -> TaskHistory:
        size = self._row_length
        start = self.row_of_key[key] * size
        if start >= len(self.state_values):  # the task was added after this store was copied
            raise KeyError(key)
        return TaskHistory(states=self._states(self.state_values[start : start + size]))

    def __iter__(self) -> Iterator[str]:
        return iter([*self.row_of_key][: len(self)])

    def __len__(self) -> int:
        return len(self.state_values) // max(1, self._row_length)

    @property
    def initial_states(self) -> TaskHistory:
        """The states of the statistics for a task without a group."""
        return TaskHistory(states=self._states(self._initial_row))

    def copy(self) -> "StatisticStore":
        """A copy that does not change when groups are appended to this store."""
        return StatisticStore(self.statistics, self.row_of_key, self.state_values[:])

    def append(self, key: str, group: ScoredGroup) -> None:
        """Update the states of a task with one more group of the task.

        Args:
            key: Key of the task.
            group: The rewards of the group.
        """
        if not self.statistics:
            return
        if key not in self.row_of_key:
            self.row_of_key[key] = len(self.row_of_key)
            self.state_values.extend(self._initial_row)
        size = self._row_length
        start = self.row_of_key[key] * size
        states = self._states(self.state_values[start : start + size])
        new_states = (_next_state(statistic, state, group) for statistic, state in states.items())
        self.state_values[start : start + size] = array("d", chain.from_iterable(new_states))

    def tensors(self) -> dict[str, Tensor]:
        """The store as tensors for a checkpoint."""
        keys = bytearray(json.dumps([*self.row_of_key]).encode())
        return {
            "numbers": torch.tensor(self.state_values, dtype=torch.float64),
            "keys": torch.frombuffer(keys, dtype=torch.uint8),
        }

    @classmethod
    def from_tensors(
        cls, tensors: Mapping[str, Tensor], statistics: tuple[TaskStatistic, ...]
    ) -> "StatisticStore":
        """Inverse of `tensors`; the statistics must be the same."""
        keys = json.loads(tensors["keys"].numpy().tobytes())
        row_of_key = {key: row for row, key in enumerate(keys)}
        return cls(statistics, row_of_key, array("d", tensors["numbers"].tolist()))

    @property
    def _row_length(self) -> int:
        return len(self._initial_row)

    @cached_property
    def _initial_row(self) -> Sequence[float]:
        return [x for statistic in self.statistics for x in statistic.initial_state]

    def _states(self, row: Sequence[float]) -> dict[TaskStatistic, StatisticState]:
        """The state of each statistic, from the values of one row."""
        remaining = iter(row)
        return {
            statistic: tuple(x for _, x in zip(statistic.initial_state, remaining, strict=False))
            for statistic in self.statistics
        }


def _next_state(
    statistic: TaskStatistic, state: StatisticState, group: ScoredGroup
) -> StatisticState:
    """The state of a statistic after one more group.

    Raises:
        ConfigError: The statistic returned a state of another length.
    """
    next_state = statistic(state, group)
    if len(next_state) != len(state):
        raise ConfigError(
            f"method: {statistic!r} returned {len(next_state)} numbers. Allowed: {len(state)}, as"
            " in its initial state."
        )
    return next_state
