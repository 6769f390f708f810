"""The rewards of RAIF: a format, and the constraints or the result of an answer.

yuleiqin/RAIF, ifeval/check_qa.py.
"""

import inspect
import re
from collections.abc import Mapping, Sequence
from typing import Any

from word_constraints import TAGS

from grupo.core.component import component
from grupo.core.types import Rollout, Task
from grupo.rewards import MathEqual, PerRolloutReward, last_boxed
from grupo.rewards.instruction_formats import task_constraints

FULL, NONE = 2.0, -2.0  # score of an answer that meets all constraints, and that meets none
REFERENCE = "reference_met"  # column: constraints that an answer without thoughts meets
ANSWER = re.compile(r"<think>(?P<think>.*?)</think>\s?<answer>(?P<answer>.*?)</answer>", re.DOTALL)


def split_answer(text: str) -> tuple[str, str] | None:
    """Thoughts and answer of a text in which each tag stands once and nothing is outside.

    >>> split_answer("<think>a</think><answer>b</answer>"), split_answer("<answer>b</answer>")
    (('a', 'b'), None)
    """
    match = ANSWER.fullmatch(text.strip())
    if match is None or any(text.count(tag) != 1 for tag in TAGS):
        return None
    return match["think"].strip(), match["answer"].strip()


def answer_score(met: Sequence[bool]) -> float:
    """2 if all constraints are met, -2 if none is, else their share.

    >>> answer_score([True, True]), answer_score([True, False]), answer_score([False])
    (2.0, 0.5, -2.0)
    """
    if not any(met):
        return NONE
    return FULL if all(met) else sum(met) / len(met)


@component
class ConstraintReward(PerRolloutReward):
    """1 or -1 for the format, plus the answer's score by its constraints, from -2 to 2.

    Further numbers: `answer`, its score; `met`, the constraints that it meets; `share`, their
    share; `scored`, 0 for a malformed answer or one whose thoughts are empty without being forced;
    `reference`, the value of the column `reference_met`.
    """

    @property
    def reward_range(self) -> tuple[float, float]:
        return (NONE - 1, FULL + 1)

    def score(self, task: Task, rollout: Rollout) -> Mapping[str, float]:
        parts = split_answer(rollout.text)
        is_forced = bool(rollout.turns) and not rollout.turns[0][1].in_loss
        scored = parts is not None and bool(parts[0] or is_forced)
        constraints = task_constraints(task)
        met = [bool(parts and scored and holds(parts[1])) for holds in constraints]
        answer = answer_score(met)
        return {
            "score": answer + (1.0 if parts else -1.0),
            "answer": answer,
            "met": float(sum(met)),
            "share": sum(met) / len(met),
            "scored": float(scored),
            "reference": float(task.columns.get(REFERENCE, 0.0)),
        }


@component
class MathReward(PerRolloutReward):
    r"""1 or -1 for the format, plus 2 for a right answer, -1.5 for a wrong one, -2 without \boxed.

    Args:
        correct: Scores the answer: above 1/2 if it is right.
    """

    correct: PerRolloutReward = MathEqual()

    async def score(self, task: Task, rollout: Rollout) -> float:
        form = 1.0 if split_answer(rollout.text) else -1.0
        if last_boxed(rollout.text) is None:
            return form + NONE
        value: Any = self.correct.score(task, rollout)
        value = await value if inspect.isawaitable(value) else value
        return form + (FULL if value > 0.5 else -1.5)
