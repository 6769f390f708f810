"""Given answers of the assistant in tokens, and which of them are trained on."""

import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from transformers.utils.chat_template_utils import render_jinja_template

from grupo.core.types import Message
from grupo.models.chat_tokenizer import ChatTokenizer
from grupo.util.errors import ConfigError

_GENERATION = re.compile(r"\{%-?\s*generation\s*-?%\}")


class ReplyTokens(NamedTuple):
    """An answer in tokens.

    Args:
        items: Its tokens, up to its end token.
        in_loss: Whether each is trained on.
    """

    items: tuple[int, ...]
    in_loss: tuple[bool, ...]


def encode_reply(
    chat_tokenizer: ChatTokenizer,
    messages: Sequence[Message],
    reply: Message,
    tools: Sequence[Mapping[str, Any]],
) -> ReplyTokens:
    """The assistant's message `reply` to `messages` in tokens, up to its end token.

    These are the tokens that the chat template adds to the prompt of an answer; where the template
    renders earlier messages otherwise once they are answered, those of the content. Where the
    template marks what the assistant generates, by a block {% generation %}, other tokens are not
    trained on.
    """
    prompt = chat_tokenizer.render_prompt(messages, tools)
    answered = chat_tokenizer.render([*messages, reply], tools)
    content = content_text(reply)
    if not answered.startswith(prompt):
        items = chat_tokenizer.encode_answer(content)
        return ReplyTokens(items, (True,) * len(items))
    text = answered.removeprefix(prompt)
    tokens = chat_tokenizer.encode_forced(text)
    ends = [i for i, token in enumerate(tokens) if token in chat_tokenizer.eos_token_ids]
    if ends:
        items = tokens[: ends[0] + 1]
    else:  # the template ends it in its own way
        before, found, _ = text.partition(content or "\0")
        items = chat_tokenizer.encode_answer(before + found if found else text.rstrip())
    spans = _generated_spans(chat_tokenizer, [*messages, reply], tools)
    if spans is None:
        return ReplyTokens(items, (True,) * len(items))
    starts = _token_starts(chat_tokenizer, text)[: len(items)]
    starts = [*starts, *[len(text) - 1] * (len(items) - len(starts))]  # an added end token
    places = [len(prompt) + start for start in starts]
    return ReplyTokens(items, tuple(any(a <= x < b for a, b in spans) for x in places))


def content_text(message: Message) -> str:
    """The text of a message's content, which may have several parts."""
    content = message.get("content") or ""
    parts = [{"text": content}] if isinstance(content, str) else content
    return "".join(str(part.get("text", "")) for part in parts)


def _generated_spans(
    chat_tokenizer: ChatTokenizer, messages: Sequence[Message], tools: Sequence[Mapping[str, Any]]
) -> list[tuple[int, int]] | None:
    """Begin and end of each text that the template marks as generated; None if it marks none."""
    chat, tools, kwargs = chat_tokenizer.template_input(messages, tools)
    schemas: Any = [dict(tool) for tool in tools] or None
    template = chat_tokenizer.tokenizer.get_chat_template(tools=schemas)
    if not _GENERATION.search(template):
        return None
    variables: dict[str, Any] = {**chat_tokenizer.tokenizer.special_tokens_map, **kwargs}
    rendered: Any = render_jinja_template(
        conversations=[chat],
        tools=schemas,
        chat_template=template,
        return_assistant_tokens_mask=True,
        **variables,
    )
    return rendered[1][0]


def _token_starts(chat_tokenizer: ChatTokenizer, text: str) -> list[int]:
    """The place of each token in a text."""
    tokenizer = chat_tokenizer.tokenizer
    if not tokenizer.is_fast:
        raise ConfigError(
            "chat_template: it marks generated text, and the tokenizer tells no token's place."
            " Allowed: a tokenizer of the library `tokenizers`, or a template without generation."
        )
    encoded: Any = tokenizer(text, add_special_tokens=False, return_offsets_mapping=True)
    return [start for start, _ in encoded["offset_mapping"]]
