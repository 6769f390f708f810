"""Actor of several policies, which dispatches by the role of a rollout."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from random import Random

from grupo.core.decoding import Decoding
from grupo.core.demonstration import Demonstration
from grupo.core.interfaces import Actor, TokenLogprobs
from grupo.core.types import Observation, Response, Rollout
from grupo.inference.reply_record import ReplyRecord, ResumableActor
from grupo.util.rng import derive_key

DEFAULT_ROLE = ""  # role of rollouts that no other policy acts in


def role_key(key: int, role: str) -> int:
    """The random stream of a role's policy; the main policy's is the one it has alone."""
    return derive_key(key, "role", role) if role else key


def _for_group(actor: Actor, key: int, record: ReplyRecord) -> Actor:
    assert isinstance(actor, ResumableActor), "checked with the recipe"
    return actor.for_group(key, record)


def _sums_by_role(counts: Iterable[Mapping[str, int]]) -> dict[str, int]:
    total = Counter[str]()
    for count in counts:
        total.update(count)
    return {role: total[role] for role in sorted(total)}


@dataclass(frozen=True)
class RoleActor:
    """Actors by role; the actor of `DEFAULT_ROLE` handles every role without an actor.

    Random numbers for samplers come from the default actor's stream.
    """

    actors: Mapping[str, Actor]

    @property
    def generated_tokens(self) -> Mapping[str, int]:
        return _sums_by_role(actor.generated_tokens for actor in self.actors.values())

    @property
    def read_tokens(self) -> Mapping[str, int]:
        return _sums_by_role(actor.read_tokens for actor in self.actors.values())

    async def __call__(self, rollout: Rollout, observation: Observation) -> Response:
        return await self._actor_of(rollout)(rollout, observation)

    async def restart_context(
        self,
        rollout: Rollout,
        observation: Observation,
        suffix_tokens: int = 0,
        prefix_tokens: int = 0,
    ) -> Response:
        return await self._actor_of(rollout).restart_context(
            rollout, observation, suffix_tokens, prefix_tokens
        )

    async def append_unsampled(
        self, rollout: Rollout, observation: Observation, text: str
    ) -> Response:
        return await self._actor_of(rollout).append_unsampled(rollout, observation, text)

    def demonstrate(self, demonstration: Demonstration) -> Rollout:
        return self._actor_of(Rollout()).demonstrate(demonstration)

    async def prefill_forced(
        self, rollout: Rollout, observation: Observation, text: str
    ) -> Response:
        return await self._actor_of(rollout).prefill_forced(rollout, observation, text)

    async def choose(
        self, rollout: Rollout, observation: Observation, probabilities: Mapping[str, float]
    ) -> Response:
        return await self._actor_of(rollout).choose(rollout, observation, probabilities)

    async def logprobs(self, rollout: Rollout) -> TokenLogprobs:
        return await self._actor_of(rollout).logprobs(rollout)

    async def next_tokens(
        self, rollout: Rollout, observation: Observation, k: int
    ) -> Sequence[Response]:
        return await self._actor_of(rollout).next_tokens(rollout, observation, k)

    async def decode(
        self, rollout: Rollout, observation: Observation, decoding: Decoding
    ) -> Sequence[Response]:
        return await self._actor_of(rollout).decode(rollout, observation, decoding)

    def truncate(self, rollout: Rollout, num_items: int) -> Rollout:
        return self._actor_of(rollout).truncate(rollout, num_items)

    def with_prompt(self, rollout: Rollout, prompt: Observation) -> Rollout:
        return self._actor_of(rollout).with_prompt(rollout, prompt)

    async def predict_head(self, rollout: Rollout, head: str) -> float:
        return await self._actor_of(rollout).predict_head(rollout, head)

    def for_group(self, key: int, record: ReplyRecord) -> "RoleActor":
        actors = self.actors.items()
        return RoleActor({r: _for_group(a, role_key(key, r), record) for r, a in actors})

    def fork(self, *label: object) -> "RoleActor":
        return RoleActor({role: actor.fork(*label) for role, actor in self.actors.items()})

    def rng(self, *label: object) -> Random:
        return self.actors[DEFAULT_ROLE].rng(*label)

    def with_sampling(self, temperature: float = 1.0, top_k: int = 0) -> "RoleActor":
        actors = self.actors.items()
        return RoleActor({role: actor.with_sampling(temperature, top_k) for role, actor in actors})

    def with_stop(self, *stop_strings: str, max_new_tokens: int = 0) -> "RoleActor":
        return RoleActor(
            {
                role: actor.with_stop(*stop_strings, max_new_tokens=max_new_tokens)
                for role, actor in self.actors.items()
            }
        )

    def _actor_of(self, rollout: Rollout) -> Actor:
        return self.actors.get(rollout.role, self.actors[DEFAULT_ROLE])
