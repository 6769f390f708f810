"""What holds of every method: laws that each of the library's, and your own, is checked against.

A law is called with a method and raises AssertionError that says in words what was violated. All
of them look at one rich float64 batch and at a policy of one free number per action.
"""

from collections.abc import Callable
from copy import deepcopy
from dataclasses import replace

import torch

from grupo.core.batch import SignalDict
from grupo.core.component import walk
from grupo.core.controllers import Controller
from grupo.core.errors import MissingSignalError
from grupo.core.schedules import Schedule, resolve_schedules
from grupo.method import Method
from grupo.testing import property_helpers
from grupo.testing.batches import rich_batch

MethodProperty = Callable[[Method], None]
DYNAMIC_TYPES = (Schedule, Controller)


def padding_changes_nothing(method: Method) -> None:
    """Columns of padding, and a row of nothing else, change neither loss nor gradient."""
    batch = property_helpers.batch_for(method)
    property_helpers.assert_same_gradient(
        method, batch, property_helpers.add_padding(batch), "padding is added"
    )


def masked_actions_get_no_gradient(method: Method) -> None:
    """Where the policy did not act, weights are 0 and what it says there gets no gradient."""
    batch = property_helpers.batch_for(method).with_advantage(
        property_helpers.resolved_at_midpoint(method).advantage
    )
    weight = (
        property_helpers.resolved_at_midpoint(method)
        .aggregation(batch)[~batch.mask]
        .abs()
        .max()
        .item()
    )
    assert weight == 0, f"masked actions weigh up to {weight:.3g}"
    pi = property_helpers.policy_signals(method, batch)
    gradients = torch.autograd.grad(
        property_helpers.aggregated_loss(method, pi, batch),
        [*pi.values()],
        allow_unused=True,
        materialize_grads=True,
    )
    for name, gradient in zip(pi, gradients, strict=True):
        worst = gradient[~batch.mask].abs().max().item()
        assert worst == 0, f"masked actions get a gradient of up to {worst:.3g} through {name!r}"


def rollout_and_row_order_do_not_matter(method: Method) -> None:
    """Neither the order of rollouts nor the order of rows changes loss or gradient."""
    batch = property_helpers.batch_for(method)
    backwards = torch.arange(len(batch.reward)).flip(0)
    property_helpers.assert_same_gradient(
        method,
        batch,
        property_helpers.select_rollouts(batch, backwards),
        "rollouts are in another order",
    )
    rows = torch.arange(len(batch.mask)).roll(3)
    property_helpers.assert_same_gradient(
        method, batch, batch.select_rows(rows), "rows are in another order"
    )


def group_numbering_does_not_matter(method: Method) -> None:
    """Groups by other numbers give the same loss and gradient."""
    batch = property_helpers.batch_for(method)
    number = torch.arange(len(batch.history)).roll(2)
    past = tuple(batch.history[p] for p in number.argsort().tolist())
    other = replace(batch, group=number[batch.group], history=past)
    property_helpers.assert_same_gradient(method, batch, other, "groups have other numbers")


def other_groups_do_not_matter(method: Method) -> None:
    """Credit and unweighted loss of a group are the same without the others.

    Unless a piece of the method says that it `needs_whole_batch`.
    """
    if any(getattr(part, "needs_whole_batch", False) for part in walk(method)):
        return
    batch = property_helpers.batch_for(method)
    advantage, gradient = property_helpers.advantage_and_loss_gradient(method, batch)
    for p, past in enumerate(batch.history):
        rows = (batch.row_group == p).nonzero()[:, 0]
        alone = property_helpers.select_rollouts(batch, (batch.group == p).nonzero()[:, 0])
        credited, learned = property_helpers.advantage_and_loss_gradient(
            method, replace(alone, group=alone.group * 0, history=(past,))
        )
        property_helpers.assert_close(
            advantage[rows], credited, f"group {p} alone has other advantages"
        )
        property_helpers.assert_close(
            gradient[rows], learned[rows], f"group {p} alone has another gradient"
        )


def equal_rewards_give_finite_gradients(method: Method) -> None:
    """A batch whose rewards are all 0, or all 1, gives a finite loss and finite gradients."""
    batch = property_helpers.batch_for(method)
    for reward in (0.0, 1.0):
        parts = SignalDict({name: x * 0 + reward for name, x in batch.reward_terms.items()})
        flat = replace(batch, reward=batch.reward * 0 + reward, reward_terms=parts)
        loss, gradient = property_helpers.loss_and_gradient(
            method, property_helpers.with_reward_as_advantage(flat)
        )
        assert loss.isfinite(), f"the loss is {loss.item()} when every reward is {reward}"
        assert gradient.isfinite().all(), f"gradients are not finite when all rewards are {reward}"


def inputs_are_not_modified(method: Method) -> None:
    """Neither credit nor weigh nor loss writes into what it is given."""
    batch = property_helpers.batch_for(method)
    before = property_helpers.copy_tensors(batch)
    credited = batch.with_advantage(property_helpers.resolved_at_midpoint(method).advantage)
    property_helpers.assert_not_modified(before, property_helpers.copy_tensors(batch))
    between = property_helpers.copy_tensors(credited)
    pi = property_helpers.policy_signals(method, credited)
    said = {name: x.detach().clone() for name, x in pi.items()}
    property_helpers.aggregated_loss(method, pi, credited)
    property_helpers.assert_not_modified(between, property_helpers.copy_tensors(credited))
    property_helpers.assert_not_modified(said, pi)


def required_signals_are_sufficient(method: Method) -> None:
    """What `required_signals` names is all that the method reads besides `logp`."""
    batch = rich_batch(method.required_signals, sorted(method.required_reward_terms))
    try:
        property_helpers.loss_and_gradient(method, batch)
    except MissingSignalError as error:
        raise AssertionError(f"it reads what `needs` does not name: {error}") from error


def microbatch_size_does_not_matter(method: Method) -> None:
    """The gradient is the same however many rows fit in memory at a time."""
    batch = property_helpers.batch_for(method)
    _, whole = property_helpers.loss_and_gradient(method, batch)
    for rows in (1, 2, 5, len(batch.mask)):
        parts = property_helpers.accumulated_gradient(
            property_helpers.resolved_at_midpoint(method), batch, rows
        )
        property_helpers.assert_close(
            whole, parts, f"the gradient is another with {rows} rows at a time"
        )


def two_backward_passes_equal_one(method: Method) -> None:
    """Differentiating the loss in the signals first and the policy after changes no gradient."""
    batch = property_helpers.batch_for(method)
    ready = property_helpers.resolved_at_midpoint(method)
    _, once = property_helpers.loss_and_gradient(method, batch)
    twice = property_helpers.accumulated_gradient(
        ready.replace(loss=property_helpers.CoupledRowsLoss(ready.loss)), batch, 2
    )
    property_helpers.assert_close(once, twice, "the gradient is another in two passes")


def gradient_matches_finite_difference(method: Method) -> None:
    """Moving what the policy says by a little moves the loss as the gradient says.

    Unless a loss of the method says that it `has_stop_gradient`.
    """
    if method.loss.has_stop_gradient:
        return
    batch = property_helpers.batch_for(method)
    _, gradient = property_helpers.loss_and_gradient(method, batch)
    for row, column in property_helpers.PROBE_POSITIONS:
        slope = property_helpers.finite_difference(method, batch, row, column)
        off = abs(slope - gradient[row, column].item())
        assert off <= 1e-5 * max(1.0, abs(slope)), (
            f"the slope of the loss at row {row}, column {column} is {slope:.6g}, and the gradient"
            f" says {gradient[row, column].item():.6g}"
        )


def zero_advantage_gives_zero_loss(method: Method) -> None:
    """A loss that says it `zero_if_no_advantage` is 0, with no slope, where advantages are 0."""
    loss = property_helpers.resolved_at_midpoint(method).loss
    if not loss.zero_if_no_advantage:
        return
    batch = property_helpers.batch_for(method)
    batch = batch.with_advantage(lambda x, _: x * 0)
    pi = property_helpers.policy_signals(method, batch)
    said = loss(pi, batch)[batch.mask]
    assert (said == 0).all(), f"the loss is up to {said.abs().max():.3g} where advantages are 0"
    for gradient in torch.autograd.grad(said.sum(), [*pi.values()], allow_unused=True):
        worst = 0.0 if gradient is None else gradient.abs().max().item()
        assert worst == 0, f"its slope is up to {worst:.3g} where advantages are 0"


def schedules_resolve_to_numbers(method: Method) -> None:
    """At any progress every schedule and controller in the method gives way to its number."""
    for progress in (0.0, 0.5, 1.0):
        left = [
            part
            for part in walk(resolve_schedules(method, progress))
            if isinstance(part, DYNAMIC_TYPES)
        ]
        assert not left, f"schedules that stay when progress is {progress}: {left}"


def copies_are_equal_with_full_repr(method: Method) -> None:
    """A copy is equal, hashes and prints alike, and no address or lambda shows."""
    again = deepcopy(method)
    assert again == method, f"a copy is not equal: {method!r}"
    assert hash(again) == hash(method), f"a copy hashes otherwise: {method!r}"
    assert repr(again) == repr(method), f"a copy prints otherwise: {again!r}, not {method!r}"
    for unnamed in (" at 0x", "<lambda>", "<locals>"):
        assert unnamed not in repr(method), f"it prints with {unnamed.strip()!r}: {method!r}"


PROPERTIES: tuple[MethodProperty, ...] = (
    padding_changes_nothing,
    masked_actions_get_no_gradient,
    rollout_and_row_order_do_not_matter,
    group_numbering_does_not_matter,
    other_groups_do_not_matter,
    equal_rewards_give_finite_gradients,
    inputs_are_not_modified,
    required_signals_are_sufficient,
    microbatch_size_does_not_matter,
    two_backward_passes_equal_one,
    gradient_matches_finite_difference,
    zero_advantage_gives_zero_loss,
    schedules_resolve_to_numbers,
    copies_are_equal_with_full_repr,
)
