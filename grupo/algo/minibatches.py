"""Update plans: how a step's batch is split into minibatches, with one optimizer update each."""

from collections.abc import Iterator
from random import Random
from typing import Protocol

import torch

from grupo.core.batch import Batch
from grupo.core.component import component
from grupo.core.numbers import PositiveInt


class UpdatePlan(Protocol):
    """Splits the batch of a step into the minibatches of its optimizer updates.

    Args:
        batch: all rows of the step.
        rng: generator that shuffles groups; derived from the seed and the step.
    """

    def __call__(self, batch: Batch, rng: Random, /) -> Iterator[Batch]: ...


@component
class SingleUpdate:
    """One update on the whole batch, so every update is on policy."""

    def __call__(self, batch: Batch, rng: Random) -> Iterator[Batch]:
        yield batch


@component
class Updates:
    """PPO-style updates: `epochs` passes over the batch, each shuffled into `minibatches` parts.

    A group is never split between minibatches. A recipe whose steps have fewer groups than
    minibatches is refused; where a filter leaves fewer groups in a step, that step makes fewer
    updates.

    Args:
        epochs: passes over the batch per step.
        minibatches: optimizer updates per pass.
    """

    epochs: PositiveInt = 1
    minibatches: PositiveInt = 1

    def __call__(self, batch: Batch, rng: Random) -> Iterator[Batch]:
        groups = batch.group.unique().tolist()
        for _ in range(self.epochs):
            shuffled = torch.tensor(rng.sample(groups, len(groups)))
            for chunk in shuffled.tensor_split(min(self.minibatches, len(groups))):
                yield batch.select_rows(torch.isin(batch.row_group, chunk).nonzero()[:, 0])
