"""Failure handlers: functions from the result of a rollout that could not be scored to another."""

from collections.abc import Callable
from dataclasses import replace
from typing import ClassVar

from grupo.core.component import component
from grupo.core.ranges import Finite
from grupo.core.types import RewardResult
from grupo.util.exit_codes import EXIT_STOPPED, CommandError

FailureHandler = Callable[[RewardResult], RewardResult]


class RewardError(CommandError, RuntimeError):
    """A rollout could not be scored, and the failure handler is `raise_error`."""

    exit_code: ClassVar[int] = EXIT_STOPPED


def drop_rollout(result: RewardResult) -> RewardResult:
    """Keep the error: the trainer leaves the rollout out of its group."""
    return result


def raise_error(result: RewardResult) -> RewardResult:
    """End the run: raises `RewardError` with the error of the rollout."""
    raise RewardError(result.error)


@component
class FallbackReward:
    """Give failed rollouts the reward `value`; the reward term "failed" is 1, so they are counted.

    Args:
        value: Reward of a rollout that could not be scored.

    >>> FallbackReward(-1.0)(RewardResult(error="the reward raised ValueError"))
    RewardResult(reward=-1.0, reward_terms={'failed': 1.0}, step_values={}, error='')
    """

    value: Finite = 0.0

    def __call__(self, result: RewardResult) -> RewardResult:
        terms = {**result.reward_terms, "failed": 1.0}
        return replace(result, reward=self.value, reward_terms=terms, error="")
