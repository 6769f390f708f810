"""Policies for texts that are no action of a Gymnasium environment."""

from typing import Any, Protocol

from grupo.core.component import component
from grupo.core.ranges import Finite, NonNegativeFloat
from grupo.core.types import Observation
from grupo.envs.game_env import StepResult


class ActionTaker(Protocol):
    """A session as an invalid-action policy sees it."""

    @property
    def observation(self) -> Observation:
        """The last observation."""
        ...

    def take(self, action: Any) -> StepResult:
        """Step the environment with an action."""
        ...


class InvalidActionPolicy(Protocol):
    """Decides the step result of a text that is no action."""

    def __call__(self, session: ActionTaker, /) -> StepResult:
        """The result of the step; the caller counts the invalid action."""
        ...


@component
class RepeatObservation:
    """The environment takes no step, and the policy observes the same again.

    Args:
        penalty: Subtracted from the step reward.
    """

    penalty: NonNegativeFloat = 0.0

    def __call__(self, session: ActionTaker) -> StepResult:
        return StepResult(session.observation, -self.penalty)


@component
class TakeAction:
    """The environment takes a step with a fixed action, such as one that does nothing.

    Args:
        action: The action.
        penalty: Subtracted from the step reward.
    """

    action: int
    penalty: NonNegativeFloat = 0.0

    def __call__(self, session: ActionTaker) -> StepResult:
        result = session.take(self.action)
        return result._replace(reward=result.reward - self.penalty)


@component
class EndEpisode:
    """The episode ends.

    Args:
        reward: Reward of the last step.
    """

    reward: Finite = 0.0

    def __call__(self, session: ActionTaker) -> StepResult:
        return StepResult("", self.reward, done=True)
