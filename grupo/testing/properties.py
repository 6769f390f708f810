"""What holds of every method: laws that each of the library's, and your own, is checked against.

A law is called with a method and raises AssertionError that says in words what was violated. All
of them look at one rich float64 batch and at a policy of one free number per action.
"""

from collections.abc import Callable
from copy import deepcopy
from dataclasses import replace

import torch

from grupo.core.batch import Named
from grupo.core.component import walk
from grupo.core.controllers import Controller
from grupo.core.errors import Unmeasured
from grupo.core.schedules import Schedule, at
from grupo.method import Method
from grupo.testing import property_helpers
from grupo.testing.batches import rich_batch

Law = Callable[[Method], None]
CHANGING = (Schedule, Controller)


def padding_changes_nothing(method: Method) -> None:
    """Columns of padding, and a row of nothing else, change neither loss nor gradient."""
    batch = property_helpers.batch_for(method)
    property_helpers.same(method, batch, property_helpers.padded(batch), "padding is added")


def masked_actions_get_no_gradient(method: Method) -> None:
    """Where the policy did not act, weights are 0 and what it says there gets no gradient."""
    batch = property_helpers.batch_for(method).credited(property_helpers.ready(method).credit)
    weight = property_helpers.ready(method).weigh(batch)[~batch.mask].abs().max().item()
    assert weight == 0, f"masked actions weigh up to {weight:.3g}"
    pi = property_helpers.signals(method, batch)
    gradients = torch.autograd.grad(
        property_helpers.total(method, pi, batch),
        [*pi.values()],
        allow_unused=True,
        materialize_grads=True,
    )
    for name, gradient in zip(pi, gradients, strict=True):
        worst = gradient[~batch.mask].abs().max().item()
        assert worst == 0, f"masked actions get a gradient of up to {worst:.3g} through {name!r}"


def order_does_not_matter(method: Method) -> None:
    """Neither the order of rollouts nor the order of rows changes loss or gradient."""
    batch = property_helpers.batch_for(method)
    backwards = torch.arange(len(batch.reward)).flip(0)
    property_helpers.same(
        method, batch, property_helpers.only(batch, backwards), "rollouts are in another order"
    )
    rows = torch.arange(len(batch.mask)).roll(3)
    property_helpers.same(method, batch, batch.take(rows), "rows are in another order")


def numbering_of_groups_does_not_matter(method: Method) -> None:
    """Groups by other numbers give the same loss and gradient."""
    batch = property_helpers.batch_for(method)
    number = torch.arange(len(batch.past)).roll(2)
    past = tuple(batch.past[p] for p in number.argsort().tolist())
    other = replace(batch, group=number[batch.group], past=past)
    property_helpers.same(method, batch, other, "groups have other numbers")


def other_groups_do_not_matter(method: Method) -> None:
    """Credit and unweighted loss of a group are the same without the others.

    Unless a piece of the method says that it `reads_whole_batch`.
    """
    if any(getattr(part, "reads_whole_batch", False) for part in walk(method)):
        return
    batch = property_helpers.batch_for(method)
    advantage, gradient = property_helpers.unweighted(method, batch)
    for p, past in enumerate(batch.past):
        rows = (batch.row_group == p).nonzero()[:, 0]
        alone = property_helpers.only(batch, (batch.group == p).nonzero()[:, 0])
        credited, learned = property_helpers.unweighted(
            method, replace(alone, group=alone.group * 0, past=(past,))
        )
        property_helpers.close(advantage[rows], credited, f"group {p} alone has other advantages")
        property_helpers.close(
            gradient[rows], learned[rows], f"group {p} alone has another gradient"
        )


def equal_rewards_give_finite_gradients(method: Method) -> None:
    """A batch whose rewards are all 0, or all 1, gives a finite loss and finite gradients."""
    batch = property_helpers.batch_for(method)
    for reward in (0.0, 1.0):
        parts = Named({name: x * 0 + reward for name, x in batch.parts.items()})
        flat = replace(batch, reward=batch.reward * 0 + reward, parts=parts)
        loss, gradient = property_helpers.learned(method, property_helpers.reborn(flat))
        assert loss.isfinite(), f"the loss is {loss.item()} when every reward is {reward}"
        assert gradient.isfinite().all(), f"gradients are not finite when all rewards are {reward}"


def inputs_are_left_alone(method: Method) -> None:
    """Neither credit nor weigh nor loss writes into what it is given."""
    batch = property_helpers.batch_for(method)
    before = property_helpers.tensors(batch)
    credited = batch.credited(property_helpers.ready(method).credit)
    property_helpers.unwritten(before, property_helpers.tensors(batch))
    between = property_helpers.tensors(credited)
    pi = property_helpers.signals(method, credited)
    said = {name: x.detach().clone() for name, x in pi.items()}
    property_helpers.total(method, pi, credited)
    property_helpers.unwritten(between, property_helpers.tensors(credited))
    property_helpers.unwritten(said, pi)


def its_needs_are_enough(method: Method) -> None:
    """What `needs` names is all that the method reads besides `logp`."""
    batch = rich_batch(method.needs, sorted(method.reads_parts))
    try:
        property_helpers.learned(method, batch)
    except Unmeasured as error:
        raise AssertionError(f"it reads what `needs` does not name: {error}") from error


def micro_batches_do_not_matter(method: Method) -> None:
    """The gradient is the same however many rows fit in memory at a time."""
    batch = property_helpers.batch_for(method)
    _, whole = property_helpers.learned(method, batch)
    for rows in (1, 2, 5, len(batch.mask)):
        parts = property_helpers.accumulated(property_helpers.ready(method), batch, rows)
        property_helpers.close(whole, parts, f"the gradient is another with {rows} rows at a time")


def two_passes_equal_one(method: Method) -> None:
    """Differentiating the loss in the signals first and the policy after changes no gradient."""
    batch = property_helpers.batch_for(method)
    ready = property_helpers.ready(method)
    _, once = property_helpers.learned(method, batch)
    twice = property_helpers.accumulated(
        ready.but(loss=property_helpers.Coupled(ready.loss)), batch, 2
    )
    property_helpers.close(once, twice, "the gradient is another in two passes")


def gradient_is_the_slope_of_the_loss(method: Method) -> None:
    """Moving what the policy says by a little moves the loss as the gradient says.

    Unless a loss of the method says that it `stops_gradient`.
    """
    if method.loss.stops_gradient:
        return
    batch = property_helpers.batch_for(method)
    _, gradient = property_helpers.learned(method, batch)
    for row, column in property_helpers.PROBES:
        slope = property_helpers.slope(method, batch, row, column)
        off = abs(slope - gradient[row, column].item())
        assert off <= 1e-5 * max(1.0, abs(slope)), (
            f"the slope of the loss at row {row}, column {column} is {slope:.6g}, and the gradient"
            f" says {gradient[row, column].item():.6g}"
        )


def without_advantage_there_is_nothing_to_learn(method: Method) -> None:
    """A loss that says it `follows_advantage` is 0, with no slope, where advantages are 0."""
    loss = property_helpers.ready(method).loss
    if not loss.follows_advantage:
        return
    batch = property_helpers.batch_for(method)
    batch = batch.credited(lambda x, _: x * 0)
    pi = property_helpers.signals(method, batch)
    said = loss(pi, batch)[batch.mask]
    assert (said == 0).all(), f"the loss is up to {said.abs().max():.3g} where advantages are 0"
    for gradient in torch.autograd.grad(said.sum(), [*pi.values()], allow_unused=True):
        worst = 0.0 if gradient is None else gradient.abs().max().item()
        assert worst == 0, f"its slope is up to {worst:.3g} where advantages are 0"


def schedules_are_resolved(method: Method) -> None:
    """At any progress every schedule and controller in the method gives way to its number."""
    for progress in (0.0, 0.5, 1.0):
        left = [part for part in walk(at(method, progress)) if isinstance(part, CHANGING)]
        assert not left, f"schedules that stay when progress is {progress}: {left}"


def compares_by_value_and_prints_fully(method: Method) -> None:
    """A copy is equal, hashes and prints alike, and no address or lambda shows."""
    again = deepcopy(method)
    assert again == method, f"a copy is not equal: {method!r}"
    assert hash(again) == hash(method), f"a copy hashes otherwise: {method!r}"
    assert repr(again) == repr(method), f"a copy prints otherwise: {again!r}, not {method!r}"
    for unnamed in (" at 0x", "<lambda>", "<locals>"):
        assert unnamed not in repr(method), f"it prints with {unnamed.strip()!r}: {method!r}"


LAWS: tuple[Law, ...] = (
    padding_changes_nothing,
    masked_actions_get_no_gradient,
    order_does_not_matter,
    numbering_of_groups_does_not_matter,
    other_groups_do_not_matter,
    equal_rewards_give_finite_gradients,
    inputs_are_left_alone,
    its_needs_are_enough,
    micro_batches_do_not_matter,
    two_passes_equal_one,
    gradient_is_the_slope_of_the_loss,
    without_advantage_there_is_nothing_to_learn,
    schedules_are_resolved,
    compares_by_value_and_prints_fully,
)
