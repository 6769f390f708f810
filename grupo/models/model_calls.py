"""Responses of a causal language model to the calls of an agent (`ModelCall`)."""

from collections.abc import Awaitable, Callable
from dataclasses import replace

from grupo.core.model_call import UNREADABLE, ModelCall
from grupo.core.types import Response, Rollout
from grupo.models.chat_history import as_fork
from grupo.models.chat_tokenizer import ChatTokenizer, EncodedObservation
from grupo.models.context import context_tokens
from grupo.models.long_texts import TooLongError
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
        tokens, rewrites = encode_call(chat_tokenizer, conversation, call)
    except TooLongError:
        return Response((), (), finish_reason="length")
    except ConfigError as error:
        return Response((), (), text=str(error), finish_reason=UNREADABLE)
    has_context = conversation.turns and not rewrites
    before = context_tokens(conversation) if has_context else ()
    response = await generate(before, tokens)
    if rewrites:
        return as_fork(response)
    last_turn = tuple(range(len(rollout.turns)))[-1:]
    if not response.items or call.continues[-1:] == last_turn:  # the last context goes on
        return response
    return replace(response, observation=(*before, *tokens), resets_context=True)


def encode_call(
    chat_tokenizer: ChatTokenizer, conversation: Rollout, call: ModelCall
) -> EncodedObservation:
    """A call's messages in tokens, after those of its conversation.

    Args:
        chat_tokenizer: Encodes the messages.
        conversation: The turns that the call continues, as a rollout.
        call: The call.

    Raises:
        ConfigError: The chat template rejects the messages.
    """
    # a context that began anew for another conversation belongs to this one like any other
    turns = (
        (observation, replace(response, resets_context=response.rewrites_history))
        for observation, response in conversation.turns
    )
    conversation = replace(conversation, turns=tuple(turns))
    return chat_tokenizer.encode_turn(conversation, call)
