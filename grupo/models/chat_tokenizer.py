"""Conversion between text or chat messages and tokens."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache, partial
from typing import Any, NamedTuple

from transformers import PreTrainedTokenizerBase

from grupo.core.template_options import (
    TEMPLATE_KWARGS,
    TemplateOptions,
    shortest_prompt,
    split_options,
)
from grupo.core.types import Message, Observation, Rollout
from grupo.models.chat_history import ChatSoFar, answer_text, chat_so_far, end_of_answer
from grupo.models.chat_template import check_template_kwargs, refuse_media, render_chat
from grupo.models.detokenize import decode_shown, dropped_tokens
from grupo.models.long_texts import check_fits
from grupo.models.rollout_cache import RolloutCache
from grupo.models.template_file import TemplateFile
from grupo.util.errors import ConfigError
from grupo.util.rust_panics import rust_errors

SYSTEM_ROLES = ("system", "developer")
USER: tuple[Message, ...] = ({"role": "user", "content": "?"},)
ANSWER_PLACEHOLDER = "ANSWER-OF-THE-POLICY"  # an answer, when a template renders a later message


class EncodedObservation(NamedTuple):
    """An observation in tokens.

    Args:
        tokens: The tokens that the policy reads before its answer.
        rewrites_history: They are the whole chat, in place of the context so far: the chat template
            renders earlier answers otherwise than they were generated.
    """

    tokens: tuple[int, ...]
    rewrites_history: bool = False


@dataclass(frozen=True)
class ChatTokenizer:
    """A tokenizer with its chat template, and the ends of an answer.

    Args:
        tokenizer: tokenizer of transformers.
        eos_token_ids: tokens that end an answer; recited answers end with the first.
        stop_strings: strings that end an answer.
        apply_chat_template: wrap a plain prompt as a user message.
        template_kwargs: variables of the chat template; those of a prompt replace them.
        system_prompt: content of a system message before prompts that have none; "" for none.
        template_file: file of the template, for errors; "" if it is the model's own.
        context_length: tokens of the model's context, where a text with more than twice as many is
            refused before it is tokenized whole; None where it is not.
    """

    tokenizer: PreTrainedTokenizerBase
    eos_token_ids: tuple[int, ...]
    stop_strings: tuple[str, ...] = ()
    apply_chat_template: bool = False
    template_kwargs: Mapping[str, Any] = field(default_factory=dict, hash=False)
    system_prompt: str = ""
    template_file: str | TemplateFile = ""
    context_length: int | None = None

    def encode_observation(
        self,
        rollout: Rollout,
        observation: Observation,
        tools: Sequence[Mapping[str, Any]] = (),
    ) -> tuple[int, ...]:
        """The tokens of `encode_turn`, for an observation that begins a rollout."""
        return self.encode_turn(rollout, observation, tools).tokens

    def encode_turn(
        self,
        rollout: Rollout,
        observation: Observation,
        tools: Sequence[Mapping[str, Any]] = (),
        chat: ChatSoFar | None = None,
    ) -> EncodedObservation:
        """The next observation of a rollout in tokens.

        Messages are rendered by the chat template; if the last one is the assistant's, the policy
        continues it. Plain text after the first turn is tokenized as it is. Special tokens that
        begin a text are added to the first observation only. Where the template renders the answers
        before the observation otherwise than the policy generated them, the context starts anew
        with the whole chat.

        Args:
            rollout: The rollout so far.
            observation: The observation.
            tools: Descriptions of tools for the template, beside those in messages.
            chat: The chat so far, where the rollout does not hold its messages.
        """
        if not rollout.turns:
            return EncodedObservation(self._encode_first(observation, tools))
        if isinstance(observation, str):
            return EncodedObservation(self._tokenize(observation, starts_text=False))
        messages = [dict(message) for message in observation]
        chat = chat or self._chat_so_far(rollout)
        if chat is None:
            return EncodedObservation(self._encode_followup(rollout, messages))
        return self._encode_later(rollout, messages, tools, chat)

    def encode_whole_chat(self, rollout: Rollout, observation: Observation) -> tuple[int, ...]:
        """Tokens of the chat of a forked rollout up to an observation."""
        chat = self._chat_so_far(rollout)
        assert chat is not None, "only a rendered chat forks"
        messages = [*chat.answered, *(self._as_messages(observation) or ())]
        return self._tokenize_messages(self.render_prompt(messages), messages)

    def answer_text(self, items: Sequence[Any], before: Sequence[Any]) -> str:
        """The text of an answer up to its end token, special tokens by name."""
        return answer_text(items, before, self.decode_all, self.eos_token_ids)

    @cached_property
    def encoded_demonstrations(self) -> RolloutCache:
        """Rollouts of demonstrations, by a hash of their content."""
        return RolloutCache()

    def encode_text(self, text: str) -> tuple[int, ...]:
        """Tokens of a text without a prompt, with the end token unless it has one already."""
        tokens = self._tokenize(text, starts_text=True)
        has_end = bool(set(tokens[-1:]) & set(self.eos_token_ids))
        return tokens if has_end else (*tokens, *self.eos_token_ids[:1])

    def encode_answer(self, text: str) -> tuple[int, ...]:
        """Tokens of a complete answer, with an end token unless a stop string ends it."""
        stopped = any(stop in text for stop in self.stop_strings)
        end = () if stopped else self.eos_token_ids[:1]
        return (*self.encode_forced(text), *end)

    def encode_forced(self, text: str) -> tuple[int, ...]:
        """Tokens of the beginning of an answer, without an end token."""
        return self._tokenize(text, starts_text=False)

    def decode(self, tokens: Sequence[int], prefix: Sequence[int] = ()) -> str:
        """Text that `tokens` add after `prefix`, without soft tokens and most special tokens.

        Special tokens that structure tool calls stay in the text: `grupo.core.call_markers`.
        A character belongs to the token that completes it, so texts concatenate as tokens do.
        """
        prefix_text = self._decode(prefix) if prefix else ""
        return self._decode((*prefix, *tokens))[len(prefix_text) :]

    @cached_property
    def _decode(self) -> Callable[[Sequence[Any]], str]:
        return partial(decode_shown, self.tokenizer, dropped_tokens(self.tokenizer))

    def _tokenize(self, text: str, *, starts_text: bool) -> tuple[int, ...]:
        with rust_errors(f"prompt: {text[:80]!r} has no tokens of this tokenizer"):
            if self.context_length is not None:
                check_fits(self.tokenizer, text, self.context_length)
            return self._cached_tokens(text, starts_text)

    def _tokenize_messages(self, text: str, messages: Sequence[Message]) -> tuple[int, ...]:
        """Tokens of the rendered text of messages."""
        return self._tokenize(text, starts_text=False)

    @cached_property
    def _cached_tokens(self) -> Callable[[str, bool], tuple[int, ...]]:
        """The tokens of a text; cached, because the rollouts of a group share one prompt."""

        @lru_cache(maxsize=1 << 12)  # of this object: it ends with the tokenizer
        def tokenize(text: str, starts_text: bool) -> tuple[int, ...]:
            return tuple(self.tokenizer(text, add_special_tokens=starts_text)["input_ids"])

        return tokenize

    def _check_unused_options(self) -> None:
        """Raise `ConfigError` for options of the template, of which a plain prompt reads none."""
        options = {
            "system_prompt": self.system_prompt,
            TEMPLATE_KWARGS: self.template_kwargs,
            "chat_template": self.template_file,
        }
        for name, value in options.items():
            if value:
                raise ConfigError(
                    f"{name}: {value!r}, and a prompt is plain text, which no template renders."
                    " Allowed: with apply_chat_template=True, or with prompts of messages."
                )

    def _encode_first(
        self, observation: Observation, tools: Sequence[Mapping[str, Any]]
    ) -> tuple[int, ...]:
        """Tokens of the observation that begins a rollout."""
        messages = self._as_messages(observation)
        if messages is None:
            self._check_unused_options()
            tokens = self._tokenize(str(observation), starts_text=True)
        else:
            tokens = self._tokenize_messages(self.render_prompt(messages, tools), messages)
        if not tokens:
            raise ConfigError("prompt: it has no tokens. Allowed: at least one.")
        return tokens

    def _chat_so_far(self, rollout: Rollout) -> ChatSoFar | None:
        return chat_so_far(rollout, self._as_messages, self.decode_all, self.eos_token_ids)

    def decode_all(self, tokens: Sequence[Any]) -> str:
        """The text of tokens, special ones by name, without soft tokens."""
        hard_tokens = [token for token in tokens if isinstance(token, int)]
        return str(self.tokenizer.decode(hard_tokens, clean_up_tokenization_spaces=False))

    def _as_messages(self, observation: Observation) -> tuple[Message, ...] | None:
        """The messages of an observation that begins a rollout; None for plain text."""
        if not isinstance(observation, str):
            return observation
        return ({"role": "user", "content": observation},) if self.apply_chat_template else None

    def _encode_later(
        self,
        rollout: Rollout,
        messages: Sequence[Message],
        tools: Sequence[Mapping[str, Any]],
        chat: ChatSoFar,
    ) -> EncodedObservation:
        """Tokens that the template adds after the last answer, or those of the whole chat."""
        whole = [*chat.answered, *messages]
        prompt = self.render_prompt(chat.messages, tools)
        text = self.render_prompt(whole, tools)
        end = end_of_answer(text, prompt, chat.text)
        if end is not None:
            tokens = self._tokenize_messages(text[end:], messages)
            last = rollout.last_response.items[-1:]
            if tokens[:1] == last and self._is_end(last):
                return EncodedObservation(tokens[1:])
            if not self._is_end(last) or not self._writes_end(chat, prompt, tools, last):
                return EncodedObservation(tokens)
        return EncodedObservation(self._tokenize_messages(text, whole), rewrites_history=True)

    def _writes_end(
        self,
        chat: ChatSoFar,
        prompt: str,
        tools: Sequence[Mapping[str, Any]],
        last: tuple[Any, ...],
    ) -> bool:
        """True if the template ends the last answer of a chat as the policy did.

        It then writes another end before later messages, as that of gpt-oss does.
        """
        text = self.render(chat.answered, tools)
        end = end_of_answer(text, prompt, chat.text)
        return end is not None and self._tokenize(text[end:], starts_text=False)[:1] == last

    def _is_end(self, tokens: tuple[Any, ...]) -> bool:
        """True for one token that ends an answer."""
        return bool(tokens) and tokens[0] in self.eos_token_ids

    def _encode_followup(self, rollout: Rollout, messages: list[dict[str, Any]]) -> tuple[int, ...]:
        """Tokens that the template adds after an answer whose context is no rendered chat.

        These are its end token and the messages. A placeholder stands in place of the answer, and a
        short question with the options of the first prompt in place of all before it.
        """
        first = self._as_messages(shortest_prompt(rollout.turns[0][0])) or USER
        answer: Message = {"role": "assistant", "content": ANSWER_PLACEHOLDER}
        rendered = self.render_prompt([*first, answer, *messages])
        _, placeholder, suffix = rendered.partition(ANSWER_PLACEHOLDER)
        if not placeholder:
            raise ConfigError("prompt: the chat template leaves answers out before later messages.")
        tokens = self._tokenize_messages(suffix, messages)
        last = rollout.last_response.items[-1:]
        return tokens[1:] if tokens[:1] == last and self._is_end(last) else tokens

    def render_prompt(
        self, messages: Sequence[Message], tools: Sequence[Mapping[str, Any]] = ()
    ) -> str:
        """The text of messages up to the beginning of the policy's answer."""
        is_prefill = messages[-1].get("role") == "assistant"
        return self.render(messages, tools, prompt=not is_prefill, prefill=is_prefill)

    def render(
        self,
        messages: Sequence[Message],
        tools: Sequence[Mapping[str, Any]] = (),
        *,
        prompt: bool = False,
        prefill: bool = False,
    ) -> str:
        """The text of messages; the arguments are those of `render_chat`."""
        chat, tools, kwargs = self.template_input(messages, tools)
        return render_chat(self.tokenizer, chat, tools, kwargs, prompt=prompt, prefill=prefill)

    def template_input(
        self, messages: Sequence[Message], tools: Sequence[Mapping[str, Any]] = ()
    ) -> TemplateOptions:
        """Messages, tools and arguments for the chat template, those of messages included."""
        chat, own_tools, own_kwargs = split_options(messages)
        check_template_kwargs(self.tokenizer, own_kwargs, f"prompt, {TEMPLATE_KWARGS}")
        if self.system_prompt and chat[0].get("role") not in SYSTEM_ROLES:
            chat = [{"role": "system", "content": self.system_prompt}, *chat]
        chat = [self._template_message(message) for message in chat]
        refuse_media(chat)
        kwargs = {**self.template_kwargs, **own_kwargs}
        return TemplateOptions(chat, tuple(tools) or own_tools, kwargs)

    def _template_message(self, message: Message) -> dict[str, Any]:
        """A message in the form that the chat template reads."""
        return dict(message)
