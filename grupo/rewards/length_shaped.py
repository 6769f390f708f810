"""Correctness that is worth more or less by the length of the answer, in characters.

Half a cosine as in open-r1, and the length relative to the group as in Kimi k1.5.
"""

import inspect
import math
from collections.abc import Sequence
from typing import Any

from grupo.core.component import component
from grupo.core.ranges import Finite, PositiveInt
from grupo.core.types import Rollout, Task
from grupo.rewards.base import PerRolloutReward, Reward

CORRECT_ABOVE = 0.5  # value of the inner reward


@component
class CosineReward(PerRolloutReward):
    """r_L + (r_0 - r_L) (1 + cos(pi min(L / max_chars, 1))) / 2, L the characters of the answer.

    The defaults are those of Open-RS, Dang and Ngo (arXiv:2503.16219), where long wrong answers are
    worst.

    Args:
        correct: Above 1/2 for a correct answer.
        max_chars: Length from which the reward is r_L, in characters.
        correct_rewards: r_0 and r_L of a correct answer.
        wrong_rewards: r_0 and r_L of a wrong answer.
    """

    correct: PerRolloutReward
    max_chars: PositiveInt = 1000
    correct_rewards: tuple[Finite, Finite] = (1.0, 0.5)
    wrong_rewards: tuple[Finite, Finite] = (0.0, -0.5)

    @property
    def reward_range(self) -> tuple[float, float]:
        values = (*self.correct_rewards, *self.wrong_rewards)
        return (min(values), max(values))

    def score(self, task: Task, rollout: Rollout) -> float:
        value = self.correct.score(task, rollout)
        assert isinstance(value, int | float), "the inner reward is a plain number"
        start, end = self.correct_rewards if value > CORRECT_ABOVE else self.wrong_rewards
        progress = min(len(rollout.text) / self.max_chars, 1.0)
        return end + (start - end) * (1 + math.cos(math.pi * progress)) / 2


@component
class RelativeLength:
    """1/2 - (L - min L) / (max L - min L) within the group; at most 0 for a wrong answer.

    L is the number of characters; a group of equal lengths gets 0. Kimi k1.5 (arXiv:2501.12599),
    section 2.3.3, in the form of open-r1.

    Args:
        correct: Above 1/2 for a correct answer.

    >>> from grupo.core.types import Response
    >>> from grupo.rewards.text import ExactMatch
    >>> answers = [Rollout((("?", Response((), (), text=text)),)) for text in ("4", "44", "555")]
    >>> import asyncio
    >>> asyncio.run(RelativeLength(ExactMatch())(Task("k", "2 + 2 =", "4"), answers))
    [0.5, 0.0, -0.5]
    """

    correct: Reward

    async def __call__(self, task: Task, rollouts: Sequence[Rollout]) -> Sequence[float]:
        returned: Any = self.correct(task, rollouts)
        values = await returned if inspect.isawaitable(returned) else returned
        lengths = [len(rollout.text) for rollout in rollouts]
        shortest, longest = min(lengths), max(lengths)
        if shortest == longest:
            return [0.0] * len(rollouts)
        scores = [0.5 - (length - shortest) / (longest - shortest) for length in lengths]
        return [
            score if value > CORRECT_ABOVE else min(0.0, score)
            for score, value in zip(scores, values, strict=True)
        ]
