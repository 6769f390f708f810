"""The update of an assembled method, beside that of its reference."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from random import Random

import numpy as np
import torch

from grupo.core.batch import Batch, SignalDict, TaskHistory
from grupo.core.schedules import resolve_schedules
from grupo.core.types import Group, Response, Rollout, Task
from grupo.method import Method
from grupo.testing.batches import make_batch
from grupo.testing.property_helpers import select_rollouts
from grupo.training.update.gradients import accumulate_gradients
from tests.reference.assembled.free_policy import FreePolicy
from tests.reference.assembled_numpy.case import Case, CaseOptions, build_case
from tests.reference.assembled_numpy.differentiate import gradient
from tests.reference.assembled_numpy.update import Reference

RELATIVE = 1e-9
HIGHEST_LOGP = -0.02  # log-probabilities stay below it when they are moved
LOWEST = 0.01  # positive signals stay above it


@dataclass(frozen=True)
class Difference(AssertionError):
    """A quantity in which a method and its reference differ."""

    message: str

    def __str__(self) -> str:
        return self.message


def case_of(method: Method, options: CaseOptions) -> Case:
    """The case with the signals and terms that the method requires."""
    requires = method.requires
    return build_case(
        options,
        sorted(requires.signals),
        sorted(requires.recomputed_signals),
        sorted(requires.reward_terms),
    )


def batch_of(case: Case) -> Batch:
    """The case as a batch of the library."""
    rows = torch.arange(len(case.reward))
    history = tuple(
        TaskHistory(tuple(range(len(groups))), tuple(tuple(map(float, g)) for g in groups))
        for groups in case.history
    )
    return Batch.of(
        torch.tensor(case.reward),
        torch.tensor(case.group),
        rollout=rows,
        mask=torch.tensor(case.mask),
        turn=torch.tensor(case.turn),
        old_logp=torch.tensor(case.old_logp),
        signals=SignalDict({name: torch.tensor(x) for name, x in case.signals.items()}),
        reward_terms=SignalDict({name: torch.tensor(x) for name, x in case.terms.items()}),
        history=history,
        inputs=rows,
    )


def groups_of(case: Case) -> list[Group]:
    """The rollouts of the case before they are collated; `Rollout.index` is the row."""
    groups = []
    for number in np.unique(case.group):
        rollouts = []
        for row in np.flatnonzero(case.group == number).tolist():
            columns = np.flatnonzero(case.mask[row])
            response = Response(
                tuple(columns.tolist()), tuple(case.old_logp[row, columns].tolist())
            )
            rollouts.append(
                Rollout(
                    turns=(("?", response),),
                    reward=float(case.reward[row]),
                    reward_terms={name: float(x[row]) for name, x in case.terms.items()},
                    index=row,
                )
            )
        groups.append(Group(Task(f"task {number}", "?"), tuple(rollouts)))
    return groups


@dataclass(frozen=True)
class Step:
    """A step of a method on a case.

    Args:
        method: The method, with numbers in place of schedules.
        rows: The rows of the case that the filter kept.
        batch: Their batch with advantages; its inputs are positions among the kept rows.
        updates: Number of updates of a step of 64 groups.
    """

    method: Method
    rows: list[int]
    batch: Batch
    updates: int

    @classmethod
    def of(cls, method: Method, case: Case, progress: float) -> "Step":
        """The step on a case after a share of the training."""
        method = resolve_schedules(method, progress)
        rows = [r.index for group in method.filter(groups_of(case)) for r in group.rollouts]
        batch = select_rollouts(batch_of(case), torch.tensor(rows))
        batch = replace(batch, inputs=torch.arange(len(rows)))
        plan = list(method.updates(make_batch(group=[*range(64)]), Random(0)))
        return cls(method, rows, batch.with_advantage(method.advantage), len(plan))

    def minibatches(self) -> list[Batch]:
        """The minibatches of the update plan."""
        return list(self.method.updates(self.batch, Random(0)))


@dataclass(frozen=True)
class UpdateTrace:
    """What a method makes of a case.

    Args:
        rows: The rows that the filter kept.
        updates: Number of updates of a step of 64 groups.
        gradients: Of each update, the gradient in every number of the policy.
    """

    rows: list[int]
    updates: int
    gradients: list[dict[str, np.ndarray]]


def trace_of(method: Method, case: Case, options: CaseOptions) -> UpdateTrace:
    """The trace of a method, whose numbers move along its own gradients."""
    step = Step.of(method, case, options.progress)
    pi = {name: x[step.rows] for name, x in case.pi.items()}
    gradients = []
    for minibatch in step.minibatches():
        rows = minibatch.inputs.numpy()
        _, gradient = loss_and_gradients(step.method, minibatch, pi, rows)
        gradients.append(gradient)
        pi = _moved(pi, rows, gradient, options.move)
    return UpdateTrace(step.rows, step.updates, gradients)


def assert_equals_reference(method: Method, reference: Reference) -> None:
    """Fail at the first quantity in which the method's update differs from the reference's.

    Compared are the kept rollouts, the advantages, the number of updates, and for each update the
    loss and its gradient in every number of the policy. After each update all numbers move along
    the gradient, so that the next one sees other ratios.
    """
    case = case_of(method, reference.options)
    update = reference.update(case)
    step = Step.of(method, case, reference.options.progress)
    kept = np.ones(len(case.reward), bool) if update.kept is None else update.kept
    _equal_lists("kept rollouts", step.rows, np.flatnonzero(kept).tolist())
    case = case.select(np.flatnonzero(kept))
    if update.advantage is not None:
        advantage = np.asarray(update.advantage, float)
        advantage = advantage if advantage.ndim == 2 else advantage[:, None]
        case = replace(case, advantage=advantage * case.mask)
        _equal("advantages", step.batch.advantage.numpy(), case.advantage)
    _equal_lists(
        "updates of a step of 64 groups", [step.updates], [update.epochs * update.minibatches]
    )
    minibatches = step.minibatches()
    _check_minibatches(step.batch, minibatches, update.epochs)
    pi = dict(case.pi)
    for number, minibatch in enumerate(minibatches, 1):
        rows = minibatch.inputs.numpy()
        value, expected = gradient(
            partial(update.loss, case.select(rows)), {name: x[rows] for name, x in pi.items()}
        )
        found_value, found = loss_and_gradients(step.method, minibatch, pi, rows)
        if not reference.value_differs:
            _equal(f"loss of update {number}", np.array(found_value), np.array(value))
        for name, derivative in expected.items():
            what = f"gradient of update {number} in {name!r}"
            _equal(what, found[name], derivative)
        pi = _moved(pi, rows, expected, reference.options.move)


def _check_minibatches(batch: Batch, minibatches: Sequence[Batch], epochs: int) -> None:
    """Fail unless every epoch has each row once, and minibatches have whole groups."""
    seen = [row for minibatch in minibatches for row in minibatch.inputs.tolist()]
    _equal_lists("rows of all updates", sorted(seen), sorted([*range(len(batch.mask))] * epochs))
    for minibatch in minibatches:
        groups = minibatch.row_group.unique()
        whole = int(torch.isin(batch.row_group, groups).sum())
        _equal_lists("rows of a minibatch's groups", [len(minibatch.mask)], [whole])


def loss_and_gradients(
    method: Method, minibatch: Batch, pi: Mapping[str, np.ndarray], rows: np.ndarray
) -> tuple[float, dict[str, np.ndarray]]:
    """The loss and its gradients as the trainer computes them."""
    policy = FreePolicy({name: torch.tensor(x) for name, x in pi.items()})
    accumulate_gradients(policy, method, minibatch)
    gradients = {
        name: np.zeros(x.shape) if x.grad is None else x.grad.numpy()
        for name, x in policy.signal_values.items()
    }
    signals = policy.signals(minibatch, [*pi, "entropy"])
    weight = method.aggregation(minibatch)
    loss = (weight * method.loss(signals, minibatch)).sum().item()
    return loss, {name: gradient[rows] for name, gradient in gradients.items()}


def _moved(
    pi: Mapping[str, np.ndarray],
    rows: np.ndarray,
    gradients: Mapping[str, np.ndarray],
    move: float,
) -> dict[str, np.ndarray]:
    """The policy's numbers after a step against the gradient, of which the largest is `move`."""
    largest = max(np.abs(x).max() for x in gradients.values())
    moved = {name: x.copy() for name, x in pi.items()}
    if not 0 < largest < np.inf:
        return moved
    for name, x in gradients.items():
        values = moved[name][rows] - move * x / largest
        is_logp = "logp" in name
        moved[name][rows] = values.clip(
            None if is_logp else LOWEST, HIGHEST_LOGP if is_logp else None
        )
    return moved


def _equal(what: str, found: np.ndarray, expected: np.ndarray) -> None:
    expected = np.broadcast_to(expected, found.shape)
    scale = np.abs(expected).max(initial=0.0)
    error = np.abs(found - expected)
    if not (error <= RELATIVE * max(scale, 1e-3)).all():
        where = tuple(
            int(i)
            for i in np.unravel_index(np.argmax(np.nan_to_num(error, nan=np.inf)), error.shape)
        )
        raise Difference(
            f"{what}: at {where} the method has {found[where]:.12g} and the reference"
            f" {expected[where]:.12g}\nmethod:\n{found}\nreference:\n{expected}"
        )


def _equal_lists(what: str, found: list[int], expected: list[int]) -> None:
    if found != expected:
        raise Difference(f"{what}: the method has {found} and the reference {expected}")
