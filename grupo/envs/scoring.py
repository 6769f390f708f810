"""Named rewards, and what they make of the rollouts of a group."""

import asyncio
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from grupo.core.component import component
from grupo.core.errors import ConfigError
from grupo.core.types import RewardResult, Rollout, Task
from grupo.envs.on_failure import FailureHandler
from grupo.envs.reward_parsing import ParsedReward, parse_group_rewards, parse_rollout_reward
from grupo.envs.timeouts import call_all_with_timeout
from grupo.rewards import Reward, as_reward
from grupo.rewards.reward_function import rollout_scorer

RESERVED_NAMES = ("failed", "mean", "std")  # numbers of other meaning are logged by these names


@component
class RewardTerm:
    """A reward by name, and how much it counts; a plain function is adapted."""

    name: str
    fn: Reward | Callable[..., Any]
    weight: float = 1.0

    def __post_init__(self) -> None:
        if not self.name or "/" in self.name or self.name in RESERVED_NAMES:
            raise ConfigError(
                f"name: {self.name!r}. Allowed: any without '/', but {RESERVED_NAMES}."
            )
        if not math.isfinite(self.weight):
            raise ConfigError(f"weight: {self.weight}. Allowed: a finite number.")
        object.__setattr__(self, "reward", as_reward(self.fn))


def check_time_limit(time_limit: float) -> None:
    """Refuse a time limit that is none."""
    if not 0 < time_limit < math.inf:
        raise ConfigError(f"time_limit: {time_limit}. Allowed: seconds above 0.")


async def score_rollouts(
    rewards: Sequence[RewardTerm], task: Task, rollouts: Sequence[Rollout], time_limit: float
) -> list[RewardResult]:
    """The weighted sum of what every reward says of each rollout, or why one has failed.

    No reward may take longer than `time_limit` seconds.
    """
    by_part = await asyncio.gather(
        *(_score_term(part, task, rollouts, time_limit) for part in rewards)
    )
    return [
        _reward_result(rewards, rollout, marks)
        for rollout, *marks in zip(rollouts, *by_part, strict=True)
    ]


def apply_failure_handler(
    task: Task, results: Iterable[RewardResult], on_failure: FailureHandler
) -> list[RewardResult]:
    """The verdicts on a task's rollouts, those that failed by name and as `on_failure` decides."""
    return [
        on_failure(replace(v, error=f"task {task.key}, rollout {number}: {v.error}"))
        if v.error
        else v
        for number, v in enumerate(results)
    ]


async def _score_term(
    term: RewardTerm, task: Task, rollouts: Sequence[Rollout], time_limit: float
) -> Sequence[ParsedReward]:
    """What one part says of every rollout, each with a time limit of its own where it can."""
    judge = rollout_scorer(term.fn)
    if judge is None:
        (said,) = await call_all_with_timeout([partial(term.fn, task, rollouts)], time_limit)
        return parse_group_rewards(said, len(rollouts))
    calls = [partial(judge, task, rollout) for rollout in rollouts]
    return [parse_rollout_reward(said) for said in await call_all_with_timeout(calls, time_limit)]


def _reward_result(
    rewards: Sequence[RewardTerm], rollout: Rollout, parsed_rewards: Sequence[ParsedReward]
) -> RewardResult:
    pairs = list(zip(rewards, parsed_rewards, strict=True))
    applying = [(part, mark) for part, mark in pairs if mark.applies and not mark.error]
    parts = {part.name: mark.score for part, mark in applying}
    more = {f"{p.name}/{name}": x for p, mark in pairs for name, x in mark.extra_terms.items()}
    failed = [f"reward {p.name!r} {mark.error}" for p, mark in pairs if mark.error]
    of_actions = {name: x for _, mark in pairs for name, x in mark.step_values.items()}
    failed += _length_errors(of_actions, rollout.length)
    if not failed and not applying:
        failed = ["no reward applies: each said None"]
    if failed:
        return RewardResult(reward_terms={**parts, **more}, error="; ".join(failed))
    reward = sum(part.weight * mark.score for part, mark in applying)
    return RewardResult(reward, {**parts, **more}, of_actions)


def _length_errors(step_values: Mapping[str, tuple[float, ...]], length: int) -> list[str]:
    return [
        f"a reward gave {len(x)} numbers by the name {name!r} for {length} actions"
        for name, x in step_values.items()
        if len(x) != length
    ]
