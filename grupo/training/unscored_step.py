"""The error of a step of which no rollout could be scored."""

from collections.abc import Sequence
from typing import ClassVar

from grupo.core.types import PRUNED, Group
from grupo.util.exit_codes import EXIT_FAILED, CommandError


class UnscoredStepError(CommandError, RuntimeError):
    """No rollout of a step could be scored, and the recipe's `on_unscored` is "stop"."""

    exit_code: ClassVar[int] = EXIT_FAILED


def first_error(groups: Sequence[Group]) -> str:
    """Why the first of the failed rollouts could not be scored; "" if none failed."""
    errors = (rollout.error for group in groups for rollout in group.rollouts)
    return next((error for error in errors if error not in ("", PRUNED)), "")


def check_any_scored(step: int, groups: Sequence[Group]) -> None:
    """Raise `UnscoredStepError` if every rollout of a step failed.

    Args:
        step: Number of the step, from 1.
        groups: All groups that the step generated.
    """
    rollouts = [r for group in groups for r in group.rollouts if r.error != PRUNED]
    if rollouts and all(rollout.error for rollout in rollouts):
        raise UnscoredStepError(
            f"step {step}: none of {len(rollouts)} rollouts could be scored."
            f" {first_error(groups)}. Mend the reward and resume, or train on with --on-unscored"
            " continue."
        )
