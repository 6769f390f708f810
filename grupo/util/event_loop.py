"""An asyncio event loop in a thread of its own, with heavy work on the thread that waits for it.

OpenMP keeps a team of threads for every thread that computes. Where the teams together are larger
than the machine, all of them become slow. Generation therefore computes on the thread that also
runs the updates.
"""

import asyncio
from collections.abc import Callable, Coroutine, Generator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from contextvars import ContextVar, copy_context
from functools import partial
from queue import Empty, SimpleQueue
from selectors import DefaultSelector
from threading import Thread
from typing import Any, TypeVar

T = TypeVar("T")
Jobs = SimpleQueue[Callable[[], None] | None]  # None: the event loop has ended

SIGNAL_DELAY = 1.0  # seconds after which a signal is handled at the latest
# Turns of the event loop after which a coroutine that never waits is reported as an error.
MAX_BUSY_TURNS = 1_000_000

# External work that encloses the current code; tasks inherit it from the task that creates them.
_work_of_context: ContextVar[Sequence[object]] = ContextVar("_work_of_context", default=())


class RolloutLoop(asyncio.SelectorEventLoop):
    """The event loop of one step or one evaluation; it detects when all its coroutines wait.

    Generation waits for that moment, so that one batch has the requests of all rollouts. The loop
    is idle when no callback is ready to run and no work that was declared as external is running.
    This condition is exact: it depends neither on latency nor on the number of times that a
    coroutine yields. Timers and other threads do not keep the loop from being idle, so a coroutine
    that waits for one of them cannot hold up the others. Trio provides the same under the name
    `wait_all_tasks_blocked`.

    Args:
        jobs: Calls for the thread that waits for the loop.
    """

    def __init__(self, jobs: Jobs) -> None:
        self.jobs = jobs
        self.has_failed = (
            False  # True once the coroutine of `run_coroutine` raised or was cancelled
        )
        self._external_work: set[object] = set()  # work that has not ended
        self._idle_waiters: list[asyncio.Future[None]] = []
        self._busy_turns = 0
        super().__init__(_PollObserver(self._before_poll))

    async def wait_until_idle(self) -> None:
        """Wait until no callback is ready and no external work is running.

        Raises:
            RuntimeError: A coroutine polls in a loop of `asyncio.sleep(0)`.
        """
        waiter = self.create_future()
        self._idle_waiters.append(waiter)
        await waiter

    @contextmanager
    def external_work(self) -> Generator[None]:
        """Declare work outside the loop, such as a thread: the loop is not idle until it ends."""
        work = object()
        _work_of_context.set((*self._enclosing_work(), work))
        self._external_work.add(work)
        try:
            yield
        finally:
            self._external_work.remove(work)

    @property
    def has_external_work(self) -> bool:
        """True if external work is running: what waits for something may still get it."""
        return bool(self._external_work)

    @property
    def in_external_work(self) -> bool:
        """True if external work that has not ended encloses the caller or created its task."""
        return bool(self._enclosing_work())

    def _enclosing_work(self) -> list[object]:
        return [work for work in _work_of_context.get() if work in self._external_work]

    def _before_poll(self, is_blocking: bool) -> bool:
        """Wake coroutines that wait until the loop is idle, if it is; returns True if woken."""
        if self._external_work or not self._idle_waiters:
            self._busy_turns = 0
            return False
        self._busy_turns += not is_blocking
        is_stuck = self._busy_turns > MAX_BUSY_TURNS
        if not is_blocking and not is_stuck:
            return False
        waiters = [waiter for waiter in self._idle_waiters if not waiter.done()]
        self._idle_waiters.clear()
        for waiter in waiters:
            if is_stuck:
                waiter.set_exception(RuntimeError(_BUSY_MESSAGE))
            else:
                waiter.set_result(None)
        return bool(waiters)


_BUSY_MESSAGE = (
    f"A coroutine kept the event loop busy for {MAX_BUSY_TURNS:,} turns while requests waited."
    " Await the reply instead of polling for it with asyncio.sleep(0)."
)


class _PollObserver(DefaultSelector):
    """A selector that calls `before_poll` before it waits for events.

    An event loop calls `select` once per turn, with the timeout 0 if callbacks are ready to run:
    with any other timeout it is ready to sleep.
    """

    def __init__(self, before_poll: Callable[[bool], bool]) -> None:
        super().__init__()
        self.before_poll = before_poll

    def select(self, timeout: float | None = None) -> Any:
        woken = self.before_poll(timeout is None or timeout > 0)
        return super().select(0 if woken else timeout)


def running_rollout_loop() -> RolloutLoop:
    """The running event loop; raises RuntimeError if `run_coroutine` has not started it."""
    loop = asyncio.get_running_loop()
    if not isinstance(loop, RolloutLoop):
        raise RuntimeError(
            "A policy generates only in an event loop of `grupo.util.event_loop.run_coroutine`:"
            " call run_coroutine(...) in place of asyncio.run(...) or await."
        )
    return loop


def run_coroutine(coroutine: Coroutine[Any, Any, T], stop: Future[None] | None = None) -> T:
    """Run a coroutine to completion, in a new event loop on a thread of its own.

    Meanwhile the calling thread executes the jobs submitted with `run_on_main_thread`. The function
    may be called where an event loop is already running, as in a notebook. Ctrl-C cancels the
    coroutine; until it has ended, the calling thread still executes jobs, which its `finally` may
    need. A second Ctrl-C does not wait for that.

    Args:
        coroutine: The coroutine to run.
        stop: The coroutine is cancelled when this future is done.
    """
    jobs: Jobs = SimpleQueue()
    interrupted = Future[None]()
    result = Future[T]()

    def run_loop() -> None:
        stops = [interrupted, stop] if stop else [interrupted]
        try:
            with asyncio.Runner(loop_factory=partial(RolloutLoop, jobs)) as runner:
                value = runner.run(_await_unless_stopped(coroutine, stops))
            result.set_result(value)  # not before the loop is closed, which may raise
        except BaseException as error:
            result.set_exception(error)
        finally:
            jobs.put(None)

    def execute_jobs() -> None:
        while not result.done():
            if job := _wait_for_job(jobs):
                job()

    thread = Thread(target=copy_context().run, args=(run_loop,), name="loop", daemon=True)
    try:
        thread.start()
        execute_jobs()
    except BaseException:
        if thread.ident is not None:  # None if the system could not start another thread
            interrupted.set_result(None)
            execute_jobs()  # the coroutine may still clean up
        raise
    return result.result()


async def _await_unless_stopped(
    coroutine: Coroutine[Any, Any, T], stops: Sequence[Future[None]]
) -> T:
    """Await a coroutine as the main task of the loop; cancel the task if one of `stops` is done."""
    loop = running_rollout_loop()
    task = asyncio.current_task()
    assert task

    def cancel(_: Future[None]) -> None:
        with suppress(RuntimeError):  # the loop has already ended
            loop.call_soon_threadsafe(task.cancel)

    for stop in stops:
        stop.add_done_callback(cancel)
    try:
        return await coroutine
    except BaseException:
        loop.has_failed = True
        raise


def _wait_for_job(jobs: Jobs) -> Callable[[], None] | None:
    with suppress(Empty):  # a signal that arrives just before `get` does not end its wait
        return jobs.get(timeout=SIGNAL_DELAY)
    return None


async def run_on_main_thread(fn: Callable[[], T]) -> T:
    """Call `fn` on the thread that waits in `run_coroutine`, after the calls submitted before."""
    loop = running_rollout_loop()
    done: asyncio.Future[T] = loop.create_future()

    def settle(set_outcome: Callable[[], None]) -> None:
        if not done.done():  # the caller may have been cancelled
            set_outcome()

    def job() -> None:
        if done.done():
            return
        try:
            set_outcome = partial(done.set_result, fn())
        except Exception as error:
            set_outcome = partial(done.set_exception, error)
        with suppress(RuntimeError):  # the loop has ended: no coroutine waits
            loop.call_soon_threadsafe(settle, set_outcome)

    loop.jobs.put(job)
    return await done
