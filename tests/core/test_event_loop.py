"""An event loop in a thread of its own, with jobs on the thread that waits for it."""

import asyncio
import signal
import threading
from threading import get_ident

import pytest

from grupo.core.event_loop import run_coroutine, run_on_main_thread
from grupo.inference.batcher import DynamicBatcher


def test_jobs_run_on_the_waiting_thread_and_the_coroutine_does_not():
    async def thread_ids() -> tuple[int, int]:
        return get_ident(), await run_on_main_thread(get_ident)

    loop_thread, job_thread = run_coroutine(thread_ids())
    assert job_thread == get_ident() != loop_thread


def test_event_loop_runs_during_a_job():
    event = threading.Event()

    async def both() -> bool:
        job = asyncio.create_task(run_on_main_thread(lambda: event.wait(10)))
        await asyncio.sleep(0.01)
        event.set()
        return await job

    assert run_coroutine(both())


def test_error_of_a_job_is_raised_in_the_coroutine():
    def fails() -> None:
        raise ValueError("no memory")

    async def survives() -> str:
        with pytest.raises(ValueError, match="no memory"):
            await run_on_main_thread(fails)
        return await run_on_main_thread(lambda: "continued")

    assert run_coroutine(survives()) == "continued"


def test_error_of_the_coroutine_is_raised_by_run_coroutine():
    async def fails() -> None:
        raise ValueError("the environment failed")

    with pytest.raises(ValueError, match="the environment failed"):
        run_coroutine(fails())


def test_failure_to_start_a_thread_is_raised(monkeypatch):
    def refuse(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    coroutine = run_on_main_thread(get_ident)
    with pytest.raises(RuntimeError, match="can't start"):
        run_coroutine(coroutine)
    coroutine.close()


def test_job_without_a_waiting_thread_runs_at_once():
    assert asyncio.run(run_on_main_thread(get_ident)) == get_ident()


def test_run_coroutine_works_inside_a_running_loop():
    async def notebook() -> int:
        return run_coroutine(run_on_main_thread(lambda: 4))

    assert asyncio.run(notebook()) == 4


@pytest.mark.parametrize("busy", [True, False], ids=["during a job", "while waiting"])
def test_ctrl_c_cancels_the_coroutine_and_is_raised(busy):
    events = []

    def job() -> None:
        signal.raise_signal(signal.SIGINT)
        events.append("continued")

    async def waits() -> None:
        try:
            if not busy:
                main = threading.main_thread().ident
                assert main
                signal.pthread_kill(main, signal.SIGINT)
            await (run_on_main_thread(job) if busy else asyncio.sleep(10))
        except asyncio.CancelledError:
            events.append("cancelled")
            raise

    with pytest.raises(KeyboardInterrupt):
        run_coroutine(waits())
    assert events == ["cancelled"]


def test_pending_requests_are_abandoned_soon_after_a_failure():
    started = threading.Event()
    done = []

    def answer(requests):
        started.set()
        for index, request in enumerate(requests):
            if index == 1:
                assert failed.wait(10)
            done.append(request)
            yield index, request

    failed = threading.Event()

    async def fails() -> None:
        queue = DynamicBatcher(answer)
        replies = [asyncio.create_task(queue(i)) for i in range(100)]
        while not replies[0].done():
            await asyncio.sleep(0)
        replies[-1].add_done_callback(lambda _: failed.set())
        raise ValueError("the environment failed")

    with pytest.raises(ValueError, match="failed"):
        run_coroutine(fails())
    assert started.is_set()
    assert len(done) < 5
