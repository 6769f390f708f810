"""Dynamic batching: requests of many coroutines are answered together."""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Iterator, Sequence
from functools import partial
from typing import Any, Generic, TypeVar

from grupo.core.event_loop import run_on_main_thread
from grupo.core.pending_env_steps import wait_for_env_steps

RequestT = TypeVar("RequestT")
ReplyT = TypeVar("ReplyT")

# Turns of the event loop without a new request before a batch starts. A reply takes two turns
# through each nested `gather` to the coroutine that may send the next request.
IDLE_TURNS = 50

BatchHandler = Callable[[Sequence[RequestT]], Iterator[tuple[int, ReplyT]]]
Submit = Callable[[RequestT], Awaitable[ReplyT]]


class _ReplyRelay(Generic[ReplyT]):
    """Delivers replies from another thread to an event loop, waking it once for many replies."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self.pending = deque[tuple[asyncio.Future[ReplyT], ReplyT]]()

    def send(self, future: "asyncio.Future[ReplyT]", reply: ReplyT) -> None:
        self.pending.append((future, reply))
        if len(self.pending) == 1:  # otherwise a delivery is already scheduled
            self.loop.call_soon_threadsafe(self._deliver)

    def _deliver(self) -> None:
        while self.pending:
            future, reply = self.pending[0]
            if not future.done():  # the request may have been cancelled
                future.set_result(reply)
            self.pending.popleft()


class DynamicBatcher(Generic[RequestT, ReplyT]):
    """Collects requests of concurrent coroutines and answers them in one call of `handler`.

    A batch starts once no environment step is running outside the event loop and no request has
    arrived for `IDLE_TURNS` turns of the loop. It does not wait for reward functions. The handler
    runs on the main thread, one batch at a time. Each reply is delivered as soon as the handler
    yields it, so that rewards are computed while other requests are being answered.

    Args:
        handler: answers a batch; yields the index of a request and its reply.
    """

    def __init__(self, handler: BatchHandler[RequestT, ReplyT]) -> None:
        self.handler = handler
        self.pending: list[tuple[RequestT, asyncio.Future[ReplyT]]] = []
        self.task: asyncio.Task[None] | None = None

    async def __call__(self, request: RequestT) -> ReplyT:
        future: asyncio.Future[ReplyT] = asyncio.get_running_loop().create_future()
        self.pending.append((request, future))
        if self.task is None:
            self.task = asyncio.create_task(self._run())
        return await future

    async def _run(self) -> None:
        try:
            while self.pending:
                await self._wait_until_idle()
                # cancelled requests are not answered
                batch = [(request, future) for request, future in self.pending if not future.done()]
                self.pending = []
                await self._handle([request for request, _ in batch], [f for _, f in batch])
        finally:
            self.task = None

    async def _handle(
        self, requests: Sequence[RequestT], futures: Sequence["asyncio.Future[ReplyT]"]
    ) -> None:
        relay = _ReplyRelay[ReplyT](asyncio.get_running_loop())

        def work() -> None:
            for index, reply in self.handler(requests):
                if all(future.done() for future in futures):
                    break
                relay.send(futures[index], reply)

        try:
            await run_on_main_thread(work)
            await asyncio.sleep(0)  # let the last replies be delivered
            failure: Exception = RuntimeError("the engine left some requests unanswered")
        except Exception as error:  # raised in every coroutine that still waits
            failure = error
        for future in futures:
            if not future.done():
                future.set_exception(failure)

    async def _wait_until_idle(self) -> None:
        idle_turns = 0
        while idle_turns < IDLE_TURNS:
            count = len(self.pending)
            waited = await wait_for_env_steps()
            await asyncio.sleep(0)
            idle_turns = 0 if waited or count < len(self.pending) else idle_turns + 1


def merge_batchers(batchers: Sequence[DynamicBatcher[Any, Any]]) -> Sequence[Submit[Any, Any]]:
    """Submit functions of several batchers whose requests are answered in one common batch.

    With separate batches, the composition of one batcher's batches would depend on how long the
    other batchers take.
    """

    def handle(requests: Sequence[tuple[int, Any]]) -> Iterator[tuple[int, Any]]:
        for number, batcher in enumerate(batchers):
            indices = [i for i, (owner, _) in enumerate(requests) if owner == number]
            if indices:
                for i, reply in batcher.handler([requests[index][1] for index in indices]):
                    yield indices[i], reply

    merged = DynamicBatcher(handle)
    return [partial(_submit, merged, number) for number in range(len(batchers))]


async def _submit(batcher: DynamicBatcher[tuple[int, Any], Any], index: int, request: Any) -> Any:
    return await batcher((index, request))
