"""A loop that turns beside the thread that waits for it."""

import asyncio
import signal
import threading
from threading import get_ident

import pytest

from grupo.core.event_loop import run_coroutine, run_on_main_thread
from grupo.inference.batcher import DynamicBatcher


def test_what_is_handed_over_is_done_by_the_thread_that_waits_and_the_rest_is_not():
    async def where() -> tuple[int, int]:
        return get_ident(), await run_on_main_thread(get_ident)

    loop, work = run_coroutine(where())
    assert work == get_ident() != loop


def test_the_loop_turns_while_work_is_done():
    heard = threading.Event()

    async def both() -> bool:
        working = asyncio.create_task(run_on_main_thread(lambda: heard.wait(10)))
        await asyncio.sleep(0.01)
        heard.set()
        return await working

    assert run_coroutine(both())


def test_an_error_of_the_work_reaches_who_handed_it_over():
    def fails() -> None:
        raise ValueError("no memory")

    async def hears() -> str:
        with pytest.raises(ValueError, match="no memory"):
            await run_on_main_thread(fails)
        return await run_on_main_thread(lambda: "on it goes")

    assert run_coroutine(hears()) == "on it goes"


def test_an_error_of_the_coroutine_is_raised_where_it_is_waited_for():
    async def fails() -> None:
        raise ValueError("the world is refused")

    with pytest.raises(ValueError, match="the world is refused"):
        run_coroutine(fails())


def test_where_no_thread_can_be_started_that_is_raised(monkeypatch):
    def refuse(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    work = run_on_main_thread(get_ident)
    with pytest.raises(RuntimeError, match="can't start"):
        run_coroutine(work)
    work.close()


def test_where_nobody_waits_work_is_done_on_the_spot():
    assert asyncio.run(run_on_main_thread(get_ident)) == get_ident()


def test_it_runs_where_a_loop_is_running_already():
    async def notebook() -> int:
        return run_coroutine(run_on_main_thread(lambda: 4))

    assert asyncio.run(notebook()) == 4


@pytest.mark.parametrize("busy", [True, False], ids=["during work", "while waiting"])
def test_ctrl_c_cancels_what_runs_and_is_raised(busy):
    told = []

    def work() -> None:
        signal.raise_signal(signal.SIGINT)
        told.append("went on")

    async def waits() -> None:
        try:
            if not busy:
                main = threading.main_thread().ident
                assert main
                signal.pthread_kill(main, signal.SIGINT)
            await (run_on_main_thread(work) if busy else asyncio.sleep(10))
        except asyncio.CancelledError:
            told.append("cancelled")
            raise

    with pytest.raises(KeyboardInterrupt):
        run_coroutine(waits())
    assert told == ["cancelled"]


def test_when_all_fails_what_is_worked_out_for_nobody_ends_soon():
    asked, done = threading.Event(), []

    def answer(asks):
        asked.set()
        for place, ask in enumerate(asks):
            if place == 1:
                assert failed.wait(10)
            done.append(ask)
            yield place, ask

    failed = threading.Event()

    async def fails() -> None:
        queue = DynamicBatcher(answer)
        asking = [asyncio.create_task(queue(i)) for i in range(100)]
        while not asking[0].done():
            await asyncio.sleep(0)
        asking[-1].add_done_callback(lambda _: failed.set())
        raise ValueError("the world is refused")

    with pytest.raises(ValueError, match="refused"):
        run_coroutine(fails())
    assert asked.is_set()
    assert len(done) < 5
