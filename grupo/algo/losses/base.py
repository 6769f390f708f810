"""The interface of a loss, and sums and multiples of losses."""

from collections.abc import Mapping

from torch import Tensor

from grupo.core.batch import Batch, PerAction, Signals
from grupo.core.component import component, to_code
from grupo.core.numbers import NumberOrSchedule


class Loss:
    """Function `(pi, batch) -> (N, T)`: one loss per token, before weights and mask.

    Losses add (`a + b`), subtract (`a - b`) and scale (`0.1 * a`). The signals that a loss reads
    besides `logp` are declared in its attribute `requires`: see `grupo.core.requires`.
    """

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

    def __sub__(self, other: "Loss") -> "Loss":
        return self + -1.0 * other

    def __rmul__(self, factor: NumberOrSchedule) -> "Loss":
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
        factor: the factor.
        loss: the loss to scale.
    """

    factor: NumberOrSchedule
    loss: Loss

    @property
    def zero_if_no_advantage(self) -> bool:
        return self.loss.zero_if_no_advantage

    def __call__(self, pi: Signals, batch: Batch) -> PerAction:
        return self.factor * self.loss(pi, batch)

    def metrics(self, pi: Signals, batch: Batch) -> Mapping[str, Tensor]:
        return self.loss.metrics(pi, batch)

    def __repr__(self) -> str:
        inner = f"({to_code(self.loss)})" if isinstance(self.loss, SumLoss) else to_code(self.loss)
        return f"{to_code(self.factor)} * {inner}"
