"""What happened: per task the rewards of its past groups. Append-only; state is a fold over it."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from grupo.batch import Past
from grupo.rollout import Group, Task


@dataclass
class History:
    """What a run remembers of its tasks.

    Functions read it and stay pure; only the trainer writes.
    """

    asked: int = 0  # tasks handed out so far
    tasks: dict[str, Past] = field(default_factory=dict)

    def of(self, task: Task) -> Past:
        """What happened to this task before."""
        return self.tasks.get(task.key, Past())

    def ask(self, count: int) -> None:
        """Note that so many tasks were handed out."""
        self.asked += count

    def record(self, step: int, groups: Iterable[Group]) -> None:
        """Append a step's groups, but for those of which nothing could be judged."""
        for group in groups:
            rewards = tuple(rollout.reward for rollout in group.rollouts if not rollout.failed)
            if rewards:
                past = self.of(group.task)
                self.tasks[group.task.key] = Past((*past.steps, step), (*past.rewards, rewards))

    def to_data(self) -> dict[str, Any]:
        """The history as JSON can hold it."""
        tasks = {key: [past.steps, past.rewards] for key, past in self.tasks.items()}
        return {"asked": self.asked, "tasks": tasks}

    @classmethod
    def from_data(cls, data: Mapping[str, Any]) -> "History":
        """The history that `to_data` wrote."""
        tasks = {
            key: Past(tuple(s), tuple(tuple(r) for r in rs))
            for key, (s, rs) in data["tasks"].items()
        }
        return cls(data["asked"], tasks)
