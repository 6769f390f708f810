"""Between text and tokens, chats and templates."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from jinja2 import TemplateError
from transformers import PreTrainedTokenizerBase

from grupo.core.errors import Refused
from grupo.core.types import Observation, Rollout

UNFINISHED = "\ufffd"  # what decoders make of a character of which bytes are missing
ANSWER = "ANSWER-OF-THE-POLICY"  # stands for one where a template is asked what comes after


@dataclass(frozen=True)
class Language:
    """Between text and tokens, as one tokenizer has it."""

    tokenizer: PreTrainedTokenizerBase
    ends: tuple[int, ...]  # tokens that end an answer, the usual one first
    stop: tuple[str, ...] = ()  # texts that end an answer
    chat: bool = False  # is a plain prompt a user's message?

    def read(self, rollout: Rollout, seen: Observation) -> tuple[int, ...]:
        """What the world says next, as tokens; only the first thing said begins a text.

        Messages are laid out by the chat template, a plain text after the first turn is as it is.
        """
        first = not rollout.turns
        if isinstance(seen, str) and not (self.chat and first):
            tokens = self._tokens(seen, begins=first)
        else:
            said = ({"role": "user", "content": seen},) if isinstance(seen, str) else seen
            messages = [dict(message) for message in said]
            tokens = self._chat(messages) if first else self._later(rollout, messages)
        if first and not tokens:
            raise Refused("prompt: it has no tokens. Allowed: at least one.")
        return tokens

    def recited(self, text: str) -> tuple[int, ...]:
        """The tokens of an answer, ended as the policy would have ended it."""
        over = any(stop in text for stop in self.stop)
        return (*self.forced(text), *(() if over else self.ends[:1]))

    def forced(self, text: str) -> tuple[int, ...]:
        """The tokens of what an answer goes on from."""
        return self._tokens(text, begins=False)

    def text(self, tokens: Sequence[int], after: Sequence[int] = ()) -> str:
        """What was said after `after`, special tokens left out, and whatever is no token.

        A character belongs to the tokens that complete it: such texts join as the tokens do.
        """
        before = self._decoded(after) if after else ""
        return self._decoded((*after, *tokens))[len(before) :]

    def _decoded(self, tokens: Sequence[int]) -> str:
        words = [token for token in tokens if isinstance(token, int)]
        return str(self.tokenizer.decode(words, skip_special_tokens=True)).rstrip(UNFINISHED)

    def _tokens(self, text: str, *, begins: bool) -> tuple[int, ...]:
        return _tokens(self.tokenizer, text, begins)

    def _chat(self, messages: list[dict[str, Any]]) -> tuple[int, ...]:
        return self._tokens(self._laid_out(messages), begins=False)

    def _later(self, rollout: Rollout, messages: list[dict[str, Any]]) -> tuple[int, ...]:
        """What the template adds behind an answer: its end, unless said, and the messages.

        Another answer stands for the policy's own, which is not turned into tokens again.
        """
        answered = [{"role": "user", "content": "?"}, {"role": "assistant", "content": ANSWER}]
        _, found, added = self._laid_out([*answered, *messages]).partition(ANSWER)
        if not found:
            raise Refused("prompt: the chat template leaves answers out before later messages.")
        tokens, last = self._tokens(added, begins=False), rollout.turns[-1][1].parts[-1:]
        closed = tokens[:1] == last and set(last) <= set(self.ends)
        return tokens[1:] if closed else tokens

    def _laid_out(self, messages: list[dict[str, Any]]) -> str:
        if not self.tokenizer.chat_template:
            raise Refused(
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
            raise Refused(
                f"prompt: the chat template refuses messages of {roles}: {error}."
            ) from error


@lru_cache(maxsize=1 << 12)  # a group's rollouts all read one prompt
def _tokens(tokenizer: PreTrainedTokenizerBase, text: str, begins: bool) -> tuple[int, ...]:
    return tuple(tokenizer(text, add_special_tokens=begins)["input_ids"])
