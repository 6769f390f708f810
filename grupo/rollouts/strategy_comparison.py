"""Comparison of turn strategies at equal tokens, with self-consistency as the yardstick."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from grupo.core.extract_answer import Extractor
from grupo.core.interfaces import EnvSpec, TurnStrategy, single_response
from grupo.core.types import Rollout, Task
from grupo.rollouts.eval_result import bootstrap_proportion
from grupo.rollouts.evaluate import HasActor
from grupo.rollouts.strategy_attempts import (
    AttemptProgress,
    NoProgress,
    StrategyAttempts,
    attempt_tasks,
)
from grupo.rollouts.strategy_results import AtEqualTokens, StrategyComparison, StrategyResult
from grupo.rollouts.vote_curve import AccuracyByAttempts, best_of_n_curve, vote_curve
from grupo.util.statistics import bootstrap_mean

# Largest number of attempts with which self-consistency is measured, unless `attempts_per_task` is
# larger. A strategy that costs more tokens than all these attempts is compared with all of them.
MAX_BASELINE_ATTEMPTS = 64
GREEDY, SINGLE_RESPONSE = "greedy", "single attempts"


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
    make_attempts: Callable[..., StrategyAttempts] = attempt_tasks,
) -> StrategyComparison:
    """Attempt all tasks with every strategy and with the baselines.

    The baselines are the greedy answer, self-consistency and best-of-n. The last two are computed
    from attempts with `single_response`. The number of these attempts per task is chosen so that
    together they cost as many tokens as one attempt of the most expensive strategy. The number is
    limited to `MAX_BASELINE_ATTEMPTS`, and is never below `attempts_per_task`.

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
        make_attempts: Makes the attempts. Another function with the arguments of `attempt_tasks`
            may cache the attempts on disk.
    """
    attempts_with = partial(make_attempts, policy, env, tasks, key=key, progress=progress)
    vote_curve_of = partial(vote_curve, success=success, extract=extract)
    attempts = _attempt_all(attempts_with, strategies, attempts_per_task, vote_curve_of)
    self_consistency_curve = vote_curve_of(attempts.single_response)
    best_of_n = best_of_n_curve(attempts.single_response, success)
    greedy_accuracies = attempts.greedy.solved(success).mean(0)
    return StrategyComparison(
        strategies=_results_of_strategies(attempts, success, self_consistency_curve),
        greedy=_result_of_attempts(GREEDY, attempts.greedy, greedy_accuracies),
        votes=_results_of_curve("Vote({n})", self_consistency_curve),
        best_of_n=_results_of_curve("BestOf({n})", best_of_n),
        num_tasks=len(tasks),
        attempts_per_task=attempts_per_task,
        errors=attempts.errors,
    )


@dataclass(frozen=True)
class _AllAttempts:
    """The attempts of a comparison.

    Args:
        greedy: One greedy answer to each task.
        single_response: Attempts with `single_response`, for self-consistency and best-of-n.
        by_strategy: The attempts of each strategy, by its name.
        baseline_names: Names of the strategies that are `single_response`.
    """

    greedy: StrategyAttempts
    single_response: StrategyAttempts
    by_strategy: Mapping[str, StrategyAttempts]
    baseline_names: frozenset[str]

    @property
    def errors(self) -> tuple[str, ...]:
        """The errors of all attempts; the attempts of a baseline are counted once."""
        others = (x for name, x in self.by_strategy.items() if name not in self.baseline_names)
        all_attempts = (self.greedy, self.single_response, *others)
        return tuple(error for attempts in all_attempts for error in attempts.errors)


def _attempt_all(
    attempts_with: Callable[..., StrategyAttempts],
    strategies: Mapping[str, TurnStrategy],
    attempts_per_task: int,
    vote_curve_of: Callable[[StrategyAttempts], AccuracyByAttempts],
) -> _AllAttempts:
    """Attempt all tasks with the baselines and with each strategy.

    Args:
        attempts_with: Makes attempts with a strategy.
        strategies: The strategies by name.
        attempts_per_task: Number of attempts of each strategy at each task.
        vote_curve_of: Returns the accuracy of self-consistency over 1, 2, … of given attempts.
    """
    baseline_names = frozenset(
        name for name, strategy in strategies.items() if strategy is single_response
    )
    greedy = attempts_with(single_response, attempt_indices=range(1), top_k=1, name=GREEDY)
    first_attempts = attempts_with(
        single_response, attempt_indices=range(attempts_per_task), name=SINGLE_RESPONSE
    )
    by_strategy = {
        name: first_attempts
        if name in baseline_names
        else attempts_with(strategy, attempt_indices=range(attempts_per_task), name=name)
        for name, strategy in strategies.items()
    }
    single_response_attempts = first_attempts
    needed = _attempts_needed(vote_curve_of(first_attempts), by_strategy.values())
    if needed > attempts_per_task:
        single_response_attempts = first_attempts + attempts_with(
            single_response, attempt_indices=range(attempts_per_task, needed), name=SINGLE_RESPONSE
        )
    return _AllAttempts(greedy, single_response_attempts, by_strategy, baseline_names)


def _attempts_needed(
    self_consistency_curve: AccuracyByAttempts, all_attempts: Iterable[StrategyAttempts]
) -> int:
    """The number of single attempts that cost the tokens of the most expensive strategy.

    The number is at most `MAX_BASELINE_ATTEMPTS`.
    """
    most = max(
        self_consistency_curve.num_attempts_costing(sum(x.mean_tokens_per_attempt.values()))
        for x in all_attempts
    )
    return min(MAX_BASELINE_ATTEMPTS, math.ceil(most))


def _results_of_strategies(
    attempts: _AllAttempts,
    success: Callable[[Rollout], bool],
    self_consistency_curve: AccuracyByAttempts,
) -> tuple[StrategyResult, ...]:
    """The result of each strategy, with its differences to the first one and to self-consistency.

    Args:
        attempts: The attempts of all strategies.
        success: Decides whether a rollout solves its task.
        self_consistency_curve: Accuracy of self-consistency by its number of attempts.
    """
    accuracies = {  # by strategy: one accuracy per task
        name: x.solved(success).mean(0) for name, x in attempts.by_strategy.items()
    }
    first_name = next(iter(accuracies))
    return tuple(
        _compared_result(
            name,
            attempts_of_strategy,
            accuracies[name],
            self_consistency_curve,
            None if name == first_name else accuracies[first_name],
            is_single_response=name in attempts.baseline_names,
        )
        for name, attempts_of_strategy in attempts.by_strategy.items()
    )


def _compared_result(
    name: str,
    attempts: StrategyAttempts,
    accuracies: np.ndarray,
    self_consistency_curve: AccuracyByAttempts,
    first_accuracies: np.ndarray | None,
    *,
    is_single_response: bool,
) -> StrategyResult:
    """The result of a strategy, with its paired differences to the first and to self-consistency.

    `accuracies` and `first_accuracies` have one value per task.
    """
    result = _result_of_attempts(name, attempts, accuracies)
    difference = None if first_accuracies is None else bootstrap_mean(accuracies - first_accuracies)
    if is_single_response:  # self-consistency is computed from these very attempts
        return replace(result, difference_to_first=difference)
    num_attempts = self_consistency_curve.num_attempts_costing(result.tokens_per_attempt)
    self_consistency = self_consistency_curve.accuracies_at(num_attempts)
    equal = AtEqualTokens(
        attempts=min(max(num_attempts, 1.0), self_consistency_curve.max_attempts),
        is_clamped=not 1 <= round(num_attempts, 6) <= self_consistency_curve.max_attempts,
        self_consistency=float(self_consistency.mean()),
        difference=bootstrap_mean(accuracies - self_consistency),
    )
    return replace(result, difference_to_first=difference, at_equal_tokens=equal)


def _result_of_attempts(
    name: str, attempts: StrategyAttempts, accuracies: np.ndarray
) -> StrategyResult:
    """The result of attempts, without comparisons."""
    details = {
        "generated_by_role": dict(attempts.generated_by_role),
        "read_by_role": dict(attempts.read_by_role),
        "usage": dict(attempts.usage),
        "seconds_per_answer": attempts.seconds / attempts.num_attempts,
        "failed": len(attempts.errors),
    }
    return StrategyResult(
        name, bootstrap_proportion(accuracies.tolist()), attempts.mean_tokens_per_attempt, details
    )


def _results_of_curve(name_format: str, curve: AccuracyByAttempts) -> tuple[StrategyResult, ...]:
    """Results of a baseline at 1, 2, 4, … attempts, and at the largest number."""
    count = curve.max_attempts
    numbers = sorted({count, *(2**i for i in range(count.bit_length()))})
    return tuple(
        StrategyResult(
            name_format.format(n=n),
            bootstrap_proportion(curve.accuracies[n - 1].tolist()),
            curve.tokens(n),
            {},
        )
        for n in numbers
    )
