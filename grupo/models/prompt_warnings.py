"""Warnings about prompts of messages that the policy reads otherwise than intended."""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import islice

from grupo.core.types import Message, Task
from grupo.core.validation import describe_task, message_texts
from grupo.models.chat_tokenizer import ANSWER_PLACEHOLDER, USER, ChatTokenizer
from grupo.util.errors import ConfigError

NUM_READ = 1000  # tasks whose texts are searched for control tokens


def prompt_warnings(chat_tokenizer: ChatTokenizer, tasks: Sequence[Task]) -> Iterator[str]:
    """Warnings about the chat template and about control tokens in texts, one line each.

    Args:
        chat_tokenizer: The chat tokenizer of the policy.
        tasks: Its tasks; there are none about prompts of plain text that no template renders.
    """
    if isinstance(tasks[0].prompt, str) and not chat_tokenizer.apply_chat_template:
        return
    with suppress(ConfigError):  # a template may need other messages than these
        yield from _template_warnings(chat_tokenizer)
    yield from _control_token_warning(_control_tokens(chat_tokenizer), tasks)


def _template_warnings(chat_tokenizer: ChatTokenizer) -> Iterator[str]:
    """Warnings about the beginning and the end that the template gives an answer."""
    answer: Message = {"role": "assistant", "content": ANSWER_PLACEHOLDER}
    prompt = chat_tokenizer.render(USER, prompt=True)
    answered = chat_tokenizer.render([*USER, answer])
    begin, _, end = answered.removeprefix(prompt).partition(ANSWER_PLACEHOLDER)
    is_ignored = prompt == chat_tokenizer.render(USER) and answered.startswith(prompt)
    if is_ignored and begin.strip():
        yield (
            f"chat_template: it ignores add_generation_prompt: prompts end without {begin!r}, with"
            " which the template begins an answer. The policy has to generate it."
        )
    tokenizer = chat_tokenizer.tokenizer
    written = _found_tokens(_control_tokens(chat_tokenizer), end)[:1]
    ends = tokenizer.convert_ids_to_tokens(list(chat_tokenizer.eos_token_ids))
    is_stopped = any(stop in end for stop in chat_tokenizer.stop_strings)
    if written and not is_stopped and written[0] not in ends:
        yield (
            f"chat_template: it ends an answer with {written[0]!r}, which is no end token of the"
            f" model: {ends}. Answers may go on behind it. Set eos_token_id in"
            " generation_config.json of the model."
        )


def _control_token_warning(control_tokens: set[str], tasks: Sequence[Task]) -> Iterator[str]:
    """A warning if texts of prompts hold control tokens, such as the end of a message."""
    read = list(islice(tasks, NUM_READ))
    texts = ["\n".join(message_texts(task.prompt)) for task in read]
    holding = [place for place, text in enumerate(texts) if _found_tokens(control_tokens, text)]
    if holding:
        first = holding[0]
        token = _found_tokens(control_tokens, texts[first])[0]
        yield (
            f"prompts: {len(holding)} of {len(read)} hold control tokens of the tokenizer in their"
            f" texts, such as {token!r} in {describe_task(read[first])} and the policy reads them"
            " as the template's own."
        )


def _control_tokens(chat_tokenizer: ChatTokenizer) -> set[str]:
    """The texts of all control tokens of a tokenizer."""
    added = chat_tokenizer.tokenizer.added_tokens_decoder.values()
    return {str(token) for token in added if token.special and str(token)}


def _found_tokens(control_tokens: set[str], text: str) -> list[str]:
    """The control tokens in a text, in the order of their first places."""
    # at one place the longest: a token may begin with another
    return sorted(
        (token for token in control_tokens if token in text),
        key=lambda token: (text.find(token), -len(token)),
    )
