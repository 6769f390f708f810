"""Others who can say how likely a policy's actions are: references, teachers, other contexts."""

from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Generic, Protocol, Self, TypeVar

import torch
from torch import Tensor

from grupo.core.batch import Batch, Signals

Weights = Mapping[str, Tensor]


class ActionDistributions(Protocol):
    """What actions were drawn from, those of a batch in the order of its mask."""

    def compute_signals(self, names: Collection[str]) -> Weights:
        """Signals of each action."""
        ...

    def scale_temperature(self, factor: float) -> Self:
        """The same actions as if the temperature were `factor` times as high."""
        ...

    def with_context(self, context: Callable[[], AbstractContextManager[Any]]) -> Self:
        """The same; what is still to be said of them is said within a context."""
        ...


S = TypeVar("S", bound=ActionDistributions)
S_co = TypeVar("S_co", bound=ActionDistributions, covariant=True)


class DistributionScorer(Protocol[S_co]):
    """Whoever reads the same actions."""

    def distributions(self, batch: Batch) -> S_co: ...

    def signals(self, batch: Batch, names: Collection[str] = ("logp",)) -> Signals: ...


class HasSwappableParams(Protocol[S_co]):
    """A policy whose module's parameters can be exchanged."""

    @property
    def module(self) -> Any: ...

    def distributions(self, batch: Batch) -> S_co: ...


def scatter_to_batch(batch: Batch, values: Weights) -> Signals:
    """Numbers of the actions, in the order of the mask, as signals (N, T), 0 where masked."""
    device = next(iter(values.values())).device
    place = tuple(x.to(device) for x in batch.mask.nonzero(as_tuple=True))
    blank = torch.zeros(batch.mask.shape, device=device)
    return Signals({name: blank.index_put(place, x) for name, x in values.items()})


class BaseScorer(Generic[S]):
    """A speaker who is known by what it says of a batch's actions."""

    def distributions(self, batch: Batch) -> S:
        raise NotImplementedError

    def signals(self, batch: Batch, names: Collection[str] = ("logp",)) -> Signals:
        return scatter_to_batch(batch, self.distributions(batch).compute_signals(names))


@dataclass(frozen=True)
class AdapterDisabled(BaseScorer[S]):
    """A policy with its adapters off."""

    policy: HasSwappableParams[S]

    def distributions(self, batch: Batch) -> S:
        return _distributions_in_context(self.policy.module.disable_adapter, self.policy, batch)


@dataclass(frozen=True)
class WeightsSwapped(BaseScorer[S]):
    """A policy with other weights, which are in its place while it speaks."""

    policy: HasSwappableParams[S]
    weights: Weights

    def distributions(self, batch: Batch) -> S:
        return _distributions_in_context(
            partial(_swap_parameters, self.policy, self.weights), self.policy, batch
        )


@dataclass(frozen=True)
class TemperatureScaled(BaseScorer[S]):
    """Another at `factor` times its temperature."""

    scorer: DistributionScorer[S]
    factor: float

    def distributions(self, batch: Batch) -> S:
        return self.scorer.distributions(batch).scale_temperature(self.factor)


@dataclass(frozen=True)
class Reprompted(BaseScorer[S]):
    """Another who read something else before the same actions: the batch's view of that name."""

    scorer: DistributionScorer[S]
    name: str

    def distributions(self, batch: Batch) -> S:
        return self.scorer.distributions(replace(batch, inputs=batch.inputs[f"view/{self.name}"]))


def _distributions_in_context(
    context: Callable[[], AbstractContextManager[Any]], policy: HasSwappableParams[S], batch: Batch
) -> S:
    with context():
        said = policy.distributions(batch)
    return said.with_context(context)


@contextmanager
def _swap_parameters(policy: HasSwappableParams[Any], weights: Weights) -> Iterator[None]:
    # what the parameters hold is exchanged, not written over: a graph that was built with their own
    # numbers still finds these when it is walked back
    parameters = dict(policy.module.named_parameters())
    own = {name: parameters[name].data for name in weights}
    try:
        for name, theirs in weights.items():
            parameters[name].data = theirs
        yield
    finally:
        for name, mine in own.items():
            parameters[name].data = mine
