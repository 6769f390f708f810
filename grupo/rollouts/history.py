"""The history of a run: task statistics, rollouts kept for later steps, and metrics.

A task statistic summarises the earlier groups of a task in a few numbers. These numbers are the
state of the statistic. The history stores the states and not the groups. The memory of a task
therefore does not grow with the number of its groups. The history also keeps:

- replays: rollouts that the sampler reads when their task is drawn again (`Task.replays`). They are
  not the rollouts of the replay buffer, which the update trains on. At most `MAX_REPLAYS` are kept
  over all tasks;
- unfinished rollouts, until a later step draws their task again and continues them;
- demonstrations: correct answers of the policy, which samplers show in prompts of similar tasks.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import fmean
from typing import Any

from torch import Tensor

from grupo.core.batch import TaskHistory
from grupo.core.controllers import GROUP_REWARD_METRIC
from grupo.core.kept_rollouts import MAX_REPLAYS, KeepRule, rollout_id
from grupo.core.task_statistic import ScoredGroup, TaskStatistic
from grupo.core.types import Group, Rollout, Task
from grupo.rollouts.demonstration_buffer import DemonstrationBuffer
from grupo.rollouts.statistic_store import StatisticStore
from grupo.storage import rollout_json

MAX_GROUP_REWARDS = 8192  # number of mean rewards of groups that are kept for controllers
NO_INDEX = -1  # `Rollout.index` of a rollout of an earlier step: each step numbers its own rollouts


@dataclass
class History:
    """The record of earlier steps that curricula, advantage estimators and controllers read.

    Components only read the history. A step is generated with a copy of the history: in this copy,
    `collect_groups` counts drawn tasks and removes the unfinished rollouts that it continues. The
    original gets the new count by `State.record_collected`, and all other changes by
    `State.record_step` (in `grupo.training.resume.state`).

    Args:
        num_tasks_drawn: Number of tasks that curricula have drawn so far.
        statistics_by_task: The states of the method's statistics for each task, by its key.
        metrics: The values of each metric that a controller reads, one per step or per group.
        num_steps: Number of steps recorded so far.
        replay_rollouts: The replays by the key of their task; the task drawn longest ago is first.
        unfinished_rollouts: Rollouts to be continued, by the key of their task, oldest first.
        statistics_by_source: The states of the method's statistics for each source of tasks, such
            as a data set, by its name (`Task.source`).
        demonstrations: Correct answers of the policy to earlier tasks.
    """

    num_tasks_drawn: int = 0
    statistics_by_task: StatisticStore = field(default_factory=StatisticStore)
    metrics: dict[str, list[float]] = field(default_factory=dict)
    num_steps: int = 0
    replay_rollouts: dict[str, tuple[Rollout, ...]] = field(default_factory=dict)
    unfinished_rollouts: dict[str, tuple[Rollout, ...]] = field(default_factory=dict)
    statistics_by_source: StatisticStore = field(default_factory=StatisticStore)
    demonstrations: DemonstrationBuffer = field(default_factory=DemonstrationBuffer)

    def copy(self) -> "History":
        """A copy that does not change when groups or metrics are appended to this history."""
        return History(
            num_tasks_drawn=self.num_tasks_drawn,
            statistics_by_task=self.statistics_by_task.copy(),
            metrics={name: list(values) for name, values in self.metrics.items()},
            num_steps=self.num_steps,
            replay_rollouts=dict(self.replay_rollouts),
            unfinished_rollouts=dict(self.unfinished_rollouts),
            statistics_by_source=self.statistics_by_source.copy(),
            demonstrations=self.demonstrations.copy(),
        )

    def statistics_of_task(self, task: Task) -> TaskHistory:
        """The states of the method's statistics over the earlier groups of a task."""
        store = self.statistics_by_task
        return store.get(task.key, store.initial_states)

    def statistics_of_source(self, source: str) -> TaskHistory:
        """The states of the method's statistics over the earlier groups of all tasks of a source.

        Args:
            source: Name of the source, as in `Task.source`.
        """
        store = self.statistics_by_source
        return store.get(source, store.initial_states)

    def with_replays(self, task: Task) -> Task:
        """The task with its replays in `Task.replays`, oldest first."""
        replays = self.replay_rollouts.get(task.key, ())
        return replace(task, replays=replays) if replays else task

    def with_demonstrations(self, task: Task, count: int) -> Task:
        """The task with up to `count` demonstrations of similar tasks, the most similar first."""
        demonstrations = self.demonstrations.most_similar(task, count)
        return replace(task, demonstrations=demonstrations) if demonstrations else task

    def with_statistics(self, task: Task, statistics: Iterable[TaskStatistic]) -> Task:
        """The task with the states of `statistics` over the earlier groups of the task."""
        stored = self.statistics_of_task(task)
        states = {repr(statistic): stored.state(statistic) for statistic in statistics}
        return replace(task, statistic_states=states) if states else task

    def with_unfinished_rollouts(self, task: Task) -> Task:
        """The task with its unfinished rollouts as `unfinished_rollouts`."""
        rollouts = self.unfinished_rollouts.get(task.key, ())
        return replace(task, unfinished_rollouts=rollouts) if rollouts else task

    def take_unfinished_rollouts(self, task: Task) -> Task:
        """The task with its unfinished rollouts, which are removed from this history.

        A rollout is therefore continued only once.
        """
        # If a curriculum returns a task twice in a step, only the first occurrence continues the
        # unfinished rollouts. The second loses those that `with_unfinished_rollouts` gave to it.
        rollouts = self.unfinished_rollouts.pop(task.key, ())
        return replace(task, unfinished_rollouts=rollouts)

    def count_drawn_tasks(self, count: int) -> None:
        """Add to the number of tasks drawn."""
        self.num_tasks_drawn += count

    def append_groups(
        self,
        step: int,
        groups: Iterable[Group],
        replay_rules: Sequence[KeepRule] = (),
        *,
        keep_demonstrations: bool = False,
    ) -> None:
        """Append the groups of a step.

        Failed and unfinished rollouts do not change the states of statistics, and are not kept as
        replays or demonstrations.

        Args:
            step: Index of the step, from 0.
            groups: All groups that the step generated.
            replay_rules: `Requires.replay_rules` of the method. Each rule chooses, among the
                replays of a task and its new rollouts, those that become the task's replays.
            keep_demonstrations: Whether correct answers of the policy are kept.
        """
        self.num_steps = step + 1
        place = 0  # of the group's first rollout among all rollouts of the step
        for group in groups:
            first_place, place = place, place + len(group.rollouts)
            self._keep_unfinished(group)
            complete = _complete_rollouts(group)
            if not complete:
                continue
            scored_group = _scored_group(step, complete)
            self.statistics_by_task.append(group.task.key, scored_group)
            self.statistics_by_source.append(group.task.source, scored_group)
            if replay_rules:
                self._keep_replays(_with_ids(group, step, first_place), replay_rules)
            if keep_demonstrations:
                self.demonstrations.add(group.task, complete)
        self._remove_oldest_replays()

    def _keep_unfinished(self, group: Group) -> None:
        key = group.task.key
        if group.task.unfinished_rollouts:  # this group has continued them
            self.unfinished_rollouts.pop(key, None)
        new_rollouts = [replace(r, index=NO_INDEX) for r in group.rollouts if r.unfinished]
        if new_rollouts:
            earlier_rollouts = self.unfinished_rollouts.get(key, ())
            self.unfinished_rollouts[key] = (*earlier_rollouts, *new_rollouts)

    def _keep_replays(self, group: Group, rules: Sequence[KeepRule]) -> None:
        key = group.task.key
        rollouts = (*self.replay_rollouts.pop(key, ()), *_complete_rollouts(group))
        indices = sorted({i for rule in rules for i in rule(rollouts)})
        if indices:
            kept = (rollouts[i] for i in indices)
            self.replay_rollouts[key] = tuple(replace(rollout, index=NO_INDEX) for rollout in kept)

    def _remove_oldest_replays(self) -> None:
        """Remove the replays of the tasks that were drawn longest ago, down to `MAX_REPLAYS`.

        The task that was drawn last keeps its replays.
        """
        num_replays = sum(map(len, self.replay_rollouts.values()))
        for key in list(self.replay_rollouts)[:-1]:
            if num_replays <= MAX_REPLAYS:
                return
            num_replays -= len(self.replay_rollouts.pop(key))

    def append_metrics(self, metrics: Mapping[str, float]) -> None:
        """Append the value of each metric in a step."""
        for name, value in metrics.items():
            self.metrics.setdefault(name, []).append(value)

    def append_group_rewards(self, groups: Iterable[Group]) -> None:
        """Append the mean reward of each group, and keep the last `MAX_GROUP_REWARDS` means.

        A group without complete rollouts has no mean reward.
        """
        complete_of_group = map(_complete_rollouts, groups)
        means = [fmean(r.reward for r in complete) for complete in complete_of_group if complete]
        all_means = [*self.metrics.get(GROUP_REWARD_METRIC, ()), *means]
        self.metrics[GROUP_REWARD_METRIC] = all_means[-MAX_GROUP_REWARDS:]

    def to_data(self) -> dict[str, Any]:
        """The history as JSON data; `tensors` returns the states of the statistics."""
        return {
            "tasks_drawn": self.num_tasks_drawn,
            "num_steps": self.num_steps,
            "metrics": self.metrics,
            "replay_rollouts": _rollouts_to_data(self.replay_rollouts),
            "unfinished_rollouts": _rollouts_to_data(self.unfinished_rollouts),
            "demonstrations": self.demonstrations.to_data(),
        }

    def tensors(self) -> dict[str, Tensor]:
        """The states of the statistics for tasks and for sources, as tensors by name."""
        stores = {"tasks": self.statistics_by_task, "sources": self.statistics_by_source}
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
        """Inverse of `to_data` and `tensors`.

        Args:
            data: The history as JSON data.
            tensors: The states of the statistics.
            task_statistics: The statistics of `statistics_by_task`.
            source_statistics: The statistics of `statistics_by_source`.
        """
        task_tensors = _without_prefix(tensors, "tasks.")
        source_tensors = _without_prefix(tensors, "sources.")
        return cls(
            num_tasks_drawn=data["tasks_drawn"],
            statistics_by_task=StatisticStore.from_tensors(task_tensors, task_statistics),
            metrics={name: list(values) for name, values in data["metrics"].items()},
            num_steps=data["num_steps"],
            replay_rollouts=_rollouts_from_data(data["replay_rollouts"]),
            unfinished_rollouts=_rollouts_from_data(data["unfinished_rollouts"]),
            statistics_by_source=StatisticStore.from_tensors(source_tensors, source_statistics),
            demonstrations=DemonstrationBuffer.from_data(data["demonstrations"]),
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


def _with_ids(group: Group, step: int, first_place: int) -> Group:
    """The group whose rollouts have their `id`.

    Args:
        group: A group of a step.
        step: Index of the step, from 0.
        first_place: Place of the group's first rollout among those of the step, from 0.
    """
    return group.with_rollouts(
        replace(rollout, id=rollout_id(step + 1, place))
        for place, rollout in enumerate(group.rollouts, first_place)
    )


def _complete_rollouts(group: Group) -> list[Rollout]:
    """The rollouts of a group that are neither failed nor unfinished."""
    return [r for r in group.rollouts if not r.error and not r.unfinished]


def _scored_group(step: int, complete: Sequence[Rollout]) -> ScoredGroup:
    """The rewards and reward terms of the complete rollouts of a group.

    A term that a rollout lacks is 0.
    """
    names = dict.fromkeys(name for rollout in complete for name in rollout.reward_terms)
    terms = {name: tuple(r.reward_terms.get(name, 0.0) for r in complete) for name in names}
    return ScoredGroup(step, tuple(rollout.reward for rollout in complete), terms)
