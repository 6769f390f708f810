"""A policy whose responses are random numbers, and an environment that scores their sums."""

from dataclasses import dataclass, replace

from grupo.core.types import Response, RewardResult, Rollout
from grupo.util.rng import derive_key, make_rng


@dataclass(frozen=True)
class Walk:
    """Actor that generates `steps` numbers from its random stream; zeros where it is greedy."""

    steps: int
    key: int = 0
    max_new_tokens: int = 0
    greedy: bool = False

    async def __call__(self, rollout, observation):
        begin = rollout.length
        end = min(self.steps, begin + (self.max_new_tokens or self.steps))
        items = tuple(self._noise(i) for i in range(begin, end))
        reason = "end" if end == self.steps else "length"
        context = (observation,) if observation else ()
        logp = (-1.0,) * len(items)
        return Response(items, logp, context, finish_reason=reason, rng_key=self.key)

    def _noise(self, index):
        return 0.0 if self.greedy else make_rng(self.key, index).gauss(0, 1)

    def truncate(self, rollout, num_items):
        *before, (observation, response) = rollout.turns
        shortened = replace(
            response,
            items=response.items[:num_items],
            logp=response.logp[:num_items],
            finish_reason="length",
        )
        return Rollout((*before, (observation, shortened)))

    def fork(self, *label):
        return replace(self, key=derive_key(self.key, *label))

    def with_sampling(self, temperature=1.0, top_k=0):
        return replace(self, greedy=top_k == 1)

    def with_stop(self, *stop_strings, max_new_tokens=0):
        return replace(self, max_new_tokens=max_new_tokens)


@dataclass(frozen=True)
class Weighed:
    """Environment whose reward is the sum of a walk's numbers, each times its weight."""

    weights: tuple[float, ...]

    async def reply(self, task, rollout):
        if not rollout.turns:
            return task.prompt
        return "" if rollout.truncated else None

    async def score(self, task, rollouts):
        return [RewardResult(reward=self.weighted_sum(steps(r))) for r in rollouts]

    def weighted_sum(self, numbers):
        return sum(c * x for c, x in zip(self.weights, numbers, strict=True))


def steps(rollout):
    """The numbers of a walk."""
    return [x for _, response in rollout.turns for x in response.items]
