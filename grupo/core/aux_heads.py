"""Auxiliary heads: parameters trained beside the policy because a formula needs them.

A component that needs a head declares it, `Requires(heads=...)`, and reads its output by name:
`pi["value"]` in a loss, `batch.signals["value"]` in an advantage estimator. Auxiliary heads have
an optimizer of their own, and their gradients never reach the policy.
"""

from grupo.core.component import component


@component
class LinearHead:
    """A linear function of the policy's features in the state before each action.

    Used for a value, a quality or a log-partition.

    Args:
        name: Name of its signal.
        initial_value: Its output in every state before training.
    """

    name: str
    initial_value: float = 0.0


@component
class LearnedScalar:
    """One trained number, the same in every state.

    Args:
        name: Name of its signal.
        initial_value: Its value before training.
    """

    name: str
    initial_value: float = 0.0


AuxHead = LinearHead | LearnedScalar
