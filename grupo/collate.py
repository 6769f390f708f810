"""Groups of ragged rollouts as one rectangular batch."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import torch
from torch import Tensor

from grupo.batch import Batch, Named, Past
from grupo.rollout import Action, Group, Rollout, Task

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
    rows = [(i, row) for i, r in enumerate(rollouts) for row in _rows(r)]
    named = dict.fromkeys(chain.from_iterable(r.parts for r in rollouts))
    marked = dict.fromkeys(chain.from_iterable(r.marks for r in rollouts))

    def laid(of: Callable[[_Said], Iterable[float]]) -> Tensor:
        return _pad([_columns(row, of) for _, row in rows])

    def marks(name: str) -> Tensor:
        return _pad([_columns(row, _marks(rollouts[i].marks.get(name, ()))) for i, row in rows])

    logp = laid(lambda said: said.action.logp)
    return Batch.of(
        reward=torch.tensor([r.reward for r in rollouts], dtype=torch.float64),
        group=torch.tensor(
            [p for p, group in enumerate(groups) for _ in group.rollouts], dtype=torch.long
        ),
        rollout=torch.tensor([i for i, _ in rows], dtype=torch.long),
        mask=laid(lambda said: said.each(said.action.learned)).bool(),
        turn=laid(lambda said: said.each(said.turn)).long(),
        old_logp=logp,
        seen=Named(
            {
                "logp@sampler": logp.clone(),
                "sampled": laid(lambda said: said.each(said.action.sampled)),
                "moved": laid(lambda said: said.each(said.action.moved)),
                "version": laid(lambda said: said.each(said.action.version)),
                "mark/part": laid(_parts),
                **{f"mark/{name}": marks(name) for name in marked},
            }
        ),
        parts=Named(
            {
                p: torch.tensor([r.parts.get(p, 0.0) for r in rollouts], dtype=torch.float64)
                for p in named
            }
        ),
        past=tuple(past(group.task) for group in groups),
        inputs=encode([row for r in rollouts for row in r.rows]),
    )


def spans(rollout: Rollout) -> list[tuple[int, slice]]:
    """Of each of its actions the row, counted within the rollout, and the columns there."""
    found = []
    for number, row in enumerate(_rows(rollout)):
        end = 0
        for said in row:
            begin = end + said.heard
            end = begin + len(said.action.parts)
            found.append((number, slice(begin, end)))
    return found


@dataclass(frozen=True)
class _Said:
    """An action in its row."""

    action: Action
    heard: int  # columns before it, in which the world spoke
    turn: int
    begin: int  # parts of its rollout before it

    def each(self, number: float) -> list[float]:
        """The same for all its parts."""
        return [float(number)] * len(self.action.parts)


def _rows(rollout: Rollout) -> list[list[_Said]]:
    """The actions of each context; a turn begins where the world speaks."""
    rows, turn, begin = [], 0, 0
    for row in rollout.rows:
        rows.append([])
        for i, (_, action) in enumerate(row.turns):
            turn += len(rows) + i > 1 and len(action.seen) > 0
            rows[-1].append(_Said(action, len(action.seen) * (i > 0), turn, begin))
            begin += len(action.parts)
    return rows


def _columns(row: Sequence[_Said], of: Callable[[_Said], Iterable[float]]) -> list[float]:
    """Numbers of the parts of a row's actions; 0 where the world spoke."""
    return [x for said in row for x in chain([0.0] * said.heard, of(said))]


def _parts(said: _Said) -> list[float]:
    """What was done, where that is a number: a token; 0 where it is none."""
    return [float(part) if isinstance(part, int) else 0.0 for part in said.action.parts]


def _marks(marks: Sequence[float]) -> Callable[[_Said], list[float]]:
    """The marks of an action, of those of its whole rollout."""

    def of(said: _Said) -> list[float]:
        own = marks[said.begin : said.begin + len(said.action.parts)]
        return [*own, *[0.0] * (len(said.action.parts) - len(own))]

    return of


def _pad(rows: Sequence[Sequence[float]]) -> Tensor:
    width = max((len(row) for row in rows), default=0)
    padded = [[*row, *[0.0] * (width - len(row))] for row in rows]
    return torch.tensor(padded, dtype=torch.get_default_dtype()).reshape(len(rows), width)
