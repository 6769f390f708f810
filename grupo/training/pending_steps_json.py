"""Rollouts as plain data, and back: those that were sampled for a later step are saved with it."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from grupo.core.types import Group, Task
from grupo.storage import rollout_json
from grupo.training.collect import Gathered


def to_data(gathered: Gathered) -> dict[str, Any]:
    """Every rollout once; groups name their task by its key and their rollouts by number."""
    groups = (*gathered.sampled, *gathered.kept)
    every = {id(r): r for group in groups for r in group.rollouts}
    number = {name: i for i, name in enumerate(every)}

    def named(some: Sequence[Group]) -> list[Any]:
        return [
            [g.task.key, g.task.attempts, g.task.prompt, [number[id(r)] for r in g.rollouts]]
            for g in some
        ]

    return {
        "rollouts": [rollout_json.to_data(r) for r in every.values()],
        "sampled": named(gathered.sampled),
        "kept": named(gathered.kept),
    }


def from_data(data: Mapping[str, Any], tasks: Sequence[Task]) -> Gathered:
    """What `to_data` wrote, its tasks among these."""
    known = {task.key: task for task in tasks}
    rollouts = [rollout_json.from_data(one) for one in data["rollouts"]]

    def groups(named: Sequence[Any]) -> tuple[Group, ...]:
        return tuple(
            Group(
                replace(known[key], attempts=attempts, prompt=rollout_json.heard(prompt)),
                tuple(rollouts[i] for i in places),
            )
            for key, attempts, prompt, places in named
        )

    return Gathered(groups(data["sampled"]), groups(data["kept"]))
