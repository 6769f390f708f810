"""A language model in conversation: it reads, answers, recites."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from math import log
from random import Random
from typing import Any

from jinja2 import TemplateError
from transformers import PreTrainedTokenizerBase

from grupo.engines.base import Reply, Request
from grupo.engines.queue import Queue
from grupo.errors import Refused
from grupo.policies.contexts import context, going
from grupo.policies.logits import Sampling
from grupo.randomness import derive, generator
from grupo.rollout import Action, Measured, Observation, Rollout

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
        before, whole = self._decoded(after), self._decoded((*after, *tokens))
        return whole[len(before) :]

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


@dataclass(frozen=True)
class CausalAct:
    """A policy speaking, with a random stream of its own."""

    language: Language
    queue: Queue[Request, Reply]
    key: int
    sampling: Sampling
    version: int = 0
    stop: tuple[str, ...] = ()
    limit: int = 1 << 30

    async def __call__(self, rollout: Rollout, seen: Observation) -> Action:
        read = self.language.read(rollout, seen)
        return await self._said(context(rollout), read, () if read else going(rollout))

    async def anew(
        self, rollout: Rollout, seen: Observation, carried: int = 0, head: int = 0
    ) -> Action:
        said = [x for _, action in rollout.turns for x in action.parts]
        kept = (*said[:head], *said[max(head, len(said) - carried) :])
        read = (*self.language.read(Rollout(), seen), *kept)
        return replace(await self._said((), read, kept), begins=True)

    async def recite(self, rollout: Rollout, seen: Observation, text: str) -> Action:
        return self._given(rollout, seen, text, self.language.recited(text))

    async def force(self, rollout: Rollout, seen: Observation, text: str) -> Action:
        forced = self._given(rollout, seen, text, self.language.forced(text))
        return replace(forced, learned=False)

    async def measure(self, rollout: Rollout) -> Measured:
        given = len(rollout.turns[-1][1].parts)
        if not given:
            return Measured()
        asked = Request(context(rollout), self.key, self.sampling, given=given)
        reply = await self.queue(asked)
        return Measured(reply.logp, reply.entropy, log(len(self.language.tokenizer)))

    async def foresee(self, rollout: Rollout, helper: str) -> float:
        said = context(rollout)
        if not all(isinstance(x, int) for x in said):
            raise Refused(f"sample: it asks {helper!r} on the way. Allowed: rollouts of tokens.")
        return (await self.queue(Request(said, self.key, helper=helper))).number

    def cut(self, rollout: Rollout, parts: int) -> Rollout:
        *before, (seen, action) = rollout.turns
        left = replace(rollout, turns=tuple(before))
        kept, logp = action.parts[:parts], action.logp[:parts]
        text = self.language.text(kept, () if action.seen else going(left))
        short = replace(action, parts=kept, logp=logp, text=text, stopped="length")
        return left.then(seen, short)

    def moved(self, rollout: Rollout, seen: Observation) -> Rollout:
        return reread(self.language, rollout, seen, moved=True)

    def fork(self, *label: object) -> "CausalAct":
        return replace(self, key=derive(self.key, *label))

    def chance(self, *label: object) -> Random:
        return generator(self.key, *label)

    def at(self, temperature: float = 1.0, top_k: int = 0) -> "CausalAct":
        return replace(self, sampling=self.sampling.at(temperature, top_k))

    def until(self, *stop: str, limit: int = 0) -> "CausalAct":
        return replace(self, stop=stop, limit=limit or 1 << 30)

    async def _said(
        self, before: tuple[int, ...], read: tuple[int, ...], after: tuple[int, ...]
    ) -> Action:
        asked = Request((*before, *read), self.key, self.sampling, self.stop, self.limit)
        reply = await self.queue(asked)
        read = read if reply.tokens else ()  # what left no room for an answer was not read
        said = self.language.text(reply.tokens, after), reply.stopped
        return Action(reply.tokens, reply.logp, read, *said, version=self.version, stream=self.key)

    def _given(
        self, rollout: Rollout, seen: Observation, text: str, parts: tuple[int, ...]
    ) -> Action:
        read, logp = self.language.read(rollout, seen), (0.0,) * len(parts)
        return Action(parts, logp, read, text, sampled=False, version=self.version)


def reread(
    language: Language, rollout: Rollout, seen: Observation, *, moved: bool = False
) -> Rollout:
    """The rollout as if `seen` had been its prompt; `moved` if it was drawn after another."""
    (_, first), *rest = rollout.turns
    now = [(seen, replace(first, seen=language.read(Rollout(), seen))), *rest]
    return replace(rollout, turns=tuple((s, replace(a, moved=moved)) for s, a in now))
