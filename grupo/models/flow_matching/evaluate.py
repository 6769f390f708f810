"""Evaluation of recorded trajectories: distributions of their steps under the current weights."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import torch
from jaxtyping import Float, Int
from torch import Tensor

from grupo.core.batch import Batch
from grupo.core.types import Rollout
from grupo.models.flow_matching.backbone import VelocityField
from grupo.models.flow_matching.sampler import NoiseSchedule
from grupo.models.flow_matching.sde_step import SDESteps
from grupo.models.signal_models import BaseSignalModel
from grupo.storage import tensor_text

CONDITION_PREFIX = "condition/"  # of keys in `Batch.inputs`, before the names of conditions
OLD = "old"  # the policy at the time when a batch was collated


@dataclass(frozen=True)
class TrajectoryEvaluator:
    """Evaluates the denoising steps of rows of latents.

    Args:
        velocity_field: velocities of the current weights.
        noise_schedule: times and noise of the steps.
        device: where the model computes.
    """

    velocity_field: VelocityField
    noise_schedule: NoiseSchedule
    device: torch.device

    def encode(self, rollouts: Sequence[Rollout]) -> dict[str, Tensor]:
        """Latents of every row (N, L + 1, *shape), noise first, and conditions of its prompt."""
        rows = [_latents(rollout) for rollout in rollouts]
        prompts = [r.turns[0][1].observation[0] if r.turns else "" for r in rollouts]
        width = max(map(len, rows), default=0)
        latent = torch.zeros(len(rows), width, *self.velocity_field.backbone.shape)
        for number, row in enumerate(rows):
            latent[number, : len(row)] = torch.stack(row)
        conditions = self.velocity_field.backbone.encode_prompts(prompts)
        return {
            "latent": latent,
            **{CONDITION_PREFIX + name: x for name, x in conditions.items()},
        }

    def sde_steps(self, batch: Batch) -> SDESteps:
        """Steps of a batch, in the order of its mask."""
        row, step = batch.mask.nonzero(as_tuple=True)
        return self._steps_of_batch(batch, self.velocity(batch.inputs, row, step))

    def old_sde_steps(self, batch: Batch) -> SDESteps:
        """Steps of a batch under the weights at the time when it was collated."""
        return self._steps_of_batch(batch, batch.inputs[OLD][batch.mask].to(self.device))

    def velocity(
        self, inputs: Mapping[str, Tensor], row: Int[Tensor, "M"], step: Int[Tensor, "M"]
    ) -> Float[Tensor, "M *shape"]:
        """Velocities at given steps of given rows."""
        condition = {
            name.removeprefix(CONDITION_PREFIX): x[row].to(self.device)
            for name, x in inputs.items()
            if name.startswith(CONDITION_PREFIX)
        }
        time = self.noise_schedule.timesteps[step].to(self.device)
        latent = inputs["latent"][row, step].to(self.device)
        return self.velocity_field(latent, time, condition).float()

    @torch.no_grad()
    def all_velocities(
        self, inputs: Mapping[str, Tensor], max_batch_size: int
    ) -> Float[Tensor, "N L *shape"]:
        """Velocities at every step of every row."""
        latent = inputs["latent"][:, :-1]
        row, step = torch.ones(latent.shape[:2]).nonzero(as_tuple=True)
        batches = zip(row.split(max_batch_size), step.split(max_batch_size), strict=True)
        velocities = [self.velocity(inputs, r, s).cpu() for r, s in batches]
        return torch.cat([*velocities, latent[:0, 0]]).reshape(latent.shape)

    def _steps_of_batch(self, batch: Batch, velocity: Tensor) -> SDESteps:
        row, step = batch.mask.nonzero(as_tuple=True)
        x, next_x = (batch.inputs["latent"][row, s].to(self.device) for s in (step, step + 1))
        sigma = self.noise_schedule.sigma[step].to(self.device)
        steps = self.noise_schedule.sde_steps(x, velocity, step.to(self.device), sigma)
        return replace(steps, next_x=next_x)


@dataclass(frozen=True)
class OldPolicy(BaseSignalModel[SDESteps]):
    """A model with the policy's weights at the time when a batch was collated."""

    evaluator: TrajectoryEvaluator

    def distributions(self, batch: Batch) -> SDESteps:
        return self.evaluator.old_sde_steps(batch)


def _latents(rollout: Rollout) -> list[Tensor]:
    """Initial noise of a rollout, and the latent after each of its steps."""
    noise = [text for _, response in rollout.turns[:1] for text in response.observation[1:]]
    items = [text for _, response in rollout.turns for text in response.items]
    return [tensor_text.decode_tensor(text) for text in (*noise, *items)]
