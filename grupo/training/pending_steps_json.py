"""Conversion of collected groups to plain data and back: steps generated ahead are checkpointed."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from grupo.core.types import Group, Task
from grupo.storage import rollout_json
from grupo.training.collect import CollectedGroups
from grupo.training.unfinished_groups import restored_groups


def to_data(collected: CollectedGroups) -> dict[str, Any]:
    """The groups as JSON can hold them.

    Each rollout is stored once; a group holds its task's key and the indices of its rollouts.
    """
    groups = (*collected.sampled_groups, *collected.kept_groups)
    rollouts = {id(rollout): rollout for group in groups for rollout in group.rollouts}
    index = {rollout_id: i for i, rollout_id in enumerate(rollouts)}

    def group_data(group: Group) -> list[Any]:
        task = group.task
        return [task.key, task.group_size, task.prompt, [index[id(r)] for r in group.rollouts]]

    return {
        "rollouts": [rollout_json.to_data(rollout) for rollout in rollouts.values()],
        "sampled_groups": [group_data(group) for group in collected.sampled_groups],
        "kept_groups": [group_data(group) for group in collected.kept_groups],
        "unfinished_groups": [group.to_data() for group in collected.unfinished_groups],
    }


def from_data(data: Mapping[str, Any], tasks: Sequence[Task]) -> CollectedGroups:
    """The groups that `to_data` converted; `tasks` must include the tasks of all groups."""
    wanted = {key for name in ("sampled_groups", "kept_groups") for key, *_ in data[name]}
    task_by_key = {task.key: task for task in tasks if task.key in wanted}
    rollouts = [rollout_json.from_data(entry) for entry in data["rollouts"]]

    def group(key: str, group_size: int, prompt: Any, indices: Sequence[int]) -> Group:
        prompt = rollout_json.as_observation(prompt)
        task = replace(task_by_key[key], group_size=group_size, prompt=prompt)
        return Group(task, tuple(rollouts[i] for i in indices))

    sampled = tuple(group(*entry) for entry in data["sampled_groups"])
    kept = tuple(group(*entry) for entry in data["kept_groups"])
    unfinished = restored_groups(data["unfinished_groups"], tasks)
    return CollectedGroups(sampled, kept, unfinished_groups=unfinished)
