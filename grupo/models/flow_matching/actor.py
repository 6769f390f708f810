"""A flow model as samplers use it."""

from dataclasses import dataclass, replace
from random import Random

from torch import Tensor

from grupo.core.errors import ConfigError
from grupo.core.interfaces import TokenScores
from grupo.core.rng import derive_key, make_rng
from grupo.core.types import Action, Observation, Rollout
from grupo.inference.batcher import Submit
from grupo.models.flow_matching.backbone import FlowBackbone
from grupo.models.flow_matching.sampler import (
    FlowReply,
    FlowRequest,
    NoiseSchedule,
    NoiseStream,
    standard_normal,
)
from grupo.storage import tensor_text


@dataclass(frozen=True)
class FlowActor:
    """A policy drawing, with a random stream of its own: an action is a stretch of its steps.

    It draws to the end, or to where its steps begin or cease to be trained, or `limit` of them;
    then it goes on with nothing more seen. As its one likeliest way it takes steps without noise.
    Its noise has the correlation `share` with that of the stream `kin`.
    """

    backbone: FlowBackbone
    noise_schedule: NoiseSchedule
    batcher: Submit[FlowRequest, FlowReply]
    rng_key: int
    policy_version: int = 0
    noise_scale: float = 1.0
    max_steps: int = 1 << 30
    greedy: bool = False
    shared_noise_key: int = 0
    noise_correlation: float = 0.0

    async def __call__(self, rollout: Rollout, observation: Observation) -> Action:
        turns = rollout.contexts[-1].turns
        if not turns:
            return await self._start(observation)
        done = sum(len(action.items) for _, action in turns)
        if observation or done >= len(self.noise_schedule.sigma):
            raise ConfigError(
                f"prompt: {observation!r} after what was drawn. Allowed: one prompt, at first."
            )
        prompt, start = turns[0][1].observation
        last = next((a.items[-1] for _, a in reversed(turns) if a.items), start)
        return await self._denoise(prompt, tensor_text.decode_tensor(last), done, ())

    async def restart_context(
        self,
        rollout: Rollout,
        observation: Observation,
        suffix_tokens: int = 0,
        prefix_tokens: int = 0,
    ) -> Action:
        if suffix_tokens or prefix_tokens:
            raise ConfigError("sample: latents are carried to another prompt. Allowed: none.")
        return replace(await self._start(observation), resets_context=True)

    async def append_unsampled(
        self, rollout: Rollout, observation: Observation, text: str
    ) -> Action:
        raise ConfigError(f"sample: {text[:60]!r} is to be recited. Allowed: to draw.")

    async def prefill_forced(self, rollout: Rollout, observation: Observation, text: str) -> Action:
        return await self.append_unsampled(rollout, observation, text)

    def truncate(self, rollout: Rollout, num_items: int) -> Rollout:
        *before, (seen, action) = rollout.turns
        kept, logp = action.items[:num_items], action.logp[:num_items]
        short = replace(action, items=kept, logp=logp, finish_reason="length", image="")
        return replace(rollout, turns=tuple(before)).append_turn(seen, short)

    async def score(self, rollout: Rollout) -> TokenScores:
        raise ConfigError("sample: it is asked how likely steps are. Allowed: of a language model.")

    async def predict_head(self, rollout: Rollout, head: str) -> float:
        raise ConfigError(f"sample: it asks {head!r} on the way. Allowed: to draw to the end.")

    def with_prompt(self, rollout: Rollout, prompt: Observation) -> Rollout:
        return replace_prompt(rollout, prompt, off_context=True)

    def fork(self, *label: object) -> "FlowActor":
        return replace(self, rng_key=derive_key(self.rng_key, *label))

    def with_correlated_noise(self, other: "FlowActor", correlation: float) -> "FlowActor":
        """The same policy, whose noise has the correlation `share` with that of `other`."""
        return replace(self, shared_noise_key=other.rng_key, noise_correlation=correlation)

    def rng(self, *label: object) -> Random:
        return make_rng(self.rng_key, *label)

    def with_sampling(self, temperature: float = 1.0, top_k: int = 0) -> "FlowActor":
        return replace(
            self, noise_scale=self.noise_scale * temperature, greedy=self.greedy or top_k == 1
        )

    def with_stop(self, *stop_strings: str, max_new_tokens: int = 0) -> "FlowActor":
        if stop_strings:
            raise ConfigError(f"sample: to stop at {stop_strings[0]!r}. Allowed: a limit of steps.")
        return replace(self, max_steps=max_new_tokens or 1 << 30)

    async def _start(self, observation: Observation) -> Action:
        prompt = prompt_text(observation)
        self.backbone.check_prompt(prompt)
        start = standard_normal(self.rng_key, "start", self.backbone.shape)
        return await self._denoise(prompt, start, 0, (prompt, tensor_text.encode_tensor(start)))

    async def _denoise(
        self, prompt: str, latent: Tensor, begin: int, observation: tuple[str, ...]
    ) -> Action:
        course = (
            replace(self.noise_schedule, sde_window=frozenset())
            if self.greedy
            else self.noise_schedule
        )
        trained, end = begin in course.sde_window, course.segment_end(begin, self.max_steps)
        sigma = course.sigma * (self.noise_scale if trained else 0.0)
        noise = NoiseStream(self.rng_key, self.shared_noise_key, self.noise_correlation)
        reply = await self.batcher(FlowRequest(prompt, latent, begin, end, sigma, noise))
        return Action(
            tuple(map(tensor_text.encode_tensor, reply.latents)),
            reply.logp,
            observation,
            finish_reason="end" if end == len(sigma) else "length",
            in_loss=trained,
            rng_key=self.rng_key,
            policy_version=self.policy_version,
            image=reply.image,
        )


def prompt_text(observation: Observation) -> str:
    """A prompt as text; refuses messages."""
    if not isinstance(observation, str):
        raise ConfigError(
            "prompt: it is made of messages. Allowed: plain text, for one that draws."
        )
    return observation


def replace_prompt(
    rollout: Rollout, observation: Observation, *, off_context: bool = False
) -> Rollout:
    """The rollout as if `seen` had been its prompt; `moved` if it was drawn after another."""
    (_, first), *rest = rollout.turns
    now = [
        (
            observation,
            replace(first, observation=(prompt_text(observation), *first.observation[1:])),
        ),
        *rest,
    ]
    return replace(rollout, turns=tuple((s, replace(a, off_context=off_context)) for s, a in now))
