"""The vector space of losses."""

from collections.abc import Mapping
from typing import Any

from torch import Tensor

from grupo.core.batch import Batch, PerAction, Signals
from grupo.core.component import is_piece, parts, piece, show
from grupo.core.schedules import Schedule
from grupo.core.signal_names import is_live


class Loss:
    """One number per action, of what the policy now says; sums and multiples are losses.

    What a loss needs, and how it behaves, follows from what it is made of unless it says otherwise.
    """

    @property
    def needs(self) -> frozenset[str]:
        """Signals read besides `logp`: `entropy` of the policy, `logp@ref` of a reference."""
        return frozenset().union(*map(needs, _made_of(self)))

    @property
    def live(self) -> frozenset[str]:
        """Those of its needs that the policy says anew at each update, with gradient, in `pi`.

        The others are measured once a step and lie in `batch.seen`; so do those of a ratio, a
        weight or bounds that do not say otherwise.
        """
        inside = _made_of(self)
        own = self.needs.difference(*map(needs, inside))
        theirs = (getattr(part, "live", frozenset()) for part in inside)
        return frozenset(filter(is_live, own)).union(*theirs)

    @property
    def couples_rows(self) -> bool:
        """Does one row's loss depend on another row's signals?"""
        return any(getattr(part, "couples_rows", False) for part in _made_of(self))

    @property
    def stops_gradient(self) -> bool:
        """Is its gradient, on purpose, not the slope of its value?"""
        return any(map(stops, _made_of(self)))

    @property
    def follows_advantage(self) -> bool:
        """Is it 0 with no slope, whatever the policy says, where all of a row's advantages are 0?

        Then rows without advantage need not be evaluated.
        """
        return False

    def __call__(self, pi: Signals, batch: Batch) -> PerAction:
        raise NotImplementedError

    def report(self, pi: Signals, batch: Batch) -> Mapping[str, Tensor]:
        """What is worth watching, one number per action by name; its means are logged."""
        return {}

    def __add__(self, other: "Loss") -> "Loss":
        return self if isinstance(other, Nothing) else Sum(self, other)

    def __rmul__(self, factor: float | Schedule) -> "Loss":
        return Scaled(factor, self) if factor else Nothing()


@piece
class Nothing(Loss):
    """0: what 0.0 times a loss is. It reads nothing, and a sum with it is the other loss.

    >>> from grupo.algo.losses import KL, Clip
    >>> Clip() + 0.0 * KL()
    Clip(low=0.2, high=0.2)
    """

    @property
    def follows_advantage(self) -> bool:
        return True

    def __call__(self, pi: Signals, batch: Batch) -> PerAction:
        return pi.logp * 0.0

    def __add__(self, other: Loss) -> Loss:
        return other


@piece
class Sum(Loss):
    """Left + right."""

    left: Loss
    right: Loss

    @property
    def follows_advantage(self) -> bool:
        return self.left.follows_advantage and self.right.follows_advantage

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
    def follows_advantage(self) -> bool:
        return self.loss.follows_advantage

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


def _made_of(loss: Loss) -> list[object]:
    """What lies in a loss's fields."""
    return list(parts(loss).values()) if is_piece(loss) else []


def needs(part: Any) -> frozenset[str]:
    """Signals that a ratio, a weight or bounds say they read; plain functions read none.

    >>> from grupo.algo.ratios import Against, token
    >>> needs(Against("sampler")), needs(token)
    (frozenset({'logp@sampler'}), frozenset())
    """
    return getattr(part, "needs", frozenset())


def stops(part: Any) -> bool:
    """Does a ratio or a weight say that its gradient is not the slope of its value?

    >>> from grupo.algo.ratios import SequenceToken, token
    >>> stops(SequenceToken()), stops(token)
    (True, False)
    """
    return getattr(part, "stops_gradient", False)
