"""Failed rollouts, which could not be scored: they are dropped from their groups and reported."""

from collections.abc import Sequence
from typing import ClassVar

from grupo.core.types import PRUNED_BY_SAMPLER, Group
from grupo.util.exit_codes import EXIT_FAILED, CommandError


def drop_failed_rollouts(group: Group) -> Group:
    """Return the group without its failed rollouts.

    If fewer than two rollouts remain and at least one failed, the returned group has no rollouts,
    because a single rollout cannot be compared with others.
    """
    remaining = tuple(rollout for rollout in group.rollouts if not rollout.error)
    is_incomparable = len(remaining) < 2 and len(remaining) < len(group.rollouts)
    return group.with_rollouts(() if is_incomparable else remaining)


class UnscoredStepError(CommandError, RuntimeError):
    """No rollout of a step could be scored, and the recipe's `on_unscored` is "stop"."""

    exit_code: ClassVar[int] = EXIT_FAILED


def first_error(groups: Sequence[Group]) -> str:
    """Return the error of the first failed rollout, or "" if no rollout failed.

    A rollout that its sampler pruned has not failed.
    """
    errors = (rollout.error for group in groups for rollout in group.rollouts)
    return next((error for error in errors if error not in ("", PRUNED_BY_SAMPLER)), "")


def check_any_scored(step: int, groups: Sequence[Group]) -> None:
    """Raise `UnscoredStepError` if every rollout of a step failed.

    Args:
        step: Number of the step, from 1.
        groups: All groups that the step generated.
    """
    rollouts = [r for group in groups for r in group.rollouts if r.error != PRUNED_BY_SAMPLER]
    if rollouts and all(rollout.error for rollout in rollouts):
        raise UnscoredStepError(
            f"step {step}: none of {len(rollouts)} rollouts could be scored."
            f" {first_error(groups)}. Mend the reward and resume, or ignore such steps with"
            " --on-unscored continue."
        )
