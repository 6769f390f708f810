"""Credit over nodes: stretches of actions that several rollouts share, told apart by marks.

Rollouts of a group whose `step/node` is the same at an action took it together; `step/depth` says
how often they had parted before. Those who share a node have equally many actions in it.
"""

import math
from collections.abc import Callable

import torch
from jaxtyping import Bool
from torch import Tensor

from grupo.algo.advantages.token_table import (
    rollout_and_turn,
    scatter_tokens,
    sum_per_rollout,
    token_index,
)
from grupo.algo.advantages.turn_table import combine_labels
from grupo.core import group_ops
from grupo.core.batch import Batch, PerAction
from grupo.core.component import component

ActionMaskFn = Callable[[Batch], Bool[Tensor, "N T"]]  # what it says where masked is not read


@component
class NormalizePerDepth:
    """(v - mean(v)) / (std(v) + eps) among a group's nodes of a depth, v what a node is worth.

    v is the mean x of those who share the node, weighted by exp(`logp_coef` logp), logp that of all
    that a rollout did: among who shares a node it differs by what came after. Li et al.,
    arXiv:2509.06040.

    >>> import torch
    >>> from grupo.testing.batch_sizes import batch_of
    >>> marks = {"step/node": [[1.0, 3.0], [1.0, 4.0], [2.0, 5.0]], "step/depth": [[1.0, 2.0]] * 3}
    >>> batch = make_batch(group=[0, 0, 0], length=[2, 2, 2], signals=marks)
    >>> NormalizePerDepth(eps=0.0)(torch.tensor([0.0, 2.0, 5.0]), batch).T  # of depth 1: 1 and 5
    tensor([[-0.7071, -0.7071,  0.7071],
            [-0.9272, -0.1325,  1.0596]])
    """

    eps: float = 1e-6
    logp_coef: float = 0.0
    required_signals = frozenset({"step/node", "step/depth"})

    def __call__(self, x: Tensor, batch: Batch) -> PerAction:
        rollout, group, node = _node_labels(batch)
        depth = combine_labels(group, batch.signals["step/depth"][batch.mask])
        likely = self.logp_coef * sum_per_rollout(batch.old_logp, batch).to(x)[rollout]
        weight = (likely - group_ops.max(likely, node)).exp()
        v = group_ops.sum(weight * x[rollout], node) / group_ops.sum(weight, node)
        share = 1 / group_ops.count(v, node)
        n = group_ops.sum(share, depth)
        off = v - group_ops.sum(share * v, depth) / n
        var = group_ops.sum(share * off**2, depth) / (n - 1).clamp(min=1)
        return scatter_tokens(off / (var.sqrt() + self.eps), batch)


@component
class DedupTokenMean:
    """Every action counts the same, and once however many rollouts share it.

    Those for which one of `masks` does not hold do not count.

    >>> from grupo.testing.batch_sizes import batch_of
    >>> batch = make_batch(group=[0, 0], length=[2, 2], signals={"step/node": [[1.0, 2.0], [1.0, 3.0]]})
    >>> DedupTokenMean()(batch)  # three actions
    tensor([[0.1667, 0.3333],
            [0.1667, 0.3333]], dtype=torch.float64)
    >>> DedupTokenMean((OutsideWindow(0, 1),))(batch)
    tensor([[0.0000, 0.5000],
            [0.0000, 0.5000]], dtype=torch.float64)
    """

    masks: tuple[ActionMaskFn, ...] = ()
    required_signals = frozenset({"step/node"})

    def __call__(self, batch: Batch) -> PerAction:
        _, group, node = _node_labels(batch)
        action = combine_labels(group, node, token_index(batch)[batch.mask])
        share = 1 / group_ops.count(batch.old_logp[batch.mask], action)
        for where in self.masks:
            share = share * where(batch)[batch.mask]
        return scatter_tokens(share / share.sum().clamp(min=1e-12), batch)


@component
class OutsideWindow:
    """Where an action is none of the `width` that follow on a rollout's first `first`.

    With `first` a schedule others are left out as a run goes.

    >>> from grupo.testing.batch_sizes import batch_of
    >>> OutsideWindow(1, 2)(make_batch(group=[0], length=[4])).tolist()
    [[True, False, False, True]]
    """

    start: float
    width: int

    def __call__(self, batch: Batch) -> Bool[Tensor, "N T"]:
        past = token_index(batch) - math.floor(self.start)
        return (past < 0) | (past >= self.width)


@component
class BestOfSiblings:
    """Where a node is not of its group's last depth, or none that parted there from it is better.

    By advantage; who ties with the best is in. The action by which they parted always is.

    >>> from grupo.testing.batch_sizes import batch_of
    >>> marks = {"step/node": [[1.0, 1.0], [2.0, 2.0]], "step/depth": [[1.0, 1.0]] * 2}
    >>> batch = make_batch(group=[0, 0], length=[2, 2], advantage=[1.0, -1.0], signals=marks)
    >>> BestOfSiblings()(batch).tolist()
    [[True, True], [True, False]]
    """

    required_signals = frozenset({"step/node", "step/depth"})

    def __call__(self, batch: Batch) -> Bool[Tensor, "N T"]:
        return _mask_last_depth(batch, lambda A, group, parent: group_ops.max(A, parent) == A)


@component
class TopBottomLeaves:
    """Where a node is not of its group's last depth, or one of the `n` best or `n` worst of it.

    By advantage; who ties with the last is in. The action by which they parted always is.

    >>> from grupo.testing.batch_sizes import batch_of
    >>> marks = {"step/node": [[1.0] * 2, [2.0] * 2, [3.0] * 2], "step/depth": [[1.0] * 2] * 3}
    >>> batch = make_batch([0] * 3, length=[2] * 3, advantage=[1.0, 0.0, -1.0], signals=marks)
    >>> TopBottomLeaves(1)(batch).tolist()
    [[True, True], [True, False], [True, True]]
    """

    n: int
    required_signals = frozenset({"step/node", "step/depth"})

    def __call__(self, batch: Batch) -> Bool[Tensor, "N T"]:
        return _mask_last_depth(
            batch,
            lambda A, group, parent: (
                group_ops.lowest_share(A, self.n, group) + group_ops.lowest_share(-A, self.n, group)
                > 0
            ),
        )


def _mask_last_depth(
    batch: Batch, keep: Callable[[Tensor, Tensor, Tensor], Tensor]
) -> Bool[Tensor, "N T"]:
    """Everywhere but after the first action of nodes of the last depth that are not kept.

    `kept` is told of each such node its advantage, its group and its parent.
    """
    rollout, group, node = _node_labels(batch)
    depth, number = (
        x[batch.mask].double() for x in (batch.signals["step/depth"], token_index(batch))
    )
    last = depth == group_ops.max(depth, group)
    first = last & (number == group_ops.min(number, node))
    above = group_ops.max(node.masked_fill(last, -1).double(), rollout)
    told = (batch.advantage[batch.mask], group, combine_labels(group, above))
    some = node[first][keep(*(x[first] for x in told))]
    return scatter_tokens(~last | first | torch.isin(node, some), batch)


def _node_labels(batch: Batch) -> tuple[Tensor, Tensor, Tensor]:
    """Rollout, group and node of every action."""
    rollout, _ = rollout_and_turn(batch)
    group = batch.group[rollout]
    return rollout, group, combine_labels(group, batch.signals["step/node"][batch.mask])
