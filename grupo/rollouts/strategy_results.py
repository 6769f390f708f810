"""The results of a comparison of strategies: accuracies, tokens and paired differences."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from grupo.rollouts.eval_result import Proportion
from grupo.util.statistics import Interval


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
        self_consistency: Accuracy of self-consistency.
        difference: Accuracy of the strategy minus that of self-consistency, paired by task.
    """

    attempts: float
    is_clamped: bool
    self_consistency: float
    difference: Interval

    @property
    def verdict(self) -> str:
        """ "below", "above", or "no difference shown" if the interval contains 0."""
        if self.difference.high < 0:
            return "below"
        return "above" if self.difference.low > 0 else "no difference shown"

    def to_data(self) -> dict[str, Any]:
        """The comparison as JSON data."""
        return {
            "attempts": self.attempts,
            "is_clamped": self.is_clamped,
            "self_consistency": self.self_consistency,
            "difference": vars(self.difference),
            "verdict": self.verdict,
        }


@dataclass(frozen=True)
class StrategyResult:
    """The accuracy of a strategy, and what an answer costs.

    Args:
        name: The strategy as the user spells it.
        accuracy: Fraction of attempts that solve their task, with its interval over tasks.
        tokens: Mean tokens of an answer, `generated` and `read`. The answer of a baseline of n
            attempts takes all n.
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
    def tokens_per_attempt(self) -> float:
        """Generated and read tokens of an attempt together."""
        return sum(self.tokens.values())

    def to_data(self) -> dict[str, Any]:
        """The result as JSON data."""
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
        best_of_n: Best-of-n by mean log-probability, by the number of attempts, as in `votes`.
        num_tasks: Number of tasks.
        attempts_per_task: Number of attempts of each strategy at each task.
        errors: Errors of attempts that could not be scored.
    """

    strategies: tuple[StrategyResult, ...]
    greedy: StrategyResult
    votes: tuple[StrategyResult, ...]
    best_of_n: tuple[StrategyResult, ...]
    num_tasks: int
    attempts_per_task: int
    errors: tuple[str, ...] = ()

    def to_data(self) -> dict[str, Any]:
        """The comparison as JSON data."""
        baselines = (self.greedy, *self.votes, *self.best_of_n)
        return {
            "tasks": self.num_tasks,
            "attempts": self.attempts_per_task,
            "strategies": [result.to_data() for result in self.strategies],
            "baselines": [result.to_data() for result in baselines],
            "failed": len(self.errors),
        }
