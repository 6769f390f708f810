"""A cache of rollouts that holds a limited number of tokens."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from grupo.core.types import Response, Rollout

MAX_TOKENS = 1 << 22  # of all rollouts together, about 16 bytes each: 64 MiB


@dataclass
class RolloutCache:
    """Rollouts by key; once it is full, the rollouts that it holds stay.

    Data that is read once per epoch would evict each other from a cache of the newest.

    Args:
        max_tokens: Most tokens of all rollouts together.
        num_tokens: Tokens of the rollouts that it holds.
    """

    max_tokens: int = MAX_TOKENS
    num_tokens: int = 0
    _rollouts: dict[bytes, Rollout] = field(default_factory=dict)
    # one object for each token: integers above 256 take 28 bytes each
    _tokens: dict[int, int] = field(default_factory=dict)

    def get_or_make(self, key: bytes, make: Callable[[], Rollout]) -> Rollout:
        """The rollout of the key, which is made and kept if there is none."""
        if key in self._rollouts:
            return self._rollouts[key]
        rollout = make()
        length = rollout.context_length
        if self.num_tokens + length <= self.max_tokens:
            self.num_tokens += length
            self._rollouts[key] = self._with_shared_tokens(rollout)
        return rollout

    def _with_shared_tokens(self, rollout: Rollout) -> Rollout:
        turns = ((observation, self._shared(response)) for observation, response in rollout.turns)
        return replace(rollout, turns=tuple(turns))

    def _shared(self, response: Response) -> Response:
        observation, items = (
            tuple(self._tokens.setdefault(token, token) for token in tokens)
            for tokens in (response.observation, response.items)
        )
        return replace(response, observation=observation, items=items)
