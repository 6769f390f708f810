"""Denoising steps as a stochastic differential equation: their distributions and signals.

An image x_0 and noise x_1 are the ends of a line, x_t = (1 - t) x_0 + t x_1, and the model predicts
the velocity v = x_1 - x_0. Flow-GRPO (Liu et al., arXiv:2505.05470) integrates from t = 1 to 0 with
noise that keeps the marginal distribution at each t:

    x' = x - dt (v + s^2 / (2 t) (x + (1 - t) v)) + s sqrt(dt) eps,   s = a sqrt(t / (1 - t))

Log-probabilities and divergences are means over a latent's elements, as in the authors' code: a sum
over thousands of elements would put every ratio beyond any clip range, and would depend on the
image's size.
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
    """noise_level sqrt(t / (1 - t)) at the beginning of each step.

    At t = 1, the denominator uses the next time.

    >>> sde_sigmas(torch.tensor([1.0, 0.5, 0.0]), 0.5).tolist()  # 0.5 sqrt(1 / 0.5), 0.5 sqrt(1)
    [0.7071067690849304, 0.5]
    """
    t = timesteps[:-1]
    return noise_level * (t / (1 - torch.where(t == 1, timesteps[1], t))).sqrt()


@dataclass(frozen=True)
class SDESteps:
    """M denoising steps.

    Args:
        x: latents before the steps.
        next_x: latents after the steps.
        velocity: predicted velocities.
        t: times before the steps.
        dt: lengths of the steps.
        sigma: noise; a step with 0 is deterministic.
    """

    x: Float[Tensor, "M *shape"]
    next_x: Float[Tensor, "M *shape"]
    velocity: Float[Tensor, "M *shape"]
    t: Float[Tensor, "M"]
    dt: Float[Tensor, "M"]
    sigma: Float[Tensor, "M"]

    @property
    def mean(self) -> Float[Tensor, "M *shape"]:
        """Mean of the latent after each step."""
        t, dt, sigma = (_expand_to_latents(n, self.x) for n in (self.t, self.dt, self.sigma))
        noise_prediction = self.x + (1 - t) * self.velocity
        return self.x - dt * (self.velocity + sigma**2 / (2 * t) * noise_prediction)

    @property
    def std(self) -> Float[Tensor, "M"]:
        """Standard deviation of the latent after each step."""
        return self.sigma * self.dt.sqrt()

    @property
    def logp(self) -> Float[Tensor, "M"]:
        """Log-density of `next_x`, in nats per element; 0 for a step without noise."""
        std = torch.where(self.sigma > 0, self.std, 1.0)
        squared_error = (self.next_x - self.mean).square().flatten(1).mean(1)
        logp = -squared_error / (2 * std**2) - std.log() - math.log(2 * math.pi) / 2
        return torch.where(self.sigma > 0, logp, 0.0)

    @property
    def entropy(self) -> Float[Tensor, "M"]:
        """Entropy of each step, in nats per element; it depends on the noise only."""
        return self.std.log() + math.log(2 * math.pi * math.e) / 2

    def kl(self, other: "SDESteps") -> Float[Tensor, "M"]:
        """KL between Gaussians of equal noise, in nats per element; it is symmetric."""
        squared_distance = (self.mean - other.mean).square().flatten(1).mean(1)
        return squared_distance / (2 * self.std**2)

    def add_noise(self, noise: Float[Tensor, "M *shape"]) -> "SDESteps":
        """The steps with `next_x` sampled by standard normal noise."""
        return replace(self, next_x=self.mean + _expand_to_latents(self.std, self.x) * noise)

    def scale_temperature(self, factor: float) -> "SDESteps":
        """The steps with `factor` times their noise."""
        return replace(self, sigma=self.sigma * factor)

    def with_context(self, context: Callable[[], AbstractContextManager[Any]]) -> "SDESteps":
        """The steps themselves: the model has been evaluated already."""
        return self

    def compute_signals(
        self, names: Collection[str], other_steps: Mapping[str, "SDESteps"] = {}
    ) -> dict[str, Float[Tensor, "M"]]:
        """The signals in `names` of each step; `reverse_kl@ref` compares with other_steps["ref"].

        `step/std` and `step/dt` are computed here, unlike step values of an environment.
        """
        return {name: self._signal(name, other_steps) for name in names}

    def _signal(self, name: str, other_steps: Mapping[str, "SDESteps"]) -> Tensor:
        signal, model = split_name(name.removeprefix("step/"))
        return self.kl(other_steps[model]) if signal in STEP_DIVERGENCES else getattr(self, signal)


STEP_SIGNALS = ("logp", "entropy", "std", "dt")
STEP_DIVERGENCES = ("reverse_kl", "forward_kl")


def _expand_to_latents(number: Float[Tensor, "M"], x: Tensor) -> Tensor:
    """One number per step, with trailing dimensions that broadcast with latents."""
    return number.reshape(-1, *[1] * (x.ndim - 1))
