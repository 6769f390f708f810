"""Limits of a language model: its answers can end, and its prompts leave room for them."""

from collections.abc import Mapping
from functools import partial
from typing import Any, Protocol

from transformers import PreTrainedTokenizerBase

from grupo.core.validation import PromptLimit, check_context_room
from grupo.models.chat_template import check_template_kwargs, with_template_file
from grupo.models.chat_tokenizer import ChatTokenizer
from grupo.models.demonstrations import demonstration_rollout
from grupo.models.template_file import TemplateFile
from grupo.util.errors import ConfigError


class ChatFields(Protocol):
    """The fields of a language model that its chat tokenizer reads: see `CausalSpec`."""

    @property
    def model(self) -> object: ...
    @property
    def max_new_tokens(self) -> int: ...
    @property
    def stop_strings(self) -> tuple[str, ...]: ...
    @property
    def apply_chat_template(self) -> bool: ...
    @property
    def chat_template(self) -> str | TemplateFile: ...
    @property
    def chat_template_kwargs(self) -> Mapping[str, Any]: ...
    @property
    def system_prompt(self) -> str: ...


def make_chat_tokenizer(
    spec: ChatFields,
    tokenizer: PreTrainedTokenizerBase,
    eos_token_ids: tuple[int, ...],
    context_length: int,
) -> ChatTokenizer:
    """The chat tokenizer of a language model.

    Raises:
        ConfigError: Answers could not end, or would leave no room for a prompt; or the chat
            template is missing, or does not read an argument.
    """
    if not eos_token_ids and not spec.stop_strings:
        raise ConfigError(
            f"stop_strings: empty, and {spec.model!r} has no end token."
            " Allowed: at least one string."
        )
    check_context_room(spec.max_new_tokens, context_length)
    tokenizer = with_template_file(tokenizer, spec.chat_template)
    check_template_kwargs(tokenizer, spec.chat_template_kwargs)
    return ChatTokenizer(
        tokenizer,
        eos_token_ids,
        spec.stop_strings,
        spec.apply_chat_template,
        spec.chat_template_kwargs,
        spec.system_prompt,
        spec.chat_template,
    )


def language_model_limit(
    chat_tokenizer: ChatTokenizer, context_length: int, max_new_tokens: int
) -> PromptLimit:
    """The largest prompt of a language model.

    Args:
        chat_tokenizer: Encodes prompts and demonstrations.
        context_length: Tokens of prompt and answer together.
        max_new_tokens: Tokens of an answer.
    """
    demonstrate = partial(demonstration_rollout, chat_tokenizer)
    encode = chat_tokenizer.encode_observation
    return PromptLimit(encode, context_length, max_new_tokens, demonstrate)
