"""A language model in conversation: it reads, answers, recites."""

from dataclasses import dataclass, replace
from math import log
from random import Random

from grupo.core.errors import ConfigError
from grupo.core.interfaces import TokenScores
from grupo.core.rng import derive_key, make_rng
from grupo.core.types import Action, Observation, Rollout
from grupo.inference.base import Reply, Request
from grupo.inference.batcher import Submit
from grupo.inference.sampling_params import Sampling
from grupo.models.chat_tokenizer import ChatTokenizer
from grupo.models.context import context_tokens, open_action_tokens


@dataclass(frozen=True)
class CausalActor:
    """A policy speaking, with a random stream of its own."""

    chat_tokenizer: ChatTokenizer
    batcher: Submit[Request, Reply]
    rng_key: int
    sampling: Sampling
    policy_version: int = 0
    stop_strings: tuple[str, ...] = ()
    max_new_tokens: int = 1 << 30

    async def __call__(self, rollout: Rollout, observation: Observation) -> Action:
        read = self.chat_tokenizer.encode_observation(rollout, observation)
        return await self._generate(
            context_tokens(rollout), read, () if read else open_action_tokens(rollout)
        )

    async def restart_context(
        self,
        rollout: Rollout,
        observation: Observation,
        suffix_tokens: int = 0,
        prefix_tokens: int = 0,
    ) -> Action:
        said = [x for _, action in rollout.turns for x in action.items]
        kept = (*said[:prefix_tokens], *said[max(prefix_tokens, len(said) - suffix_tokens) :])
        read = (*self.chat_tokenizer.encode_observation(Rollout(), observation), *kept)
        return replace(await self._generate((), read, kept), resets_context=True)

    async def append_unsampled(
        self, rollout: Rollout, observation: Observation, text: str
    ) -> Action:
        return self._unsampled_action(
            rollout, observation, text, self.chat_tokenizer.encode_answer(text)
        )

    async def prefill_forced(self, rollout: Rollout, observation: Observation, text: str) -> Action:
        forced = self._unsampled_action(
            rollout, observation, text, self.chat_tokenizer.encode_forced(text)
        )
        return replace(forced, in_loss=False)

    async def score(self, rollout: Rollout) -> TokenScores:
        given = len(rollout.turns[-1][1].items)
        if not given:
            return TokenScores()
        asked = Request(context_tokens(rollout), self.rng_key, self.sampling, num_scored=given)
        reply = await self.batcher(asked)
        return TokenScores(reply.logp, reply.entropy, log(len(self.chat_tokenizer.tokenizer)))

    async def predict_head(self, rollout: Rollout, head: str) -> float:
        said = context_tokens(rollout)
        if not all(isinstance(x, int) for x in said):
            raise ConfigError(f"sample: it asks {head!r} on the way. Allowed: rollouts of tokens.")
        return (await self.batcher(Request(said, self.rng_key, aux_head=head))).head_value

    def truncate(self, rollout: Rollout, num_items: int) -> Rollout:
        *before, (seen, action) = rollout.turns
        left = replace(rollout, turns=tuple(before))
        kept, logp = action.items[:num_items], action.logp[:num_items]
        text = self.chat_tokenizer.decode(
            kept, () if action.observation else open_action_tokens(left)
        )
        short = replace(action, items=kept, logp=logp, text=text, finish_reason="length")
        return left.append_turn(seen, short)

    def with_prompt(self, rollout: Rollout, prompt: Observation) -> Rollout:
        return replace_prompt(self.chat_tokenizer, rollout, prompt, off_context=True)

    def fork(self, *label: object) -> "CausalActor":
        return replace(self, rng_key=derive_key(self.rng_key, *label))

    def rng(self, *label: object) -> Random:
        return make_rng(self.rng_key, *label)

    def with_sampling(self, temperature: float = 1.0, top_k: int = 0) -> "CausalActor":
        return replace(self, sampling=self.sampling.adjust(temperature, top_k))

    def with_stop(self, *stop_strings: str, max_new_tokens: int = 0) -> "CausalActor":
        return replace(self, stop_strings=stop_strings, max_new_tokens=max_new_tokens or 1 << 30)

    async def _generate(
        self,
        context: tuple[int, ...],
        observation_tokens: tuple[int, ...],
        open_tokens: tuple[int, ...],
    ) -> Action:
        asked = Request(
            (*context, *observation_tokens),
            self.rng_key,
            self.sampling,
            self.stop_strings,
            self.max_new_tokens,
        )
        reply = await self.batcher(asked)
        observation_tokens = (
            observation_tokens if reply.tokens else ()
        )  # what left no room for an answer was not read
        said = self.chat_tokenizer.decode(reply.tokens, open_tokens), reply.finish_reason
        return Action(
            reply.tokens,
            reply.logp,
            observation_tokens,
            *said,
            policy_version=self.policy_version,
            rng_key=self.rng_key,
        )

    def _unsampled_action(
        self, rollout: Rollout, observation: Observation, text: str, items: tuple[int, ...]
    ) -> Action:
        read, logp = (
            self.chat_tokenizer.encode_observation(rollout, observation),
            (0.0,) * len(items),
        )
        return Action(items, logp, read, text, sampled=False, policy_version=self.policy_version)


def replace_prompt(
    chat_tokenizer: ChatTokenizer,
    rollout: Rollout,
    observation: Observation,
    *,
    off_context: bool = False,
) -> Rollout:
    """The rollout as if `seen` had been its prompt; `moved` if it was drawn after another."""
    (_, first), *rest = rollout.turns
    now = [
        (
            observation,
            replace(first, observation=chat_tokenizer.encode_observation(Rollout(), observation)),
        ),
        *rest,
    ]
    return replace(rollout, turns=tuple((s, replace(a, off_context=off_context)) for s, a in now))
