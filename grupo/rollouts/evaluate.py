"""Evaluation: fraction of tasks solved greedily, by sampling, and at least once in k attempts."""

import asyncio
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np

from grupo.core.answer_use import untrained_answers
from grupo.core.component import component
from grupo.core.interfaces import Actor, EnvSpec, TurnStrategy, open_env, single_response
from grupo.core.types import Group, Rollout, Task
from grupo.distributed.base import SINGLE_RANK, Ranks
from grupo.distributed.exchange import exchange_groups, exchange_json, share_of_rank
from grupo.distributed.phase import Phase
from grupo.rollouts.demonstration_scores import DemonstrationScores
from grupo.rollouts.eval_scores import pass_ks
from grupo.rollouts.samplers import GroupSampler, Sampler
from grupo.util.event_loop import run_coroutine


class HasActor(Protocol):
    """Provides an actor; a policy is one."""

    def actor(self, key: int) -> Actor:
        """A handle for generating, with random streams derived from `key`."""
        ...


TOTAL_REWARD = "total"  # in place of the name of a reward term


@component
class SuccessCriterion:
    """A rollout solves its task if one reward term, without its weight, is at least `min_reward`.

    Args:
        reward_term: Name of the reward term; "total" is the total reward. "" is the first reward
            term of the recipe's environment, or the total reward if it states none.
        min_reward: Smallest value that counts as solved.
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


@dataclass(frozen=True)
class Proportion:
    """A fraction of tasks with the bounds of its 95 % bootstrap interval over tasks.

    The numbers are NaN if no rollout could be scored.
    """

    value: float
    low: float
    high: float

    @property
    def is_scored(self) -> bool:
        """Whether a rollout could be scored."""
        return not math.isnan(self.value)

    def __str__(self) -> str:
        if not self.is_scored:
            return NOT_SCORED
        return f"{self.value:.3f} [{self.low:.3f}, {self.high:.3f}]"


NOT_SCORED = "not scored"  # takes the place of a proportion if no rollout could be scored


@dataclass(frozen=True)
class EvalResult:
    """The scores of an evaluation.

    Args:
        greedy: Fraction of tasks that the greedy attempt solves.
        sampled: Mean over tasks of the fraction of sampled attempts that solve the task.
        pass_at_k: For each k, the estimated fraction of tasks solved at least once in k attempts.
        num_failed: Rollouts that could not be scored; these count as not solved. A proportion all
            of whose rollouts failed is not scored.
        num_generated: Tokens (or denoising steps) generated for all attempts.
        first_error: Why the first of the failed rollouts could not be scored.
        demonstrations: The scores of held-out demonstrations; None if none were evaluated.
    """

    greedy: Proportion
    sampled: Proportion
    pass_at_k: Mapping[int, Proportion]
    num_failed: int = 0
    num_generated: int = 0
    first_error: str = ""
    demonstrations: DemonstrationScores | None = None

    def to_data(self) -> dict[str, Any]:
        """The scores by name, their intervals, and the number of failed rollouts.

        Proportions that are not scored are left out.
        """
        named = {"greedy": self.greedy, "sampled": self.sampled}
        named |= {f"pass@{k}": score for k, score in self.pass_at_k.items()}
        scores = {name: score for name, score in named.items() if score.is_scored}
        values = {name: score.value for name, score in scores.items()}
        intervals = {name: [score.low, score.high] for name, score in scores.items()}
        values |= self.demonstrations.to_data() if self.demonstrations else {}
        return {**values, "intervals": intervals, "failed": self.num_failed}

    def __str__(self) -> str:
        shown = [str(self.demonstrations)] * bool(self.demonstrations)
        if self.pass_at_k:
            shown += [f"greedy {self.greedy}", f"sampled {self.sampled}"]
        best = max(self.pass_at_k, default=1)
        if best > 1 and self.sampled.is_scored:
            shown.append(f"pass@{best} {self.pass_at_k[best]}")
        failed = f"; {self.num_failed} could not be scored" if self.num_failed else ""
        return ", ".join(shown) + failed


NOT_SAMPLED = Proportion(math.nan, math.nan, math.nan)
NO_ATTEMPTS = EvalResult(NOT_SAMPLED, NOT_SAMPLED, {})  # of an evaluation without attempts


def evaluate(
    policy: HasActor,
    env: EnvSpec,
    tasks: Sequence[Task],
    *,
    attempts: int = 8,
    success: Callable[[Rollout], bool] = SuccessCriterion(),
    turn_strategy: TurnStrategy = single_response,
    key: int = 0,
    ranks: Ranks = SINGLE_RANK,
) -> EvalResult:
    """Attempt every task once greedily and several times by sampling.

    Args:
        policy: Generates the rollouts.
        env: Replies to responses and scores rollouts.
        tasks: The tasks to attempt.
        attempts: Sampled rollouts per task; 0 generates nothing.
        success: Decides whether a rollout solves its task.
        turn_strategy: How the policy answers one observation, e.g. with a token budget.
        key: Key that random streams are derived from.
        ranks: The processes that share the tasks; every rank returns the result of all.
    """
    if not attempts:
        return NO_ATTEMPTS
    with untrained_answers():
        actor = policy.actor(key)
    greedy_actor = actor.fork("greedy").with_sampling(top_k=1)
    greedy = run_rollouts(greedy_actor, env, tasks, 1, turn_strategy, ranks)
    sampled = run_rollouts(actor.fork("sampled"), env, tasks, attempts, turn_strategy, ranks)
    num_generated = sum(actor.generated_tokens.values())
    num_generated = sum(exchange_json(ranks, num_generated, Phase.EVALUATION_ENDED, "generate"))
    return scores_of_groups(
        greedy, sampled, attempts=attempts, success=success, num_generated=num_generated
    )


def scores_of_groups(
    greedy: Sequence[Group],
    sampled: Sequence[Group],
    *,
    attempts: int,
    success: Callable[[Rollout], bool],
    num_generated: int,
) -> EvalResult:
    """The scores of attempts at the same tasks, which were generated before.

    Args:
        greedy: One greedy attempt at each task.
        sampled: Sampled attempts at each task.
        attempts: Their number for each task.
        success: Decides whether a rollout solves its task.
        num_generated: Tokens that were generated for all attempts.
    """
    num_solved = [sum(map(success, group.rollouts)) for group in sampled]
    ks = pass_ks(attempts)
    errors = [r.error for group in (*greedy, *sampled) for r in group.rollouts if r.error]
    return EvalResult(
        _proportion([float(success(group.rollouts[0])) for group in greedy], greedy),
        _proportion([n / attempts for n in num_solved], sampled),
        {k: _proportion([pass_at_k(k, attempts, n) for n in num_solved], sampled) for k in ks},
        len(errors),
        num_generated,
        errors[0] if errors else "",
    )


def _proportion(values: Sequence[float], groups: Sequence[Group]) -> Proportion:
    """The mean of one value per task with its interval; not scored if every rollout failed."""
    if all(rollout.error for group in groups for rollout in group.rollouts):
        return NOT_SAMPLED
    return bootstrap_proportion(values)


def run_rollouts(
    actor: Actor,
    env: EnvSpec,
    tasks: Sequence[Task],
    attempts: int,
    turn_strategy: TurnStrategy = single_response,
    ranks: Ranks = SINGLE_RANK,
) -> list[Group]:
    """Generate and score a group of `attempts` rollouts for every task.

    A task's own `group_size` is ignored, and unchanged in the group that is returned.
    """
    resized = [replace(task, group_size=attempts) for task in tasks]
    groups = sample_groups(actor, env, resized, GroupSampler(attempts, turn_strategy), ranks)
    return [replace(group, task=task) for group, task in zip(groups, tasks, strict=True)]


def sample_groups(
    actor: Actor,
    env: EnvSpec,
    tasks: Sequence[Task],
    sampler: Sampler,
    ranks: Ranks = SINGLE_RANK,
) -> list[Group]:
    """Generate and score the group that a sampler makes for every task."""
    own = share_of_rank(ranks, len(tasks))

    async def run_own() -> list[Group]:
        opened = open_env(env)
        return list(await asyncio.gather(*(sampler(tasks[i], opened, actor.fork(i)) for i in own)))

    groups = dict(zip(own, run_coroutine(run_own()), strict=True))
    return exchange_groups(ranks, groups, tasks, Phase.EVALUATION_GENERATED, "generate")


def pass_at_k(k: int, attempts: int, num_correct: int) -> float:
    """Probability that k of n attempts include a correct one: 1 - C(n-c, k) / C(n, k).

    Unbiased if c of n sampled attempts were correct. Chen et al., 2021, arXiv:2107.03374, eq. 1.

    Args:
        k: Number of attempts drawn without replacement.
        attempts: n, the number of sampled attempts.
        num_correct: c, the number of correct attempts among them.

    >>> pass_at_k(2, 4, 1)
    0.5
    """
    return 1 - math.comb(attempts - num_correct, k) / math.comb(attempts, k)


def bootstrap_proportion(values: Sequence[float], resamples: int = 2000) -> Proportion:
    """The mean over tasks with its 95 % bootstrap interval.

    Args:
        values: One value per task.
        resamples: Number of bootstrap resamples; their random stream is fixed.
    """
    x = np.asarray(values, dtype=np.float64)
    draws = np.random.default_rng(0).integers(0, len(x), (resamples, len(x)))
    low, high = np.quantile(x[draws].mean(1), [0.025, 0.975])
    return Proportion(float(x.mean()), float(low), float(high))
