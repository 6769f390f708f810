"""Others who can say how likely a policy's actions are: references, teachers, other contexts."""

from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Protocol

import torch
from torch import Tensor

from grupo.batch import Batch, Signals
from grupo.policies.measuring import Head, Spoken, measure

Weights = Mapping[str, Tensor]


class Speaker(Protocol):
    """Whoever reads the same tokens with a language model."""

    def spoken(self, batch: Batch) -> Spoken: ...

    def signals(self, batch: Batch, names: Collection[str] = ("logp",)) -> Signals: ...


class Adapted(Protocol):
    """A policy whose module's parameters can be exchanged."""

    @property
    def module(self) -> Any: ...

    def spoken(self, batch: Batch) -> Spoken: ...


def laid(batch: Batch, said: Weights) -> Signals:
    """Numbers of the actions, in the order of the mask, as signals (N, T), 0 where masked."""
    device = next(iter(said.values())).device
    place = tuple(x.to(device) for x in batch.mask.nonzero(as_tuple=True))
    blank = torch.zeros(batch.mask.shape, device=device)
    return Signals({name: blank.index_put(place, x) for name, x in said.items()})


class _Speaks:
    def spoken(self, batch: Batch) -> Spoken:
        raise NotImplementedError

    def signals(self, batch: Batch, names: Collection[str] = ("logp",)) -> Signals:
        return laid(batch, measure(self.spoken(batch), names))


@dataclass(frozen=True)
class Without(_Speaks):
    """A policy with its adapters off."""

    policy: Adapted

    def spoken(self, batch: Batch) -> Spoken:
        return _within(self.policy.module.disable_adapter, self.policy, batch)


@dataclass(frozen=True)
class With(_Speaks):
    """A policy with other weights, which are in its place while it speaks."""

    policy: Adapted
    weights: Weights

    def spoken(self, batch: Batch) -> Spoken:
        return _within(partial(_swapped, self.policy, self.weights), self.policy, batch)


@dataclass(frozen=True)
class Tempered(_Speaks):
    """Another at `factor` times its temperature."""

    speaker: Speaker
    factor: float

    def spoken(self, batch: Batch) -> Spoken:
        said = self.speaker.spoken(batch)
        return replace(said, sampling=said.sampling.at(self.factor))


@dataclass(frozen=True)
class Viewed(_Speaks):
    """Another who read something else before the same actions: the batch's view of that name."""

    speaker: Speaker
    view: str

    def spoken(self, batch: Batch) -> Spoken:
        return self.speaker.spoken(replace(batch, inputs=batch.inputs[f"view/{self.view}"]))


@dataclass(frozen=True)
class _Within:
    """A head that is used within a context."""

    context: Callable[[], AbstractContextManager[Any]]
    head: Head

    def __call__(self, hidden: Tensor) -> Tensor:
        with self.context():
            return self.head(hidden)


def _within(
    context: Callable[[], AbstractContextManager[Any]], policy: Adapted, batch: Batch
) -> Spoken:
    with context():
        said = policy.spoken(batch)
    return replace(said, head=_Within(context, said.head))


@contextmanager
def _swapped(policy: Adapted, weights: Weights) -> Iterator[None]:
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
