"""Drawing: denoising steps taken one after the other, for many latents at once."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from grupo.core.rng import derive_key
from grupo.models.flow_matching.backbone import VelocityField
from grupo.models.flow_matching.sde_step import SDESteps
from grupo.storage import tensor_text


@dataclass(frozen=True)
class NoiseSchedule:
    """At which times steps are taken, with how much noise, and which of them are trained."""

    timesteps: Float[Tensor, "T1"]
    sigma: Float[Tensor, "T"]
    sde_window: frozenset[int]

    def segment_end(self, begin: int, max_steps: int) -> int:
        """Where the steps end that are trained as the one at `begin` is, at most `limit` later."""
        end, last = begin + 1, min(begin + max_steps, len(self.sigma))
        while end < last and (end in self.sde_window) == (begin in self.sde_window):
            end += 1
        return end

    def sde_steps(self, x: Tensor, velocity: Tensor, step: Tensor, sigma: Tensor) -> SDESteps:
        """Steps of these numbers from `x`; nothing is drawn yet."""
        time = self.timesteps.to(x.device)
        return SDESteps(x, x, velocity, time[step], time[step] - time[step + 1], sigma)


@dataclass(frozen=True)
class NoiseStream:
    """Standard normal numbers of a stream, of correlation `share` with those of the stream `kin`.

    sqrt(1 - share) own + sqrt(share) kin's.
    """

    key: int
    shared_key: int = 0
    correlation: float = 0.0

    def sample(self, step: int, shape: Sequence[int]) -> Tensor:
        """Those of a step."""
        own = standard_normal(self.key, step, shape)
        if not self.correlation:
            return own
        return (1 - self.correlation) ** 0.5 * own + self.correlation**0.5 * standard_normal(
            self.shared_key, step, shape
        )


@dataclass(frozen=True)
class FlowRequest:
    """Take the steps `begin` to `end` from a latent, each with its noise `sigma`; 0: none."""

    prompt: str
    latent: Float[Tensor, "*shape"]
    begin: int
    end: int
    sigma: Float[Tensor, "T"]
    noise: NoiseStream


@dataclass(frozen=True)
class FlowReply:
    """Where each step led, its log-probability, and the picture that the last one made."""

    latents: tuple[Tensor, ...]
    logp: tuple[float, ...]
    image: str = ""


@dataclass(frozen=True)
class FlowSampler:
    """An engine that draws, `at_once` latents at a time."""

    velocity_field: VelocityField
    noise_schedule: NoiseSchedule
    max_batch_size: int

    def __call__(self, requests: Sequence[FlowRequest]) -> Iterator[tuple[int, FlowReply]]:
        """Answers by the places of their requests."""
        for start in range(0, len(requests), self.max_batch_size):
            yield from enumerate(self._sample(requests[start : start + self.max_batch_size]), start)

    @torch.no_grad()
    def _sample(self, requests: Sequence[FlowRequest]) -> Sequence[FlowReply]:
        painter, device = (
            self.velocity_field.backbone,
            next(self.velocity_field.module.parameters()).device,
        )
        told = {
            name: x.to(device)
            for name, x in painter.encode_prompts([r.prompt for r in requests]).items()
        }
        latents = [[r.latent] for r in requests]
        logp: list[list[float]] = [[] for _ in requests]
        for i in range(min(r.begin for r in requests), max(r.end for r in requests)):
            here = [k for k, r in enumerate(requests) if r.begin <= i < r.end]
            steps = self._take_step(
                i,
                [requests[k] for k in here],
                [latents[k][-1] for k in here],
                {name: x[here] for name, x in told.items()},
            )
            for k, latent, value in zip(here, steps.next_x.cpu(), steps.logp.tolist(), strict=True):
                latents[k].append(latent)
                logp[k].append(value)
        return [
            FlowReply(tuple(some[1:]), tuple(said), self._decode_image(r, some[-1]))
            for r, some, said in zip(requests, latents, logp, strict=True)
        ]

    def _take_step(
        self,
        i: int,
        requests: Sequence[FlowRequest],
        x: Sequence[Tensor],
        condition: dict[str, Tensor],
    ) -> SDESteps:
        """One step of each."""
        device = next(self.velocity_field.module.parameters()).device
        at, step = torch.stack([*x]).to(device), torch.full((len(x),), i, device=device)
        sigma = torch.stack([r.sigma[i] for r in requests]).to(device)
        noise = torch.stack([r.noise.sample(i, r.latent.shape) for r in requests]).to(device)
        velocity = self.velocity_field(
            at, self.noise_schedule.timesteps.to(device)[step], condition
        ).float()
        return self.noise_schedule.sde_steps(at, velocity, step, sigma).add_noise(noise)

    def _decode_image(self, request: FlowRequest, latent: Tensor) -> str:
        if request.end < len(self.noise_schedule.sigma):
            return ""
        device = next(self.velocity_field.module.parameters()).device
        (picture,) = self.velocity_field.backbone.decode_latents(latent[None].to(device))
        return tensor_text.encode_tensor((picture * 255).round().to(torch.uint8))


def standard_normal(key: int, label: object, shape: Sequence[int]) -> Tensor:
    """Standard normal numbers of a stream, the same on every device."""
    random = torch.Generator().manual_seed(derive_key(key, "noise", label))
    return torch.randn(tuple(shape), generator=random)
