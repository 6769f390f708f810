"""What happened: per task its past groups, and what controllers read of the metrics.

Append-only; state is a fold over it. Tasks take little memory each, whatever happened to them, and
a copy takes none. Where a method replays, rollouts are kept too, bounded by task and in all.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from torch import Tensor

from grupo.core.batch import TaskHistory
from grupo.core.types import Group, Rollout, Task
from grupo.rollouts.task_history import TaskHistoryStore
from grupo.storage import rollout_json as saved

MAX_REPLAY_TASKS = (
    4096  # tasks whose rollouts are kept at once; who was not asked for longest goes first
)


@dataclass
class History:
    """What a run remembers.

    Functions read it and stay pure; only the trainer writes.
    """

    tasks_drawn: int = 0  # tasks handed out so far
    task_histories: TaskHistoryStore = field(default_factory=TaskHistoryStore)
    metrics: dict[str, list[float]] = field(default_factory=dict)  # metrics, a value each step
    num_steps: int = 0  # recorded so far
    replay_rollouts: dict[str, tuple[Rollout, ...]] = field(
        default_factory=dict
    )  # to be replayed, by task

    def copy(self) -> "History":
        """The history until now, to be read while this one goes on."""
        measured = {name: list(numbers) for name, numbers in self.metrics.items()}
        return History(
            self.tasks_drawn,
            self.task_histories.copy(),
            measured,
            self.num_steps,
            dict(self.replay_rollouts),
        )

    def task_history(self, task: Task) -> TaskHistory:
        """What happened to this task before."""
        return self.task_histories.get(task.key, TaskHistory())

    def with_replays(self, task: Task) -> Task:
        """The task with those of its earlier rollouts that were kept, oldest first."""
        before = self.replay_rollouts.get(task.key, ())
        return replace(task, replays=before) if before else task

    def count_drawn(self, count: int) -> None:
        """Note that so many tasks were handed out."""
        self.tasks_drawn += count

    def append_groups(
        self,
        step: int,
        groups: Iterable[Group],
        reward_terms: Collection[str] = (),
        num_replays: int = 0,
    ) -> None:
        """Append a step's groups, but for those of which nothing could be judged.

        Of the components of their rewards only those in `parts` are remembered; of the rollouts
        themselves the newest `num_replays` of a task's best, and as many of its worst.
        """
        self.num_steps = step + 1
        for group in groups:
            judged = [rollout for rollout in group.rollouts if not rollout.error]
            if judged:
                rewards = [rollout.reward for rollout in judged]
                told = {
                    name: [r.reward_terms.get(name, 0.0) for r in judged] for name in reward_terms
                }
                self.task_histories.append(group.task.key, step, rewards, told)
                if num_replays:
                    self._keep_replays(group.task, judged, num_replays)

    def _keep_replays(self, task: Task, judged: Sequence[Rollout], count: int) -> None:
        every = (*self.replay_rollouts.pop(task.key, ()), *judged)
        worst = sorted(range(len(every)), key=lambda i: (every[i].reward, -i))[:count]
        best = sorted(range(len(every)), key=lambda i: (every[i].reward, i))[-count:]
        self.replay_rollouts[task.key] = tuple(every[i] for i in sorted({*worst, *best}))
        if len(self.replay_rollouts) > MAX_REPLAY_TASKS:
            del self.replay_rollouts[next(iter(self.replay_rollouts))]

    def append_metrics(self, metrics: Mapping[str, float]) -> None:
        """Append what was measured of a step."""
        for name, number in metrics.items():
            self.metrics.setdefault(name, []).append(number)

    def to_data(self) -> dict[str, Any]:
        """The history but for what tasks earned, as JSON can hold it."""
        kept = {
            key: [saved.to_data(one) for one in some] for key, some in self.replay_rollouts.items()
        }
        told = {"asked": self.tasks_drawn, "steps": self.num_steps}
        return {**told, "measured": self.metrics, "kept": kept}

    def tensors(self) -> dict[str, Tensor]:
        """What tasks earned."""
        return self.task_histories.tensors()

    @classmethod
    def from_data(cls, data: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> "History":
        """The history that `to_data` and `tensors` wrote."""
        measured = {name: list(numbers) for name, numbers in data["measured"].items()}
        kept = {key: tuple(map(saved.from_data, some)) for key, some in data["kept"].items()}
        return cls(
            data["asked"], TaskHistoryStore.from_tensors(tensors), measured, data["steps"], kept
        )
