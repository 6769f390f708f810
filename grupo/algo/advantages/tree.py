"""Credit over nodes: stretches of actions that several rollouts share, told apart by marks.

Rollouts of a group whose `mark/node` is the same at an action took it together; `mark/depth` says
how often they had parted before. Those who share a node have equally many actions in it.
"""

import math
from collections.abc import Callable

import torch
from jaxtyping import Bool
from torch import Tensor

from grupo.algo.advantages.token_table import place, placed, rollout_and_turn, total
from grupo.algo.advantages.turn_table import alike
from grupo.core import group_ops
from grupo.core.batch import Batch, PerAction
from grupo.core.component import piece

Where = Callable[[Batch], Bool[Tensor, "N T"]]  # what it says where masked is not read


@piece
class AmongDepth:
    """(v - mean(v)) / (std(v) + eps) among a group's nodes of a depth, v what a node is worth.

    v is the mean x of those who share the node, weighted by exp(`fusion` logp), logp that of all
    that a rollout did: among who shares a node it differs by what came after. Li et al.,
    arXiv:2509.06040.

    >>> import torch
    >>> from grupo.testing.batches import batch_of
    >>> marks = {"mark/node": [[1.0, 3.0], [1.0, 4.0], [2.0, 5.0]], "mark/depth": [[1.0, 2.0]] * 3}
    >>> batch = batch_of(group=[0, 0, 0], length=[2, 2, 2], seen=marks)
    >>> AmongDepth(eps=0.0)(torch.tensor([0.0, 2.0, 5.0]), batch).T  # of depth 1: 1 and 5
    tensor([[-0.7071, -0.7071,  0.7071],
            [-0.9272, -0.1325,  1.0596]])
    """

    eps: float = 1e-6
    fusion: float = 0.0
    needs = frozenset({"mark/node", "mark/depth"})

    def __call__(self, x: Tensor, batch: Batch) -> PerAction:
        rollout, group, node = _nodes(batch)
        depth = alike(group, batch.seen["mark/depth"][batch.mask])
        likely = self.fusion * total(batch.old_logp, batch).to(x)[rollout]
        weight = (likely - group_ops.max(likely, node)).exp()
        v = group_ops.sum(weight * x[rollout], node) / group_ops.sum(weight, node)
        share = 1 / group_ops.count(v, node)
        n = group_ops.sum(share, depth)
        off = v - group_ops.sum(share * v, depth) / n
        var = group_ops.sum(share * off**2, depth) / (n - 1).clamp(min=1)
        return placed(off / (var.sqrt() + self.eps), batch)


@piece
class EachOnce:
    """Every action counts the same, and once however many rollouts share it.

    Those for which one of `among` does not hold do not count.

    >>> from grupo.testing.batches import batch_of
    >>> batch = batch_of(group=[0, 0], length=[2, 2], seen={"mark/node": [[1.0, 2.0], [1.0, 3.0]]})
    >>> EachOnce()(batch)  # three actions
    tensor([[0.1667, 0.3333],
            [0.1667, 0.3333]], dtype=torch.float64)
    >>> EachOnce((Outside(0, 1),))(batch)
    tensor([[0.0000, 0.5000],
            [0.0000, 0.5000]], dtype=torch.float64)
    """

    among: tuple[Where, ...] = ()
    needs = frozenset({"mark/node"})

    def __call__(self, batch: Batch) -> PerAction:
        _, group, node = _nodes(batch)
        action = alike(group, node, place(batch)[batch.mask])
        share = 1 / group_ops.count(batch.old_logp[batch.mask], action)
        for where in self.among:
            share = share * where(batch)[batch.mask]
        return placed(share / share.sum().clamp(min=1e-12), batch)


@piece
class Outside:
    """Where an action is none of the `width` that follow on a rollout's first `first`.

    With `first` a schedule others are left out as a run goes.

    >>> from grupo.testing.batches import batch_of
    >>> Outside(1, 2)(batch_of(group=[0], length=[4])).tolist()
    [[True, False, False, True]]
    """

    first: float
    width: int

    def __call__(self, batch: Batch) -> Bool[Tensor, "N T"]:
        past = place(batch) - math.floor(self.first)
        return (past < 0) | (past >= self.width)


@piece
class BestOfSiblings:
    """Where a node is not of its group's last depth, or none that parted there from it is better.

    By advantage; who ties with the best is in. The action by which they parted always is.

    >>> from grupo.testing.batches import batch_of
    >>> marks = {"mark/node": [[1.0, 1.0], [2.0, 2.0]], "mark/depth": [[1.0, 1.0]] * 2}
    >>> batch = batch_of(group=[0, 0], length=[2, 2], advantage=[1.0, -1.0], seen=marks)
    >>> BestOfSiblings()(batch).tolist()
    [[True, True], [True, False]]
    """

    needs = frozenset({"mark/node", "mark/depth"})

    def __call__(self, batch: Batch) -> Bool[Tensor, "N T"]:
        return _late(batch, lambda A, group, parent: group_ops.max(A, parent) == A)


@piece
class Extremes:
    """Where a node is not of its group's last depth, or one of the `n` best or `n` worst of it.

    By advantage; who ties with the last is in. The action by which they parted always is.

    >>> from grupo.testing.batches import batch_of
    >>> marks = {"mark/node": [[1.0] * 2, [2.0] * 2, [3.0] * 2], "mark/depth": [[1.0] * 2] * 3}
    >>> batch = batch_of([0] * 3, length=[2] * 3, advantage=[1.0, 0.0, -1.0], seen=marks)
    >>> Extremes(1)(batch).tolist()
    [[True, True], [True, False], [True, True]]
    """

    n: int
    needs = frozenset({"mark/node", "mark/depth"})

    def __call__(self, batch: Batch) -> Bool[Tensor, "N T"]:
        return _late(
            batch,
            lambda A, group, parent: (
                group_ops.lowest(A, self.n, group) + group_ops.lowest(-A, self.n, group) > 0
            ),
        )


def _late(batch: Batch, kept: Callable[[Tensor, Tensor, Tensor], Tensor]) -> Bool[Tensor, "N T"]:
    """Everywhere but after the first action of nodes of the last depth that are not kept.

    `kept` is told of each such node its advantage, its group and its parent.
    """
    rollout, group, node = _nodes(batch)
    depth, number = (x[batch.mask].double() for x in (batch.seen["mark/depth"], place(batch)))
    last = depth == group_ops.max(depth, group)
    first = last & (number == group_ops.min(number, node))
    above = group_ops.max(node.masked_fill(last, -1).double(), rollout)
    told = (batch.advantage[batch.mask], group, alike(group, above))
    some = node[first][kept(*(x[first] for x in told))]
    return placed(~last | first | torch.isin(node, some), batch)


def _nodes(batch: Batch) -> tuple[Tensor, Tensor, Tensor]:
    """Rollout, group and node of every action."""
    rollout, _ = rollout_and_turn(batch)
    group = batch.group[rollout]
    return rollout, group, alike(group, batch.seen["mark/node"][batch.mask])
