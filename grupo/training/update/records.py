"""The records of a step in `rollouts.jsonl`, and its records per token in `responses.jsonl`.

Three kinds of number identify the parts of a step:

- Index (`Rollout.index`): the number of a rollout among all rollouts that the step generated.
- Position: the number of a rollout among those of the kept groups, in the order of the batch.
- Row: the number of a row of the batch. A rollout has one row for each of its contexts.
"""

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
Numbers = float | Sequence[float | None] | None  # one number for each item, or one that all share
DIGITS = 4  # decimal places of numbers in records
SCALE = 10.0**DIGITS


class ActionSignals(dict[int, dict[str, list[float]]]):
    """Signals of the policy at each action of a batch: `signals[row][name]` is a list of T numbers.

    T is the number of actions of a row. The signals of a row are from its last update. `ratio` is
    the log of the ratio, log pi - log pi_old. A row that the updater skips, such as one whose
    advantages are all 0, is absent. The batch must have the number of each row as
    `batch.inputs["row"]`, (N,) for N rows.
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

    A record holds for each response: the observation before it, its items as texts, and numbers per
    item. Numbers per item are a list, or a single number if all are equal. An unknown number is
    null. `partial` has the indices of tokens without text of their own: a later token completes
    their character. A response that several rollouts of a group share has the same `response_id`
    in each of them.

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
    for group_index, group in enumerate(sampled_groups):
        id_of_key = dict[tuple[int, int], int]()
        for rollout in group.rollouts:
            ids = [id_of_key.setdefault(key, len(id_of_key)) for key in _response_keys(rollout)]
            texts = tokens_as_text(rollout)
            values = token_values(rollout)
            turns = enumerate(zip(rollout.turns, texts, values, ids, strict=True))
            responses = [
                {
                    **observation_record(group, i, observation),
                    **_response_record(response, item_texts),
                    **numbers,
                    "response_id": response_id,
                }
                for i, ((observation, response), item_texts, numbers, response_id) in turns
            ]
            records.append({"step": step, "group": group_index, "responses": responses})
    return records


class _TokenValues:
    """Returns the advantages and signals of each response of a rollout."""

    def __init__(
        self, kept_groups: Sequence[Group], batch: Batch, action_signals: ActionSignals
    ) -> None:
        self.action_signals = action_signals
        self.advantage = _rounded_rows(batch.advantage, batch)
        self.position_of_index = positions_in_batch(kept_groups)
        self.rows_of_position = defaultdict[int, list[int]](list)
        for row, position in enumerate(batch.rollout.tolist()):  # the rollout of each row
            self.rows_of_position[position].append(row)

    def __call__(self, rollout: Rollout) -> list[dict[str, Any]]:
        """The values of each response; no values for a rollout that is not in the batch."""
        # for each response: which of the rollout's rows holds it, and its slice of that row
        spans = response_spans(rollout)
        position = self.position_of_index.get(rollout.index, -1)
        rows = self.rows_of_position.get(position)
        return [self._values_at(rows[i], columns) if rows else {} for i, columns in spans]

    def _values_at(self, row: int, columns: slice) -> dict[str, Any]:
        """The values of the response in these columns of a row."""
        signals = {name: x[columns] for name, x in self.action_signals.get(row, {}).items()}
        record: dict[str, Any] = {"advantage": _nan_to_null(self.advantage[row][columns])}
        for name in ("ratio", "entropy"):
            if name in signals:
                record[name] = _nan_to_null(signals[name])
        clip_signals = [x for name, x in signals.items() if name.startswith("clip_frac/")]
        clipped = sorted({i for signal in clip_signals for i, x in enumerate(signal) if x > 0})
        return record | ({"clipped": clipped} if clipped else {})


def _response_keys(rollout: Rollout) -> list[tuple[int, int]]:
    """A key of each response, which is equal for a response that several rollouts share.

    The key is the index of the turn and the key of the response's random stream. A response without
    a random stream has the `id` of the object instead.
    """
    return [(i, response.rng_key or id(response)) for i, (_, response) in enumerate(rollout.turns)]


def observation_record(group: Group, turn: int, observation: Observation) -> dict[str, Any]:
    """The field `observation`; left out if the observation is empty or the task's prompt."""
    if not observation or (turn == 0 and observation == group.task.prompt):
        return {}
    return {"observation": observation}


def _response_record(response: Response, texts: Sequence[str]) -> dict[str, Any]:
    """The fields of a response that need no batch.

    A flag, such as `in_loss`, is left out if it has its usual value; see `Response` for the flags.
    """
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
    """The numbers of a matrix (N, T), rounded, in a list for each row; NaN where masked."""
    values = torch.where(batch.mask, x.detach().double(), torch.nan)
    return (torch.round(values, decimals=DIGITS) + 0.0).tolist()  # -0.0 becomes 0


def _rounded(x: float) -> float:
    """Round to DIGITS places; -0.0 becomes 0. Faster than `round(x, DIGITS)`, which uses text."""
    return round(x * SCALE) / SCALE if math.isfinite(x) else x


def _nan_to_null(numbers: Sequence[float]) -> Numbers:
    has_nan = any(map(math.isnan, numbers))
    return _collapse_equal([None if math.isnan(x) else x for x in numbers] if has_nan else numbers)


def _collapse_equal(numbers: Sequence[float | None]) -> Numbers:
    """One number if all are equal, else all of them."""
    return numbers[0] if numbers and numbers.count(numbers[0]) == len(numbers) else numbers


def rollout_records(
    step: int, sampled_groups: Sequence[Group], kept_groups: Sequence[Group], batch: Batch
) -> list[Any]:
    """The records of all rollouts that a step generated.

    `advantage` is the mean over the rollout's actions; null for a rollout that is not trained on.
    `turns` has the text of the policy in each turn and the observation before it. It is empty if
    the prompt is the only observation. `parents` has the `rollout_id` of each earlier rollout that
    the prompt shows, and is absent if there is none.

    Args:
        step: Number of the step, from 1.
        sampled_groups: All groups of the step.
        kept_groups: The groups that were trained on.
        batch: The batch collated from the kept groups, with advantages.
    """
    means = _mean_advantages(batch)
    positions = positions_in_batch(kept_groups)
    advantage_of_index = {index: means[position] for index, position in positions.items()}
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
            "advantage": advantage_of_index.get(rollout.index),
            "length": rollout.length,
            "truncated": rollout.truncated,
            "error": rollout.error,
            **({"parents": list(rollout.parents)} if rollout.parents else {}),
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
    """The reference answer if it is a text or a number, else ""."""
    return str(answer) if isinstance(answer, str | int | float) else ""


def _mean_advantages(batch: Batch) -> list[float]:
    """The mean advantage over the actions of each rollout of the batch."""
    total = batch.reward.new_zeros(len(batch.reward))
    # `batch.rollout` is the rollout of each row, and `batch.lengths` counts a rollout's actions
    total = total.index_add(0, batch.rollout, (batch.advantage * batch.mask).sum(1).to(total))
    return (total / batch.lengths.clamp(min=1)).tolist()
