"""Between text and tokens, chats and templates."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from jinja2 import TemplateError
from transformers import PreTrainedTokenizerBase

from grupo.core.errors import ConfigError
from grupo.core.types import Observation, Rollout

REPLACEMENT_CHARACTER = "\ufffd"  # what decoders make of a character of which bytes are missing
ANSWER_PLACEHOLDER = (
    "ANSWER-OF-THE-POLICY"  # stands for one where a template is asked what comes after
)


@dataclass(frozen=True)
class ChatTokenizer:
    """Between text and tokens, as one tokenizer has it."""

    tokenizer: PreTrainedTokenizerBase
    eos_token_ids: tuple[int, ...]  # tokens that end an answer, the usual one first
    stop_strings: tuple[str, ...] = ()  # texts that end an answer
    apply_chat_template: bool = False  # is a plain prompt a user's message?

    def encode_observation(self, rollout: Rollout, observation: Observation) -> tuple[int, ...]:
        """What the world says next, as tokens; only the first thing said begins a text.

        Messages are laid out by the chat template, a plain text after the first turn is as it is.
        """
        first = not rollout.turns
        if isinstance(observation, str) and not (self.apply_chat_template and first):
            tokens = self._tokenize(observation, starts_text=first)
        else:
            said = (
                ({"role": "user", "content": observation},)
                if isinstance(observation, str)
                else observation
            )
            messages = [dict(message) for message in said]
            tokens = (
                self._encode_messages(messages)
                if first
                else self._encode_followup(rollout, messages)
            )
        if first and not tokens:
            raise ConfigError("prompt: it has no tokens. Allowed: at least one.")
        return tokens

    def encode_answer(self, text: str) -> tuple[int, ...]:
        """The tokens of an answer, ended as the policy would have ended it."""
        over = any(stop in text for stop in self.stop_strings)
        return (*self.encode_forced(text), *(() if over else self.eos_token_ids[:1]))

    def encode_forced(self, text: str) -> tuple[int, ...]:
        """The tokens of what an answer goes on from."""
        return self._tokenize(text, starts_text=False)

    def decode(self, tokens: Sequence[int], prefix: Sequence[int] = ()) -> str:
        """What was said after `after`, special tokens left out, and whatever is no token.

        A character belongs to the tokens that complete it: such texts join as the tokens do.
        """
        before = self._decode(prefix) if prefix else ""
        return self._decode((*prefix, *tokens))[len(before) :]

    def _decode(self, tokens: Sequence[int]) -> str:
        words = [token for token in tokens if isinstance(token, int)]
        return str(self.tokenizer.decode(words, skip_special_tokens=True)).rstrip(
            REPLACEMENT_CHARACTER
        )

    def _tokenize(self, text: str, *, starts_text: bool) -> tuple[int, ...]:
        return _tokenize(self.tokenizer, text, starts_text)

    def _encode_messages(self, messages: list[dict[str, Any]]) -> tuple[int, ...]:
        return self._tokenize(self._render_messages(messages), starts_text=False)

    def _encode_followup(self, rollout: Rollout, messages: list[dict[str, Any]]) -> tuple[int, ...]:
        """What the template adds behind an answer: its end, unless said, and the messages.

        Another answer stands for the policy's own, which is not turned into tokens again.
        """
        answered = [
            {"role": "user", "content": "?"},
            {"role": "assistant", "content": ANSWER_PLACEHOLDER},
        ]
        _, found, added = self._render_messages([*answered, *messages]).partition(
            ANSWER_PLACEHOLDER
        )
        if not found:
            raise ConfigError("prompt: the chat template leaves answers out before later messages.")
        tokens, last = self._tokenize(added, starts_text=False), rollout.turns[-1][1].items[-1:]
        closed = tokens[:1] == last and set(last) <= set(self.eos_token_ids)
        return tokens[1:] if closed else tokens

    def _render_messages(self, messages: list[dict[str, Any]]) -> str:
        if not self.tokenizer.chat_template:
            raise ConfigError(
                "prompt: it is made of messages, and the tokenizer has no chat template."
                " Allowed: plain text, with chat off."
            )
        try:
            text = self.tokenizer.apply_chat_template(
                messages, add_generation_prompt=True, tokenize=False
            )
            return str(text)
        except TemplateError as error:
            roles = ", ".join(str(message.get("role")) for message in messages)
            raise ConfigError(
                f"prompt: the chat template refuses messages of {roles}: {error}."
            ) from error


@lru_cache(maxsize=1 << 12)  # a group's rollouts all read one prompt
def _tokenize(tokenizer: PreTrainedTokenizerBase, text: str, starts_text: bool) -> tuple[int, ...]:
    return tuple(tokenizer(text, add_special_tokens=starts_text)["input_ids"])
