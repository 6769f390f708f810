"""Requests that many coroutines make one by one, answered many at a time."""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Iterator, Sequence
from functools import partial
from typing import Any, Generic, TypeVar

from grupo.core.event_loop import handed
from grupo.core.pending_env_steps import all_back

Ask = TypeVar("Ask")
Answer = TypeVar("Answer")

TURNS = 50  # of the loop without a question: an answer takes two through each `gather` to who asks

Answering = Callable[[Sequence[Ask]], Iterator[tuple[int, Answer]]]
Asking = Callable[[Ask], Awaitable[Answer]]


class _Post(Generic[Answer]):
    """Answers on their way to a loop, from another thread: it is woken once for many of them."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop, self.bag = loop, deque[tuple[asyncio.Future[Answer], Answer]]()

    def send(self, future: "asyncio.Future[Answer]", answer: Answer) -> None:
        self.bag.append((future, answer))
        if len(self.bag) == 1:  # else it is being emptied, or will be
            self.loop.call_soon_threadsafe(self._deliver)

    def _deliver(self) -> None:
        while self.bag:
            future, answer = self.bag[0]
            if not future.done():  # who asked may have been cancelled since
                future.set_result(answer)
            self.bag.popleft()


class Queue(Generic[Ask, Answer]):
    """Waits until everybody who can ask has asked, then answers them all in one call of `answer`.

    That is when nobody is `away` and nobody asks for some turns of the loop. Judges are not waited
    for. The calls are `handed` over, one after another, and whoever asked has the answer as soon as
    the call yields it, with its place: judging goes on while the policy speaks to others.
    """

    def __init__(self, answer: Answering[Ask, Answer]) -> None:
        self.answer = answer
        self.waiting: list[tuple[Ask, asyncio.Future[Answer]]] = []
        self.working: asyncio.Task[None] | None = None

    async def __call__(self, ask: Ask) -> Answer:
        future: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self.waiting.append((ask, future))
        if self.working is None:
            self.working = asyncio.create_task(self._work())
        return await future

    async def _work(self) -> None:
        try:
            while self.waiting:
                await self._settle()
                # who asked may have been cancelled since
                now = [(ask, future) for ask, future in self.waiting if not future.done()]
                self.waiting = []
                await self._answer([ask for ask, _ in now], [future for _, future in now])
        finally:
            self.working = None

    async def _answer(
        self, asks: Sequence[Ask], futures: Sequence["asyncio.Future[Answer]"]
    ) -> None:
        post = _Post[Answer](asyncio.get_running_loop())

        def work() -> None:
            for place, answer in self.answer(asks):
                if all(future.done() for future in futures):
                    break
                post.send(futures[place], answer)

        try:
            await handed(work)
            await asyncio.sleep(0)  # what was answered last is given by now
            unanswered = RuntimeError("the policy left some requests unanswered")
        except Exception as error:  # whoever still waits hears of it
            unanswered = error
        for future in futures:
            if not future.done():
                future.set_exception(unanswered)

    async def _settle(self) -> None:
        quiet = 0
        while quiet < TURNS:
            count, others = len(self.waiting), await all_back()
            await asyncio.sleep(0)
            quiet = 0 if others or count < len(self.waiting) else quiet + 1


def joined(queues: Sequence[Queue[Any, Any]]) -> Sequence[Asking[Any, Any]]:
    """The same queues, answered in one call, one after another.

    Answered apart, whom each of them answers together would depend on how long the others took.
    """

    def answer(asks: Sequence[tuple[int, Any]]) -> Iterator[tuple[int, Any]]:
        for number, queue in enumerate(queues):
            places = [place for place, (whose, _) in enumerate(asks) if whose == number]
            for i, said in queue.answer([asks[place][1] for place in places]) if places else ():
                yield places[i], said

    one = Queue(answer)
    return [partial(_of, one, number) for number in range(len(queues))]


async def _of(queue: Queue[tuple[int, Any], Any], number: int, ask: Any) -> Any:
    return await queue((number, ask))
