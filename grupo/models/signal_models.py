"""Scorers of a policy's actions: references, teachers, other temperatures and other prompts."""

from collections.abc import Callable, Collection, Generator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Generic, Protocol, Self, TypeVar

import torch
from torch import Tensor

from grupo.core.batch import Batch, Signals
from grupo.models.base import REPROMPTED_PREFIX
from grupo.util.device_copies import to_device

Weights = Mapping[str, Tensor]


class ActionDistributions(Protocol):
    """Distributions of a batch's actions, in the order of its mask."""

    def compute_signals(self, names: Collection[str]) -> Weights:
        """Signals of each action by name, (M,)."""
        ...

    def scale_temperature(self, factor: float) -> Self:
        """The distributions at `factor` times their temperature."""
        ...

    def with_context(self, context: Callable[[], AbstractContextManager[Any]]) -> Self:
        """The distributions, whose remaining computations run within a context manager."""
        ...


S = TypeVar("S", bound=ActionDistributions)
S_co = TypeVar("S_co", bound=ActionDistributions, covariant=True)


class DistributionModel(Protocol[S_co]):
    """A model that evaluates the policy's actions, with their full distributions."""

    def distributions(self, batch: Batch) -> S_co: ...

    def signals(self, batch: Batch, names: Collection[str] = ("logp",)) -> Signals: ...


class HasSwappableParams(Protocol[S_co]):
    """A policy whose module's parameters can be exchanged."""

    @property
    def module(self) -> Any: ...

    def distributions(self, batch: Batch) -> S_co: ...


def scatter_to_batch(batch: Batch, values: Weights) -> Signals:
    """Scatter values per action, in the order of the mask, to signals (N, T), 0 where masked."""
    device = next(iter(values.values())).device
    index = tuple(to_device(x, device) for x in batch.mask.nonzero(as_tuple=True))
    zeros = torch.zeros(batch.mask.shape, device=device)
    # values are in float32, or in float64
    return Signals(
        {name: zeros.to(value.dtype).index_put(index, value) for name, value in values.items()}
    )


class BaseSignalModel(Generic[S]):
    """A model that computes its signals from its distributions."""

    def distributions(self, batch: Batch) -> S:
        raise NotImplementedError

    def signals(self, batch: Batch, names: Collection[str] = ("logp",)) -> Signals:
        return scatter_to_batch(batch, self.distributions(batch).compute_signals(names))


@dataclass(frozen=True)
class AdapterDisabled(BaseSignalModel[S]):
    """A policy with its adapters disabled: the model from before training."""

    policy: HasSwappableParams[S]

    def distributions(self, batch: Batch) -> S:
        return _distributions_in_context(self.policy.module.disable_adapter, self.policy, batch)


@dataclass(frozen=True)
class WeightsSwapped(BaseSignalModel[S]):
    """A policy with other weights, which replace its own during evaluation."""

    policy: HasSwappableParams[S]
    weights: Weights

    def distributions(self, batch: Batch) -> S:
        swap = partial(_swap_parameters, self.policy, self.weights)
        return _distributions_in_context(swap, self.policy, batch)


@dataclass(frozen=True)
class TemperatureScaled(BaseSignalModel[S]):
    """A model at `factor` times its temperature."""

    signal_model: DistributionModel[S]
    factor: float

    def distributions(self, batch: Batch) -> S:
        return self.signal_model.distributions(batch).scale_temperature(self.factor)


@dataclass(frozen=True)
class Reprompted(BaseSignalModel[S]):
    """A model that evaluates the same actions after another prompt.

    Its rows are in the batch's inputs under the auxiliary model's name.
    """

    signal_model: DistributionModel[S]
    name: str

    def distributions(self, batch: Batch) -> S:
        inputs = batch.inputs[f"{REPROMPTED_PREFIX}{self.name}"]
        return self.signal_model.distributions(replace(batch, inputs=inputs))


def _distributions_in_context(
    context: Callable[[], AbstractContextManager[Any]], policy: HasSwappableParams[S], batch: Batch
) -> S:
    with context():
        distributions = policy.distributions(batch)
    return distributions.with_context(context)


@contextmanager
def _swap_parameters(policy: HasSwappableParams[Any], weights: Weights) -> Generator[None]:
    # Exchange the storage of the parameters instead of copying into it: an autograd graph that was
    # built with the policy's own values still needs them in the backward pass.
    parameters = dict(policy.module.named_parameters())
    own = {name: parameters[name].data for name in weights}
    try:
        for name, weight in weights.items():
            parameters[name].data = weight
        yield
    finally:
        for name, weight in own.items():
            parameters[name].data = weight
