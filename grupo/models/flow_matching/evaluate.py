"""Reading again what was drawn: which steps a batch holds, and what they are drawn from now."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import torch
from jaxtyping import Float, Int
from torch import Tensor

from grupo.core.batch import Batch
from grupo.core.types import Rollout
from grupo.models.flow_matching.backbone import Field
from grupo.models.flow_matching.sampler import Course
from grupo.models.flow_matching.sde_step import Steps
from grupo.models.scorers import Speaks
from grupo.storage import tensor_text

TOLD = "told/"  # begins the names of what the model read of a row's prompt
OLD = "old"  # the policy as it was when a batch was collated


@dataclass(frozen=True)
class Reading:
    """Rows of latents, read by a model at the times of a course."""

    field: Field
    course: Course
    device: torch.device

    def encode(self, rollouts: Sequence[Rollout]) -> dict[str, Tensor]:
        """The latents of every row (N, L + 1, ...), noise first, and what its prompt says."""
        rows = [_latents(rollout) for rollout in rollouts]
        prompts = [rollout.turns[0][1].seen[0] if rollout.turns else "" for rollout in rollouts]
        width = max(map(len, rows), default=0)
        latent = torch.zeros(len(rows), width, *self.field.painter.shape)
        for number, some in enumerate(rows):
            latent[number, : len(some)] = torch.stack(some)
        told = self.field.painter.read(prompts)
        return {"latent": latent, **{TOLD + name: x for name, x in told.items()}}

    def steps(self, batch: Batch) -> Steps:
        """Those of a batch in the order of its mask."""
        row, step = batch.mask.nonzero(as_tuple=True)
        return self._taken(batch, self.velocity(batch.inputs, row, step))

    def remembered(self, batch: Batch) -> Steps:
        """The same as they were drawn from when the batch was collated."""
        return self._taken(batch, batch.inputs[OLD][batch.mask].to(self.device))

    def velocity(
        self, inputs: Mapping[str, Tensor], row: Int[Tensor, "M"], step: Int[Tensor, "M"]
    ) -> Float[Tensor, "M *shape"]:
        """What the model says at some steps of some rows."""
        told = {
            name.removeprefix(TOLD): x[row].to(self.device)
            for name, x in inputs.items()
            if name.startswith(TOLD)
        }
        time = self.course.times[step].to(self.device)
        return self.field(inputs["latent"][row, step].to(self.device), time, told).float()

    @torch.no_grad()
    def velocities(self, inputs: Mapping[str, Tensor], at_once: int) -> Float[Tensor, "N L *shape"]:
        """At every step of every row."""
        latent = inputs["latent"][:, :-1]
        row, step = torch.ones(latent.shape[:2]).nonzero(as_tuple=True)
        some = zip(row.split(at_once), step.split(at_once), strict=True)
        said = [self.velocity(inputs, r, s).cpu() for r, s in some]
        return torch.cat([*said, latent[:0, 0]]).reshape(latent.shape)

    def _taken(self, batch: Batch, velocity: Tensor) -> Steps:
        row, step = batch.mask.nonzero(as_tuple=True)
        x, drawn = (batch.inputs["latent"][row, s].to(self.device) for s in (step, step + 1))
        sigma = self.course.sigma[step].to(self.device)
        steps = self.course.steps(x, velocity, step.to(self.device), sigma)
        return replace(steps, drawn=drawn)


@dataclass(frozen=True)
class Old(Speaks[Steps]):
    """A policy as it was when a batch was collated."""

    reading: Reading

    def spoken(self, batch: Batch) -> Steps:
        return self.reading.remembered(batch)


def _latents(rollout: Rollout) -> list[Tensor]:
    seen = [line for _, action in rollout.turns[:1] for line in action.seen[1:]]
    parts = [line for _, action in rollout.turns for line in action.parts]
    return [tensor_text.read(line) for line in (*seen, *parts)]
