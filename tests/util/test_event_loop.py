"""An event loop in a thread of its own, with jobs on the thread that waits for it."""

import asyncio
import signal
import threading
import time
from threading import get_ident

import pytest

from grupo.inference.batcher import DynamicBatcher
from grupo.util.event_loop import (
    RolloutLoop,
    run_coroutine,
    run_on_main_thread,
    running_rollout_loop,
)


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


def test_an_event_loop_that_closes_while_a_job_ends_is_not_logged(caplog, monkeypatch):
    tried = threading.Event()

    def closed(*args: object) -> None:
        tried.set()
        raise RuntimeError("Event loop is closed")

    async def leaves_a_job() -> None:
        loop = running_rollout_loop()
        job_task = asyncio.create_task(run_on_main_thread(lambda: None))
        monkeypatch.setattr(loop, "call_soon_threadsafe", closed)
        while not tried.is_set():
            await asyncio.sleep(0.001)
        job_task.cancel()
        monkeypatch.undo()

    run_coroutine(leaves_a_job())
    assert caplog.records == []  # a logged exception would keep what its frames refer to


def test_job_in_another_event_loop_is_an_error():
    with pytest.raises(RuntimeError, match="run_coroutine"):
        asyncio.run(run_on_main_thread(get_ident))


def test_loop_is_idle_once_every_coroutine_waits_and_no_external_work_runs():
    events = []

    async def yields_often(loop: RolloutLoop) -> None:
        for _ in range(100):
            await asyncio.sleep(0)
        events.append("yielded")
        with loop.external_work():
            await asyncio.to_thread(time.sleep, 0.05)
        events.append("worked")
        await asyncio.sleep(0.05)
        events.append("slept")

    async def observe() -> None:
        loop = running_rollout_loop()
        other = asyncio.create_task(yields_often(loop))
        await loop.wait_until_idle()
        events.append("idle")
        await other

    run_coroutine(observe())
    assert events == ["yielded", "worked", "idle", "slept"]


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
                interrupt_main_thread()
            await (run_on_main_thread(job) if busy else asyncio.sleep(10))
        except asyncio.CancelledError:
            events.append("cancelled")
            raise

    with pytest.raises(KeyboardInterrupt):
        run_coroutine(waits())
    assert events == ["cancelled"]


@pytest.fixture
def ctrl_c_after_ten_seconds():
    """Interrupts a test that hangs."""
    timer = threading.Timer(10, interrupt_main_thread)
    timer.start()
    yield
    timer.cancel()


def interrupt_main_thread() -> None:
    main = threading.main_thread().ident
    assert main
    signal.pthread_kill(main, signal.SIGINT)


@pytest.mark.usefixtures("ctrl_c_after_ten_seconds")
def test_ctrl_c_executes_the_jobs_that_the_cleanup_of_the_coroutine_needs():
    cleanup_thread = []

    async def waits() -> None:
        try:
            interrupt_main_thread()
            await asyncio.sleep(10)
        finally:
            cleanup_thread.append(await run_on_main_thread(get_ident))

    with pytest.raises(KeyboardInterrupt):
        run_coroutine(waits())
    assert cleanup_thread == [get_ident()]


@pytest.mark.usefixtures("ctrl_c_after_ten_seconds")
def test_an_error_while_the_loop_is_closed_is_raised():
    async def refuses_to_end() -> None:
        try:
            await asyncio.sleep(10)
        except asyncio.CancelledError:
            raise SystemExit("the tool ends") from None

    async def leaves_a_task() -> None:
        tasks.append(asyncio.create_task(refuses_to_end()))
        await asyncio.sleep(0)

    tasks: list[asyncio.Task[None]] = []
    with pytest.raises(SystemExit, match="the tool ends"):
        run_coroutine(leaves_a_task())
    assert isinstance(tasks[0].exception(), SystemExit)  # retrieved, so asyncio does not log it


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
        await replies[0]
        replies[-1].add_done_callback(lambda _: failed.set())
        raise ValueError("the environment failed")

    with pytest.raises(ValueError, match="failed"):
        run_coroutine(fails())
    assert started.is_set()
    assert len(done) < 5
