"""The chat of a rollout, and whether a template renders its earlier answers as they were read.

A template may render an answer otherwise once it is answered: Qwen3's leaves thoughts out that
precede a question of the user. The policy then does not read the tokens that it generated.
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from grupo.core.types import Message, Observation, Response, Rollout, prefill_text
from grupo.models.functiongemma import CALL, functiongemma_message
from grupo.models.harmony import CHANNEL, harmony_message

THOUGHT, THOUGHT_END = "<think>", "</think>"
THOUGHT_TOKENS = 12  # at the end of a prompt, among which a thought may be opened
Tokens = Sequence[Any]
Decode = Callable[[Tokens], str]


class ChatSoFar(NamedTuple):
    """A rollout as a chat.

    Args:
        messages: All messages before the last answer; the last of them may prefill it.
        text: The last answer as the policy generated it, with special tokens, without an end token.
        answer: That answer as a message, with its prefilled beginning.
    """

    messages: tuple[Message, ...]
    text: str
    answer: Message

    @property
    def answered(self) -> tuple[Message, ...]:
        """All messages, the last answer included."""
        is_prefilled = self.messages[-1].get("role") == "assistant"
        return (*self.messages[: len(self.messages) - is_prefilled], self.answer)


def chat_so_far(
    rollout: Rollout,
    to_messages: Callable[[Observation], tuple[Message, ...] | None],
    decode: Decode,
    ends: Collection[int],
) -> ChatSoFar | None:
    """The chat of a rollout; None if its context is not the rendering of a chat.

    Args:
        rollout: A rollout of at least one turn.
        to_messages: The messages of the first observation; None if no template renders it.
        decode: The text of tokens, special ones by name.
        ends: Tokens that end an answer.
    """
    chat: ChatSoFar | None = None
    for observation, items, before in _answers(rollout):
        messages = to_messages(observation) if chat is None else _later_messages(observation)
        if messages is None:
            return None
        text = answer_text(items, before, decode, ends)
        answer = answer_message(observation, text, decode(before[-THOUGHT_TOKENS:]))
        chat = ChatSoFar((*(chat.answered if chat else ()), *messages), text, answer)
    return None if _restarts(rollout) else chat


def answer_text(items: Tokens, before: Tokens, decode: Decode, ends: Collection[int]) -> str:
    """The text of an answer up to its end token, special tokens by name.

    Args:
        items: Tokens of the answer.
        before: Tokens before it.
        decode: As in `chat_so_far`.
        ends: As in `chat_so_far`.
    """
    place = next((i for i, item in enumerate(items) if item in ends), len(items))
    prefix = before[-1:]  # some decoders drop the space that begins a text
    return decode([*prefix, *items[:place]])[len(decode(prefix)) :]


def answer_message(observation: Observation, text: str, prompt_end: str = "") -> dict[str, Any]:
    """An answer as a message.

    Args:
        observation: What it answers; its last message may be the beginning of the answer.
        text: The answer.
        prompt_end: The last part of the rendered prompt, which may open a thought.

    >>> answer_message("?", "Sum.</think>4", "<|im_start|>assistant<think>")["content"]
    '<think>Sum.</think>4'
    """
    if CHANNEL in text:
        return harmony_message(text)
    if CALL in text:
        return functiongemma_message(text)
    _, opened, rest = prompt_end.rpartition(THOUGHT)
    thought = opened + rest if opened and THOUGHT_END not in rest else ""
    return {"role": "assistant", "content": (prefill_text(observation) or thought) + text}


def end_of_answer(text: str, prompt: str, answer: str) -> int | None:
    """The place in a rendered chat at which an answer ends; None if the chat holds another text.

    White space may differ inside the answer and at its ends: templates trim it, and set it around
    thoughts.

    Args:
        text: The rendered chat, with later messages.
        prompt: The rendered chat before the answer.
        answer: The text that the policy generated.

    >>> end_of_answer("Q: 2+2 A: 4. Q: ?", "Q: 2+2 A:", " 4. "), end_of_answer("Q A: ", "Q A:", "4")
    (13, None)
    """
    if not text.startswith(prompt):
        return None
    if text.startswith(answer, len(prompt)):
        return len(prompt) + len(answer)
    place = len(prompt)
    for character in answer:
        if character.isspace():
            continue
        while text[place : place + 1].isspace():
            place += 1
        if text[place : place + 1] != character:
            return None
        place += 1
    trailing = answer[len(answer.rstrip()) :]
    return place + len(trailing) * text.startswith(trailing, place)


def as_fork(response: Response) -> Response:
    """The response to an observation that is the whole chat; without items there is no context."""
    has_context = bool(response.observation)
    return replace(response, resets_context=has_context, rewrites_history=has_context)


def _later_messages(observation: Observation) -> tuple[Message, ...] | None:
    """The messages of an observation after an answer; None for plain text."""
    return None if isinstance(observation, str) else observation


def _answers(rollout: Rollout) -> list[tuple[Observation, tuple[Any, ...], tuple[Any, ...]]]:
    """Each observation with the items of its answer, and the encoded observation.

    Responses without an observation go on with the answer before them.
    """
    answers: list[tuple[Observation, tuple[Any, ...], tuple[Any, ...]]] = []
    for observation, response in rollout.turns:
        if answers and not observation:
            first, items, before = answers[-1]
            answers[-1] = (first, (*items, *response.items), before)
        else:
            answers.append((observation, response.items, response.observation))
    return answers


def _restarts(rollout: Rollout) -> bool:
    """True if the sampler has restarted the context, which is then no rendered chat."""
    return any(r.resets_context and not r.rewrites_history for _, r in rollout.turns)
