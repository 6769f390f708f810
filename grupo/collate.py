"""Groups of ragged rollouts as one rectangular batch."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
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
    owned = [(i, row) for i, r in enumerate(rollouts) for row in _rows(r)]
    laid = partial(_laid, [row for _, row in owned])
    marks = dict.fromkeys(chain.from_iterable(r.marks for r in rollouts))
    seen = {**SEEN, **{f"mark/{name}": partial(_Said.marked, name=name) for name in marks}}
    return Batch.of(
        reward=_exact(r.reward for r in rollouts),
        group=_whole(p for p, group in enumerate(groups) for _ in group.rollouts),
        rollout=_whole(i for i, _ in owned),
        mask=laid(lambda said: said.each(said.action.learned)).bool(),
        turn=laid(lambda said: said.each(said.turn)).long(),
        old_logp=laid(lambda said: said.action.logp),
        seen=Named({name: laid(of) for name, of in seen.items()}),
        parts=Named(_parts(rollouts)),
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

    rollout: Rollout
    action: Action
    heard: int  # columns before it, in which the world spoke
    turn: int
    begin: int  # parts of its rollout before it

    def each(self, number: float) -> list[float]:
        """The same for all its parts."""
        return [float(number)] * len(self.action.parts)

    def tokens(self) -> list[float]:
        """What was done, where that is a number: a token; 0 where it is none."""
        return [float(part) if isinstance(part, int) else 0.0 for part in self.action.parts]

    def marked(self, name: str) -> list[float]:
        """Its marks, of those of its whole rollout."""
        length = len(self.action.parts)
        own = self.rollout.marks.get(name, ())[self.begin : self.begin + length]
        return [*own, *[0.0] * (length - len(own))]


SEEN: Mapping[str, Callable[[_Said], Iterable[float]]] = {
    "logp@sampler": lambda said: said.action.logp,
    "sampled": lambda said: said.each(said.action.sampled),
    "moved": lambda said: said.each(said.action.moved),
    "version": lambda said: said.each(said.action.version),
    "mark/part": _Said.tokens,
}


def _rows(rollout: Rollout) -> list[list[_Said]]:
    """The actions of each context; a turn begins where the world speaks."""
    rows, turn, begin = [], 0, 0
    for row in rollout.rows:
        rows.append([])
        for i, (_, action) in enumerate(row.turns):
            turn += len(rows) + i > 1 and len(action.seen) > 0
            rows[-1].append(_Said(rollout, action, len(action.seen) * (i > 0), turn, begin))
            begin += len(action.parts)
    return rows


def _laid(rows: Sequence[Sequence[_Said]], of: Callable[[_Said], Iterable[float]]) -> Tensor:
    """Numbers of the parts of actions (N, T); 0 where the world spoke, and behind a row's end."""
    lines = [[x for said in row for x in chain([0.0] * said.heard, of(said))] for row in rows]
    width = max(map(len, lines), default=0)
    padded = [[*line, *[0.0] * (width - len(line))] for line in lines]
    return torch.tensor(padded, dtype=torch.get_default_dtype()).reshape(len(rows), width)


def _parts(rollouts: Sequence[Rollout]) -> dict[str, Tensor]:
    """The components of the rewards (R,)."""
    names = dict.fromkeys(chain.from_iterable(r.parts for r in rollouts))
    return {name: _exact(r.parts.get(name, 0.0) for r in rollouts) for name in names}


def _exact(numbers: Iterable[float]) -> Tensor:
    return torch.tensor([*numbers], dtype=torch.float64)


def _whole(numbers: Iterable[int]) -> Tensor:
    return torch.tensor([*numbers], dtype=torch.long)
