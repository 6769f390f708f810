"""Demonstrations as rollouts of tokens, which are encoded once."""

import hashlib
import json
from dataclasses import replace
from itertools import groupby

from grupo.core.demonstration import Answer, Demonstration
from grupo.core.types import Message, Observation, Response, Rollout, prefill_text
from grupo.models.chat_history import ChatSoFar, as_fork
from grupo.models.chat_tokenizer import ChatTokenizer
from grupo.models.replies import ReplyTokens, encode_reply
from grupo.util.errors import ConfigError

SOURCE = "demonstration"


def demonstration_rollout(chat_tokenizer: ChatTokenizer, demonstration: Demonstration) -> Rollout:
    """The rollout of a demonstration, whose answers have the tokens that the policy would generate.

    It is encoded once, as far as the cache has room.
    """
    key = _content_hash(demonstration)
    return chat_tokenizer.encoded_demonstrations.get_or_make(
        key, lambda: _encode(chat_tokenizer, demonstration)
    )


def _content_hash(demonstration: Demonstration) -> bytes:
    content = [demonstration.turns, demonstration.tools, demonstration.all_tokens]
    text = json.dumps(content, default=repr)
    return hashlib.blake2b(text.encode(errors="surrogatepass"), digest_size=16).digest()


def _encode(chat_tokenizer: ChatTokenizer, demonstration: Demonstration) -> Rollout:
    (first, answer), *_ = demonstration.turns
    if not first and isinstance(answer, str):
        return _one_response(chat_tokenizer.encode_text(answer), "", answer)
    rollout = Rollout(source=SOURCE)
    chat: ChatSoFar | None = None
    for observation, answer in demonstration.turns:
        tokens, rewrites = chat_tokenizer.encode_turn(
            rollout, observation, demonstration.tools, chat
        )
        messages = (*(chat.answered if chat else ()), *_messages(observation))
        reply = _reply(chat_tokenizer, messages, answer, demonstration)
        chat = _chat(chat_tokenizer, messages, tokens, reply.items, answer)
        first, *later = _responses(chat_tokenizer, tokens, reply, answer)
        rollout = rollout.append_turn(observation, as_fork(first) if rewrites else first)
        for response in later:
            rollout = rollout.append_turn("", response)
    return _with_all_tokens(chat_tokenizer, rollout) if demonstration.all_tokens else rollout


def _chat(
    chat_tokenizer: ChatTokenizer,
    messages: tuple[Message, ...],
    tokens: tuple[int, ...],
    items: tuple[int, ...],
    answer: Answer,
) -> ChatSoFar:
    """The chat up to an answer, which may hold more than its text, such as calls of tools."""
    text = chat_tokenizer.answer_text(items, tokens)
    message = {"role": "assistant", "content": answer} if isinstance(answer, str) else answer
    if beginning := prefill_text(messages):
        message = {**message, "content": beginning + str(message.get("content") or "")}
    return ChatSoFar(messages, text, message)


def _reply(
    chat_tokenizer: ChatTokenizer,
    messages: tuple[Message, ...],
    answer: Answer,
    demonstration: Demonstration,
) -> ReplyTokens:
    """An answer in tokens; those of a text are all trained on."""
    if not isinstance(answer, str):
        return encode_reply(chat_tokenizer, messages, answer, demonstration.tools)
    items = chat_tokenizer.encode_answer(answer)
    return ReplyTokens(items, (True,) * len(items))


def _responses(
    chat_tokenizer: ChatTokenizer, tokens: tuple[int, ...], reply: ReplyTokens, answer: Answer
) -> list[Response]:
    """The responses of an answer: one for each part that is trained on, or is not."""
    if len(set(reply.in_loss)) < 2:
        response = _response(tokens, reply.items, _text(chat_tokenizer, answer, reply.items))
        return [replace(response, in_loss=all(reply.in_loss))]
    responses: list[Response] = []
    start = 0
    for in_loss, part in groupby(reply.in_loss):
        end = start + len(list(part))
        text = chat_tokenizer.decode(reply.items[start:end], reply.items[:start])
        response = _response(() if start else tokens, reply.items[start:end], text)
        responses.append(replace(response, in_loss=in_loss))
        start = end
    return responses


def _with_all_tokens(chat_tokenizer: ChatTokenizer, rollout: Rollout) -> Rollout:
    """One response of all tokens after the first one."""
    turns = rollout.contexts[-1].turns  # the last one is the whole chat
    tokens = [t for _, response in turns for t in (*response.observation, *response.items)]
    text = chat_tokenizer.decode(tokens[1:], tokens[:1])
    return _one_response(tuple(tokens), rollout.turns[0][0], text)


def _one_response(tokens: tuple[int, ...], observation: Observation, text: str) -> Rollout:
    if len(tokens) < 2:
        raise ConfigError(
            f"text: {text[:60]!r} has {len(tokens)} token. Allowed: 2 or more, because nothing"
            " precedes the first one."
        )
    response = _response(tokens[:1], tokens[1:], text)
    return Rollout(source=SOURCE).append_turn(observation, response)


def _response(observation: tuple[int, ...], items: tuple[int, ...], text: str) -> Response:
    return Response(items, (0.0,) * len(items), observation, text, sampled=False)


def _messages(observation: Observation) -> list[Message]:
    return (
        [{"role": "user", "content": observation}]
        if isinstance(observation, str)
        else [*observation]
    )


def _text(chat_tokenizer: ChatTokenizer, answer: Answer, items: tuple[int, ...]) -> str:
    return answer if isinstance(answer, str) else chat_tokenizer.decode(items)
