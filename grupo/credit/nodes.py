"""Credit over nodes: stretches of actions that several rollouts share, told apart by marks.

Rollouts of a group whose `mark/node` is the same at an action took it together; `mark/depth` says
how often they had parted before. Those who share a node have equally many actions in it.
"""

from torch import Tensor

from grupo import groups
from grupo.batch import Batch, PerAction
from grupo.credit.actions import place, placed, rollout_and_turn
from grupo.credit.turns import alike
from grupo.piece import piece


@piece
class AmongDepth:
    """(v - mean(v)) / (std(v) + eps) among a group's nodes of a depth, v a node's mean x.

    Li et al., arXiv:2509.06040.

    >>> import torch
    >>> from grupo.testing import batch_of
    >>> marks = {"mark/node": [[1.0, 3.0], [1.0, 4.0], [2.0, 5.0]], "mark/depth": [[1.0, 2.0]] * 3}
    >>> batch = batch_of(group=[0, 0, 0], length=[2, 2, 2], seen=marks)
    >>> AmongDepth(eps=0.0)(torch.tensor([0.0, 2.0, 5.0]), batch).T  # of depth 1: 1 and 5
    tensor([[-0.7071, -0.7071,  0.7071],
            [-0.9272, -0.1325,  1.0596]])
    """

    eps: float = 1e-6
    needs = frozenset({"mark/node", "mark/depth"})

    def __call__(self, x: Tensor, batch: Batch) -> PerAction:
        rollout, group, node = _nodes(batch)
        depth = alike(group, batch.seen["mark/depth"][batch.mask])
        v, share = groups.mean(x[rollout], node), 1 / groups.count(x[rollout], node)
        n = groups.sum(share, depth)
        off = v - groups.sum(share * v, depth) / n
        var = groups.sum(share * off**2, depth) / (n - 1).clamp(min=1)
        return placed(off / (var.sqrt() + self.eps), batch)


@piece
class EachOnce:
    """Every action counts the same, and once however many rollouts share it.

    >>> from grupo.testing import batch_of
    >>> batch = batch_of(group=[0, 0], length=[2, 2], seen={"mark/node": [[1.0, 2.0], [1.0, 3.0]]})
    >>> EachOnce()(batch)  # three actions
    tensor([[0.1667, 0.3333],
            [0.1667, 0.3333]], dtype=torch.float64)
    """

    needs = frozenset({"mark/node"})

    def __call__(self, batch: Batch) -> PerAction:
        _, group, node = _nodes(batch)
        action = alike(group, node, place(batch)[batch.mask])
        share = 1 / groups.count(batch.old_logp[batch.mask], action)
        return placed(share / share.sum(), batch)


def _nodes(batch: Batch) -> tuple[Tensor, Tensor, Tensor]:
    """Rollout, group and node of every action."""
    rollout, _ = rollout_and_turn(batch)
    group = batch.group[rollout]
    return rollout, group, alike(group, batch.seen["mark/node"][batch.mask])
