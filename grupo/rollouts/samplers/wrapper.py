"""Base class of samplers that wrap another sampler."""

from typing import Protocol, runtime_checkable

from grupo.core.component import component
from grupo.core.interfaces import TurnStrategy, single_response
from grupo.rollouts.samplers.base import FixedGroupSize, Sampler


@runtime_checkable
class TurnTaking(Protocol):
    """A sampler with a turn strategy."""

    @property
    def turn_strategy(self) -> TurnStrategy: ...


@component
class SamplerWrapper:
    """Adds rollouts, reward terms or step values to the inner sampler's group.

    Args:
        inner: The sampler whose group is extended.
    """

    inner: Sampler

    @property
    def group_size(self) -> int:
        """Number of rollouts of the inner sampler; 0 if it is not known in advance."""
        return self.inner.group_size if isinstance(self.inner, FixedGroupSize) else 0

    @property
    def turn_strategy(self) -> TurnStrategy:
        """The turn strategy of the inner sampler: one response if it has none."""
        return self.inner.turn_strategy if isinstance(self.inner, TurnTaking) else single_response
