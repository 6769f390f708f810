"""Rollouts as plain data, and back: those that were sampled for a later step are saved with it."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from grupo.core.types import Group, Task
from grupo.storage import rollout_json
from grupo.training.collect import CollectedGroups


def to_data(collected: CollectedGroups) -> dict[str, Any]:
    """Every rollout once; groups name their task by its key and their rollouts by number."""
    groups = (*collected.sampled_groups, *collected.kept_groups)
    every = {id(r): r for group in groups for r in group.rollouts}
    number = {name: i for i, name in enumerate(every)}

    def named(some: Sequence[Group]) -> list[Any]:
        return [
            [g.task.key, g.task.group_size, g.task.prompt, [number[id(r)] for r in g.rollouts]]
            for g in some
        ]

    return {
        "rollouts": [rollout_json.to_data(r) for r in every.values()],
        "sampled": named(collected.sampled_groups),
        "kept": named(collected.kept_groups),
    }


def from_data(data: Mapping[str, Any], tasks: Sequence[Task]) -> CollectedGroups:
    """What `to_data` wrote, its tasks among these."""
    known = {task.key: task for task in tasks}
    rollouts = [rollout_json.from_data(one) for one in data["rollouts"]]

    def groups(named: Sequence[Any]) -> tuple[Group, ...]:
        return tuple(
            Group(
                replace(
                    known[key], group_size=attempts, prompt=rollout_json.as_observation(prompt)
                ),
                tuple(rollouts[i] for i in places),
            )
            for key, attempts, prompt, places in named
        )

    return CollectedGroups(groups(data["sampled"]), groups(data["kept"]))
