"""Helpers: what is learned beside the policy because a formula needs it.

A piece that needs one says so with a property `aux_heads`; it then reads the helper's signal by its
name, `pi["value"]` in a loss, `batch.seen["value"]` in a credit. Helpers have an optimizer of their
own, and their gradients never reach the policy.
"""

from grupo.core.component import component


@component
class LinearHead:
    """A number of each state, before its action: a linear function of the policy's features.

    A value, a quality, a log-partition. It says `start` everywhere before it has learned.
    """

    name: str
    initial_value: float = 0.0


@component
class LearnedScalar:
    """One number, the same everywhere."""

    name: str
    initial_value: float = 0.0


AuxHead = LinearHead | LearnedScalar
