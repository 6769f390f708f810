"""Online difficulty filtering: groups by accuracy, and steps of exactly N groups."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

import pytest

from grupo.algo.filters import KeepAccuracy
from grupo.core.schedules import Linear, resolve_schedules
from grupo.core.types import Group, RewardResult, Rollout, Task
from grupo.methods.online_difficulty_filtering import online_difficulty_filtering
from grupo.rollouts.curricula import DynamicSampling
from grupo.rollouts.history import History
from grupo.training.collect.groups import collect_groups
from grupo.util.errors import ConfigError
from tests.helpers.scripted_actor import END, Script

ACCURACIES = (0.0, 0.1, 0.5, 0.75, 1.0)
METHOD = online_difficulty_filtering(group_size=20, max_resample_rounds=3)


def group(accuracy, size=20):
    correct = round(accuracy * size)
    return Group(
        Task("k", "?"),
        (*[Rollout(reward=1.0)] * correct, *[Rollout(reward=0.0)] * (size - correct)),
    )


def test_groups_of_medium_accuracy_are_kept():
    groups = [group(p) for p in ACCURACIES]
    kept = KeepAccuracy(0.25, 0.75)(groups)
    assert [groups.index(g) for g in kept] == [2, 3]


def test_the_closest_groups_complete_a_step():
    keep = KeepAccuracy(0.25, 0.75)
    groups = [group(p) for p in ACCURACIES]  # distances 0.25, 0.15, 0, 0, 0.25
    finished = [keep.finish_step(keep(groups), groups, n) for n in (2, 3, 5)]
    assert [[groups.index(g) for g in kept] for kept in finished] == [
        [2, 3],
        [2, 3, 1],
        [2, 3, 1, 0, 4],
    ]


def test_an_interval_whose_ends_are_swapped_is_an_error():
    with pytest.raises(ConfigError, match=r"KeepAccuracy.low: 0.8. Allowed: at most high, 0.2"):
        KeepAccuracy(0.8, 0.2)


def test_the_ends_of_the_interval_may_be_schedules():
    filter_of_step = resolve_schedules(KeepAccuracy(Linear(0.0, 0.5), 0.75), 0.5)
    assert filter_of_step == KeepAccuracy(0.25, 0.75)


@dataclass
class AccuracyEnv:
    """The first rollouts of a task are correct, as many as its reference answer says."""

    num_groups: int = 0

    async def reply(self, task, rollout):
        return None if rollout.turns else task.prompt

    async def score(self, task: Task, rollouts: Sequence[Rollout]):
        self.num_groups += 1
        correct = round(task.reference_answer * len(rollouts))
        return [RewardResult(float(i < correct)) for i in range(len(rollouts))]


def select_groups_of_step(accuracies, num_groups):
    """The accuracies of the groups of a step, and the number of groups that were generated."""
    tasks = [Task(str(i), "?", p) for i, p in enumerate(accuracies)]
    env = AccuracyEnv()
    actor = Script(lambda context, key: END, [])
    collected = asyncio.run(
        collect_groups(METHOD, env, actor, tasks, History(), num_groups=num_groups, seed=0)
    )
    return [g.task.reference_answer for g in collected.kept_groups], env.num_groups


def test_a_step_has_exactly_n_groups():
    medium, generated = select_groups_of_step([0.0, 0.5] * 30, 4)
    assert medium == [0.5] * 4
    assert 4 < generated <= 3 * 4
    closest, generated = select_groups_of_step([0.0, 0.1, 0.95, 1.0] * 3, 4)
    assert generated == 3 * 4  # all rounds, and all tasks once
    assert closest == [0.1, 0.1, 0.1, 0.95]


def test_the_method_refills_and_filters():
    assert METHOD.curriculum == DynamicSampling(METHOD.curriculum.inner, 3)
    assert METHOD.filter == KeepAccuracy(0.25, 0.75)
