"""Requests that many coroutines make one by one, answered many at a time."""

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Generic, TypeVar

Ask = TypeVar("Ask")
Answer = TypeVar("Answer")


class Queue(Generic[Ask, Answer]):
    """Waits until everybody who can ask has asked, then answers them all in one call of `answer`.

    The calls run one after another in `thread`, so that judging goes on while the policy speaks.
    """

    def __init__(
        self, answer: Callable[[Sequence[Ask]], Sequence[Answer]], thread: ThreadPoolExecutor
    ) -> None:
        self.answer, self.thread = answer, thread
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
        loop = asyncio.get_running_loop()
        try:
            answers = await loop.run_in_executor(self.thread, self.answer, asks)
            pairs = list(zip(futures, answers, strict=True))
        except Exception as error:  # whoever asked hears of it
            for future in futures:
                if not future.done():
                    future.set_exception(error)
            return
        for future, answer in pairs:
            if not future.done():
                future.set_result(answer)

    async def _settle(self) -> None:
        count = -1
        while count != len(self.waiting):
            count = len(self.waiting)
            await asyncio.sleep(0)
