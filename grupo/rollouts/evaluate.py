"""Evaluation: fractions of tasks that a policy solves greedily, by sampling, and in k attempts."""

import asyncio
import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Protocol

from grupo.core.component import component
from grupo.core.interfaces import Actor, EnvSpec, TurnStrategy, open_env, single_response
from grupo.core.response_use import generation_only
from grupo.core.types import Group, Rollout, Task
from grupo.distributed.base import SINGLE_RANK, Ranks
from grupo.distributed.exchange import exchange_groups, exchange_json, share_of_rank
from grupo.distributed.phase import Phase
from grupo.rollouts.eval_result import (
    RESULT_WITHOUT_ATTEMPTS,
    UNSCORED_PROPORTION,
    EvalResult,
    Proportion,
    bootstrap_proportion,
)
from grupo.rollouts.eval_scores import pass_at_k_values
from grupo.rollouts.samplers import GroupSampler, Sampler
from grupo.util.event_loop import run_coroutine


class HasActor(Protocol):
    """An object that makes actors, such as a policy."""

    def actor(self, key: int) -> Actor:
        """An actor whose random streams are derived from `key`."""
        ...


TOTAL_REWARD = "total"  # value of `SuccessCriterion.reward_term` for the weighted sum of all terms


@component
class SuccessCriterion:
    """A rollout solves its task if a reward term, without its weight, is at least `min_reward`.

    Args:
        reward_term: Name of the reward term; "total" is the weighted sum of all terms. A run
            replaces the default "" by the first reward term of the environment
            (`with_default_reward_term`). Where nothing replaced it, "" means "total".
        min_reward: Smallest value with which a rollout solves its task.
    """

    reward_term: str = ""
    min_reward: float = 1.0

    def __call__(self, rollout: Rollout) -> bool:
        value = rollout.reward
        if self.reward_term not in ("", TOTAL_REWARD):
            value = rollout.reward_terms.get(self.reward_term, math.nan)
        return value >= self.min_reward - 1e-9

    def __str__(self) -> str:
        return f"{self.reward_term or TOTAL_REWARD} >= {self.min_reward:g}"


def evaluate(
    policy: HasActor,
    env: EnvSpec,
    tasks: Sequence[Task],
    *,
    num_attempts: int = 8,
    success: Callable[[Rollout], bool] = SuccessCriterion(),
    turn_strategy: TurnStrategy = single_response,
    key: int = 0,
    ranks: Ranks = SINGLE_RANK,
) -> EvalResult:
    """Attempt every task once greedily and several times by sampling.

    Args:
        policy: Generates the rollouts.
        env: The environment, which replies to responses and scores rollouts.
        tasks: The tasks to attempt.
        num_attempts: Number of sampled rollouts per task; with 0, the result has no scores.
        success: Decides whether a rollout solves its task.
        turn_strategy: Generates the response to one observation. By default one call of the actor;
            another strategy may limit the thinking tokens.
        key: Number from which the random streams are derived.
        ranks: The processes that share the tasks. Every rank returns the scores over all tasks.
    """
    if not num_attempts:
        return RESULT_WITHOUT_ATTEMPTS
    with generation_only():  # an actor made here never keeps activations for an update
        actor = policy.actor(key)
    greedy_actor = actor.fork("greedy").with_sampling(top_k=1)
    greedy_groups = run_rollouts(greedy_actor, env, tasks, 1, turn_strategy, ranks)
    sampled_groups = run_rollouts(
        actor.fork("sampled"), env, tasks, num_attempts, turn_strategy, ranks
    )
    # the greedy and the sampling actor are forks, which add their tokens to the counts of `actor`
    own_counts = [sum(actor.generated_tokens.values()), sum(actor.read_tokens.values())]
    counts = exchange_json(ranks, own_counts, Phase.EVALUATION_ENDED, channel="generate")
    return scores_of_groups(
        greedy_groups,
        sampled_groups,
        num_attempts=num_attempts,
        success=success,
        num_generated_actions=sum(generated for generated, _ in counts),
        num_read_tokens=sum(read for _, read in counts),
    )


def scores_of_groups(
    greedy_groups: Sequence[Group],
    sampled_groups: Sequence[Group],
    *,
    num_attempts: int,
    success: Callable[[Rollout], bool],
    num_generated_actions: int,
    num_read_tokens: int = 0,
) -> EvalResult:
    """The scores of finished attempts.

    Args:
        greedy_groups: For each task, a group of one greedy rollout.
        sampled_groups: For each task, in the same order, a group of sampled rollouts.
        num_attempts: Number of sampled rollouts per task.
        success: Decides whether a rollout solves its task.
        num_generated_actions: Number of tokens (or denoising steps) generated for all attempts.
        num_read_tokens: Number of prompt tokens computed for all attempts.
    """
    num_solved = [sum(map(success, group.rollouts)) for group in sampled_groups]
    all_rollouts = [r for group in (*greedy_groups, *sampled_groups) for r in group.rollouts]
    errors = [rollout.error for rollout in all_rollouts if rollout.error]
    greedy_solved = [float(success(group.rollouts[0])) for group in greedy_groups]
    return EvalResult(
        greedy=_proportion(greedy_solved, greedy_groups),
        sampled=_proportion([n / num_attempts for n in num_solved], sampled_groups),
        pass_at_k={
            k: _proportion([pass_at_k(k, num_attempts, n) for n in num_solved], sampled_groups)
            for k in pass_at_k_values(num_attempts)
        },
        num_failed=len(errors),
        num_generated_actions=num_generated_actions,
        num_read_tokens=num_read_tokens,
        num_attempts=len(all_rollouts),
        first_error=errors[0] if errors else "",
    )


def _proportion(values: Sequence[float], groups: Sequence[Group]) -> Proportion:
    """The mean of `values`, one per task, with its interval; NaN if every rollout failed."""
    if all(rollout.error for group in groups for rollout in group.rollouts):
        return UNSCORED_PROPORTION
    return bootstrap_proportion(values)


def run_rollouts(
    actor: Actor,
    env: EnvSpec,
    tasks: Sequence[Task],
    num_attempts: int,
    turn_strategy: TurnStrategy = single_response,
    ranks: Ranks = SINGLE_RANK,
) -> list[Group]:
    """Generate and score a group of `num_attempts` rollouts for every task.

    The groups have this size even if `task.group_size` is another number. The task of a returned
    group is the given task, with its `group_size` unchanged.
    """
    resized = [replace(task, group_size=num_attempts) for task in tasks]
    groups = sample_groups(actor, env, resized, GroupSampler(num_attempts, turn_strategy), ranks)
    return [replace(group, task=task) for group, task in zip(groups, tasks, strict=True)]


def sample_groups(
    actor: Actor,
    env: EnvSpec,
    tasks: Sequence[Task],
    sampler: Sampler,
    ranks: Ranks = SINGLE_RANK,
) -> list[Group]:
    """Use the sampler to generate and score one group for every task."""
    indices = share_of_rank(ranks, len(tasks))

    async def sample_share() -> list[Group]:
        opened_env = open_env(env)
        return list(
            await asyncio.gather(*(sampler(tasks[i], opened_env, actor.fork(i)) for i in indices))
        )

    groups = dict(zip(indices, run_coroutine(sample_share()), strict=True))
    phase = Phase.EVALUATION_GENERATED
    return exchange_groups(ranks, groups, tasks, phase, channel="generate")


def pass_at_k(k: int, num_attempts: int, num_correct: int) -> float:
    """The probability that k of n attempts include a correct one: 1 - C(n - c, k) / C(n, k).

    This is an unbiased estimate of the probability that k new attempts include a correct one.
    Chen et al., 2021, arXiv:2107.03374, eq. 1.

    Args:
        k: Number of attempts drawn without replacement.
        num_attempts: n, the number of sampled attempts.
        num_correct: c, the number of correct attempts among the n sampled attempts.

    >>> pass_at_k(2, 4, 1)
    0.5
    """
    return 1 - math.comb(num_attempts - num_correct, k) / math.comb(num_attempts, k)
