"""Rollouts that a later round adds to the group of an earlier round."""

from dataclasses import replace

from grupo.core.types import Group, Rollout, Task
from grupo.training.collect.collected_groups import extend_groups

SUM, RIDDLE = Task("sum", "1 + 1"), Task("riddle", "Why?")


def group(task: Task, *rewards: float, extends_group: bool = False) -> Group:
    """A group with a rollout for each reward."""
    task = replace(task, extends_group=extends_group)
    return Group(task, tuple(Rollout(reward_terms={"total": x}, reward=x) for x in rewards))


def rewards(groups: list[Group]) -> list[list[float]]:
    return [[rollout.reward for rollout in group.rollouts] for group in groups]


def test_an_extension_is_added_to_the_group_of_its_task():
    earlier = [group(SUM, 1), group(RIDDLE, 0)]
    extended = extend_groups(earlier, [group(RIDDLE, 0.5, 0.25, extends_group=True)])
    assert rewards(extended) == [[1], [0, 0.5, 0.25]]
    assert rewards(earlier) == [[1], [0]]


def test_other_groups_of_the_round_and_extensions_without_a_group_are_left_out():
    added = [group(SUM, 0.5), group(RIDDLE, 0.25, extends_group=True)]
    assert rewards(extend_groups([group(SUM, 1)], added)) == [[1]]


def test_of_two_groups_of_a_task_the_last_one_is_extended_and_the_first_one_is_unchanged():
    earlier = [group(SUM, 1), group(SUM, 0)]
    extended = extend_groups(earlier, [group(SUM, 0.5, extends_group=True)])
    assert rewards(extended) == [[1], [0, 0.5]]
