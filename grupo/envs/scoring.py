"""The score of a group's rollouts under reward terms."""

import asyncio
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial

from grupo.core.types import RewardResult, Rollout, Task
from grupo.envs.answer_errors import score_each
from grupo.envs.on_failure import FailureHandler
from grupo.envs.reward_parsing import failed_result, group_results, rollout_result, single_result
from grupo.envs.reward_term import RewardTerm
from grupo.envs.timeouts import CallFailure, call_all_with_timeout
from grupo.rewards import PerRolloutReward, Reward, SelfTimedReward, TRLReward, VerlBatchReward
from grupo.rewards.by_column import final_route
from grupo.util.errors import ConfigError


async def score_rollouts(
    rewards: Sequence[RewardTerm], task: Task, rollouts: Sequence[Rollout], time_limit: float
) -> list[RewardResult]:
    """Weighted sum of the reward terms of each rollout, or the error that kept one from a score.

    Args:
        rewards: The terms.
        task: The task of the rollouts.
        rollouts: The rollouts of one group.
        time_limit: Seconds that one call of a reward function may take; a `SelfTimedReward` limits
            its time itself.
    """
    by_term = await asyncio.gather(
        *(_score_term(term, task, rollouts, time_limit) for term in rewards)
    )
    return [
        _sum_of_terms(rewards, rollout, results)
        for rollout, *results in zip(rollouts, *by_term, strict=True)
    ]


def apply_failure_handler(
    task: Task, results: Iterable[RewardResult], on_failure: FailureHandler
) -> list[RewardResult]:
    """The results, with `on_failure` applied to the failed ones; errors name task and rollout."""
    handled = []
    for index, result in enumerate(results):
        if result.error:
            error = f"task {task.location or task.key}, rollout {index}: {result.error}"
            result = on_failure(replace(result, error=error))
        handled.append(result)
    return handled


async def _score_term(
    term: RewardTerm, task: Task, rollouts: Sequence[Rollout], time_limit: float
) -> Sequence[RewardResult]:
    """One term's result of every rollout, by the route of the task if the term has routes."""
    try:
        final = final_route(term.reward, task)
    except ConfigError as error:  # of a task that was not checked before the run
        return [failed_result(term, f"cannot score it: {error}")] * len(rollouts)
    if final is None:
        return await _score_reward(term, term.reward, task, rollouts, time_limit)
    name, route = final
    results = await _score_reward(term, route.reward, task, rollouts, route.time_limit)
    return [_with_route_term(term, result, name) for result in results]


def _with_route_term(term: RewardTerm, result: RewardResult, route: str) -> RewardResult:
    """The result, in which the term's value is also the value of its route."""
    if term.name not in result.reward_terms:
        return result
    terms = {**result.reward_terms, f"{term.name}/{route}": result.reward_terms[term.name]}
    return replace(result, reward_terms=terms)


async def _score_reward(
    term: RewardTerm, reward: Reward, task: Task, rollouts: Sequence[Rollout], time_limit: float
) -> Sequence[RewardResult]:
    """The results of a term's reward; a per-rollout reward has a time limit for each rollout."""
    if isinstance(reward, SelfTimedReward):
        time_limit = math.inf
    if isinstance(reward, PerRolloutReward):
        values = await score_each(reward.score, task, rollouts, time_limit)
        return [rollout_result(term, value) for value in values]
    (returned,) = await call_all_with_timeout([partial(reward, task, rollouts)], time_limit)
    may_be_answer = isinstance(returned, CallFailure) and returned.may_be_answer_error
    # functions of TRL and verl score each entry of their lists by itself; others may compare them
    if not (may_be_answer and isinstance(reward, TRLReward | VerlBatchReward)):
        return group_results(term, returned, len(rollouts))
    values = await score_each(lambda t, rollout: reward(t, [rollout]), task, rollouts, time_limit)
    return [single_result(term, value) for value in values]


def _sum_of_terms(
    rewards: Sequence[RewardTerm], rollout: Rollout, results: Sequence[RewardResult]
) -> RewardResult:
    terms: dict[str, float] = {}
    step_values: dict[str, tuple[float, ...]] = {}
    for result in results:
        terms |= result.reward_terms
        step_values |= result.step_values
    errors = [result.error for result in results if result.error]
    errors += _length_errors(step_values, rollout.length)
    if not errors and not any(term.name in terms for term in rewards):
        errors = ["no reward applies: every reward term returned None"]
    if errors:
        return RewardResult(reward_terms=terms, error="; ".join(errors))
    return RewardResult(sum(result.reward for result in results), terms, step_values)


def _length_errors(step_values: Mapping[str, tuple[float, ...]], length: int) -> list[str]:
    return [
        f"a reward returned {len(values)} step values {name!r} for {length} items"
        for name, values in step_values.items()
        if len(values) != length
    ]
