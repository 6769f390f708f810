"""Sampler of flow models: denoising steps in sequence, for many latents at once."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from grupo.models.flow_matching.backbone import VelocityField
from grupo.models.flow_matching.sde_step import SDESteps
from grupo.storage import tensor_text
from grupo.util.rng import derive_key


@dataclass(frozen=True)
class NoiseSchedule:
    """Times and noise of the denoising steps, and which of them are trained.

    Args:
        timesteps: times from 1 (noise) to 0 (image); step i goes from time i to time i + 1.
        sigma: noise of each step, 0 for none.
        sde_window: indices of the steps that are sampled with noise and trained.
    """

    timesteps: Float[Tensor, "T1"]
    sigma: Float[Tensor, "T"]
    sde_window: frozenset[int]

    def segment_end(self, begin: int, max_steps: int) -> int:
        """End of the segment that begins at a step: the window's border, or `max_steps` later."""
        end = begin + 1
        last = min(begin + max_steps, len(self.sigma))
        while end < last and (end in self.sde_window) == (begin in self.sde_window):
            end += 1
        return end

    def sde_steps(self, x: Tensor, velocity: Tensor, step: Tensor, sigma: Tensor) -> SDESteps:
        """Steps from latents `x`, with `next_x` still to be sampled."""
        time = self.timesteps.to(x.device)
        return SDESteps(x, x, velocity, time[step], time[step] - time[step + 1], sigma)


@dataclass(frozen=True)
class NoiseStream:
    """Standard normal noise that may be correlated with the noise of another stream.

    sqrt(1 - correlation) own + sqrt(correlation) shared.

    Args:
        key: key of the own stream.
        shared_key: key of the other stream.
        correlation: 0 to 1.
    """

    key: int
    shared_key: int = 0
    correlation: float = 0.0

    def sample(self, step: int, shape: Sequence[int]) -> Tensor:
        """Noise of one step."""
        own = standard_normal(self.key, step, shape)
        if not self.correlation:
            return own
        shared = standard_normal(self.shared_key, step, shape)
        return (1 - self.correlation) ** 0.5 * own + self.correlation**0.5 * shared


@dataclass(frozen=True)
class FlowRequest:
    """Request to denoise one latent.

    Args:
        prompt: text of the prompt.
        latent: latent before step `begin`.
        begin: first step.
        end: one after the last step.
        sigma: noise of each step of the schedule, 0 for none.
        noise: stream of the noise.
        role: role of the rollout, by which denoising steps are counted.
    """

    prompt: str
    latent: Float[Tensor, "*shape"]
    begin: int
    end: int
    sigma: Float[Tensor, "T"]
    noise: NoiseStream
    role: str = ""

    @property
    def num_tokens(self) -> int:
        """0: a prompt is encoded as a whole, by another model than the one that generates."""
        return 0


@dataclass(frozen=True)
class FlowReply:
    """The latent after each step, its log-probability, and the image after the last step."""

    latents: tuple[Tensor, ...]
    logp: tuple[float, ...]
    image: str = ""

    @property
    def num_generated(self) -> int:
        """Number of denoising steps."""
        return len(self.latents)

    @property
    def num_cached(self) -> int:
        """0: there is no prefix cache."""
        return 0


@dataclass(frozen=True)
class FlowSampler:
    """Engine that denoises up to `max_batch_size` latents at once."""

    velocity_field: VelocityField
    noise_schedule: NoiseSchedule
    max_batch_size: int

    def __call__(self, requests: Sequence[FlowRequest]) -> Iterator[tuple[int, FlowReply]]:
        """Replies with the indices of their requests."""
        for start in range(0, len(requests), self.max_batch_size):
            yield from enumerate(self._sample(requests[start : start + self.max_batch_size]), start)

    @property
    def device(self) -> torch.device:
        """Device of the model."""
        return next(self.velocity_field.module.parameters()).device

    @torch.no_grad()
    def _sample(self, requests: Sequence[FlowRequest]) -> Sequence[FlowReply]:
        device = self.device
        encoded = self.velocity_field.backbone.encode_prompts([r.prompt for r in requests])
        condition = {name: x.to(device) for name, x in encoded.items()}
        latents = [[r.latent] for r in requests]
        logp: list[list[float]] = [[] for _ in requests]
        for i in sorted({i for r in requests for i in range(r.begin, r.end)}):
            active = [k for k, r in enumerate(requests) if r.begin <= i < r.end]
            steps = self._take_step(
                i,
                [requests[k] for k in active],
                [latents[k][-1] for k in active],
                {name: x[active] for name, x in condition.items()},
            )
            next_latents = steps.next_x.cpu()
            for k, latent, value in zip(active, next_latents, steps.logp.tolist(), strict=True):
                latents[k].append(latent)
                logp[k].append(value)
        return [
            FlowReply(tuple(path[1:]), tuple(values), self._decode_image(request, path[-1]))
            for request, path, values in zip(requests, latents, logp, strict=True)
        ]

    def _take_step(
        self,
        i: int,
        requests: Sequence[FlowRequest],
        latents: Sequence[Tensor],
        condition: dict[str, Tensor],
    ) -> SDESteps:
        """Sample step i of every latent."""
        device = self.device
        x = torch.stack([*latents]).to(device)
        step = torch.full((len(latents),), i, device=device)
        sigma = torch.stack([r.sigma[i] for r in requests]).to(device)
        noise = torch.stack([r.noise.sample(i, r.latent.shape) for r in requests]).to(device)
        time = self.noise_schedule.timesteps.to(device)[step]
        velocity = self.velocity_field(x, time, condition).float()
        return self.noise_schedule.sde_steps(x, velocity, step, sigma).add_noise(noise)

    def _decode_image(self, request: FlowRequest, latent: Tensor) -> str:
        if request.end < len(self.noise_schedule.sigma):
            return ""
        (image,) = self.velocity_field.backbone.decode_latents(latent[None].to(self.device))
        return tensor_text.encode_tensor((image * 255).round().to(torch.uint8))


def standard_normal(key: int, label: object, shape: Sequence[int]) -> Tensor:
    """Standard normal numbers of the stream `key`, equal on every device."""
    generator = torch.Generator().manual_seed(derive_key(key, "noise", label))
    return torch.randn(tuple(shape), generator=generator)
