"""Properties that every training method must have; the library checks them for all its methods.

A property is called with a method and raises an AssertionError that describes the violation. All
properties use one rich float64 batch and a policy with one free parameter per action.
"""

from collections.abc import Callable
from dataclasses import replace

import torch

from grupo.method import Method
from grupo.testing.batches import rich_batch
from grupo.testing.limit_properties import (
    empty_batch_gives_zero_loss,
    equal_rewards_give_finite_gradients,
    extreme_ratios_give_finite_gradients,
    extreme_rewards_give_finite_gradients,
    masked_batch_gives_zero_loss,
    single_rollout_gives_finite_gradients,
)
from grupo.testing.property_helpers import (
    PROBE_POSITIONS,
    CoupledRowsLoss,
    accumulated_gradient,
    add_padding,
    advantage_and_loss_gradient,
    aggregated_loss,
    assert_close,
    assert_not_modified,
    assert_same_gradient,
    batch_for,
    copy_tensors,
    finite_difference,
    gradient_of_ranks,
    loss_and_gradient,
    policy_signals,
    resolved_at_midpoint,
    select_rollouts,
)
from grupo.testing.value_properties import (
    copies_are_equal_with_full_repr,
    intervals_state_their_unit,
    schedules_resolve_to_numbers,
)
from grupo.util.errors import MissingSignalError

MethodProperty = Callable[[Method], None]


def padding_changes_nothing(method: Method) -> None:
    """Padding columns and a fully padded row change neither loss nor gradient."""
    batch = batch_for(method)
    assert_same_gradient(method, batch, add_padding(batch), "padding is added")


def masked_actions_get_no_gradient(method: Method) -> None:
    """Masked actions have weight 0, and the signals there get no gradient."""
    resolved = resolved_at_midpoint(method)
    batch = batch_for(method).with_advantage(resolved.advantage)
    weight = resolved.aggregation(batch)[~batch.mask].abs().max().item()
    assert weight == 0, f"masked actions have weights of up to {weight:.3g}"
    pi = policy_signals(method, batch)
    loss = aggregated_loss(method, pi, batch)
    gradients = torch.autograd.grad(loss, [*pi.values()], allow_unused=True, materialize_grads=True)
    for name, gradient in zip(pi, gradients, strict=True):
        largest = gradient[~batch.mask].abs().max().item()
        assert largest == 0, f"masked actions get a gradient of up to {largest:.3g} in {name!r}"


def rollout_and_row_order_do_not_matter(method: Method) -> None:
    """The order of rollouts and the order of rows change neither loss nor gradient."""
    batch = batch_for(method)
    reversed_rollouts = torch.arange(len(batch.reward)).flip(0)
    reordered = select_rollouts(batch, reversed_rollouts)
    assert_same_gradient(method, batch, reordered, "rollouts are reordered")
    rows = torch.arange(len(batch.mask)).roll(3)
    assert_same_gradient(method, batch, batch.select_rows(rows), "rows are reordered")


def group_numbering_does_not_matter(method: Method) -> None:
    """Renumbering the groups changes neither loss nor gradient."""
    batch = batch_for(method)
    number = torch.arange(len(batch.history)).roll(2)
    history = tuple(batch.history[p] for p in number.argsort().tolist())
    renumbered = replace(batch, group=number[batch.group], history=history)
    assert_same_gradient(method, batch, renumbered, "groups are renumbered")


def other_groups_do_not_matter(method: Method) -> None:
    """Advantages and unweighted loss of a group do not depend on the other groups.

    A method with a component that declares `Requires(whole_batch=True)` is exempt.
    """
    if method.requires.whole_batch:
        return
    batch = batch_for(method)
    advantage, gradient = advantage_and_loss_gradient(method, batch)
    for p, history in enumerate(batch.history):
        rows = (batch.row_group == p).nonzero()[:, 0]
        single = select_rollouts(batch, (batch.group == p).nonzero()[:, 0])
        single = replace(single, group=single.group * 0, history=(history,))
        single_advantage, single_gradient = advantage_and_loss_gradient(method, single)
        assert_close(advantage[rows], single_advantage, f"advantages of group {p} alone change")
        assert_close(
            gradient[rows], single_gradient[rows], f"the gradient of group {p} alone changes"
        )


def inputs_are_not_modified(method: Method) -> None:
    """Advantage estimator, aggregation and loss do not write into their inputs."""
    batch = batch_for(method)
    before = copy_tensors(batch)
    estimated = batch.with_advantage(resolved_at_midpoint(method).advantage)
    assert_not_modified(before, copy_tensors(batch))
    before = copy_tensors(estimated)
    pi = policy_signals(method, estimated)
    signals = {name: x.detach().clone() for name, x in pi.items()}
    aggregated_loss(method, pi, estimated)
    assert_not_modified(before, copy_tensors(estimated))
    assert_not_modified(signals, pi)


def required_signals_are_sufficient(method: Method) -> None:
    """The method reads no signals but `logp` and those in its `requires`."""
    batch = rich_batch(method.requires.all_signals, sorted(method.requires.reward_terms))
    try:
        loss_and_gradient(method, batch)
    except MissingSignalError as error:
        message = f"it reads a signal that its `requires` lacks: {error}"
        raise AssertionError(message) from error


def microbatch_size_does_not_matter(method: Method) -> None:
    """The gradient does not depend on the number of rows per micro-batch.

    This holds where the two rows of a rollout are one sequence, too, as after a fork.
    """
    batch = batch_for(method)
    for name, variant in (("rows", batch), ("forks", replace(batch, sequence=batch.rollout))):
        _, gradient = loss_and_gradient(method, variant)
        for rows in (1, 5):
            accumulated = accumulated_gradient(resolved_at_midpoint(method), variant, rows)
            message = f"the gradient changes with {rows} rows at a time ({name})"
            assert_close(gradient, accumulated, message)


def number_of_ranks_does_not_matter(method: Method) -> None:
    """The gradient does not depend on the number of processes that share the rows."""
    batch = batch_for(method)
    _, gradient = loss_and_gradient(method, batch)
    for size in (2, 3):
        summed = gradient_of_ranks(resolved_at_midpoint(method), batch, size)
        assert_close(gradient, summed, f"the gradient changes with {size} ranks")


def two_backward_passes_equal_one(method: Method) -> None:
    """Differentiating the loss in the signals, then these in the parameters, is exact."""
    batch = batch_for(method)
    resolved = resolved_at_midpoint(method)
    _, one_pass = loss_and_gradient(method, batch)
    coupled = resolved.replace(loss=CoupledRowsLoss(resolved.loss))
    two_passes = accumulated_gradient(coupled, batch, 5)
    assert_close(one_pass, two_passes, "the gradient changes in two passes")


def gradient_matches_finite_difference(method: Method) -> None:
    """The gradient equals the finite difference of the loss in single parameters.

    A loss that declares `Requires(surrogate_gradient=True)` is exempt.
    """
    if method.requires.surrogate_gradient:
        return
    batch = batch_for(method)
    _, gradient = loss_and_gradient(method, batch)
    for row, column in PROBE_POSITIONS:
        slope = finite_difference(method, batch, row, column)
        difference = abs(slope - gradient[row, column].item())
        assert difference <= 1e-5 * max(1.0, abs(slope)), (
            f"the slope of the loss at row {row}, column {column} is {slope:.6g}, and the gradient"
            f" is {gradient[row, column].item():.6g}"
        )


def zero_advantage_gives_zero_loss(method: Method) -> None:
    """A loss that declares `zero_if_no_advantage` is 0, without slope, if advantages are 0."""
    loss = resolved_at_midpoint(method).loss
    if not loss.zero_if_no_advantage:
        return
    batch = batch_for(method).with_advantage(lambda x, _: x * 0)
    pi = policy_signals(method, batch)
    values = loss(pi, batch)[batch.mask]
    assert (values == 0).all(), f"the loss is up to {values.abs().max():.3g} where advantages are 0"
    for gradient in torch.autograd.grad(values.sum(), [*pi.values()], allow_unused=True):
        largest = 0.0 if gradient is None else gradient.abs().max().item()
        assert largest == 0, f"its slope is up to {largest:.3g} where advantages are 0"


PROPERTIES: tuple[MethodProperty, ...] = (
    padding_changes_nothing,
    masked_actions_get_no_gradient,
    rollout_and_row_order_do_not_matter,
    group_numbering_does_not_matter,
    other_groups_do_not_matter,
    equal_rewards_give_finite_gradients,
    extreme_ratios_give_finite_gradients,
    extreme_rewards_give_finite_gradients,
    single_rollout_gives_finite_gradients,
    masked_batch_gives_zero_loss,
    empty_batch_gives_zero_loss,
    inputs_are_not_modified,
    required_signals_are_sufficient,
    microbatch_size_does_not_matter,
    number_of_ranks_does_not_matter,
    two_backward_passes_equal_one,
    gradient_matches_finite_difference,
    zero_advantage_gives_zero_loss,
    schedules_resolve_to_numbers,
    copies_are_equal_with_full_repr,
    intervals_state_their_unit,
)
