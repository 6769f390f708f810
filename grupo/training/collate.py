"""Groups of ragged rollouts as one rectangular batch."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import Any

import numpy as np
import torch
from torch import Tensor

from grupo.core.batch import Batch, SignalDict, TaskHistory
from grupo.core.types import Action, Group, Rollout, Task

Encode = Callable[[Sequence[Rollout]], Any]


def collate(
    groups: Sequence[Group],
    encode: Encode,
    task_history: Callable[[Task], TaskHistory] = lambda _: TaskHistory(),
) -> Batch:
    """Groups of ragged rollouts as one rectangular batch, a row for each context of a rollout.

    Columns count from a row's first action: what was said before it belongs to `encode(rows)`, the
    batch's `inputs`. What the world said later is masked, and what the policy was forced to say. A
    group whose rollouts lack a part of the reward has 0 there, and so has an action without a mark.
    """
    rollouts = [r for group in groups for r in group.rollouts]
    owned = [(i, row) for i, r in enumerate(rollouts) for row in _context_rows(r)]
    laid = partial(_to_matrix, [row for _, row in owned])
    marks = dict.fromkeys(chain.from_iterable(r.step_values for r in rollouts))
    seen = {
        **ACTION_SIGNALS,
        **{f"step/{name}": partial(_PlacedAction.step_values, name=name) for name in marks},
    }
    return Batch.of(
        reward=_to_float64(r.reward for r in rollouts),
        group=_to_int64(p for p, group in enumerate(groups) for _ in group.rollouts),
        rollout=_to_int64(i for i, _ in owned),
        mask=laid(lambda said: said.action.in_loss).bool(),
        turn=laid(lambda said: said.turn).long(),
        old_logp=laid(lambda said: said.action.logp),
        seen=SignalDict({name: laid(of) for name, of in seen.items()}),
        parts=SignalDict(_reward_terms(rollouts)),
        past=tuple(task_history(group.task) for group in groups),
        inputs=encode([row for r in rollouts for row in r.contexts]),
    )


def action_spans(rollout: Rollout) -> list[tuple[int, slice]]:
    """Of each of its actions the row, counted within the rollout, and the columns there."""
    return [(n, said.columns) for n, row in enumerate(_context_rows(rollout)) for said in row]


@dataclass(frozen=True)
class _PlacedAction:
    """An action in its row."""

    rollout: Rollout
    action: Action
    columns: slice
    turn: int
    offset: int  # parts of its rollout before it

    def token_ids(self) -> list[float]:
        """What was done, where that is a number: a token; 0 where it is none."""
        return [float(part) if isinstance(part, int) else 0.0 for part in self.action.items]

    def step_values(self, name: str) -> list[float]:
        """Its marks, of those of its whole rollout."""
        length = len(self.action.items)
        own = self.rollout.step_values.get(name, ())[self.offset : self.offset + length]
        return [*own, *[0.0] * (length - len(own))]


ACTION_SIGNALS: Mapping[str, Callable[[_PlacedAction], Sequence[float] | float]] = {
    "logp@sampler": lambda said: said.action.logp,
    "sampled": lambda said: said.action.sampled,
    "moved": lambda said: said.action.off_context,
    "version": lambda said: said.action.policy_version,
    "step/item": _PlacedAction.token_ids,
}


def _context_rows(rollout: Rollout) -> list[list[_PlacedAction]]:
    """The actions of each context; a turn begins where the world speaks."""
    rows, turn, begin = [], 0, 0
    for row in rollout.contexts:
        rows.append([])
        end = 0
        for i, (_, action) in enumerate(row.turns):
            turn += len(rows) + i > 1 and len(action.observation) > 0
            first = end + len(action.observation) * (i > 0)
            end = first + len(action.items)
            rows[-1].append(_PlacedAction(rollout, action, slice(first, end), turn, begin))
            begin += len(action.items)
    return rows


def _to_matrix(
    rows: Sequence[Sequence[_PlacedAction]],
    value_of: Callable[[_PlacedAction], Sequence[float] | float],
) -> Tensor:
    """Numbers of the parts of actions, or one for all parts of one (N, T); 0 where the world spoke,
    and behind a row's end.
    """
    width = max((row[-1].columns.stop for row in rows if row), default=0)
    lines = np.zeros((len(rows), width))
    for line, row in zip(lines, rows, strict=True):
        for said in row:
            line[said.columns] = value_of(said)
    return torch.from_numpy(lines).to(torch.get_default_dtype())


def _reward_terms(rollouts: Sequence[Rollout]) -> dict[str, Tensor]:
    """The components of the rewards (R,)."""
    names = dict.fromkeys(chain.from_iterable(r.reward_terms for r in rollouts))
    return {name: _to_float64(r.reward_terms.get(name, 0.0) for r in rollouts) for name in names}


def _to_float64(numbers: Iterable[float]) -> Tensor:
    return torch.tensor([*numbers], dtype=torch.float64)


def _to_int64(numbers: Iterable[int]) -> Tensor:
    return torch.tensor([*numbers], dtype=torch.long)
