"""Samplers that hide what they generate are counted like all others."""

import asyncio
import time
from dataclasses import dataclass

import pytest

from grupo.core.types import Group, Rollout
from grupo.inference.base import Request
from tests.helpers.drawing_engine import DrawingEngine
from tests.helpers.token_counts import count, engine, folder, policy

__all__ = ["engine", "folder", "policy"]  # fixtures


@dataclass(frozen=True)
class DiscardingSampler:
    """Planted: generates without returning anything, with every way that an actor has."""

    async def __call__(self, task, env, actor) -> Group:
        rollout = Rollout().append_turn(task.prompt, await actor(Rollout(), task.prompt))
        await actor.restart_context(rollout, task.prompt, suffix_tokens=2)
        await actor.with_sampling(0.5, top_k=1)(rollout, "")
        await actor.with_stop(max_new_tokens=2)(rollout, "")
        return Group(task, ())


@dataclass(frozen=True)
class DirectSampler:
    """Planted: sends a request without the actor's methods, to its batcher and to its handler."""

    async def __call__(self, task, env, actor) -> Group:
        await actor.batcher(Request((1, 2), actor.rng_key))
        list(actor.batcher.handler([Request((1, 2), actor.rng_key)]))
        return Group(task, ())


@dataclass(frozen=True)
class CancellingSampler:
    """Planted: cancels all requests once the first of them is answered."""

    async def __call__(self, task, env, actor) -> Group:
        requests = [asyncio.create_task(actor.fork(i)(Rollout(), task.prompt)) for i in range(20)]
        await asyncio.wait(requests, return_when=asyncio.FIRST_COMPLETED)
        for request in requests:
            request.cancel()
        return Group(task, ())


@dataclass(frozen=True)
class FailingSampler:
    """Planted: every rollout raises after it has been generated."""

    async def __call__(self, task, env, actor) -> Group:
        async def fail(number: int) -> None:
            raise ValueError(await actor.fork(number)(Rollout(), task.prompt))

        await asyncio.gather(*map(fail, range(4)), return_exceptions=True)
        return Group(task, ())


PLANTED = (DiscardingSampler(), DirectSampler(), CancellingSampler(), FailingSampler())


@pytest.mark.parametrize("sampler", PLANTED, ids=lambda sampler: type(sampler).__name__)
def test_tokens_of_a_sampler_that_hides_them_are_counted(policy, engine, sampler):
    group, counted = count(sampler, policy)
    assert not group.rollouts
    assert sum(counted.values()) == engine.num_drawn > 0


class SlowEngine(DrawingEngine):
    """Pauses after every reply, so that a sampler can cancel the others."""

    def __call__(self, requests):
        for pair in super().__call__(requests):
            yield pair
            time.sleep(0.005)


def test_all_requests_of_a_batch_count_whenever_a_sampler_cancels_them(policy):
    engine = SlowEngine(policy)  # answers of full length
    counts = [sum(count(CancellingSampler(), policy)[1].values()) for _ in range(3)]
    assert counts == [20 * 12] * 3
    assert engine.num_drawn == sum(counts)
