"""What a frozen model's answers score with hints that a function writes, without any training."""

from collections.abc import Callable, Sequence
from statistics import fmean

from grupo.core.types import Task
from grupo.rewards import Downstream
from grupo.rewards.base import answer_rollout
from grupo.util.event_loop import run_coroutine


def mean_score(reward: Downstream, tasks: Sequence[Task], hint: Callable[[Task], str]) -> float:
    """The mean score of the frozen model's answers.

    Args:
        reward: Asks the frozen model and scores its answer.
        tasks: The tasks.
        hint: The hint for a task.

    Raises:
        JudgeError: The model did not reply.
    """
    scores = list[float]()
    for task in tasks:
        (value,) = run_coroutine(reward(task, [answer_rollout(task, hint(task))]))
        if not isinstance(value, float):
            raise value if isinstance(value, Exception) else TypeError(value)
        scores.append(value)
    return fmean(scores)
