"""A policy whose actions are numbers, noise but on its likeliest way, and a world that adds them
up."""

from dataclasses import dataclass, replace

from grupo.core.rng import derive_key, make_rng
from grupo.core.types import Action, RewardResult, Rollout


@dataclass(frozen=True)
class Walk:
    """Takes `steps` steps, each a number of its stream and its place; 0 where it is greedy."""

    steps: int
    key: int = 0
    limit: int = 0
    greedy: bool = False

    async def __call__(self, rollout, seen):
        begin = rollout.length
        end = min(self.steps, begin + (self.limit or self.steps))
        parts = tuple(self._noise(i) for i in range(begin, end))
        stopped = "end" if end == self.steps else "length"
        heard = (seen,) if seen else ()
        return Action(parts, (-1.0,) * len(parts), heard, finish_reason=stopped, rng_key=self.key)

    def _noise(self, place):
        return 0.0 if self.greedy else make_rng(self.key, place).gauss(0, 1)

    def cut(self, rollout, parts):
        *before, (seen, action) = rollout.turns
        kept = {"parts": action.parts[:parts], "logp": action.logp[:parts], "stopped": "length"}
        return Rollout((*before, (seen, replace(action, **kept))))

    def fork(self, *label):
        return replace(self, key=derive_key(self.key, *label))

    def at(self, temperature=1.0, top_k=0):
        return replace(self, greedy=top_k == 1)

    def until(self, *stop, limit=0):
        return replace(self, limit=limit)


@dataclass(frozen=True)
class Weighed:
    """The sum of a walk's steps, each times how much it matters."""

    matters: tuple[float, ...]

    async def reply(self, task, rollout):
        if not rollout.turns:
            return task.prompt
        return "" if rollout.truncated else None

    async def score(self, task, rollouts):
        return [RewardResult(reward=self.hint_value(steps(r))) for r in rollouts]

    def worth(self, numbers):
        return sum(c * x for c, x in zip(self.matters, numbers, strict=True))


def steps(rollout):
    """The numbers of a walk."""
    return [x for _, action in rollout.turns for x in action.parts]
