"""Collection of a step's groups: order, refilling, failed rollouts, and a fixed release order."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import permutations

import pytest

from grupo.algo.filters import keep_nonzero_std
from grupo.core.types import Action, Group, Observation, RewardResult, Rollout, Task
from grupo.method import Method
from grupo.rollouts.curricula import DynamicSampling, ShuffledTasks
from grupo.rollouts.history import History
from grupo.rollouts.samplers import GroupSampler, ResampleUntilInformative
from grupo.training.collect import CollectedGroups, collect_groups, drop_failed_rollouts

TASKS = [Task(f"task {i}", "") for i in range(12)]


@dataclass(frozen=True)
class NamingActor:
    """Generates the label of its random stream as text, and logs the order of requests."""

    log: list[str]
    label: str = ""

    async def __call__(self, rollout: Rollout, observation: Observation) -> Action:
        self.log.append(self.label)
        await asyncio.sleep(0)
        self.log.append("answered")
        return Action((1,), (0.0,), text=self.label)

    async def prefill_forced(self, rollout: Rollout, observation: Observation, text: str) -> Action:
        raise AssertionError

    def fork(self, *label: object) -> "NamingActor":
        return replace(self, label="/".join(map(str, (self.label, *label))))


@dataclass
class OrderedEnv:
    """Scores groups in a given order; a group's rewards are 0 and 1 unless listed.

    A negative reward is a failed rollout.
    """

    rewards: dict[str, Sequence[float]]
    order: Sequence[str] = ()
    scored: dict[str, asyncio.Event] = field(default_factory=dict)

    async def reply(self, task: Task, rollout: Rollout) -> Observation | None:
        return None if rollout.turns else "go"

    async def score(self, task: Task, rollouts: Sequence[Rollout]) -> Sequence[RewardResult]:
        if "again" not in rollouts[0].text and task.key in self.order:
            place = self.order.index(task.key)
            if place:
                await self._scored(self.order[place - 1]).wait()
            await asyncio.sleep(0)
            self._scored(task.key).set()
        rewards = self.rewards.get(task.key, (0.0, 1.0))
        return [RewardResult(r) if r >= 0 else RewardResult(error="broken") for r in rewards]

    def _scored(self, key: str) -> asyncio.Event:
        return self.scored.setdefault(key, asyncio.Event())


def collect(
    method: Method, env: OrderedEnv, history: History, num_prompts: int = 2
) -> tuple[CollectedGroups, list[str]]:
    """The collected groups, and the log of the actor."""
    log: list[str] = []
    collected = asyncio.run(
        collect_groups(
            method, env, NamingActor(log), TASKS, history, num_prompts=num_prompts, seed=0
        )
    )
    return collected, log


def task_keys(groups: Sequence[Group]) -> list[str]:
    return [group.task.key for group in groups]


def first_keys(count: int) -> list[str]:
    """The keys of the tasks that the curriculum draws first."""
    collected, _ = collect(Method(sampler=GroupSampler(2)), OrderedEnv({}), History(), count)
    return task_keys(collected.sampled_groups)


def test_groups_have_the_order_in_which_their_tasks_were_drawn():
    method, history = Method(sampler=GroupSampler(2)), History()
    collected, log = collect(method, OrderedEnv({}), history, 3)
    assert task_keys(collected.sampled_groups) == first_keys(3)
    assert collected.kept_groups == collected.sampled_groups
    assert history.tasks_drawn == 3
    # each rollout has a random stream of its own: round, group, rollout
    assert [label for label in log if label != "answered"] == [
        f"/0/{group}/{rollout}" for group in range(3) for rollout in range(2)
    ]


def test_dropped_groups_are_refilled_and_surplus_groups_left_out():
    first, second, third, *_ = first_keys(6)
    method = Method(DynamicSampling(ShuffledTasks(), 3), GroupSampler(2), keep_nonzero_std)
    env, history = OrderedEnv({first: (1.0, 1.0), third: (0.0, 0.0)}), History()
    collected, _ = collect(method, env, history)
    # 2 drawn, 1 kept; 1 drawn, 0 kept; 1 drawn, 1 kept
    assert len(collected.sampled_groups) == 4
    assert task_keys(collected.kept_groups) == [second, first_keys(4)[3]]
    assert history.tasks_drawn == 4


def test_a_step_without_rounds_left_keeps_what_it_has():
    method = Method(DynamicSampling(ShuffledTasks(), 2), GroupSampler(2), keep_nonzero_std)
    env = OrderedEnv({task.key: (1.0, 1.0) for task in TASKS})
    collected, _ = collect(method, env, History())
    assert (len(collected.sampled_groups), collected.kept_groups) == (4, ())


def test_failed_rollouts_are_dropped_and_a_single_remaining_one_too():
    scored, failed = Rollout(reward=1.0), Rollout(error="broken")
    task = TASKS[0]
    assert drop_failed_rollouts(Group(task, (scored, failed, scored))).rollouts == (scored, scored)
    assert drop_failed_rollouts(Group(task, (scored, failed))).rollouts == ()
    assert drop_failed_rollouts(Group(task, (failed, failed))).rollouts == ()
    assert drop_failed_rollouts(Group(task, (scored,))).rollouts == (scored,)


def test_a_group_without_rollouts_left_is_sampled_and_not_kept():
    first, second = first_keys(2)
    env = OrderedEnv({first: (-1.0, 0.5)})
    collected, _ = collect(Method(sampler=GroupSampler(2)), env, History())
    assert task_keys(collected.sampled_groups) == [first, second]
    assert task_keys(collected.kept_groups) == [second]


@pytest.mark.parametrize("rewards", [(0.0, 0.0), (0.0, 1.0)])
def test_the_order_of_generation_does_not_depend_on_reward_latency(rewards):
    """Six groups, scored in each of 720 orders; every second one is sampled twice again."""
    keys = first_keys(6)
    rewards_by_key = {key: (1.0, 1.0) if i % 2 else rewards for i, key in enumerate(keys)}
    method = Method(sampler=ResampleUntilInformative(GroupSampler(2), 3))
    logs = {
        tuple(collect(method, OrderedEnv(rewards_by_key, order), History(), 6)[1])
        for order in permutations(keys)
    }
    assert len(logs) == 1
    (log,) = logs
    resampled = [label for label in log if "/again/1" in label]
    groups = [i for i in range(6) if i % 2 or rewards == (0.0, 0.0)]
    assert resampled == [f"/0/{i}/again/1/{rollout}" for i in groups for rollout in range(2)]


def test_an_exception_in_scoring_ends_the_step():
    class BrokenEnv(OrderedEnv):
        async def score(self, task, rollouts):
            raise RuntimeError("no score")

    with pytest.raises(RuntimeError, match="no score"):
        collect(Method(sampler=GroupSampler(2)), BrokenEnv({}), History())
