"""Collates groups of ragged rollouts into one rectangular batch.

The batch has R rollouts and N rows, one row for each context of a rollout. T is the width of a row.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import accumulate, chain
from typing import Any

import numpy as np
import torch
from torch import Tensor

from grupo.core.batch import Batch, SignalDict, TaskHistory
from grupo.core.types import Group, Response, Rollout, Task

Encode = Callable[[Sequence[Rollout]], Any]


def collate(
    groups: Sequence[Group],
    encode: Encode,
    statistics_of_task: Callable[[Task], TaskHistory] = lambda _: TaskHistory(),
) -> Batch:
    """Collate groups of ragged rollouts into one batch, with a row for each context of a rollout.

    A context is a part of a rollout with its own prompt. A rollout has one context, unless one of
    its responses resets the context (`Response.resets_context`). Position 0 of a row is the first
    item of its first response; the prompt before it is only in the batch's `inputs`. Later
    observations and tokens that the policy was forced to generate are masked. A reward term or a
    step value that a rollout lacks is 0.

    Args:
        groups: The groups to train on.
        encode: Turns the contexts, each of which is a `Rollout`, into the policy's `inputs`.
        statistics_of_task: Returns the states of the method's statistics for a task; by default,
            no states.
    """
    rollouts = [rollout for group in groups for rollout in group.rollouts]
    # a row is the list of its placed responses
    indexed_rows = [(i, row) for i, rollout in enumerate(rollouts) for row in _rows(rollout)]
    to_matrix = partial(_to_matrix, [row for _, row in indexed_rows])
    step_values = dict.fromkeys(chain.from_iterable(r.step_values for r in rollouts))
    value_functions = {
        **RESPONSE_SIGNALS,
        **{f"step/{name}": partial(_PlacedResponse.step_values, name=name) for name in step_values},
    }
    return Batch.of(
        reward=_to_float64(rollout.reward for rollout in rollouts),
        group=_to_int64(p for p, group in enumerate(groups) for _ in group.rollouts),
        rollout=_to_int64(i for i, _ in indexed_rows),
        # a row that continues a sequence has the number of the row before
        sequence=_to_int64(accumulate(_starts_sequence(row) for _, row in indexed_rows)),
        mask=to_matrix(lambda placed: placed.response.in_loss).bool(),
        turn=to_matrix(lambda placed: placed.turn).long(),
        old_logp=to_matrix(lambda placed: placed.response.logp),  # until the policy recomputes it
        signals=SignalDict({name: to_matrix(fn) for name, fn in value_functions.items()}),
        reward_terms=SignalDict(_reward_terms(rollouts)),
        history=tuple(statistics_of_task(group.task) for group in groups),
        inputs=encode([context for rollout in rollouts for context in rollout.contexts]),
    )


def positions_in_batch(groups: Sequence[Group]) -> dict[int, int]:
    """Return the position in the batch of each rollout that the step generated, by `Rollout.index`.

    Row n of the batch of `groups` belongs to the rollout at position `batch.rollout[n]`. Rollouts
    of earlier steps, such as replays, have the index -1 and are left out.
    """
    rollouts = (rollout for group in groups for rollout in group.rollouts)
    return {rollout.index: i for i, rollout in enumerate(rollouts) if rollout.index >= 0}


def response_spans(rollout: Rollout) -> list[tuple[int, slice]]:
    """Return the place of each response: index of its row in the rollout, positions in the row."""
    rows = enumerate(_rows(rollout))
    return [(row_index, placed.positions) for row_index, row in rows for placed in row]


@dataclass(frozen=True)
class _PlacedResponse:
    """A response of a rollout and its positions in a row, along T."""

    rollout: Rollout
    response: Response
    positions: slice
    turn: int
    offset: int  # number of items in the rollout's earlier responses

    def integer_items(self) -> list[float]:
        """The response's items that are integers, such as tokens; 0 for other items."""
        return [float(item) if isinstance(item, int) else 0.0 for item in self.response.items]

    def step_values(self, name: str) -> list[float]:
        """The step values of one name for the response's items; 0 if there are none."""
        length = len(self.response.items)
        values = self.rollout.step_values.get(name, ())[self.offset : self.offset + length]
        return [*values, *[0.0] * (length - len(values))]


RESPONSE_SIGNALS: Mapping[str, Callable[[_PlacedResponse], Sequence[float] | float]] = {
    "logp@sampler": lambda placed: placed.response.logp,
    "sampled": lambda placed: placed.response.sampled,  # 0 for a forced or demonstrated text
    # 1 if `logp` belongs to another prompt, step or distribution
    "off_context": lambda placed: placed.response.off_context,
    "policy_version": lambda placed: placed.response.item_versions,
    "step/item": _PlacedResponse.integer_items,  # the id of the token
}


def _rows(rollout: Rollout) -> list[list[_PlacedResponse]]:
    """The placed responses of each context."""
    rows = []
    turn = 0
    offset = 0
    for context in rollout.contexts:
        rows.append([])
        end = 0
        for i, (_, response) in enumerate(context.turns):
            is_first_of_rollout = len(rows) == 1 and i == 0
            # an empty observation continues the turn
            turn += bool(response.observation) and not is_first_of_rollout
            # the first observation of a context is the prompt, which is outside the row
            start = end + (len(response.observation) if i > 0 else 0)
            end = start + len(response.items)
            rows[-1].append(_PlacedResponse(rollout, response, slice(start, end), turn, offset))
            offset += len(response.items)
    return rows


def _starts_sequence(row: Sequence[_PlacedResponse]) -> bool:
    """Whether a row starts a new sequence; aggregations average over sequences.

    A chat template may rewrite the earlier answers of a rollout. The answers after them then have a
    row of their own, which continues the sequence of the row before.
    """
    return not (row and row[0].response.rewrites_history)


def _to_matrix(
    rows: Sequence[Sequence[_PlacedResponse]],
    value_of: Callable[[_PlacedResponse], Sequence[float] | float],
) -> Tensor:
    """Write a value for each item, or one value for each response, into a matrix (N, T).

    The matrix is 0 at observations and padding.
    """
    width = max((row[-1].positions.stop for row in rows if row), default=0)
    matrix = np.zeros((len(rows), width))
    for values, row in zip(matrix, rows, strict=True):
        for placed in row:
            values[placed.positions] = value_of(placed)
    return torch.from_numpy(matrix).to(torch.get_default_dtype())


def _reward_terms(rollouts: Sequence[Rollout]) -> dict[str, Tensor]:
    """The reward terms by name, (R,) each; 0 where a rollout lacks the term."""
    names = dict.fromkeys(chain.from_iterable(r.reward_terms for r in rollouts))
    return {name: _to_float64(r.reward_terms.get(name, 0.0) for r in rollouts) for name in names}


def _to_float64(numbers: Iterable[float]) -> Tensor:
    return torch.tensor([*numbers], dtype=torch.float64)


def _to_int64(numbers: Iterable[int]) -> Tensor:
    return torch.tensor([*numbers], dtype=torch.long)
