"""Groups of ragged rollouts as one rectangular batch."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import Any

import numpy as np
import torch
from torch import Tensor

from grupo.core.batch import Batch, Named, Past
from grupo.core.types import Action, Group, Rollout, Task

Encode = Callable[[Sequence[Rollout]], Any]


def collate(
    groups: Sequence[Group], encode: Encode, past: Callable[[Task], Past] = lambda _: Past()
) -> Batch:
    """Groups of ragged rollouts as one rectangular batch, a row for each context of a rollout.

    Columns count from a row's first action: what was said before it belongs to `encode(rows)`, the
    batch's `inputs`. What the world said later is masked, and what the policy was forced to say. A
    group whose rollouts lack a part of the reward has 0 there, and so has an action without a mark.
    """
    rollouts = [r for group in groups for r in group.rollouts]
    owned = [(i, row) for i, r in enumerate(rollouts) for row in _rows(r)]
    laid = partial(_laid, [row for _, row in owned])
    marks = dict.fromkeys(chain.from_iterable(r.marks for r in rollouts))
    seen = {**SEEN, **{f"mark/{name}": partial(_Said.marked, name=name) for name in marks}}
    return Batch.of(
        reward=_exact(r.reward for r in rollouts),
        group=_whole(p for p, group in enumerate(groups) for _ in group.rollouts),
        rollout=_whole(i for i, _ in owned),
        mask=laid(lambda said: said.action.learned).bool(),
        turn=laid(lambda said: said.turn).long(),
        old_logp=laid(lambda said: said.action.logp),
        seen=Named({name: laid(of) for name, of in seen.items()}),
        parts=Named(_parts(rollouts)),
        past=tuple(past(group.task) for group in groups),
        inputs=encode([row for r in rollouts for row in r.rows]),
    )


def spans(rollout: Rollout) -> list[tuple[int, slice]]:
    """Of each of its actions the row, counted within the rollout, and the columns there."""
    return [(n, said.columns) for n, row in enumerate(_rows(rollout)) for said in row]


@dataclass(frozen=True)
class _Said:
    """An action in its row."""

    rollout: Rollout
    action: Action
    columns: slice
    turn: int
    begin: int  # parts of its rollout before it

    def tokens(self) -> list[float]:
        """What was done, where that is a number: a token; 0 where it is none."""
        return [float(part) if isinstance(part, int) else 0.0 for part in self.action.parts]

    def marked(self, name: str) -> list[float]:
        """Its marks, of those of its whole rollout."""
        length = len(self.action.parts)
        own = self.rollout.marks.get(name, ())[self.begin : self.begin + length]
        return [*own, *[0.0] * (length - len(own))]


SEEN: Mapping[str, Callable[[_Said], Sequence[float] | float]] = {
    "logp@sampler": lambda said: said.action.logp,
    "sampled": lambda said: said.action.sampled,
    "moved": lambda said: said.action.moved,
    "version": lambda said: said.action.version,
    "mark/part": _Said.tokens,
}


def _rows(rollout: Rollout) -> list[list[_Said]]:
    """The actions of each context; a turn begins where the world speaks."""
    rows, turn, begin = [], 0, 0
    for row in rollout.rows:
        rows.append([])
        end = 0
        for i, (_, action) in enumerate(row.turns):
            turn += len(rows) + i > 1 and len(action.seen) > 0
            first = end + len(action.seen) * (i > 0)
            end = first + len(action.parts)
            rows[-1].append(_Said(rollout, action, slice(first, end), turn, begin))
            begin += len(action.parts)
    return rows


def _laid(
    rows: Sequence[Sequence[_Said]], of: Callable[[_Said], Sequence[float] | float]
) -> Tensor:
    """Numbers of the parts of actions, or one for all parts of one (N, T); 0 where the world spoke,
    and behind a row's end.
    """
    width = max((row[-1].columns.stop for row in rows if row), default=0)
    lines = np.zeros((len(rows), width))
    for line, row in zip(lines, rows, strict=True):
        for said in row:
            line[said.columns] = of(said)
    return torch.from_numpy(lines).to(torch.get_default_dtype())


def _parts(rollouts: Sequence[Rollout]) -> dict[str, Tensor]:
    """The components of the rewards (R,)."""
    names = dict.fromkeys(chain.from_iterable(r.parts for r in rollouts))
    return {name: _exact(r.parts.get(name, 0.0) for r in rollouts) for name in names}


def _exact(numbers: Iterable[float]) -> Tensor:
    return torch.tensor([*numbers], dtype=torch.float64)


def _whole(numbers: Iterable[int]) -> Tensor:
    return torch.tensor([*numbers], dtype=torch.long)
