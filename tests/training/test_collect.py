"""Collection of a step's groups: order, refilling, failed rollouts, and a fixed release order."""

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import permutations

import pytest

from grupo.algo.filters import keep_nonzero_std
from grupo.core.interfaces import Actor, Env, score_group
from grupo.core.types import Group, Observation, Response, Rollout, Task
from grupo.inference.batcher import DynamicBatcher
from grupo.method import Method
from grupo.rollouts.curricula import DynamicSampling, ShuffledTasks, UnfinishedFirst
from grupo.rollouts.history import History
from grupo.rollouts.samplers import GroupSampler, ResampleUntilInformative
from grupo.training.collect.failed_rollouts import drop_failed_rollouts
from grupo.training.collect.groups import collect_groups
from grupo.util.event_loop import run_coroutine
from tests.helpers.scripted_collection import TASKS, OrderedEnv, collect, first_keys, task_keys


def test_groups_have_the_order_in_which_their_tasks_were_drawn():
    method, history = Method(sampler=GroupSampler(2)), History()
    collected, log = collect(method, OrderedEnv({}), history, 3)
    assert task_keys(collected.sampled_groups) == first_keys(3)
    assert collected.kept_groups == collected.sampled_groups
    assert history.num_tasks_drawn == 3
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
    assert history.num_tasks_drawn == 4


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


@pytest.mark.slow
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


@dataclass(frozen=True)
class TwoHalves:
    """Generates and scores the two halves of a group independently."""

    async def __call__(self, task: Task, env: Env, actor: Actor) -> Group:
        halves = (GroupSampler(1)(task, env, actor.fork(i)) for i in range(2))
        groups = await asyncio.gather(*halves)
        return Group(task, tuple(rollout for group in groups for rollout in group.rollouts))


def test_a_group_whose_parts_are_scored_separately_waits_for_all_groups():
    """Three groups, each sampled twice again, scored in each of six orders."""
    keys = first_keys(3)
    method = Method(sampler=ResampleUntilInformative(TwoHalves(), 3))
    rewards = dict.fromkeys(keys, (1.0,))
    logs = {
        tuple(collect(method, OrderedEnv(rewards, order), History(), 3)[1])
        for order in permutations(keys)
    }
    assert len(logs) == 1
    (log,) = logs
    labels = [label for label in log if label != "answered"]
    assert [label.count("again") for label in labels] == [0] * 6 + [1] * 12


@dataclass(frozen=True)
class ImpatientSampler:
    """Generates after scoring; for one task, it first cancels the scoring of another rollout."""

    async def __call__(self, task: Task, env: Env, actor: Actor) -> Group:
        if task == TASKS[0]:
            scoring = asyncio.create_task(env.score(task, [Rollout()]))
            await asyncio.sleep(0)
            scoring.cancel()
            for _ in range(20):  # meanwhile, the other groups are scored
                await asyncio.sleep(0)
        group = await GroupSampler(2)(task, env, actor)
        await actor.fork("last")(Rollout(), "")
        return group


def test_rewards_are_not_released_because_of_a_cancelled_call():
    method = Method(sampler=ImpatientSampler())
    _, log = collect(method, OrderedEnv({}), History(), len(TASKS))
    labels = [label for label in log if label != "answered"]
    assert ["last" in label for label in labels] == [False] * 24 + [True] * 12


def test_an_exception_in_scoring_ends_the_step():
    class BrokenEnv(OrderedEnv):
        async def score(self, task, rollouts):
            raise RuntimeError("no score")

    with pytest.raises(RuntimeError, match="no score"):
        collect(Method(sampler=GroupSampler(2)), BrokenEnv({}), History())


@dataclass
class CountedEnv:
    """A stateful environment that counts how often it is opened."""

    opened: int = 0

    def open(self) -> OrderedEnv:
        self.opened += 1
        return OrderedEnv({task.key: (1.0, 1.0) for task in TASKS})


def test_an_environment_with_state_is_opened_once_for_each_step():
    method = Method(DynamicSampling(ShuffledTasks(), 3), GroupSampler(2), keep_nonzero_std)
    env = CountedEnv()
    collected, _ = collect(method, env, History())
    assert (env.opened, len(collected.sampled_groups)) == (1, 6)
    collect(method, env, History())
    assert env.opened == 2


def test_the_rollouts_of_all_rounds_are_numbered_in_order():
    method = Method(DynamicSampling(ShuffledTasks(), 3), GroupSampler(2), keep_nonzero_std)
    env = OrderedEnv({task.key: (1.0, 1.0) for task in TASKS})
    collected, _ = collect(method, env, History())
    indices = [rollout.index for group in collected.sampled_groups for rollout in group.rollouts]
    assert indices == list(range(12))


@dataclass(frozen=True)
class BatchedActor:
    """Requests its text, its label and the number of turns, from a batcher."""

    batcher: DynamicBatcher[str, str]
    label: str = ""

    async def __call__(self, rollout: Rollout, observation: Observation) -> Response:
        text = await self.batcher(f"{self.label}:{len(rollout.turns)}")
        return Response((1,), (0.0,), text=text)

    def fork(self, *label: object) -> "BatchedActor":
        return replace(self, label="/".join(map(str, (self.label, *label))))


class TwoTurnEnv(OrderedEnv):
    """Two turns per rollout."""

    async def reply(self, task, rollout):
        return None if len(rollout.turns) == 2 else "go"


@dataclass(frozen=True)
class NestedSampler:
    """Plays two rollouts below nested gathers, after having yielded to the event loop."""

    async def __call__(self, task: Task, env: Env, actor: Actor) -> Group:
        number = TASKS.index(task)

        async def nested(i: int, levels: int) -> Rollout:
            if levels:
                return (await asyncio.gather(nested(i, levels - 1)))[0]
            rollout = Rollout()
            while (observation := await env.reply(task, rollout)) is not None:
                for _ in range(200 * (number % 2)):
                    await asyncio.sleep(0)
                rollout = rollout.append_turn(
                    observation, await actor.fork(i)(rollout, observation)
                )
            return rollout

        rollouts = await asyncio.gather(*(nested(i, 30 * number) for i in range(2)))
        return await score_group(task, env, rollouts)


def test_each_batch_has_the_requests_of_all_rollouts_of_the_step():
    batches: list[list[str]] = []

    def answer(requests: Sequence[str]) -> Iterator[tuple[int, str]]:
        batches.append(sorted(requests))
        yield from enumerate(requests)

    actor = BatchedActor(DynamicBatcher(answer))
    method, num_tasks = Method(sampler=NestedSampler()), len(TASKS)  # up to 330 nested gathers
    run_coroutine(
        collect_groups(
            method, TwoTurnEnv({}), actor, TASKS, History(), num_groups=num_tasks, seed=0
        )
    )
    labels = [f"/0/{group}/{i}" for group in range(num_tasks) for i in range(2)]
    assert batches == [sorted(f"{label}:{turn}" for label in labels) for turn in range(2)]


def test_a_step_with_more_groups_than_it_needs_requests_no_further_ones():
    requested = []

    def generous(request):
        requested.append(request.num_tasks)
        return request.tasks[:4] if request.round_index == 0 else []

    collect(Method(curriculum=generous, sampler=GroupSampler(2)), OrderedEnv({}), History(), 2)
    assert requested == [2, 0]


def test_a_task_with_unfinished_rollouts_is_continued_once_in_a_step_and_not_counted_as_drawn():
    kept = (Rollout(unfinished=True),)
    key = first_keys(12)[-1]
    history = History(unfinished_rollouts={key: kept})
    curriculum = DynamicSampling(UnfinishedFirst(ShuffledTasks()), 2)
    method = Method(curriculum, GroupSampler(2), keep_nonzero_std)
    collected, _ = collect(method, OrderedEnv({key: (1.0, 1.0)}), history)
    # two tasks, of which the first is dropped by the filter; one more
    assert [len(group.task.unfinished_rollouts) for group in collected.sampled_groups] == [1, 0, 0]
    assert collected.sampled_groups[0].task.key == key
    assert history.num_tasks_drawn == 2
    assert history.unfinished_rollouts == {}
