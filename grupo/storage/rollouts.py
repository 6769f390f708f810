"""Rollouts as plain data, and back: those that were sampled for a later step are saved with it."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from grupo.gather import Gathered
from grupo.rollout import Action, Group, Observation, Rollout, Task


def to_data(gathered: Gathered) -> dict[str, Any]:
    """Every rollout once; groups name their task by its key and their rollouts by number."""
    groups = (*gathered.sampled, *gathered.kept)
    every = {id(r): r for group in groups for r in group.rollouts}
    number = {rollout: i for i, rollout in enumerate(every)}

    def named(some: Sequence[Group]) -> list[Any]:
        return [
            [g.task.key, g.task.attempts, g.task.prompt, [number[id(r)] for r in g.rollouts]]
            for g in some
        ]

    return {
        "rollouts": [_rollout(r) for r in every.values()],
        "sampled": named(gathered.sampled),
        "kept": named(gathered.kept),
    }


def from_data(data: Mapping[str, Any], tasks: Sequence[Task]) -> Gathered:
    """What `to_data` wrote, its tasks among these."""
    known = {task.key: task for task in tasks}
    rollouts = [_read(one) for one in data["rollouts"]]

    def groups(named: Sequence[Any]) -> tuple[Group, ...]:
        return tuple(
            Group(
                replace(known[key], attempts=attempts, prompt=_heard(prompt)),
                tuple(rollouts[i] for i in places),
            )
            for key, attempts, prompt, places in named
        )

    return Gathered(groups(data["sampled"]), groups(data["kept"]))


def _rollout(rollout: Rollout) -> dict[str, Any]:
    turns = [[seen, vars(action)] for seen, action in rollout.turns]
    return {**vars(rollout), "turns": turns}


def _read(data: Mapping[str, Any]) -> Rollout:
    turns = tuple((_heard(seen), _action(action)) for seen, action in data["turns"])
    marks = {name: tuple(numbers) for name, numbers in data["marks"].items()}
    return Rollout(**{**data, "turns": turns, "marks": marks})


def _action(data: Mapping[str, Any]) -> Action:
    tuples = {name: tuple(data[name]) for name in ("parts", "logp", "seen")}
    return Action(**{**data, **tuples})


def _heard(seen: Any) -> Observation:
    return seen if isinstance(seen, str) else tuple(seen)
