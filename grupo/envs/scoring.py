"""Reward terms, and the score of a group's rollouts under them."""

import asyncio
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from grupo.core.component import component
from grupo.core.ranges import Finite
from grupo.core.types import RewardResult, Rollout, Task
from grupo.envs.answer_errors import score_each
from grupo.envs.on_failure import FailureHandler
from grupo.envs.reward_parsing import ParsedReward, parse_group_rewards, parse_rollout_reward
from grupo.envs.timeouts import CallFailure, call_all_with_timeout
from grupo.rewards import Reward, as_reward
from grupo.rewards.by_column import final_route
from grupo.rewards.reward_function import limits_own_time, rollout_scorer, single_list_scorer
from grupo.util.errors import ConfigError

# `reward/<name>` is another metric for these
RESERVED_NAMES = ("answer_error", "failed", "mean", "std", "total")


@component
class RewardTerm:
    """A named, weighted component of the reward.

    Args:
        name: Its key in `Rollout.reward_terms`, and in the metrics as `reward/<name>`.
        fn: A reward, or a plain function in one of the signatures of `grupo.rewards.as_reward`.
        weight: Its weight in the total reward; 0 measures it only.
        answer_error_score: Its value for an answer that makes `fn` exceed a limit of time, memory
            or recursion; at most the value of a wrong answer, or hanging `fn` would be rewarded.
    """

    name: str
    fn: Reward | Callable[..., Any]
    weight: Finite = 1.0
    answer_error_score: Finite = 0.0

    def __post_init__(self) -> None:
        if not self.name or "/" in self.name or self.name in RESERVED_NAMES:
            raise ConfigError(
                f"name: {self.name!r}. Allowed: a name without '/' that is none of"
                f" {RESERVED_NAMES}."
            )
        object.__setattr__(self, "fn", as_reward(self.fn))


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
        _reward_result(rewards, rollout, parsed_rewards)
        for rollout, *parsed_rewards in zip(rollouts, *by_term, strict=True)
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
) -> Sequence[ParsedReward]:
    """One term's value of every rollout, by the route of the task if the term has routes."""
    try:
        route = final_route(term.fn, task)
    except ConfigError as error:  # of a task that was not checked before the run
        return [ParsedReward(error=f"cannot score it: {error}")] * len(rollouts)
    if route is None:
        return await _score_reward(term, task, rollouts, time_limit)
    routed_term = replace(term, fn=route.reward)
    parsed_rewards = await _score_reward(routed_term, task, rollouts, route.time_limit)
    return [_with_route_term(parsed, route.value) for parsed in parsed_rewards]


def _with_route_term(parsed: ParsedReward, name: str) -> ParsedReward:
    """The value, which is also the extra term of its route."""
    if parsed.error or not parsed.applies:
        return parsed
    return replace(parsed, extra_terms={**parsed.extra_terms, name: parsed.score})


async def _score_reward(
    term: RewardTerm, task: Task, rollouts: Sequence[Rollout], time_limit: float
) -> Sequence[ParsedReward]:
    """One reward's values; a per-rollout reward has a time limit for each rollout."""
    score_rollout = rollout_scorer(term.fn)
    if limits_own_time(term.fn):
        time_limit = math.inf
    if score_rollout is None:
        return await _score_group(term, task, rollouts, time_limit)
    values = await score_each(score_rollout, task, rollouts, time_limit)
    return [_parse_value(term, value, parse_rollout_reward) for value in values]


async def _score_group(
    term: RewardTerm, task: Task, rollouts: Sequence[Rollout], time_limit: float
) -> Sequence[ParsedReward]:
    """Values of a group reward; if it exceeds a limit, those of one call for each rollout."""
    (returned,) = await call_all_with_timeout([partial(term.fn, task, rollouts)], time_limit)
    may_be_answer = isinstance(returned, CallFailure) and returned.may_be_answer_error
    score_alone = single_list_scorer(term.fn) if may_be_answer else None
    if score_alone is None:
        return parse_group_rewards(returned, len(rollouts))
    values = await score_each(score_alone, task, rollouts, time_limit)
    return [_parse_value(term, value, _parse_single) for value in values]


def _parse_single(returned: Any) -> ParsedReward:
    (parsed,) = parse_group_rewards(returned, 1)
    return parsed


def _parse_value(
    term: RewardTerm, value: Any, parse: Callable[[Any], ParsedReward]
) -> ParsedReward:
    if isinstance(value, CallFailure) and value.answer_error:
        return ParsedReward(term.answer_error_score, answer_error=True)
    return parse(value)


def _reward_result(
    rewards: Sequence[RewardTerm], rollout: Rollout, parsed_rewards: Sequence[ParsedReward]
) -> RewardResult:
    pairs = list(zip(rewards, parsed_rewards, strict=True))
    scored = [(term, parsed) for term, parsed in pairs if parsed.applies and not parsed.error]
    terms = {term.name: parsed.score for term, parsed in scored}
    if any(parsed.answer_error for parsed in parsed_rewards):
        terms["answer_error"] = 1.0
    step_values: dict[str, tuple[float, ...]] = {}
    for term, parsed in pairs:
        terms |= {f"{term.name}/{name}": value for name, value in parsed.extra_terms.items()}
        step_values |= parsed.step_values
    errors = [f"reward {term.name!r} {parsed.error}" for term, parsed in pairs if parsed.error]
    errors += _length_errors(step_values, rollout.length)
    if not errors and not scored:
        errors = ["no reward applies: every reward term returned None"]
    if errors:
        return RewardResult(reward_terms=terms, error="; ".join(errors))
    reward = sum(term.weight * parsed.score for term, parsed in scored)
    return RewardResult(reward, terms, step_values)


def _length_errors(step_values: Mapping[str, tuple[float, ...]], length: int) -> list[str]:
    return [
        f"a reward returned {len(values)} step values {name!r} for {length} items"
        for name, values in step_values.items()
        if len(values) != length
    ]
