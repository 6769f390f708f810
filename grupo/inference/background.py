"""Coroutines that run in a thread of their own while the caller's thread goes on."""

import asyncio
import sys
import threading
from collections.abc import Awaitable, Callable, Generator
from contextlib import closing, suppress
from dataclasses import dataclass
from queue import SimpleQueue
from typing import Any, Generic, TypeVar

T = TypeVar("T")
Put = Callable[[T], None]


@dataclass(frozen=True)
class _Item(Generic[T]):
    value: T


@dataclass(frozen=True)
class _End:
    error: Exception | None


def stream(produce: Callable[[Put[T]], Awaitable[None]], name: str) -> Generator[T, None, None]:
    """Yields what a coroutine puts, as soon as it is put; raises the coroutine's error at its end.

    The coroutine proceeds while the caller processes a value, and is cancelled when the generator
    is closed. The thread is not joined: at the end of the interpreter, when it no longer runs, the
    destructor of a suspended generator would wait for it forever, as with `anyio.from_thread`.

    Args:
        produce: is called with the function that it puts values with.
        name: of the thread.
    """
    queue = SimpleQueue[_Item[T] | _End]()
    loop = asyncio.new_event_loop()
    is_finalizing = sys.is_finalizing  # a name of the module may be gone by then

    async def run() -> None:
        await produce(lambda value: queue.put(_Item(value)))

    task = loop.create_task(run())
    threading.Thread(target=_run_task, args=(loop, task, queue), name=name, daemon=True).start()
    try:
        while isinstance(item := queue.get(), _Item):
            yield item.value
        if item.error:
            raise item.error
    finally:
        if not is_finalizing():
            with suppress(RuntimeError):  # the loop has ended
                loop.call_soon_threadsafe(task.cancel)


def run(call: Callable[[], Awaitable[T]], name: str) -> T:
    """The result of a coroutine; also where the caller's thread runs an event loop of its own."""

    async def produce(put: Put[T]) -> None:
        put(await call())

    (result,) = stream(produce, name)
    return result


def _run_task(
    loop: asyncio.AbstractEventLoop, task: "asyncio.Task[None]", queue: "SimpleQueue[Any]"
) -> None:
    error = None
    with closing(loop):
        try:
            loop.run_until_complete(task)
        except asyncio.CancelledError:
            pass
        except Exception as raised:
            error = raised
        loop.run_until_complete(loop.shutdown_default_executor())
    queue.put(_End(error))
