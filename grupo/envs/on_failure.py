"""What becomes of a rollout that could not be judged: functions from its verdict to another."""

import math
from collections.abc import Callable
from dataclasses import replace

from grupo.core.component import piece
from grupo.core.errors import Refused
from grupo.core.types import Verdict

OnFailure = Callable[[Verdict], Verdict]


class RewardFailed(RuntimeError):
    """A reward failed, and the run was told to stop when one does."""


def drop(verdict: Verdict) -> Verdict:
    """It stays failed: the trainer leaves it out of its group."""
    return verdict


def stop(verdict: Verdict) -> Verdict:
    """The run ends with an error that says everything."""
    raise RewardFailed(verdict.failed)


@piece
class Fallback:
    """It earns `value`, and its part "failed" is 1, so that it is counted rather than hidden.

    >>> Fallback(-1.0)(Verdict(failed="it hung"))
    Verdict(reward=-1.0, parts={'failed': 1.0}, marks={}, failed='')
    """

    value: float = 0.0

    def __post_init__(self) -> None:
        if not math.isfinite(self.value):
            raise Refused(f"value: {self.value}. Allowed: a finite number.")

    def __call__(self, verdict: Verdict) -> Verdict:
        parts = {**verdict.parts, "failed": 1.0}
        return replace(verdict, reward=self.value, parts=parts, failed="")
