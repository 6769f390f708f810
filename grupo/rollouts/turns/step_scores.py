"""Scores of partial answers, which do not read the task's reference answer."""

from math import exp
from typing import Protocol

from grupo.core.component import component
from grupo.core.interfaces import Actor
from grupo.core.protocols import implemented_in
from grupo.core.ranges import NonEmptyString
from grupo.core.types import Rollout
from grupo.rollouts.turns.choices import mean_logp

__all__ = ["HeadValue", "StepScore", "geometric_mean_probability"]


@implemented_in("grupo.rollouts.turns.step_scores")
class StepScore(Protocol):
    """Scores a partial or finished answer."""

    async def __call__(self, actor: Actor, before: Rollout, rollout: Rollout, /) -> float:
        """The score of the steps so far; a larger score is better.

        Args:
            actor: The policy.
            before: The rollout before the turn.
            rollout: The rollout with the steps of the answer.
        """
        ...


async def geometric_mean_probability(actor: Actor, before: Rollout, rollout: Rollout) -> float:
    """exp of the mean log-probability of the turn's sampled tokens, in [0, 1]."""
    return exp(mean_logp(before, rollout))


@component
class HeadValue:
    """The output of an auxiliary head of the policy after the steps so far.

    For a finished answer, it is the output before the last token, because heads are not trained on
    the state after it.

    Args:
        head: Name of the head.
    """

    head: NonEmptyString = "value"

    @property
    def read_heads(self) -> tuple[str, ...]:
        """The name of the head."""
        return (self.head,)

    async def __call__(self, actor: Actor, before: Rollout, rollout: Rollout) -> float:
        last = rollout.last_response
        is_finished = last.finish_reason != "stop" and len(last.items) > 1
        state = actor.truncate(rollout, len(last.items) - 1) if is_finished else rollout
        return await actor.predict_head(state, self.head)
