"""What the journal of actions holds of a step: every part of a rollout, and what was said of it."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from grupo.batch import Batch
from grupo.collate import spans
from grupo.rollout import Action, Group, Rollout
from grupo.storage.png import data_url

Spell = Callable[[Action], Sequence[str]]
Numbers = float | list[float | None] | None
DIGITS = 4


class Trace(dict[int, dict[str, Tensor]]):
    """What the policy said of a batch's rows when each was last trained, (T,) by row and name.

    `ratio` is log pi - log pi_old. Rows that could not have a gradient were not evaluated, and are
    not here. `batch.inputs` must number the rows: `row` (N,).
    """

    def __call__(self, part: Batch, said: Mapping[str, Tensor]) -> None:
        wide = {name: x.detach().expand_as(part.old_logp) for name, x in said.items()}
        for place, row in enumerate(part.inputs["row"].tolist()):
            self[row] = {name: x[place] for name, x in wide.items()}


def traces(
    step: int,
    sampled: Sequence[Group],
    kept: Sequence[Group],
    batch: Batch,
    trace: Trace,
    spell: Spell,
) -> list[Any]:
    """One record for each rollout, in the order of `records`; `spell` says its parts as texts.

    Of every action: what the world had said before, its parts, and numbers for each of them, of
    which one stands for all that are alike and null for what is not known. `drawn` is the same
    for rollouts of a group that have an action in common.
    """
    learned = {id(r): i for i, r in enumerate(r for group in kept for r in group.rollouts)}
    found = []
    for number, group in enumerate(sampled):
        drawn = dict[tuple[int, int], int]()
        for rollout in group.rollouts:
            rows = _rows(batch, learned.get(id(rollout)))
            said = [_numbers(batch, trace, rows, *span) for span in spans(rollout)]
            names = [drawn.setdefault(key, len(drawn)) for key in _draws(rollout)]
            actions = [
                {**_told(group, i, *turn), **_action(turn[1], spell), **numbers, "drawn": name}
                for i, (turn, numbers, name) in enumerate(
                    zip(rollout.turns, said, names, strict=True)
                )
            ]
            found.append({"step": step, "group": number, "actions": actions})
    return found


def _rows(batch: Batch, rollout: int | None) -> list[int]:
    """Where a rollout lies in the batch; nowhere if it was not learned from."""
    return [] if rollout is None else (batch.rollout == rollout).nonzero()[:, 0].tolist()


def _draws(rollout: Rollout) -> list[tuple[int, int]]:
    """What tells actions apart: which turn, and what they were drawn with."""
    return [(i, action.stream or id(action)) for i, (_, action) in enumerate(rollout.turns)]


def _told(group: Group, turn: int, seen: Any, _: Action) -> dict[str, Any]:
    """What the world said, unless it is the prompt."""
    return {"world": seen} if seen and (turn or seen != group.task.prompt) else {}


def _action(action: Action, spell: Spell) -> dict[str, Any]:
    """An action by itself; what is as it mostly is, goes without saying."""
    marks = {"sampled": action.sampled, "learned": action.learned}
    moves = {"begins": action.begins, "moved": action.moved}
    return {
        "parts": list(spell(action)),
        "stopped": action.stopped,
        "version": action.version,
        "logp": _alike([round(x, DIGITS) + 0.0 for x in action.logp]) if action.sampled else None,
        **{name: False for name, holds in marks.items() if not holds},
        **{name: True for name, holds in moves.items() if holds},
        **({"picture": data_url(action.made)} if action.made else {}),
    }


def _numbers(
    batch: Batch, trace: Trace, rows: Sequence[int], row: int, columns: slice
) -> dict[str, Any]:
    """What is said of an action's parts by the batch, and by the policy as it learned."""
    if not rows:
        return {"advantage": None}
    number = rows[row]
    said = {name: x[columns] for name, x in trace.get(number, {}).items()}
    clipped = [x for name, x in said.items() if name.startswith("clip/")]
    where = torch.stack(clipped).any(0).nonzero()[:, 0].tolist() if clipped else []
    mask = batch.mask[number, columns]
    advantage = torch.where(mask, batch.advantage[number, columns].double(), torch.nan)
    known = {name: said[name] for name in ("ratio", "entropy") if name in said}
    numbers = {name: torch.where(mask, x.double(), torch.nan) for name, x in known.items()}
    return {
        "advantage": _rounded(advantage),
        **{name: _rounded(x) for name, x in numbers.items()},
        **({"clipped": where} if where else {}),
    }


def _rounded(x: Tensor) -> Numbers:
    numbers = (torch.round(x, decimals=DIGITS) + 0.0).tolist()  # -0.0 is 0
    return _alike([n if n == n else None for n in numbers])


def _alike(numbers: list[Any]) -> Numbers:
    return numbers[0] if numbers and all(n == numbers[0] for n in numbers) else numbers
