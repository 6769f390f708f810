"""Answers, errors and silence reach whoever asked a queue, and still wants to hear."""

import asyncio
from collections.abc import Iterator, Sequence
from threading import Event

import pytest

from grupo.core.event_loop import run_coroutine
from grupo.inference.batcher import DynamicBatcher
from tests.helpers.doubling_engine import Twice


def test_an_error_reaches_everybody_who_asked():
    async def everyone() -> list[int | BaseException]:
        queue = DynamicBatcher(Twice(unanswerable=2))
        return await asyncio.gather(*(queue(i) for i in range(4)), return_exceptions=True)

    assert [str(said) for said in run_coroutine(everyone())] == ["out of memory with 2"] * 4


def test_after_an_error_the_queue_answers_again():
    async def everyone() -> int:
        queue = DynamicBatcher(Twice(unanswerable=2))
        with pytest.raises(RuntimeError):
            await queue(2)
        return await queue(3)

    assert run_coroutine(asyncio.wait_for(everyone(), 10)) == 6


def test_who_is_left_without_an_answer_hears_so_and_does_not_wait_endlessly():
    async def everyone() -> list[int | BaseException]:
        queue = DynamicBatcher(lambda asks: iter([(0, asks[0])]))
        return await asyncio.gather(queue(1), queue(2), return_exceptions=True)

    first, second = run_coroutine(asyncio.wait_for(everyone(), 10))
    assert first == 1
    assert isinstance(second, RuntimeError)


def test_an_answer_is_there_while_others_are_worked_out():
    heard = Event()

    def answer(asks: Sequence[int]) -> Iterator[tuple[int, int]]:
        yield 1, asks[1]
        yield 0, asks[0] if heard.wait(10) else -1  # not before the first was heard of

    async def everyone() -> list[int]:
        queue = DynamicBatcher(answer)

        async def hears(ask: int) -> int:
            said = await queue(ask)
            heard.set()
            return said

        return await asyncio.gather(queue(1), hears(2))

    assert run_coroutine(asyncio.wait_for(everyone(), 20)) == [1, 2]


def test_who_gave_up_before_the_call_is_not_answered_and_the_rest_are():
    async def everyone() -> int:
        queue = DynamicBatcher(twice)
        tasks = [asyncio.create_task(queue(i)) for i in range(3)]
        await asyncio.sleep(0)
        tasks[1].cancel()
        return sum(x for x in await asyncio.gather(*tasks, return_exceptions=True) if x in (0, 4))

    twice = Twice()
    assert run_coroutine(everyone()) == 4
    assert twice.calls == [[0, 2]]


@pytest.mark.parametrize("error", [None, RuntimeError("out of memory")])
def test_who_gives_up_during_the_call_keeps_nobody_else_from_hearing(error):
    begun, go_on = Event(), Event()

    def answer(asks: Sequence[int]) -> Iterator[tuple[int, int]]:
        begun.set()
        assert go_on.wait(10)
        if error:
            raise error
        yield from enumerate(asks)

    async def everyone() -> int | BaseException:
        queue = DynamicBatcher(answer)
        gone, stays = asyncio.create_task(queue(1)), asyncio.create_task(queue(2))
        await asyncio.to_thread(begun.wait, 10)
        gone.cancel()
        await asyncio.sleep(0)
        go_on.set()
        return (await asyncio.gather(stays, return_exceptions=True))[0]

    assert run_coroutine(asyncio.wait_for(everyone(), 10)) == (error or 2)


def test_a_queue_outlives_the_loop_it_was_first_asked_in():
    queue = DynamicBatcher(Twice())

    async def leaves_early() -> None:
        asking = asyncio.create_task(queue(1))
        await asyncio.sleep(0)
        assert not asking.done()

    run_coroutine(leaves_early())
    assert run_coroutine(asyncio.wait_for(queue(2), 10)) == 4
