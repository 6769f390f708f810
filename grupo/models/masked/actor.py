"""A masked diffusion model in conversation."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from grupo.core.errors import ConfigError
from grupo.core.types import Action, Observation, Rollout
from grupo.models.causal_actor import CausalActor
from grupo.models.context import context_tokens
from grupo.models.masked.canvas import CanvasRequest, rollout_canvas_start


@dataclass(frozen=True)
class MaskedActor(CausalActor):
    """A policy speaking on canvases, `block` tokens at a time, with a random stream of its own."""

    block_length: int = 1

    async def __call__(self, rollout: Rollout, observation: Observation) -> Action:
        read = self.chat_tokenizer.encode_observation(rollout, observation)
        return await self._generate_on_canvas(
            context_tokens(rollout), read, rollout_canvas_start(rollout.contexts[-1])
        )

    async def append_unsampled(
        self, rollout: Rollout, observation: Observation, text: str
    ) -> Action:
        """The text, then ends until its last block is full."""
        said = await super().append_unsampled(rollout, observation, text)
        fill = -len(said.items) % self.block_length
        parts = (*said.items, *self.chat_tokenizer.eos_token_ids[:1] * fill)
        return replace(said, items=parts, logp=(0.0,) * len(parts), rng_key=self.rng_key)

    async def predict_head(self, rollout: Rollout, head: str) -> float:
        raise ConfigError(f"sample: it asks {head!r} on the way. Allowed: answers to their end.")

    async def _generate(
        self,
        context: tuple[int, ...],
        observation_tokens: tuple[int, ...],
        open_tokens: tuple[int, ...],
    ) -> Action:
        return await self._generate_on_canvas(context, observation_tokens, 0)

    async def _generate_on_canvas(
        self, context: tuple[int, ...], observation_tokens: tuple[int, ...], canvas_start: int
    ) -> Action:
        tokens = (*context, *observation_tokens)
        how = (self.rng_key, self.sampling, self.stop_strings, self.max_new_tokens)
        reply = await self.batcher(
            CanvasRequest(
                tokens, *how, canvas_start=len(tokens) if observation_tokens else canvas_start
            )
        )
        said = self._answer_text(reply.tokens), reply.finish_reason
        return Action(
            reply.tokens,
            reply.logp,
            observation_tokens,
            *said,
            policy_version=self.policy_version,
            rng_key=self.rng_key,
        )

    def _answer_text(self, tokens: Sequence[int]) -> str:
        """What was said up to the first end, and up to where it first stops."""
        ends = [i for i, token in enumerate(tokens) if token in self.chat_tokenizer.eos_token_ids]
        text = self.chat_tokenizer.decode(tokens[: min(ends, default=len(tokens))])
        stops = [
            stop for stop in (*self.chat_tokenizer.stop_strings, *self.stop_strings) if stop in text
        ]
        return text[: min((text.index(s) + len(s) for s in stops), default=len(text))]
