"""Rendering of chat messages by the template of a tokenizer, with clear errors."""

import copy
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from jinja2 import TemplateSyntaxError
from jinja2.defaults import DEFAULT_NAMESPACE
from transformers import PreTrainedTokenizerBase
from transformers.utils.chat_template_utils import _get_template_variables

from grupo.core.media import media_of
from grupo.core.types import Message
from grupo.models.template_file import TemplateFile, read_template
from grupo.models.tokenizer_trial import check_template_works
from grupo.util.errors import ConfigError, suggest
from grupo.util.loader_errors import loader_errors

FIELD = "chat_template_kwargs"
MAX_CHARS = 300  # of a template's message
REASONING_WORDS = ("think", "reason", "analysis")  # in templates of models that reason at length
# variables that transformers or grupo sets, and functions
GIVEN = {*DEFAULT_NAMESPACE, "raise_exception", "strftime_now"} | {
    "messages",
    "tools",
    "documents",
    "add_generation_prompt",
    "continue_final_message",
}


def with_template_file(
    tokenizer: PreTrainedTokenizerBase, file: str | TemplateFile
) -> PreTrainedTokenizerBase:
    """A copy of a tokenizer with the chat template of a file; the model is exported with it.

    Args:
        tokenizer: The tokenizer.
        file: Path of a file of Jinja text, or its text; "" returns the tokenizer as it is.
    """
    if not file:
        return tokenizer
    template = file.text if isinstance(file, TemplateFile) else read_template(file)
    tokenizer = copy.deepcopy(tokenizer)
    tokenizer.chat_template = template
    return tokenizer


def check_template_kwargs(
    tokenizer: PreTrainedTokenizerBase, kwargs: Mapping[str, Any], place: str = FIELD
) -> None:
    """Raise `ConfigError` for an argument that the tokenizer's chat template does not read.

    Args:
        tokenizer: The tokenizer.
        kwargs: Arguments by name.
        place: Names the arguments in errors.
    """
    if not kwargs:
        return
    if not tokenizer.chat_template:
        raise ConfigError(
            f"{place}: {dict(kwargs)!r}, and the tokenizer has no chat template. Allowed: none."
        )
    messages = [{"role": "user", "content": "?"}]
    check_template_works(tokenizer, messages, _options(prompt=True, prefill=False))
    with loader_errors("chat_template"):
        known = template_variables(tokenizer.get_chat_template())
    special = set(tokenizer.special_tokens_map)
    for name in kwargs:
        if name not in known or name in special:
            problem = f"the chat template reads no variable {name!r}"
            raise ConfigError(f"{place}: {problem}. {suggest(name, known - special)}")


@cache
def template_variables(template: str) -> frozenset[str]:
    """Names of the variables that a template reads and a recipe may set."""
    return frozenset(_get_template_variables(template) - GIVEN)


def render_chat(
    tokenizer: PreTrainedTokenizerBase,
    messages: Sequence[Message],
    tools: Sequence[Mapping[str, Any]] = (),
    kwargs: Mapping[str, Any] = {},
    *,
    prompt: bool = False,
    prefill: bool = False,
) -> str:
    """The text of messages.

    Args:
        tokenizer: The tokenizer.
        messages: The messages.
        tools: Descriptions of tools, as functions of JSON schema.
        kwargs: Further variables of the template.
        prompt: The text ends with the beginning of an answer.
        prefill: The last message is the beginning of an answer, and stays open.

    Raises:
        ConfigError: The tokenizer has no template, or it does not render these messages.
    """
    if not tokenizer.chat_template:
        raise ConfigError(
            "prompt: it consists of messages, and the tokenizer has no chat template."
            " Allowed: plain text, with apply_chat_template=False."
        )
    options = _options(tools, prompt=prompt, prefill=prefill)
    try:
        check_template_works(tokenizer, messages, options, kwargs)
        given: Any = [dict(message) for message in messages]
        text: Any = tokenizer.apply_chat_template(given, tokenize=False, **options, **kwargs)
        str(text).encode()  # raises for half a character
        return str(text)
    except ConfigError:
        raise
    except Exception as error:  # of any type, because a template computes
        raise _template_error(error, messages, prefill) from error


def _options(
    tools: Sequence[Mapping[str, Any]] = (), *, prompt: bool, prefill: bool
) -> dict[str, Any]:
    """Arguments of transformers' function."""
    return {
        "tools": [dict(tool) for tool in tools] or None,
        "add_generation_prompt": prompt,
        "continue_final_message": prefill,
    }


def _template_error(error: Exception, messages: Sequence[Message], is_prefill: bool) -> ConfigError:
    """The error of a chat template that cannot render messages."""
    if is_prefill and isinstance(error, ValueError):  # the final message is not in the text
        problem = "cannot continue the last message, the assistant's"
        return ConfigError(f"prompt: the chat template {problem}: {error}")
    if isinstance(error, TemplateSyntaxError):
        problem = f"it is no Jinja text, line {error.lineno}: {str(error.message).rstrip('.')}"
        return ConfigError(f"chat_template: {problem}. Allowed: a template that Jinja compiles.")
    roles = ", ".join(str(message.get("role")) for message in messages)
    # the template chooses the text of raise_exception
    reason = " ".join(str(error).split())[:MAX_CHARS].rstrip(".") or type(error).__name__
    return ConfigError(f"prompt: the chat template rejects messages of {roles}: {reason}.")


def refuse_media(messages: Sequence[Message]) -> None:
    """Raise `ConfigError` for images, videos and audio, which a model of text cannot read."""
    if media := next(media_of(messages), None):
        raise ConfigError(
            f"prompt: its messages hold {media.kind} ({media.media_type}), and the policy is a"
            " model of text. Allowed: text, or a policy that reads it, such as VisionLM."
        )


def is_chat_tokenizer(tokenizer: PreTrainedTokenizerBase) -> bool:
    """Whether a tokenizer has a chat template, and its model does not reason before it answers."""
    template = str(tokenizer.chat_template or "").lower()
    return bool(template) and not any(word in template for word in REASONING_WORDS)
