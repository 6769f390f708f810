"""Requests to a batcher that raise an error."""

import asyncio

import pytest

from grupo.core.pending_env_steps import pending_env_step
from grupo.inference.batcher import DynamicBatcher
from grupo.util.event_loop import run_coroutine
from tests.helpers.doubling_engine import DoublingHandler


def test_an_environment_step_that_requests_a_reply_is_an_error():
    async def step() -> None:
        with pending_env_step():
            await DynamicBatcher(DoublingHandler())(1)

    with pytest.raises(RuntimeError, match="must not wait for the policy"):
        run_coroutine(asyncio.wait_for(step(), 10))


def test_an_environment_step_whose_child_task_requests_a_reply_is_an_error():
    async def step() -> None:
        with pending_env_step():
            await asyncio.gather(DynamicBatcher(DoublingHandler())(1))

    with pytest.raises(RuntimeError, match="must not wait for the policy"):
        run_coroutine(asyncio.wait_for(step(), 10))


def test_a_coroutine_that_polls_for_its_reply_gets_an_error(monkeypatch):
    monkeypatch.setattr("grupo.util.event_loop.MAX_BUSY_TURNS", 1000)

    async def poll() -> int:
        reply = asyncio.create_task(DynamicBatcher(DoublingHandler())(1))
        while not reply.done():
            await asyncio.sleep(0)
        return await reply

    with pytest.raises(RuntimeError, match="instead of polling"):
        run_coroutine(poll())


def test_requests_in_another_event_loop_are_an_error():
    with pytest.raises(RuntimeError, match="run_coroutine"):
        asyncio.run(DynamicBatcher(DoublingHandler())(1))


def test_an_error_of_one_batcher_does_not_affect_the_other():
    async def both() -> list[int | BaseException]:
        first, second = (
            DynamicBatcher(DoublingHandler()),
            DynamicBatcher(DoublingHandler(failing=3)),
        )
        return await asyncio.gather(first(1), second(3), return_exceptions=True)

    good, bad = run_coroutine(both())
    assert good == 2
    assert "out of memory with 3" in str(bad)
