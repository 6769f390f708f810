"""Credit over turns: a table of what rollouts did in each of them, (R, K), and back onto actions.

A turn may lie in several rows of its rollout. Masked actions belong to none; what stands there is
never read.
"""

from dataclasses import replace

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from grupo.algo.advantages.token_table import (
    discounted_sum,
    rollout_and_turn,
    scatter_tokens,
    shift_left,
    token_index,
)
from grupo.core import group_ops
from grupo.core.batch import Batch, PerAction, broadcast_to_tokens
from grupo.core.component import component

PerTurn = Float[Tensor, "R K"]


def turn_mask(batch: Batch) -> Bool[Tensor, "R K"]:
    """In which of its turns a rollout acted.

    >>> from grupo.testing.batch_sizes import batch_of
    >>> turn_mask(make_batch(group=[0, 0], length=[2, 1], turn=[[0, 1], [0, 0]]))
    tensor([[ True,  True],
            [ True, False]])
    """
    return sum_per_turn(batch.mask.double(), batch) > 0


def sum_per_turn(x: PerAction, batch: Batch) -> PerTurn:
    """Sum over the actions of each turn, in the precision of rewards.

    >>> from grupo.testing.batch_sizes import batch_of
    >>> batch = make_batch(group=[0, 0], length=[3, 1], turn=[[0, 0, 1], [0, 0, 0]])
    >>> sum_per_turn(torch.tensor([[1.0, 2.0, 4.0], [8.0, 9.0, 9.0]]), batch).tolist()
    [[3.0, 4.0], [8.0, 0.0]]
    """
    table = batch.reward.new_zeros(_turn_table_shape(batch))
    return table.index_put(rollout_and_turn(batch), x[batch.mask].to(table), accumulate=True)


def label_per_turn(x: PerAction, batch: Batch) -> PerTurn:
    """The label that all actions of a turn share (their greatest), -inf for turns without any.

    >>> from grupo.testing.batch_sizes import batch_of
    >>> batch = make_batch(group=[0], length=[2], turn=[[0, 2]])
    >>> label_per_turn(torch.tensor([[3.0, 5.0]]), batch).tolist()
    [[3.0, -inf, 5.0]]
    """
    lines, width = _turn_table_shape(batch)
    rollout, turn = rollout_and_turn(batch)
    flat = batch.reward.new_full((lines * width,), float("-inf"))
    labels = x[batch.mask].to(flat)
    return flat.scatter_reduce(0, rollout * width + turn, labels, "amax").reshape(lines, width)


def turn_states(batch: Batch, step_value: str = "step/state") -> PerTurn:
    """The label of the state that each turn was taken in, -inf for turns without any.

    >>> from grupo.testing.batch_sizes import batch_of
    >>> said = {"step/state": [[7.0, 7.0, 4.0]]}
    >>> turn_states(make_batch(group=[0], length=[3], turn=[[0, 0, 1]], signals=said)).tolist()
    [[7.0, 4.0]]
    """
    return label_per_turn(batch.signals[step_value], batch)


def with_steps_as_turns(batch: Batch, step_value: str = "step/index") -> Batch:
    """The same batch, whose turns are the steps that `step_value` numbers, from 0 on.

    >>> from grupo.testing.batch_sizes import batch_of
    >>> with_steps_as_turns(make_batch(group=[0], length=[3], signals={"step/index": [[0.0, 1.0, 1.0]]})).turn
    tensor([[0, 1, 1]])
    """
    return replace(batch, turn=batch.signals[step_value].masked_fill(~batch.mask, 0).long())


def turn_returns(batch: Batch, gamma: float, step_value: str = "step/reward") -> PerTurn:
    """R_t = r_t + gamma R_(t+1) over turns, r_t what the turn's actions were paid.

    >>> from grupo.testing.batch_sizes import batch_of
    >>> paid = {"step/reward": [[0.0, 1.0, 4.0]]}
    >>> turn_returns(make_batch(group=[0], length=[3], turn=[[0, 0, 1]], signals=paid), gamma=0.5).tolist()
    [[3.0, 4.0]]
    """
    return discounted_sum(sum_per_turn(batch.signals[step_value], batch), gamma)


@component
class TurnDiscount:
    """x gamma^k for an action after whose turn the rollout took k more.

    >>> from grupo.testing.batch_sizes import batch_of
    >>> batch = make_batch(group=[0], length=[3], turn=[[0, 0, 1]])
    >>> TurnDiscount(0.5)(torch.tensor([4.0]), batch).tolist()
    [[2.0, 2.0, 4.0]]
    """

    gamma: float

    def __call__(self, x: Tensor, batch: Batch) -> PerAction:
        k = shift_left(discounted_sum(turn_mask(batch).to(batch.reward), 1.0))
        return broadcast_to_tokens(x, batch) * turns_to_tokens(self.gamma**k, batch)


@component
class CenterTurns:
    """x, the same for all actions of a turn, less its mean over the group's rollouts in that turn.

    >>> from grupo.testing.batch_sizes import batch_of
    >>> batch = make_batch(group=[0, 0], length=[2, 1], turn=[[0, 1], [0, 0]])
    >>> CenterTurns()(torch.tensor([[3.0, 5.0], [1.0, 9.0]]), batch).tolist()
    [[1.0, 0.0], [-1.0, 0.0]]
    """

    def __call__(self, x: Tensor, batch: Batch) -> PerAction:
        table, there = label_per_turn(broadcast_to_tokens(x, batch), batch), turn_mask(batch)
        place = torch.arange(there.shape[1]).expand_as(table)
        same = combine_labels(batch.group[:, None].expand_as(table), place)
        return turns_to_tokens(center_by_label(table, same, there), batch)


def turns_to_tokens(x: PerTurn, batch: Batch) -> PerAction:
    """The value of its turn for each action, 0 where masked.

    >>> from grupo.testing.batch_sizes import batch_of
    >>> batch = make_batch(group=[0], length=[3], turn=[[0, 0, 1]])
    >>> turns_to_tokens(torch.tensor([[5.0, 6.0]]), batch).tolist()
    [[5.0, 5.0, 6.0]]
    """
    return scatter_tokens(x[rollout_and_turn(batch)], batch)


def at_turn_ends(x: PerTurn, batch: Batch) -> PerAction:
    """A number of each turn, paid at its last action.

    >>> from grupo.testing.batch_sizes import batch_of
    >>> batch = make_batch(group=[0], length=[3], turn=[[0, 0, 1]])
    >>> at_turn_ends(torch.tensor([[5.0, 6.0]]), batch).tolist()
    [[0.0, 5.0, 6.0]]
    """
    order = token_index(batch).double()
    last = turns_to_tokens(label_per_turn(order, batch), batch) == order
    return turns_to_tokens(x, batch) * (last & batch.mask)


def combine_labels(*labels: Tensor) -> Tensor:
    """A number for each distinct tuple of labels; all of one shape, which is the answer's.

    >>> combine_labels(torch.tensor([0, 0, 1]), torch.tensor([0.5, 2.0, 0.5]))
    tensor([0, 1, 2])
    """
    tuples = torch.stack([x.flatten().double() for x in labels], dim=1)
    return tuples.unique(dim=0, return_inverse=True)[1].reshape(labels[0].shape)


def center_by_label(x: Tensor, label: Tensor, where: Tensor) -> Tensor:
    """x minus the mean of those of the same label, among the places `where`; 0 elsewhere.

    >>> x, there = torch.tensor([[1.0, 7.0], [0.0, 5.0]]), torch.tensor([[1, 1], [1, 0]]) > 0
    >>> center_by_label(x, torch.tensor([[0, 1], [0, 1]]), there)
    tensor([[ 0.5000,  0.0000],
            [-0.5000,  0.0000]])
    """
    among = x[where] - group_ops.mean(x[where], label[where])
    return torch.zeros_like(x).masked_scatter(where, among)


def rollout_turn_mean(batch: Batch) -> PerAction:
    """Every rollout counts the same, within it every turn, and within that every action.

    >>> from grupo.testing.batch_sizes import batch_of
    >>> rollout_turn_mean(make_batch(group=[0, 0], length=[2, 1], turn=[[0, 1], [0, 0]])).tolist()
    [[0.25, 0.25], [0.5, 0.0]]
    """
    length = sum_per_turn(batch.mask.double(), batch)
    turns = (length > 0).sum(1, keepdim=True).clamp(min=1)
    rollouts = (length > 0).any(1).sum().clamp(min=1)
    share = 1 / (length.clamp(min=1) * turns * rollouts)
    return turns_to_tokens(share, batch).to(batch.old_logp)


def batch_turn_mean(batch: Batch) -> PerAction:
    """Every turn of every rollout counts the same, and within it every action.

    >>> from grupo.testing.batch_sizes import batch_of
    >>> batch_turn_mean(make_batch(group=[0], length=[3], turn=[[0, 1, 1]])).tolist()
    [[0.5, 0.25, 0.25]]
    """
    length = sum_per_turn(batch.mask.double(), batch)
    share = 1 / (length.clamp(min=1) * (length > 0).sum().clamp(min=1))
    return turns_to_tokens(share, batch).to(batch.old_logp)


def _turn_table_shape(batch: Batch) -> tuple[int, int]:
    """How many rollouts, and how many turns the longest of them took."""
    return len(batch.reward), int(batch.turn.max()) + 1 if batch.turn.numel() else 0
