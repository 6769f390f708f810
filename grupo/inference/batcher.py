"""Dynamic batching: requests of many coroutines are answered together."""

import asyncio
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from itertools import islice
from typing import Generic, TypeVar

from grupo.util.event_loop import RolloutLoop, run_on_main_thread, running_rollout_loop

RequestT = TypeVar("RequestT")
ReplyT = TypeVar("ReplyT")

BatchHandler = Callable[[Sequence[RequestT]], Iterator[tuple[int, ReplyT]]]
PendingBatch = list[tuple[RequestT, asyncio.Future[ReplyT]]]  # requests in order of arrival


class _ReplyRelay(Generic[ReplyT]):
    """Delivers replies from another thread to an event loop, waking it once for many replies."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self.pending = deque[tuple[asyncio.Future[ReplyT], ReplyT]]()

    def send(self, future: "asyncio.Future[ReplyT]", reply: ReplyT) -> None:
        self.pending.append((future, reply))
        if len(self.pending) == 1:  # otherwise a delivery is already scheduled
            with suppress(RuntimeError):  # the loop has ended: no coroutine waits
                self.loop.call_soon_threadsafe(self._deliver)

    def _deliver(self) -> None:
        while self.pending:
            future, reply = self.pending[0]
            if not future.done():  # the request may have been cancelled
                future.set_result(reply)
            self.pending.popleft()


class DynamicBatcher(Generic[RequestT, ReplyT]):
    """Collects requests of concurrent coroutines and answers them in one call of `handler`.

    A batch starts when every coroutine of the event loop waits and neither an environment step nor
    another batch is running: the batch then has a request of every rollout that can continue. It
    does not wait for reward functions, timers, or other threads. The handler runs on the main
    thread, one batch at a time. Each reply is delivered as soon as the handler yields it, so that
    rewards are computed while other requests are being answered. Only the last one waits for the
    handler to end: an error after it is thus raised in the coroutine of that request.

    A batch that has started is answered to its end, even if all its requests are cancelled. The
    number of replies therefore does not depend on the moment of a cancellation. The only exception
    is a failure of the event loop's coroutine.

    Several batchers of one event loop take turns, so the composition of a batch does not depend on
    how long the other batchers take.

    Args:
        handler: answers a batch; yields the index of a request and its reply.
    """

    def __init__(self, handler: BatchHandler[RequestT, ReplyT]) -> None:
        self.handler = handler
        self.pending: PendingBatch[RequestT, ReplyT] = []
        self.task: asyncio.Task[None] | None = None

    async def __call__(self, request: RequestT) -> ReplyT:
        loop = running_rollout_loop()
        if loop.in_external_work:  # each would wait for the other
            raise RuntimeError("an environment step must not wait for the policy")
        future: asyncio.Future[ReplyT] = loop.create_future()
        self.pending.append((request, future))
        if self.task is None:
            self.task = loop.create_task(self._run(loop))
        return await future

    async def _run(self, loop: RolloutLoop) -> None:
        try:
            while self.pending:
                await loop.wait_until_idle()
                if batch := self._take_batch():
                    await self._answer_batch(loop, batch)
        except Exception as error:
            _fail(self._take_batch(), error)
        finally:
            self.task = None

    def _take_batch(self) -> PendingBatch[RequestT, ReplyT]:
        """The pending requests, without those that were cancelled."""
        batch = [(request, future) for request, future in self.pending if not future.done()]
        self.pending = []
        return batch

    async def _answer_batch(self, loop: RolloutLoop, batch: PendingBatch[RequestT, ReplyT]) -> None:
        relay = _ReplyRelay[ReplyT](loop)
        futures = [future for _, future in batch]

        def work() -> None:
            replies = self.handler([request for request, _ in batch])
            for index, reply in islice(replies, len(batch) - 1):
                if loop.has_failed:
                    return
                relay.send(futures[index], reply)
            for index, reply in list(replies):  # list: the handler ends before the last reply
                relay.send(futures[index], reply)

        try:
            with loop.external_work():
                await run_on_main_thread(work)
                await asyncio.sleep(0)  # let the last replies be delivered
            _fail(batch, RuntimeError("the engine left some requests unanswered"))
        except Exception as error:
            _fail(batch, error)


def _fail(batch: PendingBatch[RequestT, ReplyT], error: Exception) -> None:
    """Raise the error in every coroutine that still waits for a reply."""
    for _, future in batch:
        if not future.done():
            future.set_exception(error)
