"""A call of the policy by an agent: an observation that says how it is to be answered."""

from collections.abc import Iterable

from grupo.core.types import Message

NO_LIMIT = 1 << 30
# finish reason of a response to messages that the chat template rejects; the response's text is the
# reason of the rejection
UNREADABLE = "unreadable"


class ModelCall(tuple[Message, ...]):
    """The messages of an agent's call that the policy has not read, with the call's options.

    It is an observation like any other tuple of messages, and a record holds its messages alone.

    Args:
        messages: The new messages.
        continues: Indices of the rollout's turns whose conversation the messages continue; () for
            a new conversation. The response has a context of its own unless the last of them is the
            rollout's last turn.
        stop_strings: Strings that end the response, beside those of the policy.
        max_new_tokens: Limit of the response in tokens, beside that of the policy.
        session: Identifies the agent's session, within the environment in use.
    """

    continues: tuple[int, ...]
    stop_strings: tuple[str, ...]
    max_new_tokens: int
    session: str

    def __new__(
        cls,
        messages: Iterable[Message],
        *,
        continues: tuple[int, ...] = (),
        stop_strings: tuple[str, ...] = (),
        max_new_tokens: int = NO_LIMIT,
        session: str = "",
    ) -> "ModelCall":
        call = super().__new__(cls, messages)
        call.continues = continues
        call.stop_strings = stop_strings
        call.max_new_tokens = max_new_tokens
        call.session = session
        return call
