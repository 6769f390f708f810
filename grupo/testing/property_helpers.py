"""Methods tried on a rich batch, and the same batch laid out otherwise: what laws look at."""

from collections.abc import Mapping
from dataclasses import fields, replace

import torch
from torch import Tensor

from grupo.algo.losses import Loss
from grupo.core.batch import Batch, PerAction, SignalDict, Signals
from grupo.core.component import component, walk
from grupo.core.schedules import resolve_schedules
from grupo.method import Method
from grupo.testing.batches import TablePolicy, rich_batch
from grupo.training.update import accumulate_gradients

MIDPOINT = 0.5  # the progress at which schedules are read
PADDING_COLUMNS = 3  # columns
PROBE_POSITIONS = ((0, 0), (3, 1), (7, 0), (12, 1), (17, 0))  # actions at which slopes are measured
PADDING_VALUE = 3.0  # what padding holds, so that who reads it is found out


@component
class CoupledRowsLoss(Loss):
    """The same loss, said to couple rows."""

    loss: Loss

    @property
    def couples_rows(self) -> bool:
        return True

    def __call__(self, pi: Signals, batch: Batch) -> PerAction:
        return self.loss(pi, batch)


def resolved_at_midpoint(method: Method) -> Method:
    """The method midway through a run: numbers in place of schedules."""
    return resolve_schedules(method, MIDPOINT)


def all_required_signals(method: Method) -> frozenset[str]:
    """Every signal that any piece of the method says it needs."""
    return frozenset().union(*(getattr(part, "required_signals", ()) for part in walk(method)))


def batch_for(method: Method) -> Batch:
    """The rich batch, with what the method needs."""
    return rich_batch(all_required_signals(method), sorted(method.required_reward_terms))


def table_policy(rows_per_microbatch: int = 1_000) -> TablePolicy:
    """A table with room for every row of the rich batch, and for a row and columns of padding."""
    rows, width = rich_batch().mask.shape
    return TablePolicy(rows + 1, width + PADDING_COLUMNS, rows_per_microbatch)


def policy_signals(method: Method, batch: Batch) -> Signals:
    """What the table says of the batch."""
    return table_policy().signals(batch, all_required_signals(method))


def aggregated_loss(method: Method, pi: Signals, batch: Batch) -> Tensor:
    """The loss of a batch that has its credit: the sum of weight x loss."""
    resolved = resolved_at_midpoint(method)
    return (resolved.aggregation(batch) * resolved.loss(pi, batch)).sum()


def loss_and_gradient(method: Method, batch: Batch) -> tuple[Tensor, Tensor]:
    """Loss and gradient of the table, all rows at once."""
    table = table_policy()
    credited = batch.with_advantage(resolved_at_midpoint(method).advantage)
    loss = aggregated_loss(method, table.signals(credited, all_required_signals(method)), credited)
    return loss.detach(), torch.autograd.grad(loss, table.table)[0]


def accumulated_gradient(method: Method, batch: Batch, rows_per_microbatch: int) -> Tensor:
    """The gradient that the trainer would step with, so many rows at a time."""
    table = table_policy(rows_per_microbatch)
    accumulate_gradients(table, method, batch.with_advantage(method.advantage))
    gradient = table.table.grad
    return torch.zeros_like(table.table) if gradient is None else gradient


def finite_difference(method: Method, batch: Batch, row: int, column: int) -> float:
    """How the loss moves when one number of the table does, by differences."""
    table, step = table_policy(), 1e-6
    credited = batch.with_advantage(resolved_at_midpoint(method).advantage)
    losses = []
    for sign in (1, -1):
        with torch.no_grad():
            table.table[row, column] += sign * step
        pi = table.signals(credited, all_required_signals(method))
        losses.append(aggregated_loss(method, pi, credited).item())
        with torch.no_grad():
            table.table[row, column] -= sign * step
    return (losses[0] - losses[1]) / (2 * step)


def advantage_and_loss_gradient(method: Method, batch: Batch) -> tuple[Tensor, Tensor]:
    """Advantages, and the gradient of the sum of the loss before it is weighted."""
    table = table_policy()
    credited = batch.with_advantage(resolved_at_midpoint(method).advantage)
    loss = resolved_at_midpoint(method).loss(
        table.signals(credited, all_required_signals(method)), credited
    )
    return credited.advantage, torch.autograd.grad((loss * batch.mask).sum(), table.table)[0]


def with_reward_as_advantage(batch: Batch) -> Batch:
    """The batch as if its rewards had just come: advantages are rewards again."""
    return batch.with_advantage(lambda x, _: x)


def add_padding(batch: Batch) -> Batch:
    """The batch with columns of padding, and with a row of nothing else."""
    rows = torch.cat([torch.arange(len(batch.mask)), torch.tensor([0])])
    longer = batch.select_rows(rows)
    last = (torch.arange(len(rows)) == len(rows) - 1)[:, None]
    return replace(
        longer,
        mask=_pad_columns(longer.mask & ~last, 0),
        turn=_pad_columns(longer.turn, 0),
        old_logp=_pad_columns(longer.old_logp, PADDING_VALUE),
        advantage=_pad_columns(longer.advantage * ~last, 0.0),
        signals=SignalDict(
            {name: _pad_columns(x, PADDING_VALUE) for name, x in longer.signals.items()}
        ),
        inputs=torch.cat([batch.inputs, batch.inputs.max()[None] + 1]),
    )


def _pad_columns(x: Tensor, value: float) -> Tensor:
    return torch.nn.functional.pad(x, (0, PADDING_COLUMNS), value=value)


def select_rollouts(batch: Batch, rollouts: Tensor) -> Batch:
    """Some rollouts of the batch, in that order; groups keep their numbers."""
    place = torch.full_like(batch.group, -1)
    place[rollouts] = torch.arange(len(rollouts))
    rows = (place[batch.rollout] >= 0).nonzero()[:, 0]
    cut = batch.select_rows(rows)
    return replace(
        cut,
        reward=batch.reward[rollouts],
        group=batch.group[rollouts],
        rollout=place[cut.rollout],
        reward_terms=SignalDict({name: x[rollouts] for name, x in batch.reward_terms.items()}),
    )


def copy_tensors(batch: Batch) -> dict[str, Tensor]:
    """Every tensor of a batch by name, copied."""
    held = {f.name: getattr(batch, f.name) for f in fields(batch)}
    flat = {k: x for k, x in held.items() if isinstance(x, Tensor)}
    inner = {
        f"{k} {n}": x for k, v in held.items() if isinstance(v, SignalDict) for n, x in v.items()
    }
    return {name: x.detach().clone() for name, x in {**flat, **inner}.items()}


def assert_not_modified(before: Mapping[str, Tensor], after: Mapping[str, Tensor]) -> None:
    """Refuse tensors that were written into."""
    written = [name for name, x in before.items() if not torch.equal(x, after[name])]
    assert not written, f"it wrote into its input: {', '.join(written)}"


def assert_same_gradient(method: Method, batch: Batch, changed_batch: Batch, change: str) -> None:
    """Refuse a method that learns something else from `other`."""
    loss, gradient = loss_and_gradient(method, batch)
    other_loss, other_gradient = loss_and_gradient(method, changed_batch)
    assert_close(loss, other_loss, f"the loss is another when {change}")
    assert_close(gradient, other_gradient, f"the gradient is another when {change}")


def assert_close(x: Tensor, y: Tensor, message: str) -> None:
    """Refuse numbers that differ by more than rounding in float64 explains."""
    worst = (x - y).abs().max().item()
    scale = max(x.abs().max().item(), 1.0)
    assert worst <= 1e-9 * scale, f"{message}: they differ by {worst:.3g}"
