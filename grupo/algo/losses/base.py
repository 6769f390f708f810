"""The vector space of losses."""

from collections.abc import Mapping
from typing import Any

from torch import Tensor

from grupo.core.batch import Batch, PerAction, Signals
from grupo.core.component import component, component_fields, is_component, to_code
from grupo.core.schedules import Schedule
from grupo.core.signal_names import is_recomputed


class Loss:
    """One number per action, of what the policy now says; sums and multiples are losses.

    What a loss needs, and how it behaves, follows from what it is made of unless it says otherwise.
    """

    @property
    def required_signals(self) -> frozenset[str]:
        """Signals read besides `logp`: `entropy` of the policy, `logp@ref` of a reference."""
        return frozenset().union(*map(required_signals_of, _field_values(self)))

    @property
    def recomputed_signals(self) -> frozenset[str]:
        """Those of its needs that the policy says anew at each update, with gradient, in `pi`.

        The others are measured once a step and lie in `batch.seen`; so do those of a ratio, a
        weight or bounds that do not say otherwise.
        """
        inside = _field_values(self)
        own = self.required_signals.difference(*map(required_signals_of, inside))
        theirs = (getattr(part, "live", frozenset()) for part in inside)
        return frozenset(filter(is_recomputed, own)).union(*theirs)

    @property
    def couples_rows(self) -> bool:
        """Does one row's loss depend on another row's signals?"""
        return any(getattr(part, "couples_rows", False) for part in _field_values(self))

    @property
    def has_stop_gradient(self) -> bool:
        """Is its gradient, on purpose, not the slope of its value?"""
        return any(map(gradient_is_stopped, _field_values(self)))

    @property
    def zero_if_no_advantage(self) -> bool:
        """Is it 0 with no slope, whatever the policy says, where all of a row's advantages are 0?

        Then rows without advantage need not be evaluated.
        """
        return False

    def __call__(self, pi: Signals, batch: Batch) -> PerAction:
        raise NotImplementedError

    def metrics(self, pi: Signals, batch: Batch) -> Mapping[str, Tensor]:
        """What is worth watching, one number per action by name; its means are logged."""
        return {}

    def __add__(self, other: "Loss") -> "Loss":
        return self if isinstance(other, ZeroLoss) else SumLoss(self, other)

    def __rmul__(self, factor: float | Schedule) -> "Loss":
        return ScaledLoss(factor, self) if factor else ZeroLoss()


@component
class ZeroLoss(Loss):
    """0: what 0.0 times a loss is. It reads nothing, and a sum with it is the other loss.

    >>> from grupo.algo.losses import KL, Clip
    >>> Clip() + 0.0 * KL()
    Clip(clip_low=0.2, clip_high=0.2)
    """

    @property
    def zero_if_no_advantage(self) -> bool:
        return True

    def __call__(self, pi: Signals, batch: Batch) -> PerAction:
        return pi.logp * 0.0

    def __add__(self, other: Loss) -> Loss:
        return other


@component
class SumLoss(Loss):
    """Left + right."""

    left: Loss
    success_threshold: Loss

    @property
    def zero_if_no_advantage(self) -> bool:
        return self.left.zero_if_no_advantage and self.success_threshold.zero_if_no_advantage

    def __call__(self, pi: Signals, batch: Batch) -> PerAction:
        return self.left(pi, batch) + self.success_threshold(pi, batch)

    def metrics(self, pi: Signals, batch: Batch) -> Mapping[str, Tensor]:
        return {**self.left.metrics(pi, batch), **self.success_threshold.metrics(pi, batch)}

    def __repr__(self) -> str:
        return f"{to_code(self.left)} + {to_code(self.success_threshold)}"


@component
class ScaledLoss(Loss):
    """Factor x loss."""

    factor: float | Schedule
    loss: Loss

    @property
    def zero_if_no_advantage(self) -> bool:
        return self.loss.zero_if_no_advantage

    def __call__(self, pi: Signals, batch: Batch) -> PerAction:
        assert not isinstance(self.factor, Schedule), (
            "the trainer puts numbers in place of schedules"
        )
        return self.factor * self.loss(pi, batch)

    def metrics(self, pi: Signals, batch: Batch) -> Mapping[str, Tensor]:
        return self.loss.metrics(pi, batch)

    def __repr__(self) -> str:
        inner = f"({to_code(self.loss)})" if isinstance(self.loss, SumLoss) else to_code(self.loss)
        return f"{to_code(self.factor)} * {inner}"


def _field_values(loss: Loss) -> list[object]:
    """What lies in a loss's fields."""
    return list(component_fields(loss).values()) if is_component(loss) else []


def required_signals_of(component: Any) -> frozenset[str]:
    """Signals that a ratio, a weight or bounds say they read; plain functions read none.

    >>> from grupo.algo.ratios import Against, token
    >>> required_signals_of(Against("sampler")), required_signals_of(token)
    (frozenset({'logp@sampler'}), frozenset())
    """
    return getattr(component, "required_signals", frozenset())


def gradient_is_stopped(component: Any) -> bool:
    """Does a ratio or a weight say that its gradient is not the slope of its value?

    >>> from grupo.algo.ratios import SequenceTokenRatio, token
    >>> gradient_is_stopped(SequenceTokenRatio()), gradient_is_stopped(token)
    (True, False)
    """
    return getattr(component, "has_stop_gradient", False)
