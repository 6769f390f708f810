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
from grupo.training.collect import collect_groups, drop_failed_rollouts

TASKS = [Task(f"task {i}", "") for i in range(12)]


@dataclass(frozen=True)
class Acts:
    """Says what its stream is called; keeps who asked together, in which order."""

    asked: list[str]
    name: str = ""

    async def __call__(self, rollout: Rollout, seen: Observation) -> Action:
        self.asked.append(self.name)
        await asyncio.sleep(0)
        self.asked.append("answered")
        return Action((1,), (0.0,), text=self.name)

    async def recite(self, rollout: Rollout, seen: Observation, text: str) -> Action:
        raise AssertionError

    def fork(self, *label: object) -> "Acts":
        return replace(self, name="/".join(map(str, (self.name, *label))))


@dataclass
class World:
    """Judges groups in the order that it is told, each by what `hint_value` says of it."""

    worth: dict[str, Sequence[float]]
    order: Sequence[str] = ()
    arrived: dict[str, asyncio.Event] = field(default_factory=dict)

    async def reply(self, task: Task, rollout: Rollout) -> Observation | None:
        return None if rollout.turns else "go"

    async def score(self, task: Task, rollouts: Sequence[Rollout]) -> Sequence[RewardResult]:
        if "again" not in rollouts[0].text and task.key in self.order:
            place = self.order.index(task.key)
            if place:
                await self._judged(self.order[place - 1]).wait()
            await asyncio.sleep(0)
            self._judged(task.key).set()
        rewards = self.hint_value.get(task.key, (0.0, 1.0))
        return [RewardResult(r) if r >= 0 else RewardResult(error="broken") for r in rewards]

    def _judged(self, key: str) -> asyncio.Event:
        return self.arrived.setdefault(key, asyncio.Event())


def gathered(method: Method, world: World, history: History, prompts: int = 2):
    asked: list[str] = []
    act = Acts(asked)
    made = asyncio.run(
        collect_groups(method, world, act, TASKS, history, num_prompts=prompts, seed=0)
    )
    return made, asked


def upcoming(count: int) -> list[str]:
    """The keys of the tasks that come first."""
    made, _ = gathered(Method(sampler=GroupSampler(2)), World({}), History(), count)
    return [group.task.key for group in made.sampled_groups]


def test_groups_come_in_the_order_in_which_their_tasks_were_asked_for():
    method, history = Method(sampler=GroupSampler(2)), History()
    made, asked = gathered(method, World({}), history, 3)
    assert [group.task.key for group in made.sampled_groups] == upcoming(3)
    assert made.kept_groups == made.sampled_groups
    assert history.tasks_drawn == 3
    # each rollout has a stream of its own: the round, the group, the rollout
    assert [name for name in asked if name != "answered"] == [
        f"/0/{group}/{rollout}" for group in range(3) for rollout in range(2)
    ]


def test_what_curation_drops_is_asked_for_again_and_what_is_too_much_is_left():
    first, second, third, *_ = upcoming(6)
    method = Method(DynamicSampling(ShuffledTasks(), 3), GroupSampler(2), keep_nonzero_std)
    world, history = World({first: (1.0, 1.0), third: (0.0, 0.0)}), History()
    made, _ = gathered(method, world, history)
    # 2 asked, 1 kept; 1 asked, 0 kept; 1 asked, 1 kept
    assert len(made.sampled_groups) == 4
    assert [group.task.key for group in made.kept_groups] == [second, upcoming(4)[3]]
    assert history.tasks_drawn == 4


def test_a_run_out_of_rounds_learns_from_what_it_has():
    method = Method(DynamicSampling(ShuffledTasks(), 2), GroupSampler(2), keep_nonzero_std)
    made, _ = gathered(method, World({task.key: (1.0, 1.0) for task in TASKS}), History())
    assert (len(made.sampled_groups), made.kept_groups) == (4, ())


def test_a_rollout_that_could_not_be_judged_is_left_out_and_a_lone_one_too():
    ok, broken = Rollout(reward=1.0), Rollout(error="broken")
    assert drop_failed_rollouts(Group(TASKS[0], (ok, broken, ok))).rollouts == (ok, ok)
    assert drop_failed_rollouts(Group(TASKS[0], (ok, broken))).rollouts == ()
    assert drop_failed_rollouts(Group(TASKS[0], (broken, broken))).rollouts == ()
    assert drop_failed_rollouts(Group(TASKS[0], (ok,))).rollouts == (ok,)


def test_a_group_of_which_nothing_is_left_is_sampled_and_not_kept():
    first, second = upcoming(2)
    world = World({first: (-1.0, 0.5)})
    made, _ = gathered(Method(sampler=GroupSampler(2)), world, History())
    assert [group.task.key for group in made.sampled_groups] == [first, second]
    assert [group.task.key for group in made.kept_groups] == [second]


@pytest.mark.parametrize("worth", [(0.0, 0.0), (0.0, 1.0)])
def test_who_asks_the_policy_together_does_not_depend_on_how_long_judging_takes(worth):
    """Six groups, judged in each of 720 orders; every second one is sampled again twice."""
    keys = upcoming(6)
    worths = {key: (1.0, 1.0) if i % 2 else worth for i, key in enumerate(keys)}
    method = Method(sampler=ResampleUntilInformative(GroupSampler(2), 3))
    seen = {
        tuple(gathered(method, World(worths, order), History(), 6)[1])
        for order in permutations(keys)
    }
    assert len(seen) == 1
    (asked,) = seen
    again = [name for name in asked if "/again/1" in name]
    numbers = [i for i in range(6) if i % 2 or worth == (0.0, 0.0)]
    assert again == [f"/0/{i}/again/1/{rollout}" for i in numbers for rollout in range(2)]


def test_a_judge_that_raises_ends_the_step_with_its_error():
    class Broken(World):
        async def score(self, task, rollouts):
            raise RuntimeError("no verdict")

    with pytest.raises(RuntimeError, match="no verdict"):
        gathered(Method(sampler=GroupSampler(2)), Broken({}), History())
