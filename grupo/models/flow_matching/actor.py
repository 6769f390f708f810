"""Actor of a flow-matching policy."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from random import Random

from torch import Tensor

from grupo.core.decoding import Decoding
from grupo.core.demonstration import Demonstration
from grupo.core.interfaces import TokenLogprobs
from grupo.core.types import Observation, Response, Rollout
from grupo.inference.counting_batcher import CountingBatcher
from grupo.models.flow_matching.backbone import FlowBackbone
from grupo.models.flow_matching.sampler import (
    FlowReply,
    FlowRequest,
    NoiseSchedule,
    NoiseStream,
    standard_normal,
)
from grupo.storage import tensor_text
from grupo.util.errors import ConfigError
from grupo.util.rng import derive_key, make_rng


@dataclass(frozen=True)
class FlowActor:
    """A flow-matching policy with a random stream of its own.

    A response is a segment of denoising steps. It ends with the image, at a border of `sde_window`,
    or after `max_steps`; the next response continues without an observation.

    Args:
        backbone: encodes prompts; defines the shape of latents.
        noise_schedule: times and noise of the steps.
        batcher: batches the requests of many actors for the sampler.
        rng_key: key of the random stream.
        policy_version: update steps of the weights that generate.
        noise_scale: factor on the noise of each step.
        max_steps: maximal number of steps of a response.
        greedy: take all steps without noise.
        shared_noise_key: key of a stream that the noise is correlated with.
        noise_correlation: correlation with that stream, 0 to 1.
    """

    backbone: FlowBackbone
    noise_schedule: NoiseSchedule
    batcher: CountingBatcher[FlowRequest, FlowReply]
    rng_key: int
    policy_version: int = 0
    noise_scale: float = 1.0
    max_steps: int = 1 << 30
    greedy: bool = False
    shared_noise_key: int = 0
    noise_correlation: float = 0.0

    @property
    def generated_tokens(self) -> Mapping[str, int]:
        return self.batcher.generated_tokens

    @property
    def read_tokens(self) -> Mapping[str, int]:
        return self.batcher.read_tokens

    async def __call__(self, rollout: Rollout, observation: Observation) -> Response:
        turns = rollout.contexts[-1].turns
        if not turns:
            return await self._start(rollout.role, observation)
        begin = sum(len(response.items) for _, response in turns)
        if observation or begin >= len(self.noise_schedule.sigma):
            raise ConfigError(
                f"prompt: {observation!r} follows an image. Allowed: one prompt, as the first"
                " observation."
            )
        prompt, noise = turns[0][1].observation
        latent = next((a.items[-1] for _, a in reversed(turns) if a.items), noise)
        latent = tensor_text.decode_tensor(latent)
        return await self._denoise(rollout.role, prompt, latent, begin, ())

    async def restart_context(
        self,
        rollout: Rollout,
        observation: Observation,
        suffix_tokens: int = 0,
        prefix_tokens: int = 0,
    ) -> Response:
        if suffix_tokens or prefix_tokens:
            raise ConfigError(
                "sampler: it carries items to another context. Allowed with a flow: none."
            )
        return replace(await self._start(rollout.role, observation), resets_context=True)

    async def append_unsampled(
        self, rollout: Rollout, observation: Observation, text: str
    ) -> Response:
        raise ConfigError(
            f"sampler: it inserts the text {text[:60]!r}. Allowed with a flow: sampled responses."
        )

    def demonstrate(self, demonstration: Demonstration) -> Rollout:
        raise ConfigError("sampler: it reads demonstrations. Allowed: with a language model.")

    async def prefill_forced(
        self, rollout: Rollout, observation: Observation, text: str
    ) -> Response:
        return await self.append_unsampled(rollout, observation, text)

    async def choose(
        self, rollout: Rollout, observation: Observation, probabilities: Mapping[str, float]
    ) -> Response:
        return await self.append_unsampled(rollout, observation, next(iter(probabilities), ""))

    def truncate(self, rollout: Rollout, num_items: int) -> Rollout:
        *turns, (observation, response) = rollout.turns
        truncated = replace(
            response,
            items=response.items[:num_items],
            logp=response.logp[:num_items],
            finish_reason="length",
            image="",
        )
        return replace(rollout, turns=tuple(turns)).append_turn(observation, truncated)

    async def logprobs(self, rollout: Rollout) -> TokenLogprobs:
        raise ConfigError("sampler: it scores given responses. Allowed: with a language model.")

    async def next_tokens(
        self, rollout: Rollout, observation: Observation, k: int
    ) -> Sequence[Response]:
        raise ConfigError(
            "turn_strategy: it reads the likeliest next tokens. Allowed: with a causal language"
            " model."
        )

    async def decode(
        self, rollout: Rollout, observation: Observation, decoding: Decoding
    ) -> Sequence[Response]:
        raise ConfigError(
            "turn_strategy: it acts inside the model. Allowed: with a causal language model."
        )

    async def predict_head(self, rollout: Rollout, head: str) -> float:
        raise ConfigError(
            f"sampler: it needs predictions of the auxiliary head {head!r} during a rollout."
            " Allowed: with a causal language model."
        )

    def with_prompt(self, rollout: Rollout, prompt: Observation) -> Rollout:
        return replace_prompt(rollout, prompt, off_context=True)

    def fork(self, *label: object) -> "FlowActor":
        return replace(self, rng_key=derive_key(self.rng_key, *label))

    def with_correlated_noise(self, other: "FlowActor", correlation: float) -> "FlowActor":
        """The same policy, with noise of the given correlation with that of `other`."""
        return replace(self, shared_noise_key=other.rng_key, noise_correlation=correlation)

    def rng(self, *label: object) -> Random:
        return make_rng(self.rng_key, *label)

    def with_sampling(self, temperature: float = 1.0, top_k: int = 0) -> "FlowActor":
        return replace(
            self, noise_scale=self.noise_scale * temperature, greedy=self.greedy or top_k == 1
        )

    def with_stop(self, *stop_strings: str, max_new_tokens: int = 0) -> "FlowActor":
        if stop_strings:
            raise ConfigError(
                f"sampler: it stops at {stop_strings[0]!r}. Allowed with a flow: a number of steps."
            )
        return replace(self, max_steps=max_new_tokens or 1 << 30)

    async def _start(self, role: str, observation: Observation) -> Response:
        prompt = prompt_text(observation)
        self.backbone.check_prompt(prompt)
        noise = standard_normal(self.rng_key, "start", self.backbone.shape)
        inputs = (prompt, tensor_text.encode_tensor(noise))
        return await self._denoise(role, prompt, noise, 0, inputs)

    async def _denoise(
        self, role: str, prompt: str, latent: Tensor, begin: int, observation: tuple[str, ...]
    ) -> Response:
        schedule = self.noise_schedule
        if self.greedy:
            schedule = replace(schedule, sde_window=frozenset())
        in_window = begin in schedule.sde_window
        end = schedule.segment_end(begin, self.max_steps)
        sigma = schedule.sigma * (self.noise_scale if in_window else 0.0)
        noise = NoiseStream(self.rng_key, self.shared_noise_key, self.noise_correlation)
        reply = await self.batcher(FlowRequest(prompt, latent, begin, end, sigma, noise, role))
        return Response(
            tuple(map(tensor_text.encode_tensor, reply.latents)),
            reply.logp,
            observation,
            finish_reason="end" if end == len(sigma) else "length",
            in_loss=in_window,
            rng_key=self.rng_key,
            policy_version=self.policy_version,
            image=reply.image,
        )


def prompt_text(observation: Observation) -> str:
    """A prompt as text; raises `ConfigError` for messages."""
    if not isinstance(observation, str):
        raise ConfigError(
            "prompt: it consists of messages. Allowed with an image model: plain text."
        )
    return observation


def replace_prompt(
    rollout: Rollout, observation: Observation, *, off_context: bool = False
) -> Rollout:
    """The rollout with `observation` in place of its prompt.

    `off_context` marks its responses as sampled in another context than they now have.
    """
    (_, first), *rest = rollout.turns
    inputs = (prompt_text(observation), *first.observation[1:])
    turns = [(observation, replace(first, observation=inputs)), *rest]
    return replace(rollout, turns=tuple((o, replace(a, off_context=off_context)) for o, a in turns))
