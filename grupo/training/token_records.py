"""What the journal of actions holds of a step: every part of a rollout, and what was said of it."""

import math
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from grupo.core.batch import Batch
from grupo.core.types import Action, Group, Rollout
from grupo.storage.png import data_url
from grupo.training.collate import action_spans

TokensAsText = Callable[[Rollout], Sequence[Sequence[str]]]
Numbers = float | Sequence[float | None] | None  # one number stands for all that are alike
DIGITS = 4
SCALE = 10.0**DIGITS


class Trace(dict[int, dict[str, list[float]]]):
    """What the policy said of a batch's rows when each was last trained, T numbers by row and name.

    `ratio` is log pi - log pi_old. Rows that could not have a gradient were not evaluated, and are
    not here. `batch.inputs` must number the rows: `row` (N,).
    """

    def __call__(self, batch: Batch, signals: Mapping[str, Tensor]) -> None:
        rows, known = (
            batch.inputs["row"].tolist(),
            {n: _rounded_rows(x, batch) for n, x in signals.items()},
        )
        for place, row in enumerate(rows):
            self[row] = {name: x[place] for name, x in known.items()}


def token_records(
    step: int,
    sampled_groups: Sequence[Group],
    kept_groups: Sequence[Group],
    batch: Batch,
    trace: Trace,
    tokens_as_text: TokensAsText,
) -> list[Any]:
    """One record for each rollout, in the order of `records`; `tokens_as_text` says its parts as texts.

    Of every action: what the world had said before, its parts, and numbers for each of them, of
    which one stands for all that are alike and null for what is not known. `drawn` is the same
    for rollouts of a group that have an action in common.
    """
    numbers, found = _TokenValues(kept_groups, batch, trace), []
    for number, group in enumerate(sampled_groups):
        drawn = dict[tuple[int, int], int]()
        for rollout in group.rollouts:
            said = numbers(rollout)
            names = [drawn.setdefault(key, len(drawn)) for key in _draw_keys(rollout)]
            parts = zip(rollout.turns, tokens_as_text(rollout), said, names, strict=True)
            actions = [
                {
                    **_observation_record(group, i, turn),
                    **_action_record(turn[1], texts),
                    **known,
                    "drawn": name,
                }
                for i, (turn, texts, known, name) in enumerate(parts)
            ]
            found.append({"step": step, "group": number, "actions": actions})
    return found


class _TokenValues:
    """What is said of each part of an action by the batch, and by the policy as it learned."""

    def __init__(self, kept: Sequence[Group], batch: Batch, trace: Trace) -> None:
        self.trace, self.advantage = trace, _rounded_rows(batch.advantage, batch)
        self.rollout_index = {
            id(r): i for i, r in enumerate(r for group in kept for r in group.rollouts)
        }
        self.rows_by_rollout = defaultdict[int, list[int]](list)
        for row, rollout in enumerate(batch.rollout.tolist()):
            self.rows_by_rollout[rollout].append(row)

    def __call__(self, rollout: Rollout) -> list[dict[str, Any]]:
        rows = (
            self.rows_by_rollout[self.rollout_index[id(rollout)]]
            if id(rollout) in self.rollout_index
            else []
        )
        return [
            self._values_at(rows[row], span) if rows else {} for row, span in action_spans(rollout)
        ]

    def _values_at(self, row: int, columns: slice) -> dict[str, Any]:
        said = {name: x[columns] for name, x in self.trace.get(row, {}).items()}
        clips = [x for name, x in said.items() if name.startswith("clip/")]
        clipped = sorted({i for clip in clips for i, here in enumerate(clip) if here > 0})
        known = {name: _nan_to_null(said[name]) for name in ("ratio", "entropy") if name in said}
        marks = {"clipped": clipped} if clipped else {}
        return {"advantage": _nan_to_null(self.advantage[row][columns]), **known, **marks}


def _draw_keys(rollout: Rollout) -> list[tuple[int, int]]:
    """What tells actions apart: which turn, and what they were drawn with."""
    return [(i, action.rng_key or id(action)) for i, (_, action) in enumerate(rollout.turns)]


def _observation_record(group: Group, turn: int, said: tuple[Any, Action]) -> dict[str, Any]:
    """What the world said, unless it is the prompt."""
    seen, _ = said
    return {"world": seen} if seen and (turn or seen != group.task.prompt) else {}


def _action_record(action: Action, texts: Sequence[str]) -> dict[str, Any]:
    """An action by itself; what is as it mostly is, goes without saying."""
    marks = {"sampled": action.sampled, "learned": action.in_loss}
    moves = {"begins": action.resets_context, "moved": action.off_context}
    return {
        "parts": list(texts),
        "stopped": action.finish_reason,
        "version": action.policy_version,
        "logp": _collapse_equal(list(map(_rounded, action.logp))) if action.sampled else None,
        "advantage": None,
        **{name: False for name, holds in marks.items() if not holds},
        **{name: True for name, holds in moves.items() if holds},
        **({"picture": data_url(action.image)} if action.image else {}),
    }


def _rounded_rows(x: Tensor, batch: Batch) -> list[list[float]]:
    """A number for each action, rounded; NaN where the policy did not act or is not to learn."""
    known = torch.where(batch.mask, x.detach().double(), torch.nan)
    return (torch.round(known, decimals=DIGITS) + 0.0).tolist()  # -0.0 is 0


def _rounded(x: float) -> float:
    """To DIGITS places, without the detour of `round` through text; -0.0 is 0."""
    return round(x * SCALE) / SCALE if math.isfinite(x) else x


def _nan_to_null(numbers: Sequence[float]) -> Numbers:
    unknown = any(map(math.isnan, numbers))
    return _collapse_equal([x if x == x else None for x in numbers] if unknown else numbers)


def _collapse_equal(numbers: Sequence[float | None]) -> Numbers:
    return numbers[0] if numbers and numbers.count(numbers[0]) == len(numbers) else numbers
