"""The history of a run: earlier rewards of each task, and the metrics that controllers read.

Of a task's earlier groups, the history keeps only the states of the statistics that the method
declares. A task takes the same memory, however often it was drawn. Where a method
replays rollouts, these are kept as well, in bounded number per task and in all. Unfinished rollouts
are kept until a later step draws their task again and continues them. Where a method reads
demonstrations, the policy's own correct answers are kept, in bounded number over all tasks.
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

MAX_GROUP_REWARDS = 8192  # mean rewards of groups that are kept where a controller reads them
MAX_REPLAY_TASKS = 4096  # tasks with kept rollouts; the least recently drawn one is dropped first


@dataclass
class History:
    """The record of earlier steps that curricula, advantage estimators and controllers read.

    Components read it and stay pure; only the trainer appends, and never to a copy.

    Args:
        tasks_drawn: Tasks that curricula have drawn so far.
        task_histories: States of the method's statistics over earlier groups, by task.
        metrics: One value per step, or per group, of each metric that a controller reads.
        num_steps: Steps recorded so far.
        replay_rollouts: Rollouts kept for replay, by task.
        unfinished_rollouts: Rollouts to be continued, by task, the longest kept first.
        source_histories: States of the method's statistics over earlier groups, by source.
        demonstrations: The policy's own correct answers, over all tasks.
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
        """A snapshot, which does not change when this history is appended to."""
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
        """The states of the method's statistics over the task's earlier groups."""
        histories = self.task_histories
        return histories.get(task.key, histories.history_of_new_task)

    def source_history(self, source: str) -> TaskHistory:
        """The states of the method's statistics over the earlier groups of a source.

        Args:
            source: The `source` of the tasks.
        """
        histories = self.source_histories
        return histories.get(source, histories.history_of_new_task)

    def with_replays(self, task: Task) -> Task:
        """The task with its kept rollouts as `replays`, oldest first."""
        replays = self.replay_rollouts.get(task.key, ())
        return replace(task, replays=replays) if replays else task

    def with_demonstrations(self, task: Task, count: int) -> Task:
        """The task with the `count` most similar other tasks that the policy has solved."""
        nearest = self.demonstrations.nearest(task, count)
        return replace(task, demonstrations=nearest) if nearest else task

    def with_statistic_states(self, task: Task, statistics: Iterable[TaskStatistic]) -> Task:
        """The task with the states of these statistics over its earlier groups."""
        history = self.task_history(task)
        states = {repr(statistic): history.state(statistic) for statistic in statistics}
        return replace(task, statistic_states=states) if states else task

    def with_unfinished(self, task: Task) -> Task:
        """The task with its unfinished rollouts as `unfinished`."""
        unfinished = self.unfinished_rollouts.get(task.key, ())
        return replace(task, unfinished=unfinished) if unfinished else task

    def take_unfinished(self, task: Task) -> Task:
        """The task with its unfinished rollouts, which are removed: they are continued once."""
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
        replays: Sequence[KeptRollouts] = (),
        *,
        keep_demonstrations: bool = False,
    ) -> None:
        """Append the groups of a step; failed and unfinished rollouts are not scored ones.

        Args:
            step: Number of the step, from 0.
            groups: All groups that the step generated.
            replays: Rules by which rollouts are kept for replay.
            keep_demonstrations: Whether own correct answers are kept.
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
            if replays:
                self._keep_replays(group.task, scored, replays)
            if keep_demonstrations:
                self.demonstrations.add(group.task, scored)

    def _keep_unfinished(self, group: Group) -> None:
        key = group.task.key
        if group.task.unfinished:  # these were continued in this group
            self.unfinished_rollouts.pop(key, None)
        unfinished = [replace(r, index=-1) for r in group.rollouts if r.unfinished]
        if unfinished:
            earlier = self.unfinished_rollouts.get(key, ())
            self.unfinished_rollouts[key] = (*earlier, *unfinished)

    def _keep_replays(
        self, task: Task, scored: Sequence[Rollout], rules: Sequence[KeptRollouts]
    ) -> None:
        rollouts = (*self.replay_rollouts.pop(task.key, ()), *scored)
        indices = sorted({i for rule in rules for i in rule(rollouts)})
        if not indices:
            return
        # later steps number their own rollouts
        self.replay_rollouts[task.key] = tuple(replace(rollouts[i], index=-1) for i in indices)
        if len(self.replay_rollouts) > MAX_REPLAY_TASKS:
            del self.replay_rollouts[next(iter(self.replay_rollouts))]

    def append_metrics(self, metrics: Mapping[str, float]) -> None:
        """Append one step's value of each metric."""
        for name, value in metrics.items():
            self.metrics.setdefault(name, []).append(value)

    def append_group_rewards(self, groups: Iterable[Group]) -> None:
        """Append the mean reward of each scored group; the oldest beyond a fixed number go."""
        rewards = [
            [r.reward for r in g.rollouts if not r.error and not r.unfinished] for g in groups
        ]
        means = [fmean(group) for group in rewards if group]
        kept = [*self.metrics.get(GROUP_REWARD_METRIC, ()), *means][-MAX_GROUP_REWARDS:]
        self.metrics[GROUP_REWARD_METRIC] = kept

    def to_data(self) -> dict[str, Any]:
        """The history as JSON data, without the states of the statistics."""
        return {
            "tasks_drawn": self.tasks_drawn,
            "num_steps": self.num_steps,
            "metrics": self.metrics,
            "replay_rollouts": _rollouts_to_data(self.replay_rollouts),
            "unfinished_rollouts": _rollouts_to_data(self.unfinished_rollouts),
            "demonstrations": self.demonstrations.to_data(),
        }

    def tensors(self) -> dict[str, Tensor]:
        """The states of the statistics of tasks and of sources, as tensors."""
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
        """The history that `to_data` and `tensors` returned, with the same statistics."""
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
    names = dict.fromkeys(name for rollout in scored for name in rollout.reward_terms)
    terms = {name: tuple(r.reward_terms.get(name, 0.0) for r in scored) for name in names}
    return ScoredGroup(step, tuple(rollout.reward for rollout in scored), terms)
