"""Replies, errors and missing replies reach every request that was not cancelled."""

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from threading import Event

import pytest

from grupo.inference.batcher import DynamicBatcher
from grupo.util.event_loop import run_coroutine
from tests.helpers.doubling_engine import DoublingHandler


def test_error_reaches_all_requests_of_the_batch():
    async def run_all() -> list[int | BaseException]:
        batcher = DynamicBatcher(DoublingHandler(failing=2))
        return await asyncio.gather(*(batcher(i) for i in range(4)), return_exceptions=True)

    assert [str(error) for error in run_coroutine(run_all())] == ["out of memory with 2"] * 4


def test_batcher_works_again_after_an_error():
    async def run_all() -> int:
        batcher = DynamicBatcher(DoublingHandler(failing=2))
        with pytest.raises(RuntimeError):
            await batcher(2)
        return await batcher(3)

    assert run_coroutine(asyncio.wait_for(run_all(), 10)) == 6


@pytest.mark.parametrize("num_requests", [1, 3])
def test_error_of_the_handler_after_its_last_reply_is_raised(num_requests):
    def handler(requests: Sequence[int]) -> Iterator[tuple[int, int]]:
        yield from enumerate(requests)
        raise RuntimeError("freeing the cache failed")

    async def run_all() -> None:
        batcher = DynamicBatcher(handler)
        await asyncio.gather(*(batcher(i) for i in range(num_requests)))

    with pytest.raises(RuntimeError, match="freeing the cache failed"):
        run_coroutine(asyncio.wait_for(run_all(), 10))


def test_request_without_a_reply_raises():
    async def run_all() -> list[int | BaseException]:
        batcher = DynamicBatcher(lambda requests: iter([(0, requests[0])]))
        return await asyncio.gather(batcher(1), batcher(2), return_exceptions=True)

    first, second = run_coroutine(asyncio.wait_for(run_all(), 10))
    assert first == 1
    assert isinstance(second, RuntimeError)


def test_reply_is_delivered_while_others_are_computed():
    delivered = Event()

    def handler(requests: Sequence[int]) -> Iterator[tuple[int, int]]:
        yield 1, requests[1]
        yield 0, requests[0] if delivered.wait(10) else -1  # after the first reply was delivered

    async def run_all() -> list[int]:
        batcher = DynamicBatcher(handler)

        async def request(number: int) -> int:
            reply = await batcher(number)
            delivered.set()
            return reply

        return await asyncio.gather(batcher(1), request(2))

    assert run_coroutine(asyncio.wait_for(run_all(), 20)) == [1, 2]


def test_request_cancelled_before_the_call_is_skipped():
    async def run_all() -> int:
        batcher = DynamicBatcher(handler)
        tasks = [asyncio.create_task(batcher(i)) for i in range(3)]
        await asyncio.sleep(0)
        tasks[1].cancel()
        return sum(x for x in await asyncio.gather(*tasks, return_exceptions=True) if x in (0, 4))

    handler = DoublingHandler()
    assert run_coroutine(run_all()) == 4
    assert handler.calls == [[0, 2]]


@pytest.mark.parametrize("error", [None, RuntimeError("out of memory")])
def test_request_cancelled_during_the_call_does_not_affect_others(error):
    started, release = Event(), Event()

    def handler(requests: Sequence[int]) -> Iterator[tuple[int, int]]:
        started.set()
        assert release.wait(10)
        if error:
            raise error
        yield from enumerate(requests)

    async def run_all() -> int | BaseException:
        batcher = DynamicBatcher(handler)
        cancelled, other = asyncio.create_task(batcher(1)), asyncio.create_task(batcher(2))
        await asyncio.to_thread(started.wait, 10)
        cancelled.cancel()
        await asyncio.sleep(0)
        release.set()
        return (await asyncio.gather(other, return_exceptions=True))[0]

    assert run_coroutine(asyncio.wait_for(run_all(), 10)) == (error or 2)


def test_batcher_works_in_a_second_event_loop():
    batcher = DynamicBatcher(DoublingHandler())

    async def leave_early() -> None:
        task = asyncio.create_task(batcher(1))
        await asyncio.sleep(0)
        assert not task.done()

    run_coroutine(leave_early())
    assert run_coroutine(asyncio.wait_for(batcher(2), 10)) == 4


@pytest.mark.parametrize(("fails", "answered"), [(False, [0, 1, 2, 3]), (True, [0, 1])])
def test_cancelled_requests_are_answered_to_the_end_unless_the_coroutine_failed(fails, answered):
    """The number of replies does not depend on the moment of the cancellation."""
    ended, replies = Event(), []

    def handler(requests: Sequence[int]) -> Iterator[tuple[int, int]]:
        for i in requests:
            assert i == 0 or ended.wait(10)
            replies.append(i)
            yield i, i

    async def notice_end() -> None:
        try:
            await asyncio.sleep(10)
        finally:
            ended.set()

    async def run_all() -> asyncio.Task[None]:
        batcher = DynamicBatcher(handler)
        waiting = asyncio.create_task(notice_end())  # cancelled when the event loop ends
        requests = [asyncio.create_task(batcher(i)) for i in range(4)]
        await asyncio.wait(requests, return_when=asyncio.FIRST_COMPLETED)
        for request in requests:
            request.cancel()
        await asyncio.sleep(0)
        return waiting if not fails else 1 / 0

    with pytest.raises(ZeroDivisionError) if fails else nullcontext():
        run_coroutine(run_all())
    assert replies == answered
