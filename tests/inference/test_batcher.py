"""Requests of concurrent coroutines are answered in common batches."""

import asyncio
from collections.abc import Iterator, Sequence
from threading import Event

import pytest

from grupo.core.pending_env_steps import pending_env_step
from grupo.inference.batcher import DynamicBatcher
from grupo.util.event_loop import run_coroutine
from tests.helpers.doubling_engine import DoublingHandler


def test_simultaneous_requests_share_one_call():
    async def run_all() -> list[int]:
        batcher = DynamicBatcher(handler)
        return await asyncio.gather(*(batcher(i) for i in range(5)))

    handler = DoublingHandler()
    assert run_coroutine(run_all()) == [0, 2, 4, 6, 8]
    assert handler.calls == [[0, 1, 2, 3, 4]]


def test_requests_from_nested_coroutines_join_the_batch():
    async def run_all() -> None:
        batcher = DynamicBatcher(handler)

        async def group(p: int) -> list[int]:
            return await asyncio.gather(*(batcher(10 * p + i) for i in range(2)))

        await asyncio.gather(batcher(5), group(1), group(2))

    handler = DoublingHandler()
    run_coroutine(run_all())
    assert handler.calls == [[5, 10, 11, 20, 21]]


def test_second_requests_are_answered_in_the_next_call():
    async def run_all() -> list[int]:
        batcher = DynamicBatcher(handler)

        async def both(i: int) -> int:
            return await batcher(await batcher(i))

        return await asyncio.gather(both(1), both(2))

    handler = DoublingHandler()
    assert run_coroutine(run_all()) == [4, 8]
    assert handler.calls == [[1, 2], [2, 4]]


def test_batch_waits_for_a_coroutine_that_yields_often_between_two_requests():
    async def run_all() -> None:
        batcher = DynamicBatcher(handler)

        async def again(i: int, pauses: int) -> None:
            await batcher(i)
            for _ in range(pauses):
                await asyncio.sleep(0)
            await batcher(10 + i)

        await asyncio.gather(again(1, 0), again(2, 200), again(3, 9))

    handler = DoublingHandler()
    run_coroutine(run_all())
    assert [sorted(batch) for batch in handler.calls] == [[1, 2, 3], [11, 12, 13]]


@pytest.mark.parametrize("depth", [1, 60, 300])
def test_batch_has_the_requests_of_deeply_nested_gathers(depth):
    """A reply passes through all gathers before its coroutine sends the second request."""

    async def run_all() -> None:
        batcher = DynamicBatcher(handler)

        async def nested(i: int, levels: int) -> int:
            if not levels:
                return await batcher(i)
            return (await asyncio.gather(nested(i, levels - 1)))[0]

        async def twice(i: int, levels: int) -> int:
            return await nested(await nested(i, levels), levels)

        await asyncio.gather(twice(1, 0), twice(2, depth), twice(3, depth // 2))

    handler = DoublingHandler()
    run_coroutine(run_all())
    assert [sorted(batch) for batch in handler.calls] == [[1, 2, 3], [2, 4, 6]]


def test_batch_waits_for_pending_environment_steps():
    step_done = Event()

    async def run_all() -> None:
        batcher = DynamicBatcher(handler)

        async def step_and_request(i: int) -> None:
            with pending_env_step():
                assert await asyncio.to_thread(step_done.wait, 10)
            await batcher(i)

        asyncio.get_running_loop().call_later(0.1, step_done.set)
        await asyncio.gather(batcher(1), step_and_request(2), step_and_request(3))

    handler = DoublingHandler()
    run_coroutine(run_all())
    assert [sorted(batch) for batch in handler.calls] == [[1, 2, 3]]


def test_batch_waits_for_all_environment_steps_of_a_coroutine():
    async def run_all() -> None:
        batcher = DynamicBatcher(handler)

        async def steps_and_request() -> None:
            for _ in range(3):
                for _ in range(100):
                    await asyncio.sleep(0)
                with pending_env_step():
                    await asyncio.sleep(0.01)
            await batcher(2)

        await asyncio.gather(batcher(1), steps_and_request())

    handler = DoublingHandler()
    run_coroutine(run_all())
    assert handler.calls == [[1, 2]]


def test_batch_does_not_wait_for_timers_or_for_coroutines_that_wait_for_each_other():
    async def run_all() -> list[int]:
        batcher = DynamicBatcher(handler)
        answered = asyncio.Event()

        async def timer() -> int:
            await asyncio.sleep(0.05)
            return await batcher(2)

        async def waits_for_another() -> int:
            await answered.wait()
            return await batcher(3)

        async def request() -> int:
            reply = await batcher(1)
            answered.set()
            return reply

        return await asyncio.gather(timer(), waits_for_another(), request())

    handler = DoublingHandler()
    assert run_coroutine(asyncio.wait_for(run_all(), 10)) == [4, 6, 2]
    assert handler.calls == [[1], [3], [2]]


def test_a_coroutine_that_raises_or_never_asks_again_does_not_hold_up_the_others():
    async def run_all() -> list[int | BaseException]:
        batcher = DynamicBatcher(handler)

        async def twice(i: int) -> int:
            return await batcher(await batcher(i))

        async def fails() -> int:
            raise ValueError(await batcher(2))

        async def once() -> int:
            return await batcher(3)

        return await asyncio.gather(twice(1), fails(), once(), return_exceptions=True)

    handler = DoublingHandler()
    first, failed, last = run_coroutine(asyncio.wait_for(run_all(), 10))
    assert (first, str(failed), last) == (4, "4", 6)
    assert handler.calls == [[1, 2, 3], [2]]


def test_a_batch_of_cancelled_requests_is_not_handled():
    async def run_all() -> int:
        batcher = DynamicBatcher(handler)
        task = asyncio.create_task(batcher(1))
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.sleep(0.01)
        return await batcher(2)

    handler = DoublingHandler()
    assert run_coroutine(asyncio.wait_for(run_all(), 10)) == 4
    assert handler.calls == [[2]]


def test_a_task_requests_replies_after_the_environment_step_that_created_it():
    async def step() -> int:
        async def request() -> int:
            await ended.wait()
            return await DynamicBatcher(DoublingHandler())(1)

        ended = asyncio.Event()
        with pending_env_step():
            task = asyncio.create_task(request())
            await asyncio.sleep(0)
        ended.set()
        return await task

    assert run_coroutine(asyncio.wait_for(step(), 10)) == 2


def test_batch_does_not_wait_for_other_threads():
    replied = Event()

    async def run_all() -> bool:
        batcher = DynamicBatcher(DoublingHandler())

        async def request() -> None:
            await batcher(1)
            replied.set()

        return (await asyncio.gather(asyncio.to_thread(replied.wait, 10), request()))[0]

    assert run_coroutine(run_all())


def test_requests_during_a_call_are_answered_in_the_next():
    started, release, calls = Event(), Event(), []

    def handler(requests: Sequence[int]) -> Iterator[tuple[int, int]]:
        calls.append(list(requests))
        started.set()
        assert release.wait(10)
        yield from enumerate(requests)

    async def run_all() -> tuple[int, list[int]]:
        batcher = DynamicBatcher(handler)
        first = asyncio.create_task(batcher(1))
        await asyncio.to_thread(started.wait, 10)
        later = [asyncio.create_task(batcher(i)) for i in (2, 3)]
        await asyncio.sleep(0)
        release.set()
        return await first, await asyncio.gather(*later)

    assert run_coroutine(run_all()) == (1, [2, 3])
    assert calls == [[1], [2, 3]]


def test_batchers_of_one_loop_take_turns_however_long_each_takes():
    """The second requests of both coroutines share a batch although one first waits longer."""

    def slow_handler(requests: Sequence[int]) -> Iterator[tuple[int, int]]:
        Event().wait(0.05)
        yield from second_handler(requests)

    async def run_all() -> list[int]:
        first, second = DynamicBatcher(first_handler), DynamicBatcher(slow_handler)

        async def x() -> int:
            return await first(await first(1))

        async def y() -> int:
            return await first(await second(10))

        return await asyncio.gather(x(), y())

    first_handler, second_handler = DoublingHandler(), DoublingHandler()
    assert run_coroutine(run_all()) == [4, 40]
    assert (first_handler.calls, second_handler.calls) == ([[1], [2, 20]], [[10]])
