"""Requests that many coroutines make one by one, answered many at a time."""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Iterator, Sequence
from functools import partial
from typing import Any, Generic, TypeVar

from grupo.core.event_loop import run_on_main_thread
from grupo.core.pending_env_steps import wait_for_env_steps

RequestT = TypeVar("RequestT")
ReplyT = TypeVar("ReplyT")

IDLE_TURNS = (
    50  # of the loop without a question: an answer takes two through each `gather` to who asks
)

BatchHandler = Callable[[Sequence[RequestT]], Iterator[tuple[int, ReplyT]]]
Submit = Callable[[RequestT], Awaitable[ReplyT]]


class _ReplyRelay(Generic[ReplyT]):
    """Answers on their way to a loop, from another thread: it is woken once for many of them."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop, self.pending = loop, deque[tuple[asyncio.Future[ReplyT], ReplyT]]()

    def send(self, future: "asyncio.Future[ReplyT]", reply: ReplyT) -> None:
        self.pending.append((future, reply))
        if len(self.pending) == 1:  # else it is being emptied, or will be
            self.loop.call_soon_threadsafe(self._deliver)

    def _deliver(self) -> None:
        while self.pending:
            future, answer = self.pending[0]
            if not future.done():  # who asked may have been cancelled since
                future.set_result(answer)
            self.pending.popleft()


class DynamicBatcher(Generic[RequestT, ReplyT]):
    """Waits until everybody who can ask has asked, then answers them all in one call of `answer`.

    That is when nobody is `away` and nobody asks for some turns of the loop. Judges are not waited
    for. The calls are `handed` over, one after another, and whoever asked has the answer as soon as
    the call yields it, with its place: judging goes on while the policy speaks to others.
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
                # who asked may have been cancelled since
                now = [(ask, future) for ask, future in self.pending if not future.done()]
                self.pending = []
                await self._handle([ask for ask, _ in now], [future for _, future in now])
        finally:
            self.task = None

    async def _handle(
        self, requests: Sequence[RequestT], futures: Sequence["asyncio.Future[ReplyT]"]
    ) -> None:
        post = _ReplyRelay[ReplyT](asyncio.get_running_loop())

        def work() -> None:
            for place, answer in self.handler(requests):
                if all(future.done() for future in futures):
                    break
                post.send(futures[place], answer)

        try:
            await run_on_main_thread(work)
            await asyncio.sleep(0)  # what was answered last is given by now
            unanswered = RuntimeError("the policy left some requests unanswered")
        except Exception as error:  # whoever still waits hears of it
            unanswered = error
        for future in futures:
            if not future.done():
                future.set_exception(unanswered)

    async def _wait_until_idle(self) -> None:
        quiet = 0
        while quiet < IDLE_TURNS:
            count, others = len(self.pending), await wait_for_env_steps()
            await asyncio.sleep(0)
            quiet = 0 if others or count < len(self.pending) else quiet + 1


def merge_batchers(batchers: Sequence[DynamicBatcher[Any, Any]]) -> Sequence[Submit[Any, Any]]:
    """The same queues, answered in one call, one after another.

    Answered apart, whom each of them answers together would depend on how long the others took.
    """

    def answer(asks: Sequence[tuple[int, Any]]) -> Iterator[tuple[int, Any]]:
        for number, queue in enumerate(batchers):
            places = [place for place, (whose, _) in enumerate(asks) if whose == number]
            for i, said in queue.handler([asks[place][1] for place in places]) if places else ():
                yield places[i], said

    one = DynamicBatcher(answer)
    return [partial(_submit, one, number) for number in range(len(batchers))]


async def _submit(batcher: DynamicBatcher[tuple[int, Any], Any], index: int, request: Any) -> Any:
    return await batcher((index, request))
