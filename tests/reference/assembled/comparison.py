"""The update of an assembled method, beside that of its reference."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
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
        TaskHistory(tuple(range(len(groups))), tuple(map(tuple, groups))) for groups in case.history
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


def assert_equals_reference(method: Method, reference: Reference) -> None:
    """Fail at the first quantity in which the method's update differs from the reference's.

    Compared are the kept rollouts, the advantages, the number of updates, and for each update the
    loss and its gradient in every number of the policy. After each update all numbers move along
    the gradient, so that the next one sees other ratios.
    """
    case = case_of(method, reference.options)
    method = resolve_schedules(method, reference.options.progress)
    update = reference.update(case)
    kept = np.ones(len(case.reward), bool) if update.kept is None else update.kept
    rows_kept = [r.index for g in method.filter(groups_of(case)) for r in g.rollouts]
    _equal_lists("kept rollouts", rows_kept, np.flatnonzero(kept).tolist())
    batch = select_rollouts(batch_of(case), torch.tensor(rows_kept))
    batch = replace(batch, inputs=torch.arange(len(rows_kept)))
    case = case.select(np.flatnonzero(kept))
    batch = batch.with_advantage(method.advantage)
    if update.advantage is not None:
        advantage = np.asarray(update.advantage, float)
        advantage = advantage if advantage.ndim == 2 else advantage[:, None]
        case = replace(case, advantage=advantage * case.mask)
        _equal("advantages", batch.advantage.numpy(), case.advantage)
    _equal_lists(
        "updates of a step of 64 groups",
        [len(list(method.updates(_many_groups(64), Random(0))))],
        [update.epochs * update.minibatches],
    )
    pi = dict(case.pi)
    for number, minibatch in enumerate(_minibatches(method, batch, update.epochs), 1):
        rows = minibatch.inputs.numpy()
        part = case.select(rows)
        value, expected = gradient(
            lambda moved, part=part: update.loss(part, moved),
            {name: x[rows] for name, x in pi.items()},
        )
        found_value, found = _loss_and_gradients(method, minibatch, pi, rows)
        if not reference.value_differs:
            _equal(f"loss of update {number}", np.array(found_value), np.array(value))
        for name, derivative in expected.items():
            what = f"gradient of update {number} in {name!r}"
            _equal(what, found[name], derivative)
        pi = _moved(pi, rows, expected, reference.options.move)


def _many_groups(number: int) -> Batch:
    return make_batch(group=[*range(number)])


def _minibatches(method: Method, batch: Batch, epochs: int) -> Iterator[Batch]:
    """The minibatches of the method's plan, of which every epoch has each row once."""
    minibatches = list(method.updates(batch, Random(0)))
    seen = torch.cat([m.inputs for m in minibatches]).tolist() if minibatches else []
    _equal_lists("rows of all updates", sorted(seen), sorted([*range(len(batch.mask))] * epochs))
    for minibatch in minibatches:
        groups = minibatch.row_group.unique()
        whole = int(torch.isin(batch.row_group, groups).sum())
        _equal_lists("rows of a minibatch's groups", [len(minibatch.mask)], [whole])
        yield minibatch


def _loss_and_gradients(
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
    if largest == 0:
        return moved
    for name, x in gradients.items():
        values = moved[name][rows] - move * x / largest
        if "logp" in name:
            values = np.minimum(values, HIGHEST_LOGP)
        else:
            values = np.maximum(values, LOWEST)
        moved[name][rows] = values
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
