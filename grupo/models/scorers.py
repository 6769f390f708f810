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


class Said(Protocol):
    """What actions were drawn from, those of a batch in the order of its mask."""

    def measured(self, names: Collection[str]) -> Weights:
        """Signals of each action."""
        ...

    def at(self, factor: float) -> Self:
        """The same actions as if the temperature were `factor` times as high."""
        ...

    def within(self, context: Callable[[], AbstractContextManager[Any]]) -> Self:
        """The same; what is still to be said of them is said within a context."""
        ...


S = TypeVar("S", bound=Said)
S_co = TypeVar("S_co", bound=Said, covariant=True)


class Speaker(Protocol[S_co]):
    """Whoever reads the same actions."""

    def spoken(self, batch: Batch) -> S_co: ...

    def signals(self, batch: Batch, names: Collection[str] = ("logp",)) -> Signals: ...


class Adapted(Protocol[S_co]):
    """A policy whose module's parameters can be exchanged."""

    @property
    def module(self) -> Any: ...

    def spoken(self, batch: Batch) -> S_co: ...


def laid(batch: Batch, said: Weights) -> Signals:
    """Numbers of the actions, in the order of the mask, as signals (N, T), 0 where masked."""
    device = next(iter(said.values())).device
    place = tuple(x.to(device) for x in batch.mask.nonzero(as_tuple=True))
    blank = torch.zeros(batch.mask.shape, device=device)
    return Signals({name: blank.index_put(place, x) for name, x in said.items()})


class Speaks(Generic[S]):
    """A speaker who is known by what it says of a batch's actions."""

    def spoken(self, batch: Batch) -> S:
        raise NotImplementedError

    def signals(self, batch: Batch, names: Collection[str] = ("logp",)) -> Signals:
        return laid(batch, self.spoken(batch).measured(names))


@dataclass(frozen=True)
class Without(Speaks[S]):
    """A policy with its adapters off."""

    policy: Adapted[S]

    def spoken(self, batch: Batch) -> S:
        return _within(self.policy.module.disable_adapter, self.policy, batch)


@dataclass(frozen=True)
class With(Speaks[S]):
    """A policy with other weights, which are in its place while it speaks."""

    policy: Adapted[S]
    weights: Weights

    def spoken(self, batch: Batch) -> S:
        return _within(partial(_swapped, self.policy, self.weights), self.policy, batch)


@dataclass(frozen=True)
class Tempered(Speaks[S]):
    """Another at `factor` times its temperature."""

    speaker: Speaker[S]
    factor: float

    def spoken(self, batch: Batch) -> S:
        return self.speaker.spoken(batch).at(self.factor)


@dataclass(frozen=True)
class Viewed(Speaks[S]):
    """Another who read something else before the same actions: the batch's view of that name."""

    speaker: Speaker[S]
    view: str

    def spoken(self, batch: Batch) -> S:
        return self.speaker.spoken(replace(batch, inputs=batch.inputs[f"view/{self.view}"]))


def _within(
    context: Callable[[], AbstractContextManager[Any]], policy: Adapted[S], batch: Batch
) -> S:
    with context():
        said = policy.spoken(batch)
    return said.within(context)


@contextmanager
def _swapped(policy: Adapted[Any], weights: Weights) -> Iterator[None]:
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
