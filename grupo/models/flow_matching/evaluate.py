"""Reading again what was drawn: which steps a batch holds, and what they are drawn from now."""

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
from grupo.models.scorers import BaseScorer
from grupo.storage import tensor_text

CONDITION_PREFIX = "told/"  # begins the names of what the model read of a row's prompt
OLD = "old"  # the policy as it was when a batch was collated


@dataclass(frozen=True)
class TrajectoryEvaluator:
    """Rows of latents, read by a model at the times of a course."""

    velocity_field: VelocityField
    noise_schedule: NoiseSchedule
    device: torch.device

    def encode(self, rollouts: Sequence[Rollout]) -> dict[str, Tensor]:
        """The latents of every row (N, L + 1, ...), noise first, and what its prompt says."""
        rows = [_latents(rollout) for rollout in rollouts]
        prompts = [
            rollout.turns[0][1].observation[0] if rollout.turns else "" for rollout in rollouts
        ]
        width = max(map(len, rows), default=0)
        latent = torch.zeros(len(rows), width, *self.velocity_field.backbone.shape)
        for number, some in enumerate(rows):
            latent[number, : len(some)] = torch.stack(some)
        told = self.velocity_field.backbone.encode_prompts(prompts)
        return {"latent": latent, **{CONDITION_PREFIX + name: x for name, x in told.items()}}

    def sde_steps(self, batch: Batch) -> SDESteps:
        """Those of a batch in the order of its mask."""
        row, step = batch.mask.nonzero(as_tuple=True)
        return self._steps_of_batch(batch, self.velocity(batch.inputs, row, step))

    def old_sde_steps(self, batch: Batch) -> SDESteps:
        """The same as they were drawn from when the batch was collated."""
        return self._steps_of_batch(batch, batch.inputs[OLD][batch.mask].to(self.device))

    def velocity(
        self, inputs: Mapping[str, Tensor], row: Int[Tensor, "M"], step: Int[Tensor, "M"]
    ) -> Float[Tensor, "M *shape"]:
        """What the model says at some steps of some rows."""
        told = {
            name.removeprefix(CONDITION_PREFIX): x[row].to(self.device)
            for name, x in inputs.items()
            if name.startswith(CONDITION_PREFIX)
        }
        time = self.noise_schedule.timesteps[step].to(self.device)
        return self.velocity_field(inputs["latent"][row, step].to(self.device), time, told).float()

    @torch.no_grad()
    def all_velocities(
        self, inputs: Mapping[str, Tensor], max_batch_size: int
    ) -> Float[Tensor, "N L *shape"]:
        """At every step of every row."""
        latent = inputs["latent"][:, :-1]
        row, step = torch.ones(latent.shape[:2]).nonzero(as_tuple=True)
        some = zip(row.split(max_batch_size), step.split(max_batch_size), strict=True)
        said = [self.velocity(inputs, r, s).cpu() for r, s in some]
        return torch.cat([*said, latent[:0, 0]]).reshape(latent.shape)

    def _steps_of_batch(self, batch: Batch, velocity: Tensor) -> SDESteps:
        row, step = batch.mask.nonzero(as_tuple=True)
        x, drawn = (batch.inputs["latent"][row, s].to(self.device) for s in (step, step + 1))
        sigma = self.noise_schedule.sigma[step].to(self.device)
        steps = self.noise_schedule.sde_steps(x, velocity, step.to(self.device), sigma)
        return replace(steps, next_x=drawn)


@dataclass(frozen=True)
class OldPolicy(BaseScorer[SDESteps]):
    """A policy as it was when a batch was collated."""

    evaluator: TrajectoryEvaluator

    def distributions(self, batch: Batch) -> SDESteps:
        return self.evaluator.old_sde_steps(batch)


def _latents(rollout: Rollout) -> list[Tensor]:
    seen = [line for _, action in rollout.turns[:1] for line in action.observation[1:]]
    parts = [line for _, action in rollout.turns for line in action.items]
    return [tensor_text.decode_tensor(line) for line in (*seen, *parts)]
