"""Environment latency does not change which requests are batched; slow rewards delay nothing."""

import asyncio
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from threading import Event

import pytest

from grupo.core.interfaces import run_rollout, score_group
from grupo.core.types import Observation, Response, Rollout, Task
from grupo.envs import MultiTurn, RewardTerm
from grupo.inference.batcher import DynamicBatcher
from grupo.util.event_loop import run_coroutine
from tests.helpers.scripted_play import TASK, SumGame, response, sum_env

STEP_MILLISECONDS = {"a": 1, "b": 70, "c": 20}


@dataclass
class RecordingPolicy:
    """A policy behind a batcher that always answers -1, and records the names in each batch."""

    batches: list[list[str]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.queue: DynamicBatcher[str, str] = DynamicBatcher(self.generate)

    def generate(self, requests: Sequence[str]) -> Iterator[tuple[int, str]]:
        self.batches.append(sorted(requests))
        yield from enumerate(["-1"] * len(requests))

    def actor(self, name: str):
        async def generate(rollout: Rollout, observation: Observation) -> Response:
            return response(await self.queue(f"{name}{len(rollout.turns)}"))

        return generate


@pytest.fixture
def policy() -> RecordingPolicy:
    return RecordingPolicy()


def test_rollouts_of_environments_with_different_latency_are_batched_together(policy):
    class SlowGame(SumGame):
        def step(self, text):
            time.sleep(0.001 * self.target)
            return super().step(text)

    async def work():
        env = sum_env(SlowGame, max_turns=3).open()
        tasks = [Task(name, "", duration) for name, duration in STEP_MILLISECONDS.items()]
        await asyncio.gather(*(run_rollout(task, env, policy.actor(task.key)) for task in tasks))

    run_coroutine(work())
    assert policy.batches == [[f"{name}{turn}" for name in STEP_MILLISECONDS] for turn in range(3)]


async def slow_reward(policy, name, ended) -> float:
    """The reward of one rollout whose reward function waits for the event."""
    term = RewardTerm("slow", lambda task, rollout: float(ended.wait(10)))
    env = MultiTurn(SumGame, (term,), max_turns=1).open()
    rollout = await run_rollout(TASK, env, policy.actor(name))
    group = await score_group(TASK, env, [rollout])
    return group.rollouts[0].reward_terms["slow"]


async def set_after_rollout(policy, ended) -> None:
    """Play another rollout, then set the event."""
    await run_rollout(TASK, sum_env(max_turns=3).open(), policy.actor("o"))
    ended.set()


def test_a_slow_reward_does_not_delay_other_rollouts(policy):
    ended = Event()

    async def work():
        return await asyncio.gather(
            slow_reward(policy, "j", ended), set_after_rollout(policy, ended)
        )

    assert run_coroutine(work())[0] == 1.0  # the other rollout ended while the reward waited
    assert policy.batches == [["j0", "o0"], ["o1"], ["o2"]]


def test_slow_rewards_in_all_threads_do_not_delay_environment_steps(policy):
    ended = Event()

    async def work():
        slow = [slow_reward(policy, f"j{i}", ended) for i in range(8)]
        return await asyncio.gather(*slow, set_after_rollout(policy, ended))

    assert run_coroutine(work())[:8] == [1.0] * 8


def test_max_concurrent_limits_the_sessions_stepped_at_once():
    class CountingGame(SumGame):
        running = max_running = 0

        def step(self, text):
            CountingGame.running += 1
            CountingGame.max_running = max(CountingGame.max_running, CountingGame.running)
            time.sleep(0.05)
            CountingGame.running -= 1
            return "on", 0.0, True

    async def work(max_concurrent):
        env = MultiTurn(CountingGame, max_concurrent=max_concurrent).open()
        CountingGame.max_running = 0
        rollouts = [Rollout().append_turn("total 0", response(str(n))) for n in range(6)]
        await asyncio.gather(*(env.reply(TASK, rollout) for rollout in rollouts))
        return CountingGame.max_running

    assert run_coroutine(work(2)) == 2
    assert run_coroutine(work(6)) > 2
