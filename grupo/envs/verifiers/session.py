"""A rollout of an environment of verifiers as a session that the policy's texts advance."""

import json
from collections.abc import Coroutine, Mapping, Sequence
from copy import deepcopy
from importlib import import_module
from typing import Any

from grupo.core.types import Message, Task
from grupo.envs.background_loop import BackgroundLoop
from grupo.envs.game_env import StepResult
from grupo.envs.tools.formats.hermes import OPEN_TAG, parse_hermes
from grupo.envs.tools.tool_env import with_tools_prompt

_loop = BackgroundLoop()  # environments hold connections, which belong to one event loop


class VerifiersSession:
    """The state of one rollout of an environment of verifiers.

    Args:
        env: The environment.
        time_limit: Seconds that a step may take.
    """

    def __init__(self, env: Any, time_limit: float) -> None:
        self.env = env
        self.time_limit = time_limit

    def __deepcopy__(self, memo: dict[int, Any]) -> "VerifiersSession":
        copy = VerifiersSession(self.env, self.time_limit)
        tracker = self.state["usage_tracker"]  # cannot be copied, and counts nothing here
        memo |= {id(tracker): type(tracker)(), id(self.state["client"]): self.state["client"]}
        copy.state, copy.messages = deepcopy((self.state, self.messages), memo)
        return copy

    def reset(self, task: Task) -> StepResult:
        """The prompt of the task, with a description of the tools if the environment has any."""
        self._run(self._reset(task.columns["row"]))
        schemas = [_schema(tool) for tool in self.state["tool_defs"]]
        prompt = tuple(map(_as_dict, self.messages))
        return StepResult(with_tools_prompt(prompt, schemas) if schemas else prompt)

    def step(self, text: str) -> StepResult:
        """The messages with which the environment answers; it is done where it completes."""
        return self._run(self._step(text))

    def score_with(self, sessions: Sequence["VerifiersSession"]) -> None:
        """Score the rollouts of these sessions together; the results are in their states."""
        self._run(self._score([session.state for session in sessions]))

    def _run(self, coroutine: Coroutine[Any, Any, Any]) -> Any:
        return _loop.call(coroutine, self.time_limit)

    async def _reset(self, row: Mapping[str, Any]) -> None:
        clients = import_module("verifiers.clients")
        no_client = clients.OpenAIChatCompletionsClient(None)  # the policy answers, not a server
        self.state: Any = await self.env.init_state(dict(row), no_client, "policy")
        self.state = await self.env.setup_state(self.state) or self.state
        self.messages = list(await self.env.get_prompt_messages(self.state))

    async def _step(self, text: str) -> StepResult:
        response = _response(text, len(self.state["trajectory"]))
        await self.env.add_model_response(self.state, self.messages, response)
        if await self._is_completed():
            return StepResult("", done=True)
        known = [*self.messages, *self.state["trajectory"][-1]["completion"]]
        self.messages = _normalized(await self.env.get_prompt_messages(self.state))
        if await self._is_completed():
            return StepResult("", done=True)
        if self.messages[: len(known)] != known:
            raise ValueError("changed earlier messages. Allowed: environments that append messages")
        return StepResult(tuple(map(_as_dict, self.messages[len(known) :])))

    async def _is_completed(self) -> bool:
        """True if a stop condition holds; an error of the environment is raised."""
        if self.state["error"] is not None:
            raise self.state["error"]
        return await self.env.is_completed(self.state)

    async def _score(self, states: Sequence[Any]) -> None:
        for state in states:
            await self.env.cleanup(state)
        await self.env.rubric.score_group(list(states))
        for state in states:
            await self.env.rubric.cleanup(state)


def _response(text: str, turn: int) -> Any:
    """The policy's text as an inference server returns it, with its tool calls apart."""
    types = import_module("verifiers.types")
    calls = [call for call in parse_hermes(text) if not call.error]
    tool_calls = [
        types.ToolCall(id=f"call_{turn}_{i}", name=call.name, arguments=json.dumps(call.arguments))
        for i, call in enumerate(calls)
    ]
    message = types.ResponseMessage(
        content=text.partition(OPEN_TAG)[0] if tool_calls else text,
        tool_calls=tool_calls or None,
        finish_reason="tool_calls" if tool_calls else "stop",
        is_truncated=False,
    )
    return types.Response(id=f"turn_{turn}", created=0, model="policy", message=message)


def _normalized(messages: Any) -> list[Any]:
    message_utils = import_module("verifiers.utils.message_utils")
    return list(message_utils.normalize_messages(messages, field_name="env_response"))


def _as_dict(message: Any) -> Message:
    return message.model_dump(exclude_none=True)


def _schema(tool: Any) -> str:
    """The function schema of chat templates: JSON on one line."""
    names = ("name", "description", "parameters")
    function = {name: getattr(tool, name) for name in names}
    return json.dumps({"type": "function", "function": function})
