"""Plans: the minibatches of a step, one optimizer update each."""

from collections.abc import Iterator
from random import Random
from typing import Protocol

import torch

from grupo.core.batch import Batch
from grupo.core.component import component


class UpdatePlan(Protocol):
    """From a step's batch to its minibatches."""

    def __call__(self, batch: Batch, rng: Random, /) -> Iterator[Batch]: ...


@component
class SingleUpdate:
    """The whole batch, once: every update is on policy."""

    def __call__(self, batch: Batch, rng: Random) -> Iterator[Batch]:
        yield batch


@component
class Updates:
    """`epochs` passes over the batch in `minibatches` parts each; groups stay whole."""

    epochs: int = 1
    minibatches: int = 1

    def __call__(self, batch: Batch, rng: Random) -> Iterator[Batch]:
        groups = batch.group.unique().tolist()
        for _ in range(self.epochs):
            shuffled = torch.tensor(rng.sample(groups, len(groups)))
            for part in shuffled.tensor_split(min(self.minibatches, len(groups))):
                yield batch.select_rows(torch.isin(batch.row_group, part).nonzero()[:, 0])
