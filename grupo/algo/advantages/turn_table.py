"""Credit over turns: a table of what rollouts did in each of them, (R, K), and back onto actions.

A turn may lie in several rows of its rollout. Masked actions belong to none; what stands there is
never read.
"""

from dataclasses import replace

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from grupo.algo.advantages.token_table import discounted, later, place, placed, rollout_and_turn
from grupo.core import group_ops
from grupo.core.batch import Batch, PerAction, spread
from grupo.core.component import piece

PerTurn = Float[Tensor, "R K"]


def acted(batch: Batch) -> Bool[Tensor, "R K"]:
    """In which of its turns a rollout acted.

    >>> from grupo.testing.batches import batch_of
    >>> acted(batch_of(group=[0, 0], length=[2, 1], turn=[[0, 1], [0, 0]]))
    tensor([[ True,  True],
            [ True, False]])
    """
    return of_turns(batch.mask.double(), batch) > 0


def of_turns(x: PerAction, batch: Batch) -> PerTurn:
    """Sum over the actions of each turn, in the precision of rewards.

    >>> from grupo.testing.batches import batch_of
    >>> batch = batch_of(group=[0, 0], length=[3, 1], turn=[[0, 0, 1], [0, 0, 0]])
    >>> of_turns(torch.tensor([[1.0, 2.0, 4.0], [8.0, 9.0, 9.0]]), batch).tolist()
    [[3.0, 4.0], [8.0, 0.0]]
    """
    table = batch.reward.new_zeros(_turns(batch))
    return table.index_put(rollout_and_turn(batch), x[batch.mask].to(table), accumulate=True)


def label_of_turns(x: PerAction, batch: Batch) -> PerTurn:
    """The label that all actions of a turn share (their greatest), -inf for turns without any.

    >>> from grupo.testing.batches import batch_of
    >>> batch = batch_of(group=[0], length=[2], turn=[[0, 2]])
    >>> label_of_turns(torch.tensor([[3.0, 5.0]]), batch).tolist()
    [[3.0, -inf, 5.0]]
    """
    lines, width = _turns(batch)
    rollout, turn = rollout_and_turn(batch)
    flat = batch.reward.new_full((lines * width,), float("-inf"))
    labels = x[batch.mask].to(flat)
    return flat.scatter_reduce(0, rollout * width + turn, labels, "amax").reshape(lines, width)


def states(batch: Batch, mark: str = "mark/state") -> PerTurn:
    """The label of the state that each turn was taken in, -inf for turns without any.

    >>> from grupo.testing.batches import batch_of
    >>> said = {"mark/state": [[7.0, 7.0, 4.0]]}
    >>> states(batch_of(group=[0], length=[3], turn=[[0, 0, 1]], seen=said)).tolist()
    [[7.0, 4.0]]
    """
    return label_of_turns(batch.seen[mark], batch)


def in_steps(batch: Batch, mark: str = "mark/step") -> Batch:
    """The same batch, whose turns are the steps that `mark` numbers, from 0 on.

    >>> from grupo.testing.batches import batch_of
    >>> in_steps(batch_of(group=[0], length=[3], seen={"mark/step": [[0.0, 1.0, 1.0]]})).turn
    tensor([[0, 1, 1]])
    """
    return replace(batch, turn=batch.seen[mark].masked_fill(~batch.mask, 0).long())


def returns(batch: Batch, gamma: float, mark: str = "mark/reward") -> PerTurn:
    """R_t = r_t + gamma R_(t+1) over turns, r_t what the turn's actions were paid.

    >>> from grupo.testing.batches import batch_of
    >>> paid = {"mark/reward": [[0.0, 1.0, 4.0]]}
    >>> returns(batch_of(group=[0], length=[3], turn=[[0, 0, 1]], seen=paid), gamma=0.5).tolist()
    [[3.0, 4.0]]
    """
    return discounted(of_turns(batch.seen[mark], batch), gamma)


@piece
class TurnDiscount:
    """x gamma^k for an action after whose turn the rollout took k more.

    >>> from grupo.testing.batches import batch_of
    >>> batch = batch_of(group=[0], length=[3], turn=[[0, 0, 1]])
    >>> TurnDiscount(0.5)(torch.tensor([4.0]), batch).tolist()
    [[2.0, 2.0, 4.0]]
    """

    gamma: float

    def __call__(self, x: Tensor, batch: Batch) -> PerAction:
        k = later(discounted(acted(batch).to(batch.reward), 1.0))
        return spread(x, batch) * to_actions(self.gamma**k, batch)


@piece
class CenterTurns:
    """x, the same for all actions of a turn, less its mean over the group's rollouts in that turn.

    >>> from grupo.testing.batches import batch_of
    >>> batch = batch_of(group=[0, 0], length=[2, 1], turn=[[0, 1], [0, 0]])
    >>> CenterTurns()(torch.tensor([[3.0, 5.0], [1.0, 9.0]]), batch).tolist()
    [[1.0, 0.0], [-1.0, 0.0]]
    """

    def __call__(self, x: Tensor, batch: Batch) -> PerAction:
        table, there = label_of_turns(spread(x, batch), batch), acted(batch)
        place = torch.arange(there.shape[1]).expand_as(table)
        same = alike(batch.group[:, None].expand_as(table), place)
        return to_actions(centred(table, same, there), batch)


def to_actions(x: PerTurn, batch: Batch) -> PerAction:
    """The value of its turn for each action, 0 where masked.

    >>> from grupo.testing.batches import batch_of
    >>> batch = batch_of(group=[0], length=[3], turn=[[0, 0, 1]])
    >>> to_actions(torch.tensor([[5.0, 6.0]]), batch).tolist()
    [[5.0, 5.0, 6.0]]
    """
    return placed(x[rollout_and_turn(batch)], batch)


def at_ends_of_turns(x: PerTurn, batch: Batch) -> PerAction:
    """A number of each turn, paid at its last action.

    >>> from grupo.testing.batches import batch_of
    >>> batch = batch_of(group=[0], length=[3], turn=[[0, 0, 1]])
    >>> at_ends_of_turns(torch.tensor([[5.0, 6.0]]), batch).tolist()
    [[0.0, 5.0, 6.0]]
    """
    order = place(batch).double()
    last = to_actions(label_of_turns(order, batch), batch) == order
    return to_actions(x, batch) * (last & batch.mask)


def alike(*labels: Tensor) -> Tensor:
    """A number for each distinct tuple of labels; all of one shape, which is the answer's.

    >>> alike(torch.tensor([0, 0, 1]), torch.tensor([0.5, 2.0, 0.5]))
    tensor([0, 1, 2])
    """
    tuples = torch.stack([x.flatten().double() for x in labels], dim=1)
    return tuples.unique(dim=0, return_inverse=True)[1].reshape(labels[0].shape)


def centred(x: Tensor, label: Tensor, where: Tensor) -> Tensor:
    """x minus the mean of those of the same label, among the places `where`; 0 elsewhere.

    >>> x, there = torch.tensor([[1.0, 7.0], [0.0, 5.0]]), torch.tensor([[1, 1], [1, 0]]) > 0
    >>> centred(x, torch.tensor([[0, 1], [0, 1]]), there)
    tensor([[ 0.5000,  0.0000],
            [-0.5000,  0.0000]])
    """
    among = x[where] - group_ops.mean(x[where], label[where])
    return torch.zeros_like(x).masked_scatter(where, among)


def turn_mean(batch: Batch) -> PerAction:
    """Every rollout counts the same, within it every turn, and within that every action.

    >>> from grupo.testing.batches import batch_of
    >>> turn_mean(batch_of(group=[0, 0], length=[2, 1], turn=[[0, 1], [0, 0]])).tolist()
    [[0.25, 0.25], [0.5, 0.0]]
    """
    length = of_turns(batch.mask.double(), batch)
    turns = (length > 0).sum(1, keepdim=True).clamp(min=1)
    rollouts = (length > 0).any(1).sum().clamp(min=1)
    share = 1 / (length.clamp(min=1) * turns * rollouts)
    return to_actions(share, batch).to(batch.old_logp)


def turns_alike(batch: Batch) -> PerAction:
    """Every turn of every rollout counts the same, and within it every action.

    >>> from grupo.testing.batches import batch_of
    >>> turns_alike(batch_of(group=[0], length=[3], turn=[[0, 1, 1]])).tolist()
    [[0.5, 0.25, 0.25]]
    """
    length = of_turns(batch.mask.double(), batch)
    share = 1 / (length.clamp(min=1) * (length > 0).sum().clamp(min=1))
    return to_actions(share, batch).to(batch.old_logp)


def _turns(batch: Batch) -> tuple[int, int]:
    """How many rollouts, and how many turns the longest of them took."""
    return len(batch.reward), int(batch.turn.max()) + 1 if batch.turn.numel() else 0
