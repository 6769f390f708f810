"""Auxiliary heads: parameters trained beside the policy because a formula needs them.

A component that needs a head declares it, `Requires(heads=...)`, and reads its output by name:
`pi["value"]` in a loss, `batch.signals["value"]` in an advantage estimator. Auxiliary heads have
an optimizer of their own. The kind of a head decides what else its gradient trains: nothing
(`LinearHead`), the policy (`DeepHead`) or a model of its own (`OwnModelHead`).
"""

from typing import Protocol, runtime_checkable

from grupo.core.component import component


@component
class LinearHead:
    """A linear function of the policy's features in the state before each action, detached.

    Its gradient does not reach the policy. Used for a value, a quality or a log-partition.

    Args:
        name: Name of its signal.
        initial_value: Its output in every state before training.
    """

    name: str
    initial_value: float = 0.0


@component
class DeepHead:
    """A linear function of the policy's features whose gradient trains the policy, too.

    Used for a reward model, or for a value head that shares its network with the policy.

    Args:
        name: Name of its signal.
        initial_value: Its output in every state before training.
    """

    name: str
    initial_value: float = 0.0


@component
class ExportedHead:
    """A trained head of a model that `grupo export` wrote, such as a reward model.

    Args:
        folder: Folder of the model.
        name: Name of the head.
    """

    folder: str
    name: str = "score"


@component
class OwnModelHead:
    """A linear function of the features of a model of its own; head and model are trained together.

    If the policy trains adapters, this model has adapters, too, and only these are trained.
    Otherwise all its weights are trained. Used for a value model of PPO.

    Args:
        name: Name of its signal.
        initial_value: Its output in every state before training, unless it has a start.
        start: Model and head to start from, such as those of a reward model. Default: a copy of the
            policy before training.
    """

    name: str
    initial_value: float = 0.0
    start: ExportedHead | None = None


@component
class LearnedScalar:
    """One trained number, the same in every state.

    Args:
        name: Name of its signal.
        initial_value: Its value before training.
    """

    name: str
    initial_value: float = 0.0


FeatureHead = LinearHead | DeepHead | OwnModelHead  # on features of a state
AuxHead = FeatureHead | LearnedScalar


@runtime_checkable
class ReadsHeads(Protocol):
    """A component that reads auxiliary heads of the policy when an answer is generated."""

    @property
    def read_heads(self) -> tuple[str, ...]:
        """Names of the heads, which the recipe's method trains."""
        ...
