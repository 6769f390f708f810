"""Methods tried on a rich batch, and the same batch laid out otherwise: what laws look at."""

from collections.abc import Mapping
from dataclasses import fields, replace

import torch
from torch import Tensor

from grupo.algo.losses import Loss
from grupo.core.batch import Batch, Named, PerAction, Signals
from grupo.core.component import piece, walk
from grupo.core.schedules import at
from grupo.method import Method
from grupo.testing.batches import TablePolicy, rich_batch
from grupo.training.update import accumulate

MIDWAY = 0.5  # the progress at which schedules are read
PADDING = 3  # columns
PROBES = ((0, 0), (3, 1), (7, 0), (12, 1), (17, 0))  # actions at which slopes are measured
GARBAGE = 3.0  # what padding holds, so that who reads it is found out


@piece
class Coupled(Loss):
    """The same loss, said to couple rows."""

    loss: Loss

    @property
    def couples_rows(self) -> bool:
        return True

    def __call__(self, pi: Signals, batch: Batch) -> PerAction:
        return self.loss(pi, batch)


def ready(method: Method) -> Method:
    """The method midway through a run: numbers in place of schedules."""
    return at(method, MIDWAY)


def needed(method: Method) -> frozenset[str]:
    """Every signal that any piece of the method says it needs."""
    return frozenset().union(*(getattr(part, "needs", ()) for part in walk(method)))


def batch_for(method: Method) -> Batch:
    """The rich batch, with what the method needs."""
    return rich_batch(needed(method), sorted(method.reads_parts))


def policy(at_a_time: int = 1_000) -> TablePolicy:
    """A table with room for every row of the rich batch, and for a row and columns of padding."""
    rows, width = rich_batch().mask.shape
    return TablePolicy(rows + 1, width + PADDING, at_a_time)


def signals(method: Method, batch: Batch) -> Signals:
    """What the table says of the batch."""
    return policy().signals(batch, needed(method))


def total(method: Method, pi: Signals, batch: Batch) -> Tensor:
    """The loss of a batch that has its credit: the sum of weight x loss."""
    resolved = ready(method)
    return (resolved.weigh(batch) * resolved.loss(pi, batch)).sum()


def learned(method: Method, batch: Batch) -> tuple[Tensor, Tensor]:
    """Loss and gradient of the table, all rows at once."""
    table = policy()
    credited = batch.credited(ready(method).credit)
    loss = total(method, table.signals(credited, needed(method)), credited)
    return loss.detach(), torch.autograd.grad(loss, table.table)[0]


def accumulated(method: Method, batch: Batch, rows: int) -> Tensor:
    """The gradient that the trainer would step with, so many rows at a time."""
    table = policy(rows)
    accumulate(table, method, batch.credited(method.credit))
    gradient = table.table.grad
    return torch.zeros_like(table.table) if gradient is None else gradient


def slope(method: Method, batch: Batch, row: int, column: int) -> float:
    """How the loss moves when one number of the table does, by differences."""
    table, step = policy(), 1e-6
    credited = batch.credited(ready(method).credit)
    losses = []
    for sign in (1, -1):
        with torch.no_grad():
            table.table[row, column] += sign * step
        pi = table.signals(credited, needed(method))
        losses.append(total(method, pi, credited).item())
        with torch.no_grad():
            table.table[row, column] -= sign * step
    return (losses[0] - losses[1]) / (2 * step)


def unweighted(method: Method, batch: Batch) -> tuple[Tensor, Tensor]:
    """Advantages, and the gradient of the sum of the loss before it is weighted."""
    table = policy()
    credited = batch.credited(ready(method).credit)
    loss = ready(method).loss(table.signals(credited, needed(method)), credited)
    return credited.advantage, torch.autograd.grad((loss * batch.mask).sum(), table.table)[0]


def reborn(batch: Batch) -> Batch:
    """The batch as if its rewards had just come: advantages are rewards again."""
    return batch.credited(lambda x, _: x)


def padded(batch: Batch) -> Batch:
    """The batch with columns of padding, and with a row of nothing else."""
    rows = torch.cat([torch.arange(len(batch.mask)), torch.tensor([0])])
    longer = batch.take(rows)
    last = (torch.arange(len(rows)) == len(rows) - 1)[:, None]
    return replace(
        longer,
        mask=_wide(longer.mask & ~last, 0),
        turn=_wide(longer.turn, 0),
        old_logp=_wide(longer.old_logp, GARBAGE),
        advantage=_wide(longer.advantage * ~last, 0.0),
        seen=Named({name: _wide(x, GARBAGE) for name, x in longer.seen.items()}),
        inputs=torch.cat([batch.inputs, batch.inputs.max()[None] + 1]),
    )


def _wide(x: Tensor, value: float) -> Tensor:
    return torch.nn.functional.pad(x, (0, PADDING), value=value)


def only(batch: Batch, keep: Tensor) -> Batch:
    """Some rollouts of the batch, in that order; groups keep their numbers."""
    place = torch.full_like(batch.group, -1)
    place[keep] = torch.arange(len(keep))
    rows = (place[batch.rollout] >= 0).nonzero()[:, 0]
    cut = batch.take(rows)
    return replace(
        cut,
        reward=batch.reward[keep],
        group=batch.group[keep],
        rollout=place[cut.rollout],
        parts=Named({name: x[keep] for name, x in batch.parts.items()}),
    )


def tensors(batch: Batch) -> dict[str, Tensor]:
    """Every tensor of a batch by name, copied."""
    held = {f.name: getattr(batch, f.name) for f in fields(batch)}
    flat = {k: x for k, x in held.items() if isinstance(x, Tensor)}
    inner = {f"{k} {n}": x for k, v in held.items() if isinstance(v, Named) for n, x in v.items()}
    return {name: x.detach().clone() for name, x in {**flat, **inner}.items()}


def unwritten(before: Mapping[str, Tensor], after: Mapping[str, Tensor]) -> None:
    """Refuse tensors that were written into."""
    written = [name for name, x in before.items() if not torch.equal(x, after[name])]
    assert not written, f"it wrote into its input: {', '.join(written)}"


def same(method: Method, batch: Batch, other: Batch, change: str) -> None:
    """Refuse a method that learns something else from `other`."""
    loss, gradient = learned(method, batch)
    other_loss, other_gradient = learned(method, other)
    close(loss, other_loss, f"the loss is another when {change}")
    close(gradient, other_gradient, f"the gradient is another when {change}")


def close(x: Tensor, y: Tensor, message: str) -> None:
    """Refuse numbers that differ by more than rounding in float64 explains."""
    worst = (x - y).abs().max().item()
    scale = max(x.abs().max().item(), 1.0)
    assert worst <= 1e-9 * scale, f"{message}: they differ by {worst:.3g}"
