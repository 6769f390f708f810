"""A language model in conversation: it reads, answers, recites."""

from dataclasses import dataclass, replace
from math import log
from random import Random

from grupo.core.errors import Refused
from grupo.core.interfaces import Measured
from grupo.core.rng import derive, generator
from grupo.core.types import Action, Observation, Rollout
from grupo.inference.base import Reply, Request
from grupo.inference.batcher import Asking
from grupo.inference.sampling_params import Sampling
from grupo.models.chat_tokenizer import Language
from grupo.models.context import context, going


@dataclass(frozen=True)
class CausalAct:
    """A policy speaking, with a random stream of its own."""

    language: Language
    queue: Asking[Request, Reply]
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
