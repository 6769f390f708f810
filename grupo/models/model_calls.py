"""Responses of a causal language model to the calls of an agent (`ModelCall`)."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace

from grupo.core.message_content import append_to
from grupo.core.model_call import UNREADABLE, ModelCall
from grupo.core.types import Message, Response, Rollout
from grupo.models.chat_tokenizer import ChatTokenizer
from grupo.models.context import context_tokens
from grupo.util.errors import ConfigError

Generate = Callable[[tuple[int, ...], tuple[int, ...]], Awaitable[Response]]


async def answer_call(
    chat_tokenizer: ChatTokenizer, rollout: Rollout, call: ModelCall, generate: Generate
) -> Response:
    """The response to a call, in the exact tokens of the conversation that the call continues.

    A call that continues another conversation than the rollout's last one gets a context of its
    own, which begins with the tokens of its conversation.

    Args:
        chat_tokenizer: Encodes the messages.
        rollout: The rollout so far.
        call: The call.
        generate: Continues a context and the tokens of an observation.

    Returns:
        The response. It has no items if the call leaves no room for an answer, or if the chat
        template rejects its messages: the finish reason is then `UNREADABLE`, and the text is the
        cause.
    """
    conversation = replace(rollout, turns=tuple(rollout.turns[i] for i in call.continues))
    try:
        tokens = encode_call(chat_tokenizer, conversation, call)
    except ConfigError as error:
        return Response((), (), text=str(error), finish_reason=UNREADABLE)
    before = context_tokens(conversation) if conversation.turns else ()
    response = await generate(before, tokens)
    if not response.items or call.continues == _last_context(rollout):
        return response
    return replace(response, observation=(*before, *tokens), resets_context=True)


def encode_call(
    chat_tokenizer: ChatTokenizer, conversation: Rollout, call: ModelCall
) -> tuple[int, ...]:
    """Tokens of a call's messages, after those of its conversation.

    Raises:
        ConfigError: The chat template rejects the messages.
    """
    if conversation.turns or not call.tools or chat_tokenizer.describes_tools:
        return chat_tokenizer.encode_observation(conversation, call, call.tools)
    return chat_tokenizer.encode_observation(
        conversation, with_system_text(call, call.tools_prompt)
    )


def with_system_text(messages: Sequence[Message], text: str) -> tuple[Message, ...]:
    """The messages with a text at the end of the system message; a new one if there is none.

    >>> with_system_text(({"role": "user", "content": "2 + 2"},), "Add.")[0]
    {'role': 'system', 'content': 'Add.'}
    """
    first, *rest = messages
    if first.get("role") != "system":
        return ({"role": "system", "content": text}, *messages)
    return ({**first, "content": append_to(first.get("content"), f"\n\n{text}")}, *rest)


def _last_context(rollout: Rollout) -> tuple[int, ...]:
    """Indices of the turns in the rollout's last context."""
    end = len(rollout.turns)
    return tuple(range(end - len(rollout.contexts[-1].turns), end))
