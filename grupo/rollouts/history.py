"""What happened: per task its past groups, and what controllers read of the metrics.

Append-only; state is a fold over it. Tasks take little memory each, whatever happened to them, and
a copy takes none. Where a method replays, rollouts are kept too, bounded by task and in all.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from torch import Tensor

from grupo.core.batch import Past
from grupo.core.types import Group, Rollout, Task
from grupo.rollouts.task_history import Pasts
from grupo.storage import rollout_json as saved

KEPT = 4096  # tasks whose rollouts are kept at once; who was not asked for longest goes first


@dataclass
class History:
    """What a run remembers.

    Functions read it and stay pure; only the trainer writes.
    """

    asked: int = 0  # tasks handed out so far
    tasks: Pasts = field(default_factory=Pasts)
    measured: dict[str, list[float]] = field(default_factory=dict)  # metrics, a value each step
    steps: int = 0  # recorded so far
    kept: dict[str, tuple[Rollout, ...]] = field(default_factory=dict)  # to be replayed, by task

    def copy(self) -> "History":
        """The history until now, to be read while this one goes on."""
        measured = {name: list(numbers) for name, numbers in self.measured.items()}
        return History(self.asked, self.tasks.copy(), measured, self.steps, dict(self.kept))

    def of(self, task: Task) -> Past:
        """What happened to this task before."""
        return self.tasks.get(task.key, Past())

    def recalled(self, task: Task) -> Task:
        """The task with those of its earlier rollouts that were kept, oldest first."""
        before = self.kept.get(task.key, ())
        return replace(task, before=before) if before else task

    def ask(self, count: int) -> None:
        """Note that so many tasks were handed out."""
        self.asked += count

    def record(
        self, step: int, groups: Iterable[Group], parts: Collection[str] = (), replays: int = 0
    ) -> None:
        """Append a step's groups, but for those of which nothing could be judged.

        Of the components of their rewards only those in `parts` are remembered; of the rollouts
        themselves the newest `replays` of a task's best, and as many of its worst.
        """
        self.steps = step + 1
        for group in groups:
            judged = [rollout for rollout in group.rollouts if not rollout.failed]
            if judged:
                rewards = [rollout.reward for rollout in judged]
                told = {name: [r.parts.get(name, 0.0) for r in judged] for name in parts}
                self.tasks.append(group.task.key, step, rewards, told)
                if replays:
                    self._keep(group.task, judged, replays)

    def _keep(self, task: Task, judged: Sequence[Rollout], count: int) -> None:
        every = (*self.kept.pop(task.key, ()), *judged)
        worst = sorted(range(len(every)), key=lambda i: (every[i].reward, -i))[:count]
        best = sorted(range(len(every)), key=lambda i: (every[i].reward, i))[-count:]
        self.kept[task.key] = tuple(every[i] for i in sorted({*worst, *best}))
        if len(self.kept) > KEPT:
            del self.kept[next(iter(self.kept))]

    def measure(self, numbers: Mapping[str, float]) -> None:
        """Append what was measured of a step."""
        for name, number in numbers.items():
            self.measured.setdefault(name, []).append(number)

    def to_data(self) -> dict[str, Any]:
        """The history but for what tasks earned, as JSON can hold it."""
        kept = {key: [saved.to_data(one) for one in some] for key, some in self.kept.items()}
        told = {"asked": self.asked, "steps": self.steps}
        return {**told, "measured": self.measured, "kept": kept}

    def tensors(self) -> dict[str, Tensor]:
        """What tasks earned."""
        return self.tasks.tensors()

    @classmethod
    def from_data(cls, data: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> "History":
        """The history that `to_data` and `tensors` wrote."""
        measured = {name: list(numbers) for name, numbers in data["measured"].items()}
        kept = {key: tuple(map(saved.from_data, some)) for key, some in data["kept"].items()}
        return cls(data["asked"], Pasts.from_tensors(tensors), measured, data["steps"], kept)
