"""Turn tables (R, K): one value per turn of each rollout, and the way back to actions (N, T).

A turn may lie in several rows of its rollout. Masked actions belong to no turn, and their values
are never read.
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
from grupo.core.numbers import Fraction

PerTurn = Float[Tensor, "R K"]


def turn_mask(batch: Batch) -> Bool[Tensor, "R K"]:
    """True for the turns in which a rollout has unmasked actions.

    >>> from grupo.testing.batches import make_batch
    >>> turn_mask(make_batch(group=[0, 0], length=[2, 1], turn=[[0, 1], [0, 0]]))
    tensor([[ True,  True],
            [ True, False]])
    """
    return sum_per_turn(batch.mask.double(), batch) > 0


def sum_per_turn(x: PerAction, batch: Batch) -> PerTurn:
    """Sum of `x` (N, T) over the unmasked actions of each turn, (R, K), in the dtype of rewards.

    >>> from grupo.testing.batches import make_batch
    >>> batch = make_batch(group=[0, 0], length=[3, 1], turn=[[0, 0, 1], [0, 0, 0]])
    >>> sum_per_turn(torch.tensor([[1.0, 2.0, 4.0], [8.0, 9.0, 9.0]]), batch).tolist()
    [[3.0, 4.0], [8.0, 0.0]]
    """
    table = batch.reward.new_zeros(_turn_table_shape(batch))
    rollout, turn = rollout_and_turn(batch)
    index = rollout * table.shape[1] + turn
    # unlike index_put, index_add adds in order on a CPU, so that runs repeat
    return table.flatten().index_add(0, index, x[batch.mask].to(table)).view_as(table)


def label_per_turn(x: PerAction, batch: Batch) -> PerTurn:
    """Label of each turn, the maximum of `x` (N, T) over its actions, (R, K); -inf without any.

    All actions of a turn are expected to have the same label.

    >>> from grupo.testing.batches import make_batch
    >>> batch = make_batch(group=[0], length=[2], turn=[[0, 2]])
    >>> label_per_turn(torch.tensor([[3.0, 5.0]]), batch).tolist()
    [[3.0, -inf, 5.0]]
    """
    num_rollouts, num_turns = _turn_table_shape(batch)
    rollout, turn = rollout_and_turn(batch)
    flat = batch.reward.new_full((num_rollouts * num_turns,), float("-inf"))
    flat = flat.scatter_reduce(0, rollout * num_turns + turn, x[batch.mask].to(flat), "amax")
    return flat.reshape(num_rollouts, num_turns)


def turn_states(batch: Batch, step_value: str = "step/state") -> PerTurn:
    """Label of the environment state in which each turn was taken, (R, K); -inf without actions.

    Args:
        batch: has the signal `step_value`, which the environment gives for each action.
        step_value: name of that signal.

    >>> from grupo.testing.batches import make_batch
    >>> states = {"step/state": [[7.0, 7.0, 4.0]]}
    >>> batch = make_batch(group=[0], length=[3], turn=[[0, 0, 1]], signals=states)
    >>> turn_states(batch).tolist()
    [[7.0, 4.0]]
    """
    return label_per_turn(batch.signals[step_value], batch)


def with_steps_as_turns(batch: Batch, step_value: str = "step/index") -> Batch:
    """Copy of the batch whose turns are the reasoning steps numbered by a signal, from 0.

    Args:
        batch: has the signal `step_value`.
        step_value: name of the signal with the step number of each action.

    >>> from grupo.testing.batches import make_batch
    >>> batch = make_batch(group=[0], length=[3], signals={"step/index": [[0.0, 1.0, 1.0]]})
    >>> with_steps_as_turns(batch).turn
    tensor([[0, 1, 1]])
    """
    return replace(batch, turn=batch.signals[step_value].masked_fill(~batch.mask, 0).long())


def turn_returns(batch: Batch, gamma: float, step_value: str = "step/reward") -> PerTurn:
    """R_t = r_t + gamma R_(t+1) over turns, (R, K), r_t the sum of the turn's step rewards.

    Args:
        batch: has the signal `step_value`.
        gamma: discount per turn.
        step_value: name of the signal with the reward of each action.

    >>> from grupo.testing.batches import make_batch
    >>> rewards = {"step/reward": [[0.0, 1.0, 4.0]]}
    >>> batch = make_batch(group=[0], length=[3], turn=[[0, 0, 1]], signals=rewards)
    >>> turn_returns(batch, gamma=0.5).tolist()
    [[3.0, 4.0]]
    """
    return discounted_sum(sum_per_turn(batch.signals[step_value], batch), gamma)


@component
class TurnDiscount:
    """x gamma^k, (N, T), with k the number of turns that the rollout took after the action's own.

    Args:
        gamma: discount per turn.

    >>> from grupo.testing.batches import make_batch
    >>> batch = make_batch(group=[0], length=[3], turn=[[0, 0, 1]])
    >>> TurnDiscount(0.5)(torch.tensor([4.0]), batch).tolist()
    [[2.0, 2.0, 4.0]]
    """

    gamma: Fraction

    def __call__(self, x: Tensor, batch: Batch) -> PerAction:
        k = shift_left(discounted_sum(turn_mask(batch).to(batch.reward), 1.0))
        return broadcast_to_tokens(x, batch) * turns_to_tokens(self.gamma**k, batch)


@component
class CenterTurns:
    """x minus its mean over the group's rollouts in the same turn, (N, T).

    `x` is expected to be equal for all actions of a turn.

    >>> from grupo.testing.batches import make_batch
    >>> batch = make_batch(group=[0, 0], length=[2, 1], turn=[[0, 1], [0, 0]])
    >>> CenterTurns()(torch.tensor([[3.0, 5.0], [1.0, 9.0]]), batch).tolist()
    [[1.0, 0.0], [-1.0, 0.0]]
    """

    def __call__(self, x: Tensor, batch: Batch) -> PerAction:
        table = label_per_turn(broadcast_to_tokens(x, batch), batch)
        mask = turn_mask(batch)
        turn = torch.arange(mask.shape[1]).expand_as(table)
        label = combine_labels(batch.group[:, None].expand_as(table), turn)
        return turns_to_tokens(center_by_label(table, label, mask), batch)


def turns_to_tokens(x: PerTurn, batch: Batch) -> PerAction:
    """Give every action the value of its turn, (R, K) to (N, T); 0 where masked.

    >>> from grupo.testing.batches import make_batch
    >>> batch = make_batch(group=[0], length=[3], turn=[[0, 0, 1]])
    >>> turns_to_tokens(torch.tensor([[5.0, 6.0]]), batch).tolist()
    [[5.0, 5.0, 6.0]]
    """
    return scatter_tokens(x[rollout_and_turn(batch)], batch)


def at_turn_ends(x: PerTurn, batch: Batch) -> PerAction:
    """Place the value of each turn at its last action, 0 elsewhere, (R, K) to (N, T).

    >>> from grupo.testing.batches import make_batch
    >>> batch = make_batch(group=[0], length=[3], turn=[[0, 0, 1]])
    >>> at_turn_ends(torch.tensor([[5.0, 6.0]]), batch).tolist()
    [[0.0, 5.0, 6.0]]
    """
    index = token_index(batch).double()
    last = turns_to_tokens(label_per_turn(index, batch), batch) == index
    return turns_to_tokens(x, batch) * (last & batch.mask)


def combine_labels(*labels: Tensor) -> Tensor:
    """Number the distinct tuples of labels from 0; all labels, and the result, have one shape.

    >>> combine_labels(torch.tensor([0, 0, 1]), torch.tensor([0.5, 2.0, 0.5]))
    tensor([0, 1, 2])
    """
    tuples = torch.stack([x.flatten().double() for x in labels], dim=1)
    return tuples.unique(dim=0, return_inverse=True)[1].reshape(labels[0].shape)


def center_by_label(x: Tensor, label: Tensor, where: Tensor) -> Tensor:
    """x minus the mean of the entries with the same label, among entries in `where`; else 0.

    Args:
        x: values, any shape.
        label: integer labels, the shape of `x`.
        where: mask of the entries that are compared, the shape of `x`.

    >>> x, where = torch.tensor([[1.0, 7.0], [0.0, 5.0]]), torch.tensor([[1, 1], [1, 0]]) > 0
    >>> center_by_label(x, torch.tensor([[0, 1], [0, 1]]), where)
    tensor([[ 0.5000,  0.0000],
            [-0.5000,  0.0000]])
    """
    centred = x[where] - group_ops.mean(x[where], label[where])
    return torch.zeros_like(x).masked_scatter(where, centred)


def rollout_turn_mean(batch: Batch) -> PerAction:
    """Aggregation: rollouts count the same, in a rollout its turns, in a turn its actions, (N, T).

    >>> from grupo.testing.batches import make_batch
    >>> batch = make_batch(group=[0, 0], length=[2, 1], turn=[[0, 1], [0, 0]])
    >>> rollout_turn_mean(batch).tolist()
    [[0.25, 0.25], [0.5, 0.0]]
    """
    length = sum_per_turn(batch.mask.double(), batch)
    num_turns = (length > 0).sum(1, keepdim=True).clamp(min=1)
    num_rollouts = (length > 0).any(1).sum().clamp(min=1)
    weight = 1 / (length.clamp(min=1) * num_turns * num_rollouts)
    return turns_to_tokens(weight, batch).to(batch.old_logp)


def batch_turn_mean(batch: Batch) -> PerAction:
    """Aggregation: all turns of the batch count the same, and in a turn its actions, (N, T).

    >>> from grupo.testing.batches import make_batch
    >>> batch_turn_mean(make_batch(group=[0], length=[3], turn=[[0, 1, 1]])).tolist()
    [[0.5, 0.25, 0.25]]
    """
    length = sum_per_turn(batch.mask.double(), batch)
    weight = 1 / (length.clamp(min=1) * (length > 0).sum().clamp(min=1))
    return turns_to_tokens(weight, batch).to(batch.old_logp)


def _turn_table_shape(batch: Batch) -> tuple[int, int]:
    """Number of rollouts, and number of turns of the longest."""
    return len(batch.reward), int(batch.turn.max()) + 1 if batch.turn.numel() else 0
