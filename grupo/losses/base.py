"""The vector space of losses."""

from collections.abc import Mapping

from torch import Tensor

from grupo.batch import Batch, PerAction, Signals
from grupo.piece import piece, show
from grupo.schedules import Schedule


class Loss:
    """One number per action, of what the policy now says; sums and multiples are losses."""

    @property
    def needs(self) -> frozenset[str]:
        """Signals read besides `logp`: `entropy` of the policy, `logp@ref` of a reference."""
        return frozenset()

    @property
    def couples_rows(self) -> bool:
        """Does one row's loss depend on another row's signals?"""
        return False

    def __call__(self, pi: Signals, batch: Batch) -> PerAction:
        raise NotImplementedError

    def report(self, pi: Signals, batch: Batch) -> Mapping[str, Tensor]:
        """What is worth watching, one number per action by name; its means are logged."""
        return {}

    def __add__(self, other: "Loss") -> "Sum":
        return Sum(self, other)

    def __rmul__(self, factor: float | Schedule) -> "Scaled":
        return Scaled(factor, self)


@piece
class Sum(Loss):
    """Left + right."""

    left: Loss
    right: Loss

    @property
    def needs(self) -> frozenset[str]:
        return self.left.needs | self.right.needs

    @property
    def couples_rows(self) -> bool:
        return self.left.couples_rows or self.right.couples_rows

    def __call__(self, pi: Signals, batch: Batch) -> PerAction:
        return self.left(pi, batch) + self.right(pi, batch)

    def report(self, pi: Signals, batch: Batch) -> Mapping[str, Tensor]:
        return {**self.left.report(pi, batch), **self.right.report(pi, batch)}

    def __repr__(self) -> str:
        return f"{show(self.left)} + {show(self.right)}"


@piece
class Scaled(Loss):
    """Factor x loss."""

    factor: float | Schedule
    loss: Loss

    @property
    def needs(self) -> frozenset[str]:
        return self.loss.needs

    @property
    def couples_rows(self) -> bool:
        return self.loss.couples_rows

    def __call__(self, pi: Signals, batch: Batch) -> PerAction:
        assert not isinstance(self.factor, Schedule), (
            "the trainer puts numbers in place of schedules"
        )
        return self.factor * self.loss(pi, batch)

    def report(self, pi: Signals, batch: Batch) -> Mapping[str, Tensor]:
        return self.loss.report(pi, batch)

    def __repr__(self) -> str:
        inner = f"({show(self.loss)})" if isinstance(self.loss, Sum) else show(self.loss)
        return f"{show(self.factor)} * {inner}"
