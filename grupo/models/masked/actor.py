"""A masked diffusion model in conversation."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from grupo.core.errors import Refused
from grupo.core.types import Action, Observation, Rollout
from grupo.models.causal_actor import CausalAct
from grupo.models.context import context
from grupo.models.masked.canvas import Asked, begun


@dataclass(frozen=True)
class MaskedAct(CausalAct):
    """A policy speaking on canvases, `block` tokens at a time, with a random stream of its own."""

    block: int = 1

    async def __call__(self, rollout: Rollout, seen: Observation) -> Action:
        read = self.language.read(rollout, seen)
        return await self._unmasked(context(rollout), read, begun(rollout.rows[-1]))

    async def recite(self, rollout: Rollout, seen: Observation, text: str) -> Action:
        """The text, then ends until its last block is full."""
        said = await super().recite(rollout, seen, text)
        fill = -len(said.parts) % self.block
        parts = (*said.parts, *self.language.ends[:1] * fill)
        return replace(said, parts=parts, logp=(0.0,) * len(parts), stream=self.key)

    async def foresee(self, rollout: Rollout, helper: str) -> float:
        raise Refused(f"sample: it asks {helper!r} on the way. Allowed: answers to their end.")

    async def _said(
        self, before: tuple[int, ...], read: tuple[int, ...], after: tuple[int, ...]
    ) -> Action:
        return await self._unmasked(before, read, 0)

    async def _unmasked(self, before: tuple[int, ...], read: tuple[int, ...], start: int) -> Action:
        tokens = (*before, *read)
        how = (self.key, self.sampling, self.stop, self.limit)
        reply = await self.queue(Asked(tokens, *how, begun=len(tokens) if read else start))
        said = self._text(reply.tokens), reply.stopped
        return Action(reply.tokens, reply.logp, read, *said, version=self.version, stream=self.key)

    def _text(self, tokens: Sequence[int]) -> str:
        """What was said up to the first end, and up to where it first stops."""
        ends = [i for i, token in enumerate(tokens) if token in self.language.ends]
        text = self.language.text(tokens[: min(ends, default=len(tokens))])
        stops = [stop for stop in (*self.language.stop, *self.stop) if stop in text]
        return text[: min((text.index(s) + len(s) for s in stops), default=len(text))]
