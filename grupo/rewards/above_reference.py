"""Rewards of open answers: how far a score exceeds that of the reference answer.

VLAA-Thinker, Chen et al., 2025, arXiv:2504.11468.
"""

import math
from collections.abc import Sequence
from typing import Any

from grupo.core.component import component
from grupo.core.extract_answer import Extractor, answer_after_thoughts
from grupo.core.ranges import PositiveFloat
from grupo.core.types import Rollout, Task
from grupo.rewards.base import (
    Reward,
    RewardValue,
    answer_rollout,
    reference_text,
    scored_values,
)


@component
class AboveReference:
    """1 - exp(-coef (f(answer) - f(reference answer))) where the answer scores more, else 0.

    f sees the extracted answer alone behind the prompt, as it sees the reference answer. A rollout
    without an answer scores 0.

    Args:
        inner: The score f of a rollout, such as `LearnedReward` or a judge.
        coef: How soon the reward approaches 1.
        extract: Finds the answer in the rollout's text.

    >>> round(excess_reward(0.8, coef=0.5), 4), excess_reward(-0.8, coef=0.5)
    (0.3297, 0.0)
    """

    inner: Reward
    coef: PositiveFloat = 0.5
    extract: Extractor = answer_after_thoughts

    async def __call__(
        self, task: Task, rollouts: Sequence[Rollout]
    ) -> Sequence[RewardValue | Exception]:
        answers = [self.extract(rollout.text) for rollout in rollouts]
        texts = [reference_text(task), *(answer or "" for answer in answers)]
        answered = [answer_rollout(task, text) for text in texts]
        reference, *scores = await scored_values(self.inner, task, answered)
        return [
            self._reward(score, reference) if answer else 0.0
            for answer, score in zip(answers, scores, strict=True)
        ]

    def _reward(self, score: Any, reference: Any) -> RewardValue | Exception:
        """The reward of a score; an exception of either as it is."""
        for value in (score, reference):
            if isinstance(value, Exception):
                return value
        return excess_reward(_number(score) - _number(reference), self.coef)


def excess_reward(excess: float, coef: float) -> float:
    """1 - exp(-coef excess), and 0 for an excess that is not above 0.

    Args:
        excess: The difference of two scores.
        coef: How soon the reward approaches 1.
    """
    return 1 - math.exp(-coef * excess) if excess > 0 else 0.0


def _number(value: Any) -> float:
    return float(value["score"] if isinstance(value, dict) else value)
