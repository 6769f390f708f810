"""Helpers: what is learned beside the policy because a formula needs it.

A piece that needs one says so with a property `helpers`; it then reads the helper's signal by its
name, `pi["value"]` in a loss, `batch.seen["value"]` in a credit. Helpers have an optimizer of their
own, and their gradients never reach the policy.
"""

from grupo.core.component import piece


@piece
class Head:
    """A number of each state, before its action: a linear function of the policy's features.

    A value, a quality, a log-partition. It says `start` everywhere before it has learned.
    """

    name: str
    start: float = 0.0


@piece
class Scalar:
    """One number, the same everywhere."""

    name: str
    start: float = 0.0


Helper = Head | Scalar
