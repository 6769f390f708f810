"""Training in the environments of the claims with rewards of the library in place of their own.

The rewards read text: an environment's items are rendered as text first.
"""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from grupo.algo.filters import Filter
from grupo.core.component import component
from grupo.core.interfaces import Env
from grupo.core.types import Group, Rollout, Task
from grupo.evidence.claims.claim import Arm, Setting
from grupo.evidence.claims.train import EVALUATIONS, TabularRun
from grupo.method import Method

Render = Callable[[Task, Sequence[int]], str]  # the text of an answer's items


@component
class ScoredBefore:
    """Scores the groups by an environment of the library, then filters them.

    Args:
        inner: The filter.
        env: Scores the rollouts; the tabular environment's reward is the term `correct`.
        render: The text of an answer.
    """

    inner: Filter
    env: Env
    render: Render

    def __call__(self, groups: Sequence[Group]) -> Sequence[Group]:
        return self.inner([asyncio.run(self._score(group)) for group in groups])

    async def _score(self, group: Group) -> Group:
        rollouts = [_with_text(group.task, rollout, self.render) for rollout in group.rollouts]
        results = await self.env.score(group.task, rollouts)
        scored = (
            replace(
                rollout,
                reward=result.reward,
                reward_terms={**rollout.reward_terms, **result.reward_terms},
                error=result.error,
            )
            for rollout, result in zip(rollouts, results, strict=True)
        )
        return replace(group, rollouts=tuple(scored))


def items_as_text(task: Task, items: Sequence[int]) -> str:
    """The items as numbers, with spaces between them."""
    return " ".join(map(str, items))


def tabular_correct(task: Task, rollout: Rollout) -> float:
    """Whether the tabular environment found the rollout correct."""
    return rollout.reward_terms["correct"]


def _with_text(task: Task, rollout: Rollout, render: Render) -> Rollout:
    ((observation, action),) = rollout.turns
    text = render(task, action.items)
    return replace(rollout, turns=((observation, replace(action, text=text)),))


@dataclass(frozen=True)
class RewardedArm(Arm):
    """An arm whose method is given as it is; `method` is its label.

    Args:
        built: The method.
    """

    built: Method = Method()

    def build(self) -> Method:
        """The method."""
        return self.built


def train_rewarded(
    setting: Setting, arm: Arm, seed: int, select: Callable[[TabularRun], None] | None = None
) -> dict[str, float]:
    """Train an arm and return the metrics before (`start/…`) and after training.

    Args:
        setting: The conditions.
        arm: The method.
        seed: Draws the tasks and all random numbers.
        select: Changes the run before its first step, such as its training tasks.
    """
    run = TabularRun(setting, arm, seed)
    curve: list[np.ndarray] = [run.success()]
    before = run.metrics(curve * 2)
    if select:
        select(run)
    for number in range(1, EVALUATIONS + 1):
        while run.progress < number / EVALUATIONS:
            run.step()
        curve.append(run.success())
    return {f"start/{name}": value for name, value in before.items()} | run.metrics(curve)
