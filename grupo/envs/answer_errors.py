"""Calls of rewards for one rollout each, in which the cause of an exceeded limit is determined."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from grupo.core.types import Response, Rollout, Task
from grupo.envs.timeouts import CallFailure, call_all_with_timeout


async def score_each(
    score_rollout: Callable[[Task, Rollout], Any],
    task: Task,
    rollouts: Sequence[Rollout],
    time_limit: float,
) -> Sequence[Any]:
    """The value of each rollout, or a `CallFailure`.

    A call that exceeds a limit of time, memory or recursion is repeated once, after a control: a
    rollout whose text is the reference answer. The answer is the cause if the control stays within
    the limits and the repeated call does not. Otherwise the grader is the cause.

    Args:
        score_rollout: Scores one rollout.
        task: The task of the rollouts.
        rollouts: The rollouts.
        time_limit: Seconds that one call may take.
    """
    calls = [partial(score_rollout, task, rollout) for rollout in rollouts]
    values = list(await call_all_with_timeout(calls, time_limit))
    suspects = [index for index, value in enumerate(values) if _exceeds_limit(value)]
    if not suspects:
        return values
    control_call = partial(score_rollout, task, _control_rollout(task))
    control, *repeated = await call_all_with_timeout(
        [control_call, *(calls[index] for index in suspects)], time_limit
    )
    if not _exceeds_limit(control):
        for index, value in zip(suspects, repeated, strict=True):
            values[index] = replace(value, answer_error=True) if _exceeds_limit(value) else value
    return values


def _exceeds_limit(value: Any) -> bool:
    return isinstance(value, CallFailure) and value.exceeds_limit


def _control_rollout(task: Task) -> Rollout:
    """A rollout whose text is the reference answer, or empty if the task has none."""
    reference = task.reference_answer
    text = "" if reference is None else str(reference)
    return Rollout(((task.prompt, Response((), (), text=text)),))
