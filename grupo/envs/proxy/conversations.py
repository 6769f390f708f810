"""The conversations of one rollout: which earlier answers the messages of a call continue."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from grupo.core.types import Message
from grupo.envs.proxy.chat_answer import ChatAnswer
from grupo.envs.proxy.chat_request import ChatRequest
from grupo.envs.proxy.messages import assistant_message, calls_of


@dataclass(frozen=True)
class CallPlace:
    """The place of a call among those of its rollout.

    Args:
        continues: Numbers of the earlier calls in the same conversation, in order.
        messages: The messages after the answer to the last of them.
    """

    continues: tuple[int, ...]
    messages: tuple[Message, ...]


@dataclass
class Conversations:
    """The calls of a rollout that have been answered, in order.

    Args:
        calls: For each, the request, its place, and the forms in which its answer may come back.
    """

    calls: list[tuple[ChatRequest, CallPlace, Sequence[Message]]] = field(default_factory=list)

    def place_of(self, request: ChatRequest) -> CallPlace:
        """The place of a new call, after the longest conversation that its messages continue.

        They continue a call if they are its messages, its answer and others after it, but for
        whitespace at the ends of each. The tools are the same, too, since they were described at
        the beginning.
        """
        lengths = {n: len(call.messages) for n, (call, *_) in enumerate(self.calls)}
        for number in sorted(lengths, key=lambda n: (lengths[n], n), reverse=True):
            if self._continues(request, number):
                place = self.calls[number][1]
                return CallPlace(
                    (*place.continues, number), request.messages[lengths[number] + 1 :]
                )
        return CallPlace((), request.messages)

    def add(self, request: ChatRequest, place: CallPlace, text: str, answer: ChatAnswer) -> None:
        """Record the answer to a call.

        Args:
            request: The call.
            place: Its place.
            text: The whole text of the answer; agents may put a stop string back.
            answer: The answer as the agent read it.
        """
        forms = [assistant_message(answer.content, answer.calls), assistant_message(text, ())]
        self.calls.append((request, place, forms))

    def _continues(self, request: ChatRequest, number: int) -> bool:
        earlier, _, forms = self.calls[number]
        end = len(earlier.messages)
        if request.tools != earlier.tools or len(request.messages) < end + 2:
            return False
        same = map(_equal, request.messages, earlier.messages)
        return any(_equal(request.messages[end], form) for form in forms) and all(same)


def _equal(first: Message, second: Message) -> bool:
    return _compared(first) == _compared(second)


def _compared(message: Message) -> tuple[Any, ...]:
    return message["role"], message["content"].strip(), calls_of(message)
