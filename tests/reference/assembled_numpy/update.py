"""What a reference states about a method, and the table of all references."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from tests.reference.assembled_numpy.case import Array, Case, CaseOptions

Signals = Mapping[str, Array]
Loss = Callable[[Case, Signals], complex]


@dataclass(frozen=True)
class Update:
    """The update of a step.

    Args:
        advantage: Advantage of each rollout (n,) or action (n, T), of the n kept rollouts in their
            order; None if the loss reads none.
        loss: The loss of a minibatch: `(batch, pi) -> number`, with `batch.advantage` of shape
            (n, T), and `pi["logp"]`. An average over the minibatch is part of it.
        epochs: Passes over the batch in a step.
        minibatches: Updates in a pass.
        kept: True for each rollout that is trained on (N,); None keeps all of them.
    """

    advantage: Array | None
    loss: Loss
    epochs: int = 1
    minibatches: int = 1
    kept: Array | None = None


@dataclass(frozen=True)
class Reference:
    """The reference of a method.

    Args:
        update: Computes the update from a case.
        source: What it was written from.
        options: How its case differs from the usual one.
        code: The method, such as "dapo(max_length=6, overlong_buffer=3)"; "" is the example of
            its record.
        value_differs: Why the value of the loss, unlike its gradient, is a matter of convention;
            "" where it is compared.
        not_compared: Why a planted error goes unseen, by its name in `planted_errors.py`.
    """

    update: Callable[[Case], Update]
    source: str
    options: CaseOptions
    code: str = ""
    value_differs: str = ""
    not_compared: Mapping[str, str] = field(default_factory=dict)


REFERENCES: dict[str, Reference] = {}


def reference(
    name: str,
    source: str,
    *,
    code: str = "",
    value_differs: str = "",
    not_compared: Mapping[str, str] = {},
    **options: object,
) -> Callable[[Callable[[Case], Update]], Callable[[Case], Update]]:
    """Registers a function `case -> Update` as the reference of a method.

    Args:
        name: The method.
        source: What the function was written from: equations, or repository and file.
        code: The method with other arguments than in the example of its record.
        value_differs: Why the value of the loss is not compared.
        not_compared: Errors that this reference cannot see, each with the reason.
        options: Fields of `CaseOptions`.
    """

    def register(update: Callable[[Case], Update]) -> Callable[[Case], Update]:
        other = REFERENCES.get(name)  # a file may be imported under two names
        if other and other.update.__code__.co_filename != update.__code__.co_filename:
            raise ValueError(f"{name} has two references")
        REFERENCES[name] = Reference(
            update, source, replace(CaseOptions(), **options), code, value_differs, not_compared
        )
        return update

    return register
