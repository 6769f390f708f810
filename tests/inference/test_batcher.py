"""Requests of concurrent coroutines are answered in common batches."""

import asyncio
from collections.abc import Iterator, Sequence
from threading import Event

from grupo.core.event_loop import run_coroutine
from grupo.core.pending_env_steps import pending_env_step
from grupo.inference.batcher import IDLE_TURNS, DynamicBatcher, merge_batchers
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


def test_batch_waits_for_a_request_some_loop_turns_later():
    async def run_all() -> None:
        batcher = DynamicBatcher(handler)

        async def again(i: int, pauses: int) -> None:
            await batcher(i)
            for _ in range(pauses):
                await asyncio.sleep(0)
            await batcher(10 + i)

        await asyncio.gather(again(1, 0), again(2, 9))

    handler = DoublingHandler()
    run_coroutine(run_all())
    assert handler.calls == [[1, 2], [11, 12]]


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


def test_batch_waits_some_loop_turns_after_each_environment_step():
    async def run_all() -> None:
        batcher = DynamicBatcher(handler)

        async def deep() -> None:
            for _ in range(IDLE_TURNS - 9):
                await asyncio.sleep(0)

        async def step_and_request() -> None:
            for _ in range(2):
                await deep()
                with pending_env_step():
                    await asyncio.sleep(0.01)
            await deep()
            await batcher(2)

        await asyncio.gather(batcher(1), step_and_request())

    handler = DoublingHandler()
    run_coroutine(run_all())
    assert handler.calls == [[1, 2]]


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


def test_merged_batchers_share_batches_however_long_each_takes():
    """The second requests of both coroutines share a batch although one first waits longer."""

    def slow_handler(requests: Sequence[int]) -> Iterator[tuple[int, int]]:
        Event().wait(0.05)
        yield from second_handler(requests)

    async def run_all() -> list[int]:
        first, second = merge_batchers(
            [DynamicBatcher(first_handler), DynamicBatcher(slow_handler)]
        )

        async def x() -> int:
            return await first(await first(1))

        async def y() -> int:
            return await first(await second(10))

        return await asyncio.gather(x(), y())

    first_handler, second_handler = DoublingHandler(), DoublingHandler()
    assert run_coroutine(run_all()) == [4, 40]
    assert (first_handler.calls, second_handler.calls) == ([[1], [2, 20]], [[10]])


def test_merged_batchers_raise_the_error_of_either_handler():
    async def both() -> list[object]:
        first, second = merge_batchers(
            [DynamicBatcher(DoublingHandler()), DynamicBatcher(DoublingHandler(failing=3))]
        )
        return await asyncio.gather(first(1), second(3), return_exceptions=True)

    good, bad = run_coroutine(both())
    assert good == 2
    assert "out of memory with 3" in str(bad)
