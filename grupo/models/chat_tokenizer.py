"""Conversion between text or chat messages and tokens."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

from transformers import PreTrainedTokenizerBase

from grupo.core.media import media_of
from grupo.core.types import Message, Observation, Rollout
from grupo.models.rollout_cache import RolloutCache
from grupo.models.tokenizer_trial import check_template_works
from grupo.util.errors import ConfigError
from grupo.util.rust_panics import rust_errors

REPLACEMENT_CHARACTER = "\ufffd"  # decoders emit it for a character with missing bytes
REASONING_WORDS = ("think", "reason", "analysis")  # in templates of models that reason at length
ANSWER_PLACEHOLDER = "ANSWER-OF-THE-POLICY"  # an answer, when a template renders a later message


def is_chat_tokenizer(tokenizer: PreTrainedTokenizerBase) -> bool:
    """Whether a tokenizer has a chat template, and its model does not reason before it answers."""
    template = str(tokenizer.chat_template or "").lower()
    return bool(template) and not any(word in template for word in REASONING_WORDS)


@dataclass(frozen=True)
class ChatTokenizer:
    """A tokenizer with its chat template, and the ends of an answer.

    Args:
        tokenizer: tokenizer of transformers.
        eos_token_ids: tokens that end an answer; recited answers end with the first.
        stop_strings: strings that end an answer.
        apply_chat_template: wrap a plain prompt as a user message.
    """

    tokenizer: PreTrainedTokenizerBase
    eos_token_ids: tuple[int, ...]
    stop_strings: tuple[str, ...] = ()
    apply_chat_template: bool = False

    @property
    def describes_tools(self) -> bool:
        """Whether the chat template describes tools."""
        return "tools" in str(self.tokenizer.chat_template or "")

    def encode_observation(
        self,
        rollout: Rollout,
        observation: Observation,
        tools: Sequence[Mapping[str, Any]] = (),
    ) -> tuple[int, ...]:
        """Tokens of the next observation of a rollout.

        Messages are rendered by the chat template; if the last one is the assistant's, the policy
        continues it. Plain text after the first turn is tokenized as it is. Special tokens that
        begin a text are added to the first observation only. `tools` are described by the chat
        template in the first observation.
        """
        first = not rollout.turns
        if isinstance(observation, str) and not (self.apply_chat_template and first):
            tokens = self._tokenize(observation, starts_text=first)
        else:
            if isinstance(observation, str):
                observation = ({"role": "user", "content": observation},)
            messages = [dict(message) for message in observation]
            tokens = (
                self._tokenize_messages(self._render_messages(messages, tools), messages)
                if first
                else self._encode_followup(rollout, messages)
            )
        if first and not tokens:
            raise ConfigError("prompt: it has no tokens. Allowed: at least one.")
        return tokens

    def encode_reply(
        self, messages: Sequence[Message], reply: Message, tools: Sequence[Mapping[str, Any]]
    ) -> tuple[int, ...]:
        """Tokens of the assistant's message `reply` to `messages`, up to its end token.

        These are the tokens that the chat template adds to the prompt of an answer; where the
        template renders earlier messages otherwise once they are answered, those of the content.
        """
        history = [dict(message) for message in messages]
        prompt = self._render_messages(history, tools)
        answered = self._render([*history, dict(reply)], tools)
        content = _content_text(reply)
        text = answered.removeprefix(prompt) if answered.startswith(prompt) else content
        tokens = self.encode_forced(text)
        ends = [i for i, token in enumerate(tokens) if token in self.eos_token_ids]
        if ends:
            return tokens[: ends[0] + 1]
        return self.encode_answer(content if text.startswith(content) else text.rstrip())

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
        """Text that `tokens` add after `prefix`, without special tokens and soft tokens.

        A character belongs to the token that completes it, so texts concatenate as tokens do.
        """
        prefix_text = self._decode(prefix) if prefix else ""
        return self._decode((*prefix, *tokens))[len(prefix_text) :]

    def _decode(self, tokens: Sequence[int]) -> str:
        hard_tokens = [token for token in tokens if isinstance(token, int)]
        text = str(self.tokenizer.decode(hard_tokens, skip_special_tokens=True))
        return text.rstrip(REPLACEMENT_CHARACTER)

    def _tokenize(self, text: str, *, starts_text: bool) -> tuple[int, ...]:
        return self._cached_tokens(text, starts_text)

    def _tokenize_messages(self, text: str, messages: Sequence[Message]) -> tuple[int, ...]:
        """Tokens of the rendered text of messages."""
        return self._tokenize(text, starts_text=False)

    @cached_property
    def _cached_tokens(self) -> Callable[[str, bool], tuple[int, ...]]:
        """The tokens of a text; cached, because the rollouts of a group share one prompt."""

        @lru_cache(maxsize=1 << 12)  # of this object: it ends with the tokenizer
        def tokenize(text: str, starts_text: bool) -> tuple[int, ...]:
            with rust_errors(f"prompt: {text[:80]!r} has no tokens of this tokenizer"):
                return tuple(self.tokenizer(text, add_special_tokens=starts_text)["input_ids"])

        return tokenize

    def _encode_followup(self, rollout: Rollout, messages: list[dict[str, Any]]) -> tuple[int, ...]:
        """Tokens that the template adds after an answer: its end token, if missing, and messages.

        The template renders a placeholder instead of the answer, because tokenizing the answer's
        text again could yield other tokens than those that were generated.
        """
        answered = [
            {"role": "user", "content": "?"},
            {"role": "assistant", "content": ANSWER_PLACEHOLDER},
        ]
        rendered = self._render_messages([*answered, *messages])
        _, placeholder, suffix = rendered.partition(ANSWER_PLACEHOLDER)
        if not placeholder:
            raise ConfigError("prompt: the chat template leaves answers out before later messages.")
        tokens = self._tokenize_messages(suffix, messages)
        last = rollout.turns[-1][1].items[-1:]
        has_end = tokens[:1] == last and set(last) <= set(self.eos_token_ids)
        return tokens[1:] if has_end else tokens

    def _render_messages(
        self, messages: list[dict[str, Any]], tools: Sequence[Mapping[str, Any]] = ()
    ) -> str:
        """The text of messages up to the beginning of the policy's answer."""
        is_prefill = messages[-1].get("role") == "assistant"
        return self._render(messages, tools, prompt=not is_prefill, prefill=is_prefill)

    def _render(
        self,
        messages: list[dict[str, Any]],
        tools: Sequence[Mapping[str, Any]],
        *,
        prompt: bool = False,
        prefill: bool = False,
    ) -> str:
        _refuse_media(messages)
        if not self.tokenizer.chat_template:
            raise ConfigError(
                "prompt: it consists of messages, and the tokenizer has no chat template."
                " Allowed: plain text, with apply_chat_template=False."
            )
        options: dict[str, Any] = {
            "tools": [dict(tool) for tool in tools] or None,
            "add_generation_prompt": prompt,
            "continue_final_message": prefill,
        }
        try:
            check_template_works(self.tokenizer, messages, options)
            text: Any = self.tokenizer.apply_chat_template(messages, tokenize=False, **options)
            str(text).encode()  # raises for half a character
            return str(text)
        except ConfigError:
            raise
        except Exception as error:  # of any type, because a template computes
            raise _template_error(error, messages, prefill) from error


def _template_error(error: Exception, messages: Sequence[Message], is_prefill: bool) -> ConfigError:
    """The error of a chat template that cannot render messages."""
    if is_prefill and isinstance(error, ValueError):  # the final message is not in the text
        problem = "cannot continue the last message, the assistant's"
        return ConfigError(f"prompt: the chat template {problem}: {error}")
    roles = ", ".join(str(message.get("role")) for message in messages)
    reason = str(error) or type(error).__name__
    return ConfigError(f"prompt: the chat template rejects messages of {roles}: {reason}.")


def _refuse_media(messages: Sequence[Message]) -> None:
    """Raise `ConfigError` for images, videos and audio, which a model of text cannot read."""
    if media := next(media_of(messages), None):
        raise ConfigError(
            f"prompt: its messages hold {media.kind} ({media.media_type}), and the policy is a"
            " model of text. Allowed: text, or a policy that reads it, such as VisionLM."
        )


def _content_text(message: Message) -> str:
    """The text of a message's content, which may have several parts."""
    content = message.get("content") or ""
    parts = [{"text": content}] if isinstance(content, str) else content
    return "".join(str(part.get("text", "")) for part in parts)
