"""Drawing: denoising steps taken one after the other, for many latents at once."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from grupo.core.rng import derive
from grupo.models.flow_matching.backbone import Field
from grupo.models.flow_matching.sde_step import Steps
from grupo.storage import tensor_text


@dataclass(frozen=True)
class Course:
    """At which times steps are taken, with how much noise, and which of them are trained."""

    times: Float[Tensor, "T1"]
    sigma: Float[Tensor, "T"]
    window: frozenset[int]

    def stretch(self, begin: int, limit: int) -> int:
        """Where the steps end that are trained as the one at `begin` is, at most `limit` later."""
        end, last = begin + 1, min(begin + limit, len(self.sigma))
        while end < last and (end in self.window) == (begin in self.window):
            end += 1
        return end

    def steps(self, x: Tensor, velocity: Tensor, step: Tensor, sigma: Tensor) -> Steps:
        """Steps of these numbers from `x`; nothing is drawn yet."""
        time = self.times.to(x.device)
        return Steps(x, x, velocity, time[step], time[step] - time[step + 1], sigma)


@dataclass(frozen=True)
class Noise:
    """Standard normal numbers of a stream, of correlation `share` with those of the stream `kin`.

    sqrt(1 - share) own + sqrt(share) kin's.
    """

    key: int
    kin: int = 0
    share: float = 0.0

    def at(self, step: int, shape: Sequence[int]) -> Tensor:
        """Those of a step."""
        own = noise_of(self.key, step, shape)
        if not self.share:
            return own
        return (1 - self.share) ** 0.5 * own + self.share**0.5 * noise_of(self.kin, step, shape)


@dataclass(frozen=True)
class Request:
    """Take the steps `begin` to `end` from a latent, each with its noise `sigma`; 0: none."""

    prompt: str
    latent: Float[Tensor, "*shape"]
    begin: int
    end: int
    sigma: Float[Tensor, "T"]
    noise: Noise


@dataclass(frozen=True)
class Reply:
    """Where each step led, its log-probability, and the picture that the last one made."""

    latents: tuple[Tensor, ...]
    logp: tuple[float, ...]
    made: str = ""


@dataclass(frozen=True)
class Drawing:
    """An engine that draws, `at_once` latents at a time."""

    field: Field
    course: Course
    at_once: int

    def __call__(self, requests: Sequence[Request]) -> Iterator[tuple[int, Reply]]:
        """Answers by the places of their requests."""
        for start in range(0, len(requests), self.at_once):
            yield from enumerate(self._drawn(requests[start : start + self.at_once]), start)

    @torch.no_grad()
    def _drawn(self, requests: Sequence[Request]) -> Sequence[Reply]:
        painter, device = self.field.painter, next(self.field.module.parameters()).device
        told = {
            name: x.to(device) for name, x in painter.read([r.prompt for r in requests]).items()
        }
        latents = [[r.latent] for r in requests]
        logp: list[list[float]] = [[] for _ in requests]
        for i in range(min(r.begin for r in requests), max(r.end for r in requests)):
            here = [k for k, r in enumerate(requests) if r.begin <= i < r.end]
            steps = self._steps(
                i,
                [requests[k] for k in here],
                [latents[k][-1] for k in here],
                {name: x[here] for name, x in told.items()},
            )
            for k, latent, value in zip(here, steps.drawn.cpu(), steps.logp.tolist(), strict=True):
                latents[k].append(latent)
                logp[k].append(value)
        return [
            Reply(tuple(some[1:]), tuple(said), self._made(r, some[-1]))
            for r, some, said in zip(requests, latents, logp, strict=True)
        ]

    def _steps(
        self, i: int, requests: Sequence[Request], x: Sequence[Tensor], told: dict[str, Tensor]
    ) -> Steps:
        """One step of each."""
        device = next(self.field.module.parameters()).device
        at, step = torch.stack([*x]).to(device), torch.full((len(x),), i, device=device)
        sigma = torch.stack([r.sigma[i] for r in requests]).to(device)
        noise = torch.stack([r.noise.at(i, r.latent.shape) for r in requests]).to(device)
        velocity = self.field(at, self.course.times.to(device)[step], told).float()
        return self.course.steps(at, velocity, step, sigma).drawing(noise)

    def _made(self, request: Request, latent: Tensor) -> str:
        if request.end < len(self.course.sigma):
            return ""
        device = next(self.field.module.parameters()).device
        (picture,) = self.field.painter.pictures(latent[None].to(device))
        return tensor_text.text((picture * 255).round().to(torch.uint8))


def noise_of(key: int, label: object, shape: Sequence[int]) -> Tensor:
    """Standard normal numbers of a stream, the same on every device."""
    random = torch.Generator().manual_seed(derive(key, "noise", label))
    return torch.randn(tuple(shape), generator=random)
