"""Many ask one by one, and are answered many at a time."""

import asyncio
from collections.abc import Iterator, Sequence
from threading import Event

from grupo.core.event_loop import run_coroutine
from grupo.core.pending_env_steps import pending_env_step
from grupo.inference.batcher import IDLE_TURNS, DynamicBatcher, merge_batchers
from tests.helpers.doubling_engine import Twice


def test_all_who_ask_at_the_same_time_are_answered_in_one_call():
    async def everyone() -> list[int]:
        queue = DynamicBatcher(twice)
        return await asyncio.gather(*(queue(i) for i in range(5)))

    twice = Twice()
    assert run_coroutine(everyone()) == [0, 2, 4, 6, 8]
    assert twice.calls == [[0, 1, 2, 3, 4]]


def test_those_who_ask_from_deeper_down_are_waited_for():
    async def everyone() -> None:
        queue = DynamicBatcher(twice)

        async def group(p: int) -> list[int]:
            return await asyncio.gather(*(queue(10 * p + i) for i in range(2)))

        await asyncio.gather(queue(5), group(1), group(2))

    twice = Twice()
    run_coroutine(everyone())
    assert twice.calls == [[5, 10, 11, 20, 21]]


def test_who_asks_again_is_answered_in_the_next_call():
    async def everyone() -> list[int]:
        queue = DynamicBatcher(twice)

        async def both(i: int) -> int:
            return await queue(await queue(i))

        return await asyncio.gather(both(1), both(2))

    twice = Twice()
    assert run_coroutine(everyone()) == [4, 8]
    assert twice.calls == [[1, 2], [2, 4]]


def test_who_asks_again_late_is_waited_for_by_who_asked_at_once():
    async def everyone() -> None:
        queue = DynamicBatcher(twice)

        async def again(i: int, pauses: int) -> None:
            await queue(i)
            for _ in range(pauses):
                await asyncio.sleep(0)
            await queue(10 + i)

        await asyncio.gather(again(1, 0), again(2, 9))

    twice = Twice()
    run_coroutine(everyone())
    assert twice.calls == [[1, 2], [11, 12]]


def test_who_is_away_is_waited_for_however_long():
    come = Event()

    async def everyone() -> None:
        queue = DynamicBatcher(twice)

        async def travels(i: int) -> None:
            with pending_env_step():
                assert await asyncio.to_thread(come.wait, 10)
            await queue(i)

        asyncio.get_running_loop().call_later(0.1, come.set)
        await asyncio.gather(queue(1), travels(2), travels(3))

    twice = Twice()
    run_coroutine(everyone())
    assert [sorted(asks) for asks in twice.calls] == [[1, 2, 3]]


def test_who_comes_back_has_the_time_to_ask_from_deep_down():
    async def everyone() -> None:
        queue = DynamicBatcher(twice)

        async def deep() -> None:
            for _ in range(IDLE_TURNS - 9):
                await asyncio.sleep(0)

        async def travels() -> None:
            for _ in range(2):
                await deep()
                with pending_env_step():
                    await asyncio.sleep(0.01)
            await deep()
            await queue(2)

        await asyncio.gather(queue(1), travels())

    twice = Twice()
    run_coroutine(everyone())
    assert twice.calls == [[1, 2]]


def test_who_is_busy_elsewhere_is_not_waited_for():
    heard = Event()

    async def everyone() -> bool:
        queue = DynamicBatcher(Twice())

        async def asks() -> None:
            await queue(1)
            heard.set()

        return (await asyncio.gather(asyncio.to_thread(heard.wait, 10), asks()))[0]

    assert run_coroutine(everyone())


def test_who_asks_during_a_call_is_answered_in_the_next():
    begun, go_on, calls = Event(), Event(), []

    def answer(asks: Sequence[int]) -> Iterator[tuple[int, int]]:
        calls.append(list(asks))
        begun.set()
        assert go_on.wait(10)
        yield from enumerate(asks)

    async def everyone() -> tuple[int, list[int]]:
        queue = DynamicBatcher(answer)
        first = asyncio.create_task(queue(1))
        await asyncio.to_thread(begun.wait, 10)
        later = [asyncio.create_task(queue(i)) for i in (2, 3)]
        await asyncio.sleep(0)
        go_on.set()
        return await first, await asyncio.gather(*later)

    assert run_coroutine(everyone()) == (1, [2, 3])
    assert calls == [[1], [2, 3]]


def test_joined_queues_are_answered_in_one_call_however_long_each_takes():
    """X asks one twice, Y first the slow other: the second asks of both come together."""

    def slowly(asks: Sequence[int]) -> Iterator[tuple[int, int]]:
        Event().wait(0.05)
        yield from other(asks)

    async def everyone() -> list[int]:
        first, second = merge_batchers([DynamicBatcher(one), DynamicBatcher(slowly)])

        async def x() -> int:
            return await first(await first(1))

        async def y() -> int:
            return await first(await second(10))

        return await asyncio.gather(x(), y())

    one, other = Twice(), Twice()
    assert run_coroutine(everyone()) == [4, 40]
    assert (one.calls, other.calls) == ([[1], [2, 20]], [[10]])


def test_whoever_asks_joined_queues_hears_what_either_raises():
    async def both() -> list[object]:
        first, second = merge_batchers(
            [DynamicBatcher(Twice()), DynamicBatcher(Twice(unanswerable=3))]
        )
        return await asyncio.gather(first(1), second(3), return_exceptions=True)

    good, bad = run_coroutine(both())
    assert good == 2
    assert "out of memory with 3" in str(bad)
