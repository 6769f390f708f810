"""Comparison of turn strategies at equal tokens, with self-consistency as the yardstick."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from grupo.core.extract_answer import Extractor
from grupo.core.interfaces import EnvSpec, TurnStrategy, single_response
from grupo.core.types import Rollout, Task
from grupo.rollouts.evaluate import HasActor, Proportion, bootstrap_proportion
from grupo.rollouts.strategy_attempts import (
    AttemptProgress,
    NoProgress,
    StrategyAttempts,
    attempt_tasks,
)
from grupo.rollouts.vote_curve import AccuracyByAttempts, likeliest_curve, vote_curve
from grupo.util.statistics import Interval, bootstrap_mean

# Largest number of attempts with which self-consistency is measured, unless `attempts_per_task` is
# larger. A strategy that costs more tokens than all these attempts is compared with all of them.
MAX_BASELINE_ATTEMPTS = 64
GREEDY, SINGLE = "greedy", "single attempts"


@dataclass(frozen=True)
class AtEqualTokens:
    """The paired difference between a strategy and self-consistency with the same tokens.

    Args:
        attempts: The number of attempts at which self-consistency costs as many tokens as the
            strategy. It may be a fraction; the accuracy is then interpolated between the two
            nearest whole numbers.
        is_clamped: True if the strategy costs fewer tokens than one attempt, or more than the
            largest measured number of attempts. The strategy is then compared with one attempt, or
            with the largest number.
        baseline: Accuracy of self-consistency.
        difference: Accuracy of the strategy minus that of self-consistency, paired by task.
    """

    attempts: float
    is_clamped: bool
    baseline: float
    difference: Interval

    @property
    def verdict(self) -> str:
        """ "below", "above", or "no difference shown" if the interval contains 0."""
        if self.difference.high < 0:
            return "below"
        return "above" if self.difference.low > 0 else "no difference shown"

    def to_data(self) -> dict[str, Any]:
        """The comparison by name."""
        return {
            "attempts": self.attempts,
            "is_clamped": self.is_clamped,
            "self_consistency": self.baseline,
            "difference": vars(self.difference),
            "verdict": self.verdict,
        }


@dataclass(frozen=True)
class StrategyResult:
    """The accuracy of a strategy, and what an answer costs.

    Args:
        name: The strategy as the user spells it.
        accuracy: Fraction of attempts that solve their task, with its interval over tasks.
        tokens: Generated and read tokens per answer, by name.
        details: Tokens by role, the counts that the strategy reports (such as calls of another
            model, or how often each option was chosen), seconds per answer and failed attempts.
            {} for self-consistency and best-of-n, which are computed from the attempts of
            `single_response`.
        difference_to_first: Difference to the first strategy, paired by task; None for the first
            strategy.
        at_equal_tokens: Comparison with self-consistency; None for a baseline and for
            `single_response`, which is self-consistency with one attempt.
    """

    name: str
    accuracy: Proportion
    tokens: Mapping[str, float]
    details: Mapping[str, Any]
    difference_to_first: Interval | None = None
    at_equal_tokens: AtEqualTokens | None = None

    @property
    def all_tokens(self) -> float:
        """Generated and read tokens per answer together."""
        return sum(self.tokens.values())

    def to_data(self) -> dict[str, Any]:
        """The result by name."""
        data = {
            "name": self.name,
            "solved": self.accuracy.value,
            "interval": [self.accuracy.low, self.accuracy.high],
            "tokens_per_answer": dict(self.tokens),
            **self.details,
        }
        if self.difference_to_first:
            data["difference_to_first"] = vars(self.difference_to_first)
        if self.at_equal_tokens:
            data["at_equal_tokens"] = self.at_equal_tokens.to_data()
        return data


@dataclass(frozen=True)
class StrategyComparison:
    """Strategies and baselines on the same tasks.

    Args:
        strategies: The strategies in the order in which they were given.
        greedy: The greedy answer.
        votes: Self-consistency by the number of attempts: 1, 2, 4, …
        likeliest: Best-of-n by mean log-probability, by the number of attempts, as in `votes`.
        num_tasks: Number of tasks.
        attempts_per_task: Number of attempts of each strategy at each task.
        errors: Errors of attempts that could not be scored.
    """

    strategies: tuple[StrategyResult, ...]
    greedy: StrategyResult
    votes: tuple[StrategyResult, ...]
    likeliest: tuple[StrategyResult, ...]
    num_tasks: int
    attempts_per_task: int
    errors: tuple[str, ...] = ()

    def to_data(self) -> dict[str, Any]:
        """The comparison as JSON data."""
        baselines = (self.greedy, *self.votes, *self.likeliest)
        return {
            "tasks": self.num_tasks,
            "attempts": self.attempts_per_task,
            "strategies": [result.to_data() for result in self.strategies],
            "baselines": [result.to_data() for result in baselines],
            "failed": len(self.errors),
        }


def compare_strategies(
    policy: HasActor,
    env: EnvSpec,
    tasks: Sequence[Task],
    strategies: Mapping[str, TurnStrategy],
    *,
    attempts_per_task: int,
    success: Callable[[Rollout], bool],
    extract: Extractor,
    key: int,
    progress: AttemptProgress = NoProgress(),
    attempt: Callable[..., StrategyAttempts] = attempt_tasks,
) -> StrategyComparison:
    """Attempt all tasks with every strategy and with the baselines.

    The baselines use n single attempts per task. n is chosen so that they cost as many tokens as
    one attempt of the most expensive strategy. n is at most `MAX_BASELINE_ATTEMPTS`, but never less
    than `attempts_per_task`.

    Args:
        policy: Generates the rollouts.
        env: The environment, which replies and scores.
        tasks: The tasks.
        strategies: The strategies by name.
        attempts_per_task: Number of attempts of each strategy at each task.
        success: Decides whether a rollout solves its task.
        extract: Finds the answers that self-consistency counts.
        key: Key from which the random streams are derived.
        progress: Receives a call for each answer.
        attempt: Makes the attempts. Pass another function with the arguments of `attempt_tasks` to
            cache the attempts on disk.
    """
    attempt = partial(attempt, policy, env, tasks, key=key, progress=progress)
    greedy = attempt(single_response, attempt_indices=range(1), top_k=1, name=GREEDY)
    single = attempt(single_response, attempt_indices=range(attempts_per_task), name=SINGLE)
    attempts_by_strategy = {
        name: single
        if strategy is single_response
        else attempt(strategy, attempt_indices=range(attempts_per_task), name=name)
        for name, strategy in strategies.items()
    }
    needed = _attempts_needed(vote_curve(single, success, extract), attempts_by_strategy.values())
    if needed > attempts_per_task:
        # `+` makes a new object, so that an entry in `attempts_by_strategy` has no further attempts
        single = single + attempt(
            single_response, attempt_indices=range(attempts_per_task, needed), name=SINGLE
        )
    vote_accuracy = vote_curve(single, success, extract)
    is_single = {name: strategy is single_response for name, strategy in strategies.items()}
    # the attempts of `single_response` are in `single`: their errors must not be counted twice
    not_single = [x for name, x in attempts_by_strategy.items() if not is_single[name]]
    return StrategyComparison(
        strategies=_results_of_strategies(attempts_by_strategy, success, vote_accuracy, is_single),
        greedy=_result_of_attempts(GREEDY, greedy, greedy.solved(success).mean(0)),
        votes=_results_of_curve("Vote({n})", vote_accuracy),
        likeliest=_results_of_curve("BestOf({n})", likeliest_curve(single, success)),
        num_tasks=len(tasks),
        attempts_per_task=attempts_per_task,
        errors=tuple(e for x in (greedy, single, *not_single) for e in x.errors),
    )


def _attempts_needed(
    vote_accuracy: AccuracyByAttempts, all_attempts: Iterable[StrategyAttempts]
) -> int:
    """The number of single attempts that cost the tokens of the most expensive strategy.

    The number is at most `MAX_BASELINE_ATTEMPTS`.
    """
    most = max(
        vote_accuracy.attempts_costing(sum(x.tokens_per_attempt.values())) for x in all_attempts
    )
    return min(MAX_BASELINE_ATTEMPTS, math.ceil(most))


def _results_of_strategies(
    attempts_by_strategy: Mapping[str, StrategyAttempts],
    success: Callable[[Rollout], bool],
    vote_accuracy: AccuracyByAttempts,
    is_single: Mapping[str, bool],
) -> tuple[StrategyResult, ...]:
    """The result of each strategy, with its differences to the first one and to self-consistency.

    Args:
        attempts_by_strategy: The attempts of each strategy, by its name.
        success: Decides whether a rollout solves its task.
        vote_accuracy: Accuracy of self-consistency by its number of attempts.
        is_single: Whether a strategy is `single_response`, by its name.
    """
    accuracies = {  # by strategy: one accuracy per task
        name: attempts.solved(success).mean(0) for name, attempts in attempts_by_strategy.items()
    }
    first = next(iter(accuracies))
    return tuple(
        _compared_result(
            name,
            attempts,
            accuracies[name],
            vote_accuracy,
            None if name == first else accuracies[first],
            is_single=is_single[name],
        )
        for name, attempts in attempts_by_strategy.items()
    )


def _compared_result(
    name: str,
    attempts: StrategyAttempts,
    accuracies: np.ndarray,
    vote_accuracy: AccuracyByAttempts,
    first: np.ndarray | None,
    *,
    is_single: bool,
) -> StrategyResult:
    """The result of a strategy, with its paired differences to `first` and to self-consistency.

    `accuracies` and `first` have one value per task.
    """
    result = _result_of_attempts(name, attempts, accuracies)
    difference = None if first is None else bootstrap_mean(accuracies - first)
    if is_single:
        return replace(result, difference_to_first=difference)
    num_attempts = vote_accuracy.attempts_costing(result.all_tokens)
    baseline = vote_accuracy.accuracies_at(num_attempts)
    equal = AtEqualTokens(
        attempts=min(max(num_attempts, 1.0), vote_accuracy.max_attempts),
        is_clamped=not 1 <= round(num_attempts, 6) <= vote_accuracy.max_attempts,
        baseline=float(baseline.mean()),
        difference=bootstrap_mean(accuracies - baseline),
    )
    return replace(result, difference_to_first=difference, at_equal_tokens=equal)


def _result_of_attempts(
    name: str, attempts: StrategyAttempts, accuracies: np.ndarray
) -> StrategyResult:
    """The result of attempts, without comparisons."""
    details = {
        "generated_by_role": dict(attempts.generated),
        "read_by_role": dict(attempts.read),
        "usage": dict(attempts.usage),
        "seconds_per_answer": attempts.seconds / attempts.num_attempts,
        "failed": len(attempts.errors),
    }
    return StrategyResult(
        name, bootstrap_proportion(accuracies.tolist()), attempts.tokens_per_attempt, details
    )


def _results_of_curve(name_format: str, accuracy: AccuracyByAttempts) -> tuple[StrategyResult, ...]:
    """Results of a baseline at 1, 2, 4, … attempts, and at the largest number."""
    count = accuracy.max_attempts
    numbers = sorted({count, *(2**i for i in range(count.bit_length()))})
    return tuple(
        StrategyResult(
            name_format.format(n=n),
            bootstrap_proportion(accuracy.accuracies[n - 1].tolist()),
            accuracy.tokens(n),
            {},
        )
        for n in numbers
    )
