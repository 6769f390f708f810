"""Actor of a masked diffusion policy."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from grupo.core.demonstration import Demonstration
from grupo.core.model_call import ModelCall
from grupo.core.types import Observation, Response, Rollout
from grupo.models.causal_actor import CausalActor
from grupo.models.chat_history import as_fork
from grupo.models.context import context_tokens
from grupo.models.masked.canvas import CanvasRequest, rollout_canvas_start
from grupo.util.errors import ConfigError


@dataclass(frozen=True)
class MaskedActor(CausalActor):
    """A masked diffusion policy with a random stream of its own.

    Args:
        block_length: tokens of a block; answers consist of whole blocks.
    """

    block_length: int = 1

    async def __call__(self, rollout: Rollout, observation: Observation) -> Response:
        if isinstance(observation, ModelCall):
            raise ConfigError(
                "env: a masked diffusion model cannot answer the calls of an agent."
                " Allowed: a causal language model, such as CausalLM."
            )
        tokens, rewrites = self.chat_tokenizer.encode_turn(rollout, observation)
        canvas_start = rollout_canvas_start(rollout.contexts[-1])
        context = () if rewrites else context_tokens(rollout)
        response = await self._generate_on_canvas(rollout.role, context, tokens, canvas_start)
        return as_fork(response) if rewrites else response

    async def append_unsampled(
        self, rollout: Rollout, observation: Observation, text: str
    ) -> Response:
        """Append the text, with end tokens that fill its last block."""
        return self._with_whole_blocks(await super().append_unsampled(rollout, observation, text))

    def demonstrate(self, demonstration: Demonstration) -> Rollout:
        """The demonstration, with end tokens that fill the last block of each answer."""
        rollout = super().demonstrate(demonstration)
        turns = ((o, self._with_whole_blocks(response)) for o, response in rollout.turns)
        return replace(rollout, turns=tuple(turns))

    def _with_whole_blocks(self, response: Response) -> Response:
        num_missing = -len(response.items) % self.block_length
        items = (*response.items, *self.chat_tokenizer.eos_token_ids[:1] * num_missing)
        return replace(response, items=items, logp=(0.0,) * len(items), rng_key=self.rng_key)

    async def predict_head(self, rollout: Rollout, head: str) -> float:
        raise ConfigError(
            f"sampler: it needs predictions of the auxiliary head {head!r} during a rollout."
            " Allowed: with a causal language model."
        )

    async def _generate(
        self,
        role: str,
        context: tuple[int, ...],
        observation_tokens: tuple[int, ...],
        open_tokens: tuple[int, ...],
    ) -> Response:
        return await self._generate_on_canvas(role, context, observation_tokens, 0)

    async def _generate_on_canvas(
        self,
        role: str,
        context: tuple[int, ...],
        observation_tokens: tuple[int, ...],
        canvas_start: int,
    ) -> Response:
        tokens = (*context, *observation_tokens)
        request = CanvasRequest(
            tokens,
            self.rng_key,
            self.sampling,
            self.stop_strings,
            self.max_new_tokens,
            role=role,
            canvas_start=len(tokens) if observation_tokens else canvas_start,
        )
        reply = await self.batcher(request)
        return Response(
            reply.tokens,
            reply.logp,
            observation_tokens,
            self._answer_text(reply.tokens),
            reply.finish_reason,
            policy_version=self.policy_version,
            rng_key=self.rng_key,
        )

    def _answer_text(self, tokens: Sequence[int]) -> str:
        """Text before the first end token, up to and including the first stop string."""
        ends = [i for i, token in enumerate(tokens) if token in self.chat_tokenizer.eos_token_ids]
        text = self.chat_tokenizer.decode(tokens[: min(ends, default=len(tokens))])
        stop_strings = (*self.chat_tokenizer.stop_strings, *self.stop_strings)
        stops = (text.index(stop) + len(stop) for stop in stop_strings if stop in text)
        return text[: min(stops, default=len(text))]
