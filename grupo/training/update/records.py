"""The records of a step in `rollouts.jsonl`, and with numbers per token in `responses.jsonl`."""

import math
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from grupo.core.batch import Batch
from grupo.core.types import Group, Observation, Response, Rollout
from grupo.storage.png import data_url
from grupo.training.update.collate import positions_in_batch, response_spans

TokensAsText = Callable[[Rollout], Sequence[Sequence[str]]]
Numbers = float | Sequence[float | None] | None  # a single number stands for equal numbers
DIGITS = 4
SCALE = 10.0**DIGITS


class ActionSignals(dict[int, dict[str, list[float]]]):
    """Signals of the policy at each action of a batch, by row and name, T numbers each.

    The signals of a row are from its last update. `ratio` is log pi - log pi_old. Rows that cannot
    have a gradient are not evaluated and are absent. `batch.inputs["row"]`, (N,), must number the
    rows.
    """

    def __call__(self, batch: Batch, signals: Mapping[str, Tensor]) -> None:
        """Record the signals of a micro-batch; the hook of `accumulate_gradients`."""
        values = {name: _rounded_rows(x, batch) for name, x in signals.items()}
        for i, row in enumerate(batch.inputs["row"].tolist()):
            self[row] = {name: rows[i] for name, rows in values.items()}


def response_records(
    step: int,
    sampled_groups: Sequence[Group],
    kept_groups: Sequence[Group],
    batch: Batch,
    action_signals: ActionSignals,
    tokens_as_text: TokensAsText,
) -> list[Any]:
    """Records of rollouts with their responses, in the order of `rollout_records`.

    A record holds, for each response, the observation before it, its items, and numbers per item.
    Numbers per item are a list, or a single number if all are equal; an unknown number is null.
    `partial` has the places of tokens without text: a later token completes their character.
    Rollouts of a group that share a response have the same `response_id` for it.

    Args:
        step: Number of the step, from 1.
        sampled_groups: Groups to record.
        kept_groups: The groups that were trained on.
        batch: The batch collated from the kept groups, with advantages.
        action_signals: Signals of the policy at the trained actions.
        tokens_as_text: Returns the items of each response of a rollout as texts.
    """
    token_values = _TokenValues(kept_groups, batch, action_signals)
    records = []
    for number, group in enumerate(sampled_groups):
        response_ids = dict[tuple[int, int], int]()
        for rollout in group.rollouts:
            ids = [
                response_ids.setdefault(key, len(response_ids)) for key in _response_keys(rollout)
            ]
            texts = tokens_as_text(rollout)
            values = token_values(rollout)
            parts = enumerate(zip(rollout.turns, texts, values, ids, strict=True))
            responses = [
                {
                    **observation_record(group, i, observation),
                    **_response_record(response, items),
                    **numbers,
                    "response_id": response_id,
                }
                for i, ((observation, response), items, numbers, response_id) in parts
            ]
            records.append({"step": step, "group": number, "responses": responses})
    return records


class _TokenValues:
    """Returns the advantages and signals of each response of a rollout."""

    def __init__(
        self, kept_groups: Sequence[Group], batch: Batch, action_signals: ActionSignals
    ) -> None:
        self.action_signals = action_signals
        self.advantage = _rounded_rows(batch.advantage, batch)
        self.positions = positions_in_batch(kept_groups)
        self.rows_by_rollout = defaultdict[int, list[int]](list)
        for row, rollout in enumerate(batch.rollout.tolist()):
            self.rows_by_rollout[rollout].append(row)

    def __call__(self, rollout: Rollout) -> list[dict[str, Any]]:
        spans = response_spans(rollout)
        if rollout.index not in self.positions:
            return [{} for _ in spans]
        rows = self.rows_by_rollout[self.positions[rollout.index]]
        return [self._values_at(rows[row], positions) if rows else {} for row, positions in spans]

    def _values_at(self, row: int, positions: slice) -> dict[str, Any]:
        signals = {name: x[positions] for name, x in self.action_signals.get(row, {}).items()}
        record: dict[str, Any] = {"advantage": _nan_to_null(self.advantage[row][positions])}
        for name in ("ratio", "entropy"):
            if name in signals:
                record[name] = _nan_to_null(signals[name])
        clip_fractions = [x for name, x in signals.items() if name.startswith("clip_frac/")]
        clipped = sorted({i for clip in clip_fractions for i, x in enumerate(clip) if x > 0})
        return record | ({"clipped": clipped} if clipped else {})


def _response_keys(rollout: Rollout) -> list[tuple[int, int]]:
    """Identifies each response by its turn and random stream: shared responses have equal keys."""
    return [(i, response.rng_key or id(response)) for i, (_, response) in enumerate(rollout.turns)]


def observation_record(group: Group, turn: int, observation: Observation) -> dict[str, Any]:
    """The observation, unless it is the task's prompt."""
    if not observation or (turn == 0 and observation == group.task.prompt):
        return {}
    return {"observation": observation}


def _response_record(response: Response, texts: Sequence[str]) -> dict[str, Any]:
    """A response by itself; flags are written only where they differ from the usual value."""
    true_by_default = {"sampled": response.sampled, "in_loss": response.in_loss}
    false_by_default = {
        "resets_context": response.resets_context,
        "rewrites_history": response.rewrites_history,
        "off_context": response.off_context,
    }
    texts = list(texts)
    pairs = enumerate(zip(response.items, texts, strict=True))
    partial = [i for i, (item, text) in pairs if isinstance(item, int) and not text]
    return {
        "items": texts,
        "finish_reason": response.finish_reason,
        "policy_version": response.policy_version,
        "logp": _collapse_equal([*map(_rounded, response.logp)]) if response.sampled else None,
        "advantage": None,
        **{name: False for name, flag in true_by_default.items() if not flag},
        **{name: True for name, flag in false_by_default.items() if flag},
        **({"partial": partial} if partial else {}),
        **({"image": data_url(response.image)} if response.image else {}),
    }


def _rounded_rows(x: Tensor, batch: Batch) -> list[list[float]]:
    """A rounded number for each action; NaN where the mask is False."""
    values = torch.where(batch.mask, x.detach().double(), torch.nan)
    return (torch.round(values, decimals=DIGITS) + 0.0).tolist()  # -0.0 becomes 0


def _rounded(x: float) -> float:
    """Round to DIGITS places; -0.0 becomes 0. Faster than `round(x, DIGITS)`, which uses text."""
    return round(x * SCALE) / SCALE if math.isfinite(x) else x


def _nan_to_null(numbers: Sequence[float]) -> Numbers:
    unknown = any(map(math.isnan, numbers))
    return _collapse_equal([x if x == x else None for x in numbers] if unknown else numbers)


def _collapse_equal(numbers: Sequence[float | None]) -> Numbers:
    return numbers[0] if numbers and numbers.count(numbers[0]) == len(numbers) else numbers


def rollout_records(
    step: int, sampled_groups: Sequence[Group], kept_groups: Sequence[Group], batch: Batch
) -> list[Any]:
    """Records of all rollouts that a step generated, one for each.

    `advantage` is the mean over the rollout's actions, null for a rollout not trained on. `turns`
    keeps the turns of a dialogue apart, each with the text of the policy and the observation before
    it; it is empty where prompt and text are the only turn.

    Args:
        step: Number of the step, from 1.
        sampled_groups: All groups of the step.
        kept_groups: The groups that were trained on.
        batch: The batch collated from the kept groups, with advantages.
    """
    means = _mean_advantage(batch)
    advantage = {index: means[i] for index, i in positions_in_batch(kept_groups).items()}
    return [
        {
            "step": step,
            "task": group.task.key,
            "prompt": group.task.prompt,
            "reference_answer": _text(group.task.reference_answer),
            "text": rollout.text,
            "turns": _turns(group, rollout),
            "reward": rollout.reward,
            "reward_terms": rollout.reward_terms,
            "advantage": advantage.get(rollout.index),
            "length": rollout.length,
            "truncated": rollout.truncated,
            "error": rollout.error,
        }
        for group in sampled_groups
        for rollout in group.rollouts
    ]


def _turns(group: Group, rollout: Rollout) -> list[dict[str, Any]]:
    turns = [
        {**observation_record(group, i, observation), "text": response.text}
        for i, (observation, response) in enumerate(rollout.turns)
    ]
    is_dialogue = any("observation" in turn for turn in turns)
    return turns if is_dialogue else []


def _text(answer: Any) -> str:
    """The reference answer if it is a text or a number, otherwise ""."""
    return str(answer) if isinstance(answer, str | int | float) else ""


def _mean_advantage(batch: Batch) -> list[float]:
    total = batch.reward.new_zeros(len(batch.reward))
    total = total.index_add(0, batch.rollout, (batch.advantage * batch.mask).sum(1).to(total))
    return (total / batch.lengths.clamp(min=1)).tolist()
