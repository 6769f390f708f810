"""The measurement of a survey: several attempts at each task, and their statistics."""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from statistics import fmean, pstdev

from grupo.core.interfaces import EnvSpec, TurnStrategy, single_response
from grupo.core.response_use import generation_only
from grupo.core.types import Group, Rollout, Task
from grupo.distributed.base import SINGLE_RANK, Ranks
from grupo.rollouts.evaluate import HasActor, SuccessCriterion, run_rollouts
from grupo.util.rng import derive_key

ROLLOUTS_AT_ONCE = 512  # whole tasks, at least one: a progress bar moves after each such part


@dataclass(frozen=True)
class TaskSurvey:
    """The statistics of the attempts at one task; NaN where no attempt could be scored.

    Args:
        key: Key of the task.
        source: Name of the family or file that the task comes from.
        location: File and line or row of the task.
        attempts: Sampled rollouts.
        failed: Those of them that could not be scored; they are left out of rates and rewards.
        pass_rate: Fraction of the scored attempts that solve the task.
        reward_mean: Mean reward.
        reward_std: Standard deviation of the rewards, divided by their number.
        length_mean: Mean number of tokens.
        length_max: Largest number of tokens.
        truncated_frac: Fraction of attempts that the token limit ended.
        entropy: Mean of -log p over all sampled tokens, in nats: an estimate of the entropy of the
            distribution that they were sampled from.
    """

    key: str
    source: str
    location: str
    attempts: int
    failed: int
    pass_rate: float
    reward_mean: float
    reward_std: float
    length_mean: float
    length_max: int
    truncated_frac: float
    entropy: float


def survey_tasks(
    policy: HasActor,
    env: EnvSpec,
    tasks: Sequence[Task],
    *,
    attempts: int = 8,
    success: Callable[[Rollout], bool] = SuccessCriterion(),
    turn_strategy: TurnStrategy = single_response,
    key: int = 0,
    ranks: Ranks = SINGLE_RANK,
) -> Iterator[list[TaskSurvey]]:
    """Yield the statistics of the tasks in their order, those of some tasks at a time.

    The attempts at a task do not depend on the tasks after it.

    Args:
        policy: Generates the rollouts.
        env: Replies to responses and scores rollouts.
        tasks: The tasks to attempt.
        attempts: Sampled rollouts per task.
        success: Decides whether a rollout solves its task.
        turn_strategy: How the policy answers one observation.
        key: Key that random streams are derived from.
        ranks: The processes that share the rollouts; each yields all statistics.
    """
    size = max(1, ROLLOUTS_AT_ONCE // attempts)
    for first in range(0, len(tasks), size):
        part = [tasks[i] for i in range(first, min(first + size, len(tasks)))]
        with generation_only():
            actor = policy.actor(derive_key(key, "survey", first))
        groups = run_rollouts(actor, env, part, attempts, turn_strategy, ranks)
        yield [task_survey(group, success) for group in groups]


def task_survey(group: Group, success: Callable[[Rollout], bool]) -> TaskSurvey:
    """The statistics of a group.

    >>> from grupo.core.types import Response
    >>> response = Response((5, 6), (-0.5, -1.5))
    >>> rollouts = [Rollout((("2 + 2", response),), reward=reward) for reward in (0.0, 1.0)]
    >>> row = task_survey(Group(Task("a", "2 + 2"), tuple(rollouts)), lambda r: r.reward == 1)
    >>> row.pass_rate, row.reward_std, row.length_mean, row.entropy
    (0.5, 0.5, 2.0, 1.0)
    """
    rollouts = group.rollouts
    scored = [rollout for rollout in rollouts if not rollout.error]
    rewards = [rollout.reward for rollout in scored]
    lengths = [rollout.length for rollout in rollouts]
    responses = [a for rollout in rollouts for _, a in rollout.turns if a.sampled]
    logp = [x for response in responses for x in response.logp]
    return TaskSurvey(
        key=group.task.key,
        source=group.task.source,
        location=group.task.location,
        attempts=len(rollouts),
        failed=len(rollouts) - len(scored),
        pass_rate=_mean([float(success(rollout)) for rollout in scored]),
        reward_mean=_mean(rewards),
        reward_std=pstdev(rewards) if rewards else math.nan,
        length_mean=_mean(lengths),
        length_max=max(lengths),
        truncated_frac=_mean([float(rollout.truncated) for rollout in rollouts]),
        entropy=-_mean(logp),
    )


def _mean(numbers: Sequence[float]) -> float:
    return fmean(numbers) if numbers else math.nan
