"""Denoising steps: what they are drawn from, and what is said of them.

An image x_0 and noise x_1 lie at the ends of a line, x_t = (1 - t) x_0 + t x_1, and the model says
the velocity v = x_1 - x_0. Flow-GRPO (Liu et al., arXiv:2505.05470) goes down it with noise that
leaves the distribution at each t as it is:

    x' = x - dt (v + s^2 / (2 t) (x + (1 - t) v)) + s sqrt(dt) eps,   s = a sqrt(t / (1 - t))

Log-probabilities and divergences are means over a latent's numbers, as in the authors' code: a sum
over thousands of them would put every ratio beyond any clip, and its size would be the image's.
"""

import math
from collections.abc import Callable, Collection, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from grupo.core.signal_names import split_name


def sde_sigmas(timesteps: Float[Tensor, "T1"], noise_level: float) -> Float[Tensor, "T"]:
    """`noise` sqrt(t / (1 - t)) at each step's beginning; at t = 1 with the next time in 1 - t.

    >>> sde_sigmas(torch.tensor([1.0, 0.5, 0.0]), 0.5).tolist()  # 0.5 sqrt(1 / 0.5), 0.5 sqrt(1)
    [0.7071067690849304, 0.5]
    """
    t = timesteps[:-1]
    return noise_level * (t / (1 - torch.where(t == 1, timesteps[1], t))).sqrt()


@dataclass(frozen=True)
class SDESteps:
    """M steps from `x` to `drawn`, over `dt` from `t` on, with noise `sigma`; 0: none is drawn."""

    x: Float[Tensor, "M *shape"]
    next_x: Float[Tensor, "M *shape"]
    velocity: Float[Tensor, "M *shape"]
    t: Float[Tensor, "M"]
    dt: Float[Tensor, "M"]
    sigma: Float[Tensor, "M"]

    @property
    def mean(self) -> Float[Tensor, "M *shape"]:
        """Where a step goes without its noise."""
        t, dt, sigma = (_expand_to_latents(n, self.x) for n in (self.t, self.dt, self.sigma))
        toward_noise = self.x + (1 - t) * self.velocity
        return self.x - dt * (self.velocity + sigma**2 / (2 * t) * toward_noise)

    @property
    def std(self) -> Float[Tensor, "M"]:
        """How much noise a step adds."""
        return self.sigma * self.dt.sqrt()

    @property
    def logp(self) -> Float[Tensor, "M"]:
        """Log-density of what was drawn, in nats a number; 0 of a step without noise."""
        std = torch.where(self.sigma > 0, self.std, 1.0)
        off = (self.next_x - self.mean).square().flatten(1).mean(1)
        logp = -off / (2 * std**2) - std.log() - math.log(2 * math.pi) / 2
        return torch.where(self.sigma > 0, logp, 0.0)

    @property
    def entropy(self) -> Float[Tensor, "M"]:
        """Of what a step draws, in nats a number: it depends on the noise alone."""
        return self.std.log() + math.log(2 * math.pi * math.e) / 2

    def kl(self, other: "SDESteps") -> Float[Tensor, "M"]:
        """KL between two Gaussians of equal noise, either way, in nats a number."""
        off = (self.mean - other.mean).square().flatten(1).mean(1)
        return off / (2 * self.std**2)

    def add_noise(self, noise: Float[Tensor, "M *shape"]) -> "SDESteps":
        """The steps that this noise makes of them."""
        return replace(self, next_x=self.mean + _expand_to_latents(self.std, self.x) * noise)

    def scale_temperature(self, factor: float) -> "SDESteps":
        """The same steps as if their noise were `factor` times as large."""
        return replace(self, sigma=self.sigma * factor)

    def with_context(self, context: Callable[[], AbstractContextManager[Any]]) -> "SDESteps":
        """Everything has been said already."""
        return self

    def compute_signals(
        self, names: Collection[str], other_steps: Mapping[str, "SDESteps"] = {}
    ) -> dict[str, Float[Tensor, "M"]]:
        """The signals in `names` of each step; `reverse_kl@ref` compares with others["ref"].

        Marks that no world gave, `step/std` and `step/dt`, are the step's own.
        """
        return {name: self._signal(name, other_steps) for name in names}

    def _signal(self, name: str, other_steps: Mapping[str, "SDESteps"]) -> Tensor:
        signal, who = split_name(name.removeprefix("mark/"))
        return self.kl(other_steps[who]) if signal in STEP_DIVERGENCES else getattr(self, signal)


STEP_SIGNALS = ("logp", "entropy", "std", "dt")
STEP_DIVERGENCES = ("reverse_kl", "forward_kl")


def _expand_to_latents(number: Float[Tensor, "M"], x: Tensor) -> Tensor:
    """One number for each step, to be multiplied with latents."""
    return number.reshape(-1, *[1] * (x.ndim - 1))
