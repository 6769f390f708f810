"""The calls of one agent, in the order of their arrival."""

import asyncio

import pytest

from grupo.core.types import Response
from grupo.envs.proxy.api_error import ApiError
from grupo.envs.proxy.chat_request import parse_request
from grupo.envs.proxy.policy_address import PolicyAddress
from grupo.envs.proxy.session import Ended, Session
from grupo.envs.proxy.tool_rendering import ToolRendering
from tests.helpers.agents import user

REQUEST = parse_request({"messages": [user("hello")]})


def test_a_call_after_the_end_of_the_agent_is_refused_when_its_rollout_is_over():
    async def check():
        returned = asyncio.Event()

        async def agent(address):
            await returned.wait()

        session = Session(agent, 10.0, ToolRendering("hermes", "prompt"))
        first = asyncio.create_task(session.complete(REQUEST))
        await session.start(PolicyAddress("http://127.0.0.1:1/v1", session.key))
        returned.set()
        await asyncio.sleep(0.01)  # the agent has ended while its call is answered
        second = asyncio.create_task(session.complete(REQUEST))
        await asyncio.sleep(0)
        event = await session.answer("x", Response((1,), (0.0,), text="x"), 1)
        assert isinstance(event, Ended)
        assert (await first).content == "x"
        await session.close("")
        with pytest.raises(ApiError, match="The rollout is over"):
            await asyncio.wait_for(second, 1.0)

    asyncio.run(check())
