"""The interface of models that judge answers: conversations in, replies out."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from grupo.core.types import Message

Conversation = tuple[Message, ...]


class JudgeError(RuntimeError):
    """A judge did not reply, or its reply has no score; the rollout cannot be scored."""


@dataclass(frozen=True)
class ChatReply:
    """The reply of a model to a conversation.

    Args:
        text: The reply.
        finish_reason: Why it ends: "stop", or "length" if the token limit cut it.
        prompt_tokens: Number of tokens of the conversation; 0 if the server does not count them.
        completion_tokens: Number of tokens of the reply; 0 likewise.
    """

    text: str
    finish_reason: str = "stop"
    prompt_tokens: int = 0
    completion_tokens: int = 0


ReplyOrError = ChatReply | JudgeError


@runtime_checkable
class ChatModel(Protocol):
    """A model that replies to conversations: over HTTP, or in this process."""

    def prepare(self) -> None:
        """Raise `ConfigError` if the model cannot be used, before any work starts."""
        ...

    async def complete(self, conversations: Sequence[Conversation]) -> Sequence[ReplyOrError]:
        """The reply to each conversation, or the error that takes its place."""
        ...
