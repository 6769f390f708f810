"""Rewards in stages: tool calls that parse, then the format, then the quality of the answer.

PRS, Su et al., 2025, arXiv:2512.07478; `grupo.methods.prs_vspo` has its record.
"""

import inspect
from collections.abc import Sequence
from typing import Any

from grupo.core.component import component
from grupo.core.extract_answer import Extractor, InsideTag
from grupo.core.ranges import NonNegativeFloat
from grupo.core.types import Rollout, Task
from grupo.rewards.base import PerRolloutReward, Reward, reference_text
from grupo.rewards.majority_vote import bleu


@component
class ProgressiveReward:
    """Weighted sum of three rewards, each of which counts only where those before it are 1.

    A reward scores only the rollouts that it counts for, so a judge is asked for no others.

    Args:
        calls: Whether the tool calls can be read, such as `grupo.envs.tools.ParsedCalls()`.
        format: Whether the answer has its form, such as `TagFormat()`.
        answer: The quality of the answer, from 0 to 1, such as `LengthAwareBleu()` or a judge.
        weights: The weights of the three (our choice).
    """

    calls: Reward
    format: Reward
    answer: Reward
    weights: tuple[NonNegativeFloat, NonNegativeFloat, NonNegativeFloat] = (0.1, 0.1, 0.8)

    async def __call__(self, task: Task, rollouts: Sequence[Rollout]) -> Sequence[Any]:
        scores: list[Any] = [0.0] * len(rollouts)
        reached = range(len(rollouts))
        stages = (self.calls, self.format, self.answer)
        for reward, weight in zip(stages, self.weights, strict=True):
            values = await _values(reward, task, [rollouts[i] for i in reached])
            numbers = dict(zip(reached, values, strict=True))
            for i, value in numbers.items():
                scores[i] = scores[i] + weight * value if _is_number(value) else value
            reached = [i for i, value in numbers.items() if _is_number(value) and value >= 1]
        return scores


async def _values(reward: Reward, task: Task, rollouts: Sequence[Rollout]) -> Sequence[Any]:
    """The numbers of a reward, and what it returns in place of a number."""
    returned: Any = reward(task, rollouts) if rollouts else ()
    values = await returned if inspect.isawaitable(returned) else returned
    return [value["score"] if isinstance(value, dict) else value for value in values]


def _is_number(value: Any) -> bool:
    return isinstance(value, float | int)


@component
class LengthAwareBleu(PerRolloutReward):
    """BLEU of n-grams up to min(4, words of the reference answer), times min(1, r / c).

    r and c are the words of the reference answer and of the answer, in lower case. An answer of one
    word can score 1, and words around a right answer cost more than in BLEU.

    Args:
        extract: Finds the answer in the rollout's text; no answer scores 0.

    >>> from grupo.core.types import Response
    >>> texts = ("<answer>Paris</answer>", "<answer>Paris France</answer>", "Paris")
    >>> task = Task("k", "?", "Paris")
    >>> [LengthAwareBleu().score(task, Rollout((("?", Response((), (), text=t)),))) for t in texts]
    [1.0, 0.25, 0.0]
    """

    extract: Extractor = InsideTag("answer")

    @property
    def reward_range(self) -> tuple[float, float]:
        return (0.0, 1.0)

    def score(self, task: Task, rollout: Rollout) -> float:
        answer = (self.extract(rollout.text) or "").lower()
        reference = reference_text(task).lower()
        c, r = len(answer.split()), len(reference.split())
        return bleu(answer, reference, max_order=min(4, r)) * min(1.0, r / max(1, c))
