"""What happened: per task its past groups, and what controllers read of the metrics.

Append-only; state is a fold over it.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from grupo.batch import Past
from grupo.rollout import Group, Rollout, Task


@dataclass
class History:
    """What a run remembers.

    Functions read it and stay pure; only the trainer writes.
    """

    asked: int = 0  # tasks handed out so far
    tasks: dict[str, Past] = field(default_factory=dict)
    measured: dict[str, list[float]] = field(default_factory=dict)  # metrics, a value each step

    def copy(self) -> "History":
        """The history until now, to be read while this one goes on."""
        measured = {name: list(numbers) for name, numbers in self.measured.items()}
        return History(self.asked, dict(self.tasks), measured)

    def of(self, task: Task) -> Past:
        """What happened to this task before."""
        return self.tasks.get(task.key, Past())

    def ask(self, count: int) -> None:
        """Note that so many tasks were handed out."""
        self.asked += count

    def record(self, step: int, groups: Iterable[Group], parts: Collection[str] = ()) -> None:
        """Append a step's groups, but for those of which nothing could be judged.

        Of the components of their rewards only those in `parts` are remembered.
        """
        for group in groups:
            judged = [rollout for rollout in group.rollouts if not rollout.failed]
            if judged:
                past = self.of(group.task)
                self.tasks[group.task.key] = Past(
                    (*past.steps, step),
                    (*past.rewards, tuple(rollout.reward for rollout in judged)),
                    {**past.parts, **{n: (*past.parts.get(n, ()), _of(n, judged)) for n in parts}},
                )

    def measure(self, numbers: Mapping[str, float]) -> None:
        """Append what was measured of a step."""
        for name, number in numbers.items():
            self.measured.setdefault(name, []).append(number)

    def to_data(self) -> dict[str, Any]:
        """The history as JSON can hold it."""
        tasks = {k: [past.steps, past.rewards, past.parts] for k, past in self.tasks.items()}
        return {"asked": self.asked, "tasks": tasks, "measured": self.measured}

    @classmethod
    def from_data(cls, data: Mapping[str, Any]) -> "History":
        """The history that `to_data` wrote."""
        tasks = {
            key: Past(tuple(s), _tuples(rs), {name: _tuples(xs) for name, xs in parts.items()})
            for key, (s, rs, parts) in data["tasks"].items()
        }
        measured = {name: list(numbers) for name, numbers in data["measured"].items()}
        return cls(data["asked"], tasks, measured)


def _of(name: str, rollouts: Sequence[Rollout]) -> tuple[float, ...]:
    return tuple(rollout.parts.get(name, 0.0) for rollout in rollouts)


def _tuples(rows: Iterable[Iterable[float]]) -> tuple[tuple[float, ...], ...]:
    return tuple(tuple(row) for row in rows)
