"""Rollouts of one world go on together, however long it takes; a slow judge holds nobody up."""

import asyncio
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from threading import Event

import pytest

from grupo.core.event_loop import run_coroutine
from grupo.core.interfaces import run_rollout, score_group
from grupo.core.types import Action, Observation, Rollout, Task
from grupo.envs import MultiTurn, RewardTerm
from grupo.inference.batcher import DynamicBatcher
from tests.helpers.scripted_play import TASK, Adding, adding, said

TOOK = {"a": 1, "b": 70, "c": 20}  # milliseconds of a turn in the world


@dataclass
class Asked:
    """A policy that says -1, asked through a queue; notes who asks for which turn together."""

    calls: list[list[str]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.queue: DynamicBatcher[str, str] = DynamicBatcher(self.answer)

    def answer(self, asks: Sequence[str]) -> Iterator[tuple[int, str]]:
        self.calls.append(sorted(asks))
        yield from enumerate(["-1"] * len(asks))

    def named(self, name: str):
        async def act(rollout: Rollout, seen: Observation) -> Action:
            return said(await self.queue(f"{name}{len(rollout.turns)}"))

        return act


@pytest.fixture
def policy() -> Asked:
    return Asked()


def test_those_whose_world_takes_its_time_ask_together_again(policy):
    class Uneven(Adding):
        def step(self, text):
            time.sleep(0.001 * self.num_tasks)
            return super().step(text)

    async def work():
        env = adding(Uneven, turns=3)
        tasks = [Task(name, "", milliseconds) for name, milliseconds in TOOK.items()]
        await asyncio.gather(
            *(run_rollout(task, env, policy.term_names(task.key)) for task in tasks)
        )

    run_coroutine(work())
    assert policy.calls == [[f"{name}{turn}" for name in TOOK] for turn in range(3)]


def test_a_slow_judge_holds_nobody_up(policy):
    ended = Event()
    slow = RewardTerm("slow", lambda task, rollout: float(ended.wait(10)))

    async def judged():
        env = MultiTurn(Adding, (slow,), max_turns=1)
        (rollout,) = (
            await score_group(TASK, env, [await run_rollout(TASK, env, policy.term_names("j"))])
        ).rollouts
        return rollout.reward_terms["slow"]

    async def others():
        await run_rollout(TASK, adding(turns=3), policy.term_names("o"))
        ended.set()

    async def work():
        return await asyncio.gather(judged(), others())

    assert run_coroutine(work())[0] == 1.0  # the judge heard that the others had ended
    assert policy.calls == [["j0", "o0"], ["o1"], ["o2"]]


def test_judges_that_take_all_their_places_leave_the_world_its_own(policy):
    ended = Event()
    slow = RewardTerm("slow", lambda task, rollout: float(ended.wait(10)))

    async def judged(name):
        env = MultiTurn(Adding, (slow,), max_turns=1)
        (rollout,) = (
            await score_group(TASK, env, [await run_rollout(TASK, env, policy.term_names(name))])
        ).rollouts
        return rollout.reward_terms["slow"]

    async def others():
        await run_rollout(TASK, adding(turns=3), policy.term_names("o"))
        ended.set()

    async def work():
        return await asyncio.gather(*(judged(f"j{i}") for i in range(8)), others())

    assert run_coroutine(work())[:8] == [1.0] * 8


def test_so_many_sessions_are_stepped_at_a_time():
    class Slow(Adding):
        running = most = 0

        def step(self, text):
            Slow.running += 1
            Slow.most = max(Slow.most, Slow.running)
            time.sleep(0.05)
            Slow.running -= 1
            return "on", 0.0, True

    async def work(env):
        Slow.most = 0
        rollouts = [Rollout().append_turn("total 0", said(str(n))) for n in range(6)]
        await asyncio.gather(*(env.reply(TASK, rollout) for rollout in rollouts))
        return Slow.most

    assert run_coroutine(work(MultiTurn(Slow, max_concurrent=2))) == 2
    assert run_coroutine(work(MultiTurn(Slow, max_concurrent=6))) > 2
