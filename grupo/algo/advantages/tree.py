"""Tree advantages: nodes are spans of actions that several rollouts of a group share.

Two signals describe the tree. Rollouts of a group with the same `step/node` at an action took that
action together; `step/depth` counts how often they had branched before it. Rollouts that share a
node have the same number of actions in it.
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
from grupo.core.numbers import NumberOrSchedule, PositiveInt
from grupo.core.requires import Requires

ActionMaskFn = Callable[[Batch], Bool[Tensor, "N T"]]  # its values where masked are not read


@component
class NormalizePerDepth:
    """(v - mean(v)) / (std(v) + eps), (N, T), over the nodes of one depth of a group.

    v is the value of a node: the mean of x over the rollouts that share it, weighted by
    exp(logp_coef log pi_old(rollout)). Mean and std count every node once; std is unbiased.
    Source: Li et al., arXiv:2509.06040.

    Args:
        eps: added to the standard deviation.
        logp_coef: 0 weights the rollouts of a node equally; 1 by their probability.

    >>> import torch
    >>> from grupo.testing.batches import make_batch
    >>> nodes = [[1.0, 3.0], [1.0, 4.0], [2.0, 5.0]]
    >>> signals = {"step/node": nodes, "step/depth": [[1.0, 2.0]] * 3}
    >>> batch = make_batch(group=[0, 0, 0], length=[2, 2, 2], signals=signals)
    >>> x = torch.tensor([0.0, 2.0, 5.0])
    >>> NormalizePerDepth(eps=0.0)(x, batch).T  # v of depth 1: 1 and 5
    tensor([[-0.7071, -0.7071,  0.7071],
            [-0.9272, -0.1325,  1.0596]])
    """

    eps: NumberOrSchedule = 1e-6
    logp_coef: NumberOrSchedule = 0.0

    requires = Requires(signals=("step/node", "step/depth"))

    def __call__(self, x: Tensor, batch: Batch) -> PerAction:
        rollout, group, node = _node_labels(batch)
        depth = combine_labels(group, batch.signals["step/depth"][batch.mask])
        log_weight = self.logp_coef * sum_per_rollout(batch.old_logp, batch).to(x)[rollout]
        weight = (log_weight - group_ops.max(log_weight, node)).exp()
        v = group_ops.sum(weight * x[rollout], node) / group_ops.sum(weight, node)
        share = 1 / group_ops.count(v, node)  # all actions of a node together count as one
        n = group_ops.sum(share, depth)
        centred = v - group_ops.sum(share * v, depth) / n
        var = group_ops.sum(share * centred**2, depth) / (n - 1).clamp(min=1)
        return scatter_tokens(centred / (var.sqrt() + self.eps), batch)


@component
class DedupTokenMean:
    """Aggregation: token mean in which an action shared by n rollouts counts once, 1/n in each.

    Args:
        masks: functions of the batch that return masks of actions (N, T); an action counts if all
            of them are True.

    >>> from grupo.testing.batches import make_batch
    >>> nodes = {"step/node": [[1.0, 2.0], [1.0, 3.0]]}
    >>> batch = make_batch(group=[0, 0], length=[2, 2], signals=nodes)
    >>> DedupTokenMean()(batch)  # three actions
    tensor([[0.1667, 0.3333],
            [0.1667, 0.3333]], dtype=torch.float64)
    >>> DedupTokenMean((OutsideWindow(0, 1),))(batch)
    tensor([[0.0000, 0.5000],
            [0.0000, 0.5000]], dtype=torch.float64)
    """

    masks: tuple[ActionMaskFn, ...] = ()

    requires = Requires(signals=("step/node",))

    def __call__(self, batch: Batch) -> PerAction:
        _, group, node = _node_labels(batch)
        action = combine_labels(group, node, token_index(batch)[batch.mask])
        weight = 1 / group_ops.count(batch.old_logp[batch.mask], action)
        for mask in self.masks:
            weight = weight * mask(batch)[batch.mask]
        return scatter_tokens(weight / weight.sum().clamp(min=1e-12), batch)


@component
class OutsideWindow:
    """Mask (N, T): False for the `width` actions of a rollout from position `start` on.

    Args:
        start: position of the window's first action; a schedule moves the window during a run.
        width: number of actions in the window.

    >>> from grupo.testing.batches import make_batch
    >>> OutsideWindow(1, 2)(make_batch(group=[0], length=[4])).tolist()
    [[True, False, False, True]]
    """

    start: NumberOrSchedule
    width: PositiveInt

    def __call__(self, batch: Batch) -> Bool[Tensor, "N T"]:
        offset = token_index(batch) - math.floor(self.start)
        return (offset < 0) | (offset >= self.width)


@component
class BestOfSiblings:
    """Mask (N, T) that keeps, of the nodes of the last depth, those of the best advantage.

    A node is compared with the nodes that branched from the same parent; ties are kept. Nodes of
    other depths, and the first action of every node of the last depth, are always kept.

    >>> from grupo.testing.batches import make_batch
    >>> signals = {"step/node": [[1.0, 1.0], [2.0, 2.0]], "step/depth": [[1.0, 1.0]] * 2}
    >>> batch = make_batch([0, 0], length=[2, 2], advantage=[1.0, -1.0], signals=signals)
    >>> BestOfSiblings()(batch).tolist()
    [[True, True], [True, False]]
    """

    requires = Requires(signals=("step/node", "step/depth"))

    def __call__(self, batch: Batch) -> Bool[Tensor, "N T"]:
        return _mask_last_depth(batch, lambda A, group, parent: group_ops.max(A, parent) == A)


@component
class TopBottomLeaves:
    """Mask (N, T) that keeps, of a group's nodes of the last depth, the n best and the n worst.

    Nodes are ranked by advantage; ties with the last are kept. Nodes of other depths, and the first
    action of every node of the last depth, are always kept.

    Args:
        n: nodes kept at either end.

    >>> from grupo.testing.batches import make_batch
    >>> nodes = [[1.0] * 2, [2.0] * 2, [3.0] * 2]
    >>> signals = {"step/node": nodes, "step/depth": [[1.0] * 2] * 3}
    >>> batch = make_batch([0] * 3, length=[2] * 3, advantage=[1.0, 0.0, -1.0], signals=signals)
    >>> TopBottomLeaves(1)(batch).tolist()
    [[True, True], [True, False], [True, True]]
    """

    n: PositiveInt

    requires = Requires(signals=("step/node", "step/depth"))

    def __call__(self, batch: Batch) -> Bool[Tensor, "N T"]:
        return _mask_last_depth(batch, self._is_extreme)

    def _is_extreme(self, A: Tensor, group: Tensor, parent: Tensor) -> Tensor:
        lowest = group_ops.lowest_share(A, self.n, group)
        highest = group_ops.lowest_share(-A, self.n, group)
        return lowest + highest > 0


def _mask_last_depth(
    batch: Batch, keep: Callable[[Tensor, Tensor, Tensor], Tensor]
) -> Bool[Tensor, "N T"]:
    """True except after the first action of nodes of the last depth that `keep` rejects.

    Args:
        batch: has advantages and the signals of the tree.
        keep: function of the advantage, the group and the parent of each such node, all (n,).
    """
    rollout, group, node = _node_labels(batch)
    depth = batch.signals["step/depth"][batch.mask].double()
    index = token_index(batch)[batch.mask].double()
    is_last = depth == group_ops.max(depth, group)
    is_first_action = is_last & (index == group_ops.min(index, node))
    parent = group_ops.max(node.masked_fill(is_last, -1).double(), rollout)
    columns = (batch.advantage[batch.mask], group, combine_labels(group, parent))
    kept_nodes = node[is_first_action][keep(*(x[is_first_action] for x in columns))]
    return scatter_tokens(~is_last | is_first_action | torch.isin(node, kept_nodes), batch)


def _node_labels(batch: Batch) -> tuple[Tensor, Tensor, Tensor]:
    """Rollout, group and node of every unmasked action."""
    rollout, _ = rollout_and_turn(batch)
    group = batch.group[rollout]
    return rollout, group, combine_labels(group, batch.signals["step/node"][batch.mask])
