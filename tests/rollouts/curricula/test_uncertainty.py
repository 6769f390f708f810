"""Rollouts by the expected drop of uncertainty: priorities by hand, budgets, and steps."""

import asyncio
from collections import Counter
from dataclasses import dataclass, replace
from math import log, sqrt

import pytest

from grupo.core.types import Group, RewardResult, Rollout, Task
from grupo.method import Method
from grupo.rollouts.curricula import CurriculumRequest, ShuffledTasks, UncertaintyAllocation
from grupo.rollouts.history import History
from grupo.rollouts.samplers import GroupSampler
from grupo.training.collect.groups import collect_groups
from grupo.util.errors import ConfigError
from tests.helpers.scripted_actor import END, Script

TASKS = [Task(str(i), "?") for i in range(4)]
ALLOCATION = UncertaintyAllocation(ShuffledTasks(), 4, 8, phases=2)


def test_the_priority_by_hand():
    # t with 3 and 4 degrees of freedom: 3.1824 and 2.7764
    drop = 0.5 * (3.1824 / 2 - 2.7764 / sqrt(5))
    bonus = 0.1 * sqrt(log(17) / 4)
    assert ALLOCATION.priority(0.5, 4, 16) == pytest.approx(drop + bonus, abs=1e-4)
    assert ALLOCATION.priority(0.0, 4, 16) == pytest.approx(bonus)


def test_rollouts_go_to_the_task_whose_rewards_vary():
    rewards = {"varies": [0.0, 1.0, 0.0, 1.0], "fails": [0.0] * 4}
    assert ALLOCATION.allocate(rewards, 1) == {"varies": 1, "fails": 0}
    assert replace(ALLOCATION, exploration_coef=0.0).allocate(rewards, 8)["fails"] == 0
    only_bonus = ALLOCATION.allocate({"a": [0.0] * 4, "b": [1.0] * 6}, 2)
    assert only_bonus == {"a": 2, "b": 0}  # the fewest rollouts first


def test_phases_share_the_budget():
    groups = [Group(task, (*[Rollout(reward=float(i % 2)) for i in range(4)],)) for task in TASKS]
    for phase, budget in ((1, 8), (2, 8), (3, 0)):
        drawn = ALLOCATION(CurriculumRequest(TASKS, History(), 0, 0, phase, groups))
        assert sum(task.group_size for task in drawn) == budget
        assert all(task.extends_group for task in drawn)
    uneven = replace(ALLOCATION, mean_group_size=5, phases=3)
    sizes = [
        sum(t.group_size for t in uneven(CurriculumRequest(TASKS, History(), 0, 0, k, groups)))
        for k in (1, 2, 3)
    ]
    assert sizes == [1, 1, 2]


@dataclass
class SomeVary:
    """Rollouts of the tasks with an even key are correct by turns, others never."""

    async def reply(self, task, rollout):
        return None if rollout.turns else task.prompt

    async def score(self, task, rollouts):
        varies = int(task.key) % 2 == 0
        return [RewardResult(float(varies and i % 2)) for i in range(len(rollouts))]


def test_a_step_has_its_budget_where_rewards_vary():
    method = Method(curriculum=replace(ALLOCATION, exploration_coef=0.0), sampler=GroupSampler(8))
    history = History()
    actor = Script(lambda context, key: END, [])
    collected = asyncio.run(
        collect_groups(method, SomeVary(), actor, TASKS, history, num_prompts=4, seed=0)
    )
    sizes = {group.task.key: len(group.rollouts) for group in collected.kept_groups}
    assert sizes == {"0": 12, "1": 4, "2": 12, "3": 4}  # 8 on average
    assert collected.kept_groups == collected.sampled_groups
    indices = Counter(r.index for group in collected.kept_groups for r in group.rollouts)
    assert indices == Counter(range(32))
    assert len(collected.rank_of_rollout) == 32
    assert history.num_tasks_drawn == 4


def test_group_sizes_out_of_range_are_errors():
    with pytest.raises(ConfigError, match=r"first_group_size: 1\. Allowed: 2 or more"):
        UncertaintyAllocation(ShuffledTasks(), 1)
    with pytest.raises(ConfigError, match=r"mean_group_size: 3\. Allowed: first_group_size, 4, or"):
        UncertaintyAllocation(ShuffledTasks(), 4, 3)
