"""The interface of a loss, and sums and multiples of losses."""

from collections.abc import Mapping
from typing import Any

from torch import Tensor

from grupo.core.batch import Batch, PerAction, Signals
from grupo.core.component import component, component_fields, is_component, to_code
from grupo.core.schedules import Schedule
from grupo.core.signal_names import is_recomputed


class Loss:
    """Function `(pi, batch) -> (N, T)`: one loss per token, before weights and mask.

    Losses add (`a + b`) and scale (`0.1 * a`). The properties below describe what a loss reads and
    how it behaves; by default they are derived from the components in its fields.
    """

    @property
    def required_signals(self) -> frozenset[str]:
        """Names of the signals it reads besides `logp`, e.g. `entropy`, `logp@ref`."""
        return frozenset().union(*map(required_signals_of, _field_values(self)))

    @property
    def recomputed_signals(self) -> frozenset[str]:
        """Required signals that are recomputed at each update, in `pi`, with gradient.

        The other required signals are measured once per step, in `batch.signals`. Signals that
        only a ratio, a weight or clip bounds require are measured once per step.
        """
        fields = _field_values(self)
        own = self.required_signals.difference(*map(required_signals_of, fields))
        inner = (getattr(field, "recomputed_signals", frozenset()) for field in fields)
        return frozenset(filter(is_recomputed, own)).union(*inner)

    @property
    def couples_rows(self) -> bool:
        """True if the loss of a row depends on the signals of other rows."""
        return any(getattr(field, "couples_rows", False) for field in _field_values(self))

    @property
    def has_stop_gradient(self) -> bool:
        """True if the gradient deliberately differs from the derivative of the value."""
        return any(map(gradient_is_stopped, _field_values(self)))

    @property
    def zero_if_no_advantage(self) -> bool:
        """True if value and gradient are 0 for rows whose advantages are all 0.

        Such rows need no forward pass.
        """
        return False

    def __call__(self, pi: Signals, batch: Batch) -> PerAction:
        raise NotImplementedError

    def metrics(self, pi: Signals, batch: Batch) -> Mapping[str, Tensor]:
        """Per-token numbers (N, T) by metric name; their means over tokens are logged."""
        return {}

    def __add__(self, other: "Loss") -> "Loss":
        return self if isinstance(other, ZeroLoss) else SumLoss(self, other)

    def __rmul__(self, factor: float | Schedule) -> "Loss":
        return ScaledLoss(factor, self) if factor else ZeroLoss()


@component
class ZeroLoss(Loss):
    """The loss 0, the result of `0.0 * loss`: requires no signals and vanishes in a sum.

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
    """left + right, the result of `left + right`.

    Args:
        left: first loss.
        right: second loss.
    """

    left: Loss
    right: Loss

    @property
    def zero_if_no_advantage(self) -> bool:
        return self.left.zero_if_no_advantage and self.right.zero_if_no_advantage

    def __call__(self, pi: Signals, batch: Batch) -> PerAction:
        return self.left(pi, batch) + self.right(pi, batch)

    def metrics(self, pi: Signals, batch: Batch) -> Mapping[str, Tensor]:
        return {**self.left.metrics(pi, batch), **self.right.metrics(pi, batch)}

    def __repr__(self) -> str:
        return f"{to_code(self.left)} + {to_code(self.right)}"


@component
class ScaledLoss(Loss):
    """factor x loss, the result of `factor * loss`.

    Args:
        factor: a number, or a schedule that the trainer replaces by a number before each step.
        loss: the loss to scale.
    """

    factor: float | Schedule
    loss: Loss

    @property
    def zero_if_no_advantage(self) -> bool:
        return self.loss.zero_if_no_advantage

    def __call__(self, pi: Signals, batch: Batch) -> PerAction:
        assert not isinstance(self.factor, Schedule), "the trainer replaces schedules by numbers"
        return self.factor * self.loss(pi, batch)

    def metrics(self, pi: Signals, batch: Batch) -> Mapping[str, Tensor]:
        return self.loss.metrics(pi, batch)

    def __repr__(self) -> str:
        inner = f"({to_code(self.loss)})" if isinstance(self.loss, SumLoss) else to_code(self.loss)
        return f"{to_code(self.factor)} * {inner}"


def _field_values(loss: Loss) -> list[object]:
    """Values of a loss's dataclass fields."""
    return list(component_fields(loss).values()) if is_component(loss) else []


def required_signals_of(component: Any) -> frozenset[str]:
    """Signals that a ratio, a weight or clip bounds require; a plain function requires none.

    >>> from grupo.algo.ratios import RatioTo, token
    >>> required_signals_of(RatioTo("sampler")), required_signals_of(token)
    (frozenset({'logp@sampler'}), frozenset())
    """
    return getattr(component, "required_signals", frozenset())


def gradient_is_stopped(component: Any) -> bool:
    """True if a ratio or weight declares that its gradient is not the derivative of its value.

    >>> from grupo.algo.ratios import SequenceTokenRatio, token
    >>> gradient_is_stopped(SequenceTokenRatio()), gradient_is_stopped(token)
    (True, False)
    """
    return getattr(component, "has_stop_gradient", False)
