"""The agents that are at work in this process, and the server that they call."""

import asyncio
from collections.abc import Coroutine, Iterable, Sequence
from concurrent.futures import Future, wait
from typing import TYPE_CHECKING, Any

from grupo.core.types import Response
from grupo.envs.background_loop import BackgroundLoop
from grupo.envs.proxy.chat_request import ChatRequest
from grupo.envs.proxy.policy_address import PolicyAddress
from grupo.envs.proxy.session import Call, Ended, RunHarness, Session
from grupo.envs.proxy.tool_rendering import ToolRendering

if TYPE_CHECKING:
    from grupo.envs.proxy.server import ApiServer

END_SECONDS = 2.0  # until the programs of agents are killed

Event = Call | Ended
_loop = BackgroundLoop()  # connections belong to one event loop, and outlive a step
_sessions: dict[str, Session] = {}
_servers: list["asyncio.Task[ApiServer]"] = []  # none before the first agent, then one


class Agent:
    """An agent as the environment of a step sees it: events, and answers to them.

    Args:
        run_harness: Runs the agent to its end.
        time_limit: Seconds that it may take from an answer to its next call or its end.
        rendering: How the policy writes tool calls.
    """

    def __init__(
        self, run_harness: RunHarness, time_limit: float, rendering: ToolRendering
    ) -> None:
        self._session = Session(run_harness, time_limit, rendering)
        self._events: list[Future[Event]] = []  # event n follows n answers

    @property
    def key(self) -> str:
        """The agent's key in its base URL."""
        return self._session.key

    @property
    def requests(self) -> Sequence[ChatRequest]:
        """The requests that have been answered, in order."""
        return [request for request, *_ in self._session.conversations.calls]

    @property
    def has_ended(self) -> bool:
        """True if the newest event is the agent's end."""
        newest = self._events[-1]
        return newest.done() and isinstance(newest.result(), Ended)

    def has_answered(self, number: int) -> bool:
        """True if the agent has had so many answers and no more, or has ended."""
        return len(self._events) == number + 1 or self.has_ended

    async def event(self, number: int) -> Event:
        """The agent's call after so many answers, or its end, whichever comes first."""
        future = self._events[min(number, len(self._events) - 1)]
        # shield: a rollout that is interrupted does not stop the agent
        return await asyncio.shield(asyncio.wrap_future(future))

    def start(self) -> None:
        """Start the agent."""
        self._submit(_start(self._session))

    def answer(self, text: str, response: Response, num_prompt_tokens: int) -> None:
        """Answer the agent's newest call."""
        self._submit(self._session.answer(text, response, num_prompt_tokens))

    def fail(self, error: str) -> None:
        """End the agent, whose rollout fails with an error."""
        self._submit(_end(self._session, error))

    def end(self) -> Future[Event]:
        """End the agent, if it has not ended."""
        return _loop.submit(_end(self._session, ""))

    def _submit(self, coroutine: Coroutine[Any, Any, Event]) -> None:
        self._events.append(_loop.submit(coroutine))


def end_agents(agents: Iterable[Agent]) -> None:
    """End agents, and wait until their programs are killed."""
    wait([agent.end() for agent in agents], END_SECONDS)


async def _start(session: Session) -> Event:
    if not _servers:
        _servers.append(asyncio.create_task(_start_server()))
    server = await asyncio.shield(_servers[0])
    _sessions[session.key] = session
    return await session.start(PolicyAddress(server.base_url(session.key), session.key))


async def _start_server() -> "ApiServer":
    from grupo.envs.proxy.server import ApiServer  # of an extra

    server = ApiServer(_sessions)
    await server.start()
    return server


async def _end(session: Session, error: str) -> Event:
    _sessions.pop(session.key, None)
    return await session.close(error)
