"""A store of what folds remember of the earlier groups of each task, or of each source."""

import json
from array import array
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain

import torch
from torch import Tensor

from grupo.core.batch import TaskHistory
from grupo.core.task_fold import FoldState, ScoredGroup, TaskFold
from grupo.util.errors import ConfigError


@dataclass(eq=False)
class TaskHistoryStore(Mapping[str, TaskHistory]):
    """The history of each task by its key, in the order in which tasks were first drawn.

    Another store has the history of each source of tasks by its name. A task takes the numbers of
    its folds' states, however often it was drawn; without folds nothing is stored.

    Args:
        folds: The folds whose states are stored.
        row_of_key: Position of each task among the tasks; shared with copies, which ignore later
            tasks.
        numbers: The states of all folds of all tasks, as float64, task by task.
    """

    folds: tuple[TaskFold, ...] = ()
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
        return TaskHistoryStore(self.folds, self.row_of_key, self.numbers[:])

    def append(self, key: str, group: ScoredGroup) -> None:
        """Fold one more group of a task into its states."""
        if not self.folds:
            return
        if key not in self.row_of_key:
            self.row_of_key[key] = len(self.row_of_key)
            self.numbers.extend(self._initial_numbers)
        size = self._numbers_per_task
        begin = self.row_of_key[key] * size
        states = self._states(self.numbers[begin : begin + size])
        new_states = (_next_state(fold, state, group) for fold, state in states.items())
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
        cls, tensors: Mapping[str, Tensor], folds: tuple[TaskFold, ...]
    ) -> "TaskHistoryStore":
        """The store that `tensors` returned, with the same folds."""
        keys = json.loads(tensors["keys"].numpy().tobytes())
        row_of_key = {key: row for row, key in enumerate(keys)}
        return cls(folds, row_of_key, array("d", tensors["numbers"].tolist()))

    @property
    def _numbers_per_task(self) -> int:
        return len(self._initial_numbers)

    @cached_property
    def _initial_numbers(self) -> Sequence[float]:
        return [x for fold in self.folds for x in fold.initial_state]

    def _states(self, numbers: Sequence[float]) -> dict[TaskFold, FoldState]:
        remaining = iter(numbers)
        return {
            fold: tuple(x for _, x in zip(fold.initial_state, remaining, strict=False))
            for fold in self.folds
        }


def _next_state(fold: TaskFold, state: FoldState, group: ScoredGroup) -> FoldState:
    new = fold(state, group)
    if len(new) != len(state):
        raise ConfigError(
            f"method: {fold!r} returned {len(new)} numbers. Allowed: {len(state)}, as in its"
            " initial state."
        )
    return new
