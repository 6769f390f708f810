"""What becomes of a rollout that could not be judged: functions from its verdict to another."""

import math
from collections.abc import Callable
from dataclasses import replace

from grupo.core.component import component
from grupo.core.errors import ConfigError
from grupo.core.types import RewardResult

FailureHandler = Callable[[RewardResult], RewardResult]


class RewardError(RuntimeError):
    """A reward failed, and the run was told to stop when one does."""


def drop_rollout(result: RewardResult) -> RewardResult:
    """It stays failed: the trainer leaves it out of its group."""
    return result


def raise_error(result: RewardResult) -> RewardResult:
    """The run ends with an error that says everything."""
    raise RewardError(result.error)


@component
class FallbackReward:
    """It earns `value`, and its part "failed" is 1, so that it is counted rather than hidden.

    >>> FallbackReward(-1.0)(RewardResult(error="it hung"))
    RewardResult(reward=-1.0, reward_terms={'failed': 1.0}, step_values={}, error='')
    """

    value: float = 0.0

    def __post_init__(self) -> None:
        if not math.isfinite(self.value):
            raise ConfigError(f"value: {self.value}. Allowed: a finite number.")

    def __call__(self, result: RewardResult) -> RewardResult:
        parts = {**result.reward_terms, "failed": 1.0}
        return replace(result, reward=self.value, reward_terms=parts, error="")
