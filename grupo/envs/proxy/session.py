"""One agent at work: its calls in order of arrival, and its end."""

import asyncio
import secrets
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

from grupo.core.types import Response
from grupo.envs.proxy.api_error import ApiError
from grupo.envs.proxy.chat_answer import ChatAnswer, make_answer
from grupo.envs.proxy.chat_request import ChatRequest
from grupo.envs.proxy.conversations import CallPlace, Conversations
from grupo.envs.proxy.policy_address import PolicyAddress
from grupo.envs.proxy.program import HarnessError
from grupo.envs.proxy.tool_rendering import ToolRendering

RunHarness = Callable[[PolicyAddress], Awaitable[Any]]


def rollout_over(reason: str = "") -> ApiError:
    """The error of a call that comes too late."""
    message = f"The rollout is over: {reason}." if reason else "The rollout is over."
    return ApiError(message, "rollout_over", status=HTTPStatus.GONE)


@dataclass(frozen=True)
class Call:
    """A call that waits for its answer.

    Args:
        request: The request.
        place: Its place among the calls of the rollout.
        answer: Receives the answer; cancelled if the agent closes the connection.
    """

    request: ChatRequest
    place: CallPlace
    answer: asyncio.Future[ChatAnswer]


@dataclass(frozen=True)
class Ended:
    """The agent has ended.

    Args:
        value: The value that it returned.
        error: Why it failed; "" if it did not.
    """

    value: Any = None
    error: str = ""


class Session:
    """An agent at work on a task; all its methods run in one event loop.

    The agent's calls are answered one at a time, in their order. A call that the agent gives up
    before its turn is dropped.

    Args:
        run_harness: Runs the agent to its end.
        time_limit: Seconds that the agent may take from an answer to its next call or its end.
        rendering: How the policy writes tool calls.
    """

    def __init__(
        self, run_harness: RunHarness, time_limit: float, rendering: ToolRendering
    ) -> None:
        self.key = secrets.token_urlsafe(24)
        self.time_limit = time_limit
        self.rendering = rendering
        self.conversations = Conversations()
        self.num_answered = 0
        self._run_harness = run_harness
        self._waiting = asyncio.Queue[tuple[ChatRequest, asyncio.Future[ChatAnswer]] | Ended]()
        self._harness: asyncio.Task[None] | None = None
        self._event: Call | Ended | None = None

    async def complete(self, request: ChatRequest) -> ChatAnswer:
        """The answer to a request of the agent, when its turn has come."""
        if isinstance(self._event, Ended):
            raise rollout_over()
        answer: asyncio.Future[ChatAnswer] = asyncio.get_running_loop().create_future()
        self._waiting.put_nowait((request, answer))
        return await answer

    async def start(self, address: PolicyAddress) -> Call | Ended:
        """Start the agent; returns its first call, or its end."""
        self._harness = asyncio.create_task(self._run(address))
        return await self._next_event()

    async def answer(self, text: str, response: Response, num_prompt_tokens: int) -> Call | Ended:
        """Answer the agent's call; returns the next call, or the agent's end."""
        call = self._event
        assert isinstance(call, Call), "an agent that has ended has no call to answer"
        identifier = f"{self.key[:8]}_{self.num_answered}"
        answer = make_answer(
            identifier, call.request, text, response, num_prompt_tokens, self.rendering
        )
        if call.answer.done():
            reason = f"closed the connection of call {self.num_answered + 1} before its answer"
            return await self.close(f"the agent {reason}")
        self.conversations.add(call.request, call.place, text, answer)
        self.num_answered += 1
        call.answer.set_result(answer)
        return await self._next_event()

    async def close(self, error: str) -> Ended:
        """End the agent with the error of its rollout, and refuse its calls; wait for its end."""
        self._refuse_calls(error)  # of threads that the agent has left behind, too
        if error or not isinstance(self._event, Ended):
            self._event = Ended(error=error)
        if self._harness:
            self._harness.cancel()
            await asyncio.wait([self._harness])
        return self._event

    def _refuse_calls(self, error: str) -> None:
        answers = [self._event.answer] if isinstance(self._event, Call) else []
        while not self._waiting.empty():
            entry = self._waiting.get_nowait()
            answers += [] if isinstance(entry, Ended) else [entry[1]]
        for answer in answers:
            if not answer.done():
                answer.set_exception(rollout_over(error))

    async def _run(self, address: PolicyAddress) -> None:
        try:
            ended = Ended(await self._run_harness(address))
        except HarnessError as error:
            ended = Ended(error=f"the agent {error}")
        self._waiting.put_nowait(ended)

    async def _next_event(self) -> Call | Ended:
        try:
            async with asyncio.timeout(self.time_limit):
                self._event = await self._take_event()
        except TimeoutError:
            reason = f"neither called the policy nor ended within {self.time_limit:g} s"
            return await self.close(f"the agent {reason}, after {self.num_answered} calls")
        return self._event

    async def _take_event(self) -> Call | Ended:
        while True:
            entry = await self._waiting.get()
            if isinstance(entry, Ended):
                return entry
            request, answer = entry
            if not answer.done():
                return Call(request, self.conversations.place_of(request), answer)
