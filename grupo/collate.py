"""Groups of ragged rollouts as one rectangular batch."""

from collections.abc import Callable, Sequence
from itertools import chain
from typing import Any

import torch
from torch import Tensor

from grupo.batch import Batch, Named, Past
from grupo.rollout import Group, Rollout, Task

Encode = Callable[[Sequence[Rollout]], Any]


def collate(
    groups: Sequence[Group], encode: Encode, past: Callable[[Task], Past] = lambda _: Past()
) -> Batch:
    """Groups of ragged rollouts as one rectangular batch, one row each.

    Columns count from a row's first action: what was said before it belongs to `encode(rollouts)`,
    the batch's `inputs`. What the world said later is masked. A group whose rollouts lack a part of
    the reward has 0 there, and so has an action without a mark.
    """
    rollouts = [r for group in groups for r in group.rollouts]
    rows = [_row(r) for r in rollouts]
    named = dict.fromkeys(chain.from_iterable(r.parts for r in rollouts))
    marked = dict.fromkeys(chain.from_iterable(r.marks for r in rollouts))
    return Batch.of(
        reward=torch.tensor([r.reward for r in rollouts], dtype=torch.float64),
        group=torch.tensor(
            [p for p, group in enumerate(groups) for _ in group.rollouts], dtype=torch.long
        ),
        rollout=torch.arange(len(rows)),
        mask=_pad([row[0] for row in rows]).bool(),
        turn=_pad([row[1] for row in rows]).long(),
        old_logp=_pad([row[2] for row in rows]),
        seen=Named(
            {
                "logp@sampler": _pad([row[2] for row in rows]),
                "sampled": _pad([row[3] for row in rows]),
                "version": _pad([_versions(r) for r in rollouts]),
                "mark/part": _pad([_parts(r) for r in rollouts]),
                **{f"mark/{m}": _pad([_marks(r, m) for r in rollouts]) for m in marked},
            }
        ),
        parts=Named(
            {
                p: torch.tensor([r.parts.get(p, 0.0) for r in rollouts], dtype=torch.float64)
                for p in named
            }
        ),
        past=tuple(past(group.task) for group in groups),
        inputs=encode(rollouts),
    )


def _row(rollout: Rollout) -> tuple[list[float], ...]:
    """Mask, turn, log-probability and whether it was sampled, of every column of a row."""
    mask, turn, logp, sampled = [], [], [], []
    for number, (_, action) in enumerate(rollout.turns):
        said, acted = len(action.seen) * (number > 0), len(action.parts)
        mask += [0.0] * said + [1.0] * acted
        turn += [float(number)] * (said + acted)
        logp += [0.0] * said + list(action.logp)
        sampled += [0.0] * said + [float(action.sampled)] * acted
    return mask, turn, logp, sampled


def _versions(rollout: Rollout) -> list[float]:
    """With which weights each column was drawn; 0 where the world spoke."""
    drawn = []
    for number, (_, action) in enumerate(rollout.turns):
        drawn += [0.0] * len(action.seen) * (number > 0)
        drawn += [float(action.version)] * len(action.parts)
    return drawn


def _parts(rollout: Rollout) -> list[float]:
    """What was done in each column, where that is a number: a token; 0 where it is none."""
    done = []
    for number, (_, action) in enumerate(rollout.turns):
        done += [0.0] * len(action.seen) * (number > 0)
        done += [float(part) if isinstance(part, int) else 0.0 for part in action.parts]
    return done


def _marks(rollout: Rollout, name: str) -> list[float]:
    """The marks of a rollout, one for each column of its row."""
    left, marks = iter(rollout.marks.get(name, ())), []
    for number, (_, action) in enumerate(rollout.turns):
        marks += [0.0] * len(action.seen) * (number > 0)
        marks += [next(left, 0.0) for _ in action.parts]
    return marks


def _pad(rows: Sequence[Sequence[float]]) -> Tensor:
    width = max((len(row) for row in rows), default=0)
    padded = [[*row, *[0.0] * (width - len(row))] for row in rows]
    return torch.tensor(padded, dtype=torch.get_default_dtype()).reshape(len(rows), width)
