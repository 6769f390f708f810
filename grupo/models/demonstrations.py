"""Demonstrations as rollouts of tokens, which are encoded once."""

import hashlib
import json

from grupo.core.demonstration import Answer, Demonstration
from grupo.core.types import Message, Observation, Response, Rollout
from grupo.models.chat_tokenizer import ChatTokenizer
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
    history: list[Message] = []
    for number, (observation, answer) in enumerate(demonstration.turns):
        tools = demonstration.tools if number == 0 else ()
        tokens = chat_tokenizer.encode_observation(rollout, observation, tools)
        history += _messages(observation)
        if isinstance(answer, str):
            items = chat_tokenizer.encode_answer(answer)
        else:
            items = chat_tokenizer.encode_reply(history, answer, demonstration.tools)
            history.append(answer)
        rollout = rollout.append_turn(
            observation, _response(tokens, items, _text(chat_tokenizer, answer, items))
        )
    return _with_all_tokens(chat_tokenizer, rollout) if demonstration.all_tokens else rollout


def _with_all_tokens(chat_tokenizer: ChatTokenizer, rollout: Rollout) -> Rollout:
    """One response of all tokens after the first one."""
    tokens = [t for _, response in rollout.turns for t in (*response.observation, *response.items)]
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
