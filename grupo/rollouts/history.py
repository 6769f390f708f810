"""The history of a run: state of earlier groups by task, kept rollouts, and metrics of steps.

A task statistic summarises the earlier groups of a task in a few numbers, its state. Only the
states of the statistics that the method declares are stored, so that a task takes the same memory
however often it was drawn. Three kinds of rollouts are kept as well: a bounded number for replay,
if the method replays rollouts; unfinished rollouts, until a later step draws their task again and
continues them; and, if the method reads demonstrations, a bounded number of correct answers of the
policy.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import fmean
from typing import Any

from torch import Tensor

from grupo.core.batch import TaskHistory
from grupo.core.controllers import GROUP_REWARD_METRIC
from grupo.core.kept_rollouts import KeptRollouts
from grupo.core.task_statistic import ScoredGroup, TaskStatistic
from grupo.core.types import Group, Rollout, Task
from grupo.rollouts.demonstration_buffer import DemonstrationBuffer
from grupo.rollouts.task_history import TaskHistoryStore
from grupo.storage import rollout_json

MAX_GROUP_REWARDS = 8192  # number of mean rewards of groups that are kept for controllers
MAX_REPLAY_TASKS = 4096  # number of tasks whose rollouts are kept for replay: those drawn last


@dataclass
class History:
    """The record of earlier steps that curricula, advantage estimators and controllers read.

    Components only read the history. Only the trainer appends to it, and never to a copy.

    Args:
        tasks_drawn: Number of tasks that curricula have drawn so far.
        task_histories: The states of the method's statistics for each task, by its key.
        metrics: The values of each metric that a controller reads, one per step or per group.
        num_steps: Number of steps recorded so far.
        replay_rollouts: Rollouts kept for replay, by the key of their task, the task that was drawn
            longest ago first.
        unfinished_rollouts: Rollouts to be continued, by the key of their task, oldest first.
        source_histories: The states of the method's statistics for each source of tasks, by its
            name.
        demonstrations: Correct answers of the policy.
    """

    tasks_drawn: int = 0
    task_histories: TaskHistoryStore = field(default_factory=TaskHistoryStore)
    metrics: dict[str, list[float]] = field(default_factory=dict)
    num_steps: int = 0
    replay_rollouts: dict[str, tuple[Rollout, ...]] = field(default_factory=dict)
    unfinished_rollouts: dict[str, tuple[Rollout, ...]] = field(default_factory=dict)
    source_histories: TaskHistoryStore = field(default_factory=TaskHistoryStore)
    demonstrations: DemonstrationBuffer = field(default_factory=DemonstrationBuffer)

    def copy(self) -> "History":
        """A copy that does not change when groups or metrics are appended to this history."""
        return History(
            self.tasks_drawn,
            self.task_histories.copy(),
            {name: list(values) for name, values in self.metrics.items()},
            self.num_steps,
            dict(self.replay_rollouts),
            dict(self.unfinished_rollouts),
            self.source_histories.copy(),
            self.demonstrations.copy(),
        )

    def task_history(self, task: Task) -> TaskHistory:
        """The states of the method's statistics over the earlier groups of a task."""
        histories = self.task_histories
        return histories.get(task.key, histories.history_of_new_task)

    def source_history(self, source: str) -> TaskHistory:
        """The states of the method's statistics over the earlier groups of all tasks of a source.

        Args:
            source: Name of the source, as in `Task.source`.
        """
        histories = self.source_histories
        return histories.get(source, histories.history_of_new_task)

    def with_replays(self, task: Task) -> Task:
        """The task with its kept rollouts as `replays`, oldest first."""
        replays = self.replay_rollouts.get(task.key, ())
        return replace(task, replays=replays) if replays else task

    def with_demonstrations(self, task: Task, count: int) -> Task:
        """The task with up to `count` solved tasks that are similar, the most similar one first."""
        nearest = self.demonstrations.nearest(task, count)
        return replace(task, demonstrations=nearest) if nearest else task

    def with_statistic_states(self, task: Task, statistics: Iterable[TaskStatistic]) -> Task:
        """The task with the states of `statistics` over the earlier groups of the task."""
        history = self.task_history(task)
        states = {repr(statistic): history.state(statistic) for statistic in statistics}
        return replace(task, statistic_states=states) if states else task

    def with_unfinished(self, task: Task) -> Task:
        """The task with its unfinished rollouts as `unfinished`."""
        unfinished = self.unfinished_rollouts.get(task.key, ())
        return replace(task, unfinished=unfinished) if unfinished else task

    def take_unfinished(self, task: Task) -> Task:
        """The task with its unfinished rollouts, which are removed from this history.

        A rollout is therefore continued only once.
        """
        task = self.with_unfinished(replace(task, unfinished=()) if task.unfinished else task)
        self.unfinished_rollouts.pop(task.key, None)
        return task

    def count_drawn(self, count: int) -> None:
        """Add to the number of tasks drawn."""
        self.tasks_drawn += count

    def append_groups(
        self,
        step: int,
        groups: Iterable[Group],
        replay_rules: Sequence[KeptRollouts] = (),
        *,
        keep_demonstrations: bool = False,
    ) -> None:
        """Append the groups of a step.

        Failed and unfinished rollouts do not change the states of statistics, and are not kept for
        replay or as demonstrations.

        Args:
            step: Number of the step, from 0.
            groups: All groups that the step generated.
            replay_rules: Rules that choose the rollouts that are kept for replay.
            keep_demonstrations: Whether correct answers of the policy are kept.
        """
        self.num_steps = step + 1
        for group in groups:
            self._keep_unfinished(group)
            scored = [r for r in group.rollouts if not r.error and not r.unfinished]
            if not scored:
                continue
            scored_group = _scored_group(step, scored)
            self.task_histories.append(group.task.key, scored_group)
            self.source_histories.append(group.task.source, scored_group)
            if replay_rules:
                self._keep_replays(group.task, scored, replay_rules)
            if keep_demonstrations:
                self.demonstrations.add(group.task, scored)

    def _keep_unfinished(self, group: Group) -> None:
        key = group.task.key
        if group.task.unfinished:  # the task's unfinished rollouts were continued in this group
            self.unfinished_rollouts.pop(key, None)
        unfinished = [replace(r, index=-1) for r in group.rollouts if r.unfinished]
        if unfinished:
            kept = self.unfinished_rollouts.get(key, ())
            self.unfinished_rollouts[key] = (*kept, *unfinished)

    def _keep_replays(
        self, task: Task, scored: Sequence[Rollout], rules: Sequence[KeptRollouts]
    ) -> None:
        rollouts = (*self.replay_rollouts.pop(task.key, ()), *scored)
        indices = sorted({i for rule in rules for i in rule(rollouts)})
        if not indices:
            return
        # -1: later steps number the rollouts of their batches anew
        self.replay_rollouts[task.key] = tuple(replace(rollouts[i], index=-1) for i in indices)
        if len(self.replay_rollouts) > MAX_REPLAY_TASKS:
            del self.replay_rollouts[next(iter(self.replay_rollouts))]

    def append_metrics(self, metrics: Mapping[str, float]) -> None:
        """Append one step's value of each metric."""
        for name, value in metrics.items():
            self.metrics.setdefault(name, []).append(value)

    def append_group_rewards(self, groups: Iterable[Group]) -> None:
        """Append the mean reward of each scored group, and keep the last `MAX_GROUP_REWARDS`."""
        rewards = [
            [r.reward for r in g.rollouts if not r.error and not r.unfinished] for g in groups
        ]
        means = [fmean(group_rewards) for group_rewards in rewards if group_rewards]
        all_means = [*self.metrics.get(GROUP_REWARD_METRIC, ()), *means]
        self.metrics[GROUP_REWARD_METRIC] = all_means[-MAX_GROUP_REWARDS:]

    def to_data(self) -> dict[str, Any]:
        """The history as JSON data; `tensors` returns the states of the statistics."""
        return {
            "tasks_drawn": self.tasks_drawn,
            "num_steps": self.num_steps,
            "metrics": self.metrics,
            "replay_rollouts": _rollouts_to_data(self.replay_rollouts),
            "unfinished_rollouts": _rollouts_to_data(self.unfinished_rollouts),
            "demonstrations": self.demonstrations.to_data(),
        }

    def tensors(self) -> dict[str, Tensor]:
        """The states of the statistics for tasks and for sources, as tensors by name."""
        stores = {"tasks": self.task_histories, "sources": self.source_histories}
        return {
            f"{prefix}.{name}": tensor
            for prefix, store in stores.items()
            for name, tensor in store.tensors().items()
        }

    @classmethod
    def from_data(
        cls,
        data: Mapping[str, Any],
        tensors: Mapping[str, Tensor],
        task_statistics: tuple[TaskStatistic, ...] = (),
        source_statistics: tuple[TaskStatistic, ...] = (),
    ) -> "History":
        """The history whose `to_data` and `tensors` returned the arguments.

        Args:
            data: The history as JSON data.
            tensors: The states of the statistics.
            task_statistics: The statistics of `task_histories`.
            source_statistics: The statistics of `source_histories`.
        """
        return cls(
            data["tasks_drawn"],
            TaskHistoryStore.from_tensors(_without_prefix(tensors, "tasks."), task_statistics),
            {name: list(values) for name, values in data["metrics"].items()},
            data["num_steps"],
            _rollouts_from_data(data["replay_rollouts"]),
            _rollouts_from_data(data["unfinished_rollouts"]),
            TaskHistoryStore.from_tensors(_without_prefix(tensors, "sources."), source_statistics),
            DemonstrationBuffer.from_data(data["demonstrations"]),
        )


def _without_prefix(tensors: Mapping[str, Tensor], prefix: str) -> dict[str, Tensor]:
    return {
        name.removeprefix(prefix): tensor
        for name, tensor in tensors.items()
        if name.startswith(prefix)
    }


def _rollouts_to_data(by_task: Mapping[str, Sequence[Rollout]]) -> dict[str, Any]:
    return {key: [*map(rollout_json.to_data, rollouts)] for key, rollouts in by_task.items()}


def _rollouts_from_data(data: Mapping[str, Any]) -> dict[str, tuple[Rollout, ...]]:
    return {key: tuple(map(rollout_json.from_data, rollouts)) for key, rollouts in data.items()}


def _scored_group(step: int, scored: Sequence[Rollout]) -> ScoredGroup:
    """The rewards and reward terms of the scored rollouts of a group.

    A term that a rollout lacks is 0.
    """
    names = dict.fromkeys(name for rollout in scored for name in rollout.reward_terms)
    terms = {name: tuple(r.reward_terms.get(name, 0.0) for r in scored) for name in names}
    return ScoredGroup(step, tuple(rollout.reward for rollout in scored), terms)
