"""A flow model as samplers use it."""

from dataclasses import dataclass, replace
from random import Random

from torch import Tensor

from grupo.core.errors import Refused
from grupo.core.interfaces import Measured
from grupo.core.rng import derive, generator
from grupo.core.types import Action, Observation, Rollout
from grupo.inference.batcher import Asking
from grupo.models.flow_matching.backbone import Painter
from grupo.models.flow_matching.sampler import Course, Noise, Reply, Request, noise_of
from grupo.storage import tensor_text


@dataclass(frozen=True)
class FlowAct:
    """A policy drawing, with a random stream of its own: an action is a stretch of its steps.

    It draws to the end, or to where its steps begin or cease to be trained, or `limit` of them;
    then it goes on with nothing more seen. As its one likeliest way it takes steps without noise.
    Its noise has the correlation `share` with that of the stream `kin`.
    """

    painter: Painter
    course: Course
    queue: Asking[Request, Reply]
    key: int
    version: int = 0
    factor: float = 1.0
    limit: int = 1 << 30
    greedy: bool = False
    kin: int = 0
    share: float = 0.0

    async def __call__(self, rollout: Rollout, seen: Observation) -> Action:
        turns = rollout.rows[-1].turns
        if not turns:
            return await self._begun(seen)
        done = sum(len(action.parts) for _, action in turns)
        if seen or done >= len(self.course.sigma):
            raise Refused(f"prompt: {seen!r} after what was drawn. Allowed: one prompt, at first.")
        prompt, start = turns[0][1].seen
        last = next((a.parts[-1] for _, a in reversed(turns) if a.parts), start)
        return await self._drawn(prompt, tensor_text.read(last), done, ())

    async def anew(
        self, rollout: Rollout, seen: Observation, carried: int = 0, head: int = 0
    ) -> Action:
        if carried or head:
            raise Refused("sample: latents are carried to another prompt. Allowed: none.")
        return replace(await self._begun(seen), begins=True)

    async def recite(self, rollout: Rollout, seen: Observation, text: str) -> Action:
        raise Refused(f"sample: {text[:60]!r} is to be recited. Allowed: to draw.")

    async def force(self, rollout: Rollout, seen: Observation, text: str) -> Action:
        return await self.recite(rollout, seen, text)

    def cut(self, rollout: Rollout, parts: int) -> Rollout:
        *before, (seen, action) = rollout.turns
        kept, logp = action.parts[:parts], action.logp[:parts]
        short = replace(action, parts=kept, logp=logp, stopped="length", made="")
        return replace(rollout, turns=tuple(before)).then(seen, short)

    async def measure(self, rollout: Rollout) -> Measured:
        raise Refused("sample: it is asked how likely steps are. Allowed: of a language model.")

    async def foresee(self, rollout: Rollout, helper: str) -> float:
        raise Refused(f"sample: it asks {helper!r} on the way. Allowed: to draw to the end.")

    def moved(self, rollout: Rollout, seen: Observation) -> Rollout:
        return reread(rollout, seen, moved=True)

    def fork(self, *label: object) -> "FlowAct":
        return replace(self, key=derive(self.key, *label))

    def akin(self, other: "FlowAct", share: float) -> "FlowAct":
        """The same policy, whose noise has the correlation `share` with that of `other`."""
        return replace(self, kin=other.key, share=share)

    def chance(self, *label: object) -> Random:
        return generator(self.key, *label)

    def at(self, temperature: float = 1.0, top_k: int = 0) -> "FlowAct":
        return replace(self, factor=self.factor * temperature, greedy=self.greedy or top_k == 1)

    def until(self, *stop: str, limit: int = 0) -> "FlowAct":
        if stop:
            raise Refused(f"sample: to stop at {stop[0]!r}. Allowed: a limit of steps.")
        return replace(self, limit=limit or 1 << 30)

    async def _begun(self, seen: Observation) -> Action:
        prompt = plain(seen)
        self.painter.check(prompt)
        start = noise_of(self.key, "start", self.painter.shape)
        return await self._drawn(prompt, start, 0, (prompt, tensor_text.text(start)))

    async def _drawn(
        self, prompt: str, latent: Tensor, begin: int, seen: tuple[str, ...]
    ) -> Action:
        course = replace(self.course, window=frozenset()) if self.greedy else self.course
        trained, end = begin in course.window, course.stretch(begin, self.limit)
        sigma = course.sigma * (self.factor if trained else 0.0)
        noise = Noise(self.key, self.kin, self.share)
        reply = await self.queue(Request(prompt, latent, begin, end, sigma, noise))
        return Action(
            tuple(map(tensor_text.text, reply.latents)),
            reply.logp,
            seen,
            stopped="end" if end == len(sigma) else "length",
            learned=trained,
            stream=self.key,
            version=self.version,
            made=reply.made,
        )


def plain(seen: Observation) -> str:
    """A prompt as text; refuses messages."""
    if not isinstance(seen, str):
        raise Refused("prompt: it is made of messages. Allowed: plain text, for one that draws.")
    return seen


def reread(rollout: Rollout, seen: Observation, *, moved: bool = False) -> Rollout:
    """The rollout as if `seen` had been its prompt; `moved` if it was drawn after another."""
    (_, first), *rest = rollout.turns
    now = [(seen, replace(first, seen=(plain(seen), *first.seen[1:]))), *rest]
    return replace(rollout, turns=tuple((s, replace(a, moved=moved)) for s, a in now))
