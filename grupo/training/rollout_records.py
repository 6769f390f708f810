"""What the journal of rollouts holds of a step."""

from collections.abc import Sequence
from typing import Any

from grupo.core.batch import Batch
from grupo.core.types import Group


def rollout_records(
    step: int, sampled_groups: Sequence[Group], kept_groups: Sequence[Group], batch: Batch
) -> list[Any]:
    """One record for each rollout that was sampled.

    `advantage` is the mean over a rollout's actions, null for one that was not learned from.
    """
    learned = [rollout for group in kept_groups for rollout in group.rollouts]
    advantage = dict(zip(map(id, learned), _mean_advantage(batch), strict=True))
    return [
        {
            "step": step,
            "task": group.task.key,
            "prompt": group.task.prompt,
            "answer": _text(group.task.reference_answer),
            "text": rollout.text,
            "reward": rollout.reward,
            "parts": rollout.reward_terms,
            "advantage": advantage.get(id(rollout)),
            "length": rollout.length,
            "truncated": rollout.truncated,
            "failed": rollout.error,
        }
        for group in sampled_groups
        for rollout in group.rollouts
    ]


def _text(answer: Any) -> str:
    """What would have been right, where that is a text or a number."""
    return str(answer) if isinstance(answer, str | int | float) else ""


def _mean_advantage(batch: Batch) -> list[float]:
    total = batch.reward.new_zeros(len(batch.reward))
    total = total.index_add(0, batch.rollout, (batch.advantage * batch.mask).sum(1).to(total))
    return (total / batch.lengths.clamp(min=1)).tolist()
