"""The calls of an agent as turns of a rollout."""

from collections.abc import Sequence

from grupo.core.model_call import ModelCall
from grupo.core.types import Message, Rollout, Task
from grupo.envs.proxy.chat_request import ChatRequest
from grupo.envs.proxy.session import Call
from grupo.envs.proxy.tool_rendering import ToolRendering


def observation_of(
    rollout: Rollout, call: Call, session: str, rendering: ToolRendering
) -> ModelCall:
    """A call as the next observation of its rollout: the messages that the policy has not read.

    Args:
        rollout: The rollout so far.
        call: The call.
        session: Key of the rollout's agent.
        rendering: How the policy reads tools and results.
    """
    turns = call_turns(rollout)
    continues = tuple(turn for number in call.place.continues for turn in turns[number])
    return as_model_call(call.request, rendering, call.place.messages, continues, session)


def as_model_call(
    request: ChatRequest,
    rendering: ToolRendering,
    messages: Sequence[Message] = (),
    continues: tuple[int, ...] = (),
    session: str = "",
) -> ModelCall:
    """A request as an observation.

    Args:
        request: The request.
        rendering: How the policy reads tools and results.
        messages: The messages that the policy has not read; () stands for all.
        continues: Indices of the turns that hold the messages before them.
        session: Key of the agent.
    """
    return ModelCall(
        rendering.render(messages or request.messages, () if continues else request.tools),
        continues=continues,
        stop_strings=request.stop_strings,
        max_new_tokens=request.max_new_tokens,
        session=session,
    )


def first_observation(task: Task, session: str) -> ModelCall:
    """The task's prompt, as the first observation of a rollout whose agent has made no call."""
    prompt = task.prompt
    messages = ({"role": "user", "content": prompt},) if isinstance(prompt, str) else prompt
    return ModelCall(messages, session=session)


def call_turns(rollout: Rollout) -> Sequence[Sequence[int]]:
    """Indices of the turns that answer each call, as `turn_texts` has their texts."""
    calls: list[list[int]] = []
    for index, (observation, response) in enumerate(rollout.turns):
        if response.items and (observation or not calls):
            calls.append([index])
        elif response.items:
            calls[-1].append(index)
    return calls


def num_prompt_tokens(rollout: Rollout) -> int:
    """Number of tokens that the policy read before its last response."""
    return rollout.contexts[-1].context_length - len(rollout.last_response.items)
