"""Helpers of the property checks: losses and gradients on a rich batch and on variants of it."""

from collections.abc import Mapping
from dataclasses import fields, replace
from functools import cache

import torch
from torch import Tensor

from grupo.algo.losses import Loss
from grupo.core.batch import Batch, PerAction, SignalDict, Signals
from grupo.core.component import component
from grupo.core.requires import Requires
from grupo.core.schedules import resolve_schedules
from grupo.distributed.base import Ranks
from grupo.distributed.exchange import sum_gradients
from grupo.distributed.phase import Phase
from grupo.method import Method
from grupo.testing.batches import TablePolicy, rich_batch
from grupo.testing.thread_ranks import run_ranks
from grupo.training.update.gradients import accumulate_gradients

MIDPOINT = 0.5  # progress at which schedules are resolved
PADDING_COLUMNS = 3
EXTREME_LOG_RATIO = 50.0  # nats; squares of such a ratio are finite in float64
EXTREME_REWARD = 1e6
SINGLE_ROLLOUTS = (1, 2, 17)  # the first may be a demonstration, the second has two rows
PADDING_VALUE = 3.0  # not 0, which reveals a method that reads padding
PROBE_POSITIONS = ((0, 0), (3, 1), (7, 0), (12, 1), (17, 0))  # (row, column) of finite differences


@component
class CoupledRowsLoss(Loss):
    """The same loss, declared to couple rows."""

    loss: Loss

    requires = Requires(coupled_rows=True)

    def __call__(self, pi: Signals, batch: Batch) -> PerAction:
        return self.loss(pi, batch)


def resolved_at_midpoint(method: Method) -> Method:
    """The method midway through a run, with numbers in place of schedules."""
    return resolve_schedules(method, MIDPOINT)


def batch_for(method: Method) -> Batch:
    """The rich batch, with the signals and reward terms that the method requires."""
    return rich_batch(method.requires.all_signals, sorted(method.requires.reward_terms))


@cache
def shape_of_rich_batch() -> tuple[int, int]:
    """Rows and columns of the rich batch."""
    rows, width = rich_batch().mask.shape
    return rows, width


def table_policy(rows_per_microbatch: int = 1_000) -> TablePolicy:
    """A table for all rows of the rich batch, with room for one more row and padding columns."""
    rows, width = shape_of_rich_batch()
    return TablePolicy(rows + 1, width + PADDING_COLUMNS, rows_per_microbatch)


def policy_signals(method: Method, batch: Batch) -> Signals:
    """The signals of the table policy that the method requires."""
    return table_policy().signals(batch, method.requires.all_signals)


def aggregated_loss(method: Method, pi: Signals, batch: Batch) -> Tensor:
    """sum(weight x loss) of a batch with advantages."""
    resolved = resolved_at_midpoint(method)
    return (resolved.aggregation(batch) * resolved.loss(pi, batch)).sum()


def loss_and_gradient(
    method: Method, batch: Batch, policy: TablePolicy | None = None
) -> tuple[Tensor, Tensor]:
    """The aggregated loss and its gradient in the table, all rows at once."""
    policy = policy or table_policy()
    batch = batch.with_advantage(resolved_at_midpoint(method).advantage)
    loss = aggregated_loss(method, policy.signals(batch, method.requires.all_signals), batch)
    return loss.detach(), torch.autograd.grad(loss, policy.table)[0]


def accumulated_gradient(method: Method, batch: Batch, rows_per_microbatch: int) -> Tensor:
    """The gradient in the table that the trainer accumulates over micro-batches."""
    policy = table_policy(rows_per_microbatch)
    accumulate_gradients(policy, method, batch.with_advantage(method.advantage))
    gradient = policy.table.grad
    return torch.zeros_like(policy.table) if gradient is None else gradient


def gradient_of_ranks(method: Method, batch: Batch, num_ranks: int) -> Tensor:
    """The sum of the gradients that ranks accumulate, each in a thread with a policy of its own."""
    batch = batch.with_advantage(method.advantage)

    def accumulate(ranks: Ranks) -> Tensor:
        policy = table_policy(rows_per_microbatch=5)
        accumulate_gradients(policy, method, batch, ranks=ranks)
        sum_gradients(ranks, policy.parameters(), Phase.GRADIENTS_ACCUMULATED)
        gradient = policy.table.grad
        return torch.zeros_like(policy.table) if gradient is None else gradient

    return run_ranks(num_ranks, accumulate)[-1]


def finite_difference(method: Method, batch: Batch, row: int, column: int) -> float:
    """Central difference of the aggregated loss in one parameter of the table."""
    policy = table_policy()
    step = 1e-6
    batch = batch.with_advantage(resolved_at_midpoint(method).advantage)
    losses = []
    for sign in (1, -1):
        with torch.no_grad():
            policy.table[row, column] += sign * step
        pi = policy.signals(batch, method.requires.all_signals)
        losses.append(aggregated_loss(method, pi, batch).item())
        with torch.no_grad():
            policy.table[row, column] -= sign * step
    return (losses[0] - losses[1]) / (2 * step)


def advantage_and_loss_gradient(method: Method, batch: Batch) -> tuple[Tensor, Tensor]:
    """The advantages, and the gradient of the unweighted sum of losses."""
    policy = table_policy()
    resolved = resolved_at_midpoint(method)
    batch = batch.with_advantage(resolved.advantage)
    loss = resolved.loss(policy.signals(batch, method.requires.all_signals), batch)
    return batch.advantage, torch.autograd.grad((loss * batch.mask).sum(), policy.table)[0]


def with_reward_as_advantage(batch: Batch) -> Batch:
    """The batch before an advantage estimator ran: advantages are rewards again."""
    return batch.with_advantage(lambda x, _: x)


def add_padding(batch: Batch) -> Batch:
    """The batch with padding columns and one fully padded row."""
    rows = torch.cat([torch.arange(len(batch.mask)), torch.tensor([0])])
    longer = batch.select_rows(rows)
    last = (torch.arange(len(rows)) == len(rows) - 1)[:, None]
    signals = {name: _pad_columns(x, PADDING_VALUE) for name, x in longer.signals.items()}
    return replace(
        longer,
        mask=_pad_columns(longer.mask & ~last, 0),
        turn=_pad_columns(longer.turn, 0),
        old_logp=_pad_columns(longer.old_logp, PADDING_VALUE),
        advantage=_pad_columns(longer.advantage * ~last, 0.0),
        signals=SignalDict(signals),
        inputs=torch.cat([batch.inputs, batch.inputs.max()[None] + 1]),
    )


def _pad_columns(x: Tensor, value: float) -> Tensor:
    return torch.nn.functional.pad(x, (0, PADDING_COLUMNS), value=value)


def select_rollouts(batch: Batch, rollouts: Tensor) -> Batch:
    """The given rollouts of the batch, in that order; groups keep their numbers."""
    new_index = torch.full_like(batch.group, -1)
    new_index[rollouts] = torch.arange(len(rollouts))
    selected = batch.select_rows((new_index[batch.rollout] >= 0).nonzero()[:, 0])
    return replace(
        selected,
        reward=batch.reward[rollouts],
        group=batch.group[rollouts],
        rollout=new_index[selected.rollout],
        reward_terms=SignalDict({name: x[rollouts] for name, x in batch.reward_terms.items()}),
    )


def without_rollouts(batch: Batch, columns: int) -> Batch:
    """A batch of no rollouts, no groups and the given number of columns."""
    empty = select_rollouts(batch, torch.arange(0))
    signals = {name: x[:, :columns] for name, x in empty.signals.items()}
    return replace(
        empty,
        mask=empty.mask[:, :columns],
        turn=empty.turn[:, :columns],
        old_logp=empty.old_logp[:, :columns],
        advantage=empty.advantage[:, :columns],
        signals=SignalDict(signals),
        history=(),
    )


def with_extreme_ratios(batch: Batch, is_high: Tensor) -> tuple[TablePolicy, Batch]:
    """A policy and a batch whose ratios are near e^50 in rows with `is_high`, else near e^-50.

    Only log-probs are lowered, which keeps them negative: in rows with `is_high` all those of the
    batch, in the others those of the policy.
    """
    policy = table_policy()
    lowered = torch.where(is_high, EXTREME_LOG_RATIO, 0.0).to(batch.old_logp)
    with torch.no_grad():
        policy.table[: len(is_high)] -= EXTREME_LOG_RATIO - lowered
    signals = {name: x - lowered * ("logp" in name) for name, x in batch.signals.items()}
    return policy, replace(batch, old_logp=batch.old_logp - lowered, signals=SignalDict(signals))


def copy_tensors(batch: Batch) -> dict[str, Tensor]:
    """Copies of all tensors of a batch, by name; those of a dictionary as "field name"."""
    copies: dict[str, Tensor] = {}
    for field in fields(batch):
        value = getattr(batch, field.name)
        if isinstance(value, Tensor):
            copies[field.name] = value.detach().clone()
        elif isinstance(value, SignalDict):
            copies |= {f"{field.name} {name}": x.detach().clone() for name, x in value.items()}
    return copies


def assert_not_modified(before: Mapping[str, Tensor], after: Mapping[str, Tensor]) -> None:
    """Fail if a tensor differs from its earlier copy."""
    modified = [name for name, x in before.items() if not torch.equal(x, after[name])]
    assert not modified, f"it wrote into its input: {', '.join(modified)}"


def assert_same_gradient(method: Method, batch: Batch, changed_batch: Batch, change: str) -> None:
    """Fail if loss or gradient differ between two batches.

    Args:
        method: The method to check.
        batch: The original batch.
        changed_batch: A variant that should have the same loss and gradient.
        change: A clause that describes the change, for the message.
    """
    loss, gradient = loss_and_gradient(method, batch)
    changed_loss, changed_gradient = loss_and_gradient(method, changed_batch)
    assert_close(loss, changed_loss, f"the loss changes when {change}")
    assert_close(gradient, changed_gradient, f"the gradient changes when {change}")


def assert_close(x: Tensor, y: Tensor, message: str) -> None:
    """Fail if numbers differ by more than float64 rounding explains."""
    difference = (x - y).abs().max().item()
    scale = max(x.abs().max().item(), 1.0)
    assert difference <= 1e-9 * scale, f"{message}, by up to {difference:.3g}"


def assert_finite(loss: Tensor, gradient: Tensor, condition: str) -> None:
    """Fail if the loss or an entry of the gradient is infinite or NaN; large numbers are fine."""
    assert loss.isfinite(), f"the loss is {loss.item()} when {condition}"
    assert gradient.isfinite().all(), f"gradients are not finite when {condition}"


def assert_zero(loss: Tensor, gradient: Tensor, condition: str) -> None:
    """Fail if the loss or an entry of the gradient is not exactly 0."""
    assert loss == 0, f"the loss is {loss.item():.3g}, not 0, when {condition}"
    assert (gradient == 0).all(), f"gradients are not 0 when {condition}"
