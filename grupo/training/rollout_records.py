"""The records of a step in `rollouts.jsonl`."""

from collections.abc import Sequence
from typing import Any

from grupo.core.batch import Batch
from grupo.core.types import Group, Rollout
from grupo.training.collate import positions_in_batch
from grupo.training.token_records import observation_record


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
