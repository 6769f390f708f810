"""The result of an evaluation: fractions of tasks, with their intervals, and counts of tokens."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from grupo.rollouts.demonstration_scores import DemonstrationScores


@dataclass(frozen=True)
class Proportion:
    """A fraction of tasks and its 95 % bootstrap interval over tasks.

    Args:
        value: The fraction, from 0 to 1; NaN if no rollout could be scored.
        low: Lower bound of the interval; NaN if `value` is NaN.
        high: Upper bound of the interval; NaN if `value` is NaN.
    """

    value: float
    low: float
    high: float

    @property
    def is_scored(self) -> bool:
        """Whether at least one rollout could be scored."""
        return not math.isnan(self.value)

    def __str__(self) -> str:
        if not self.is_scored:
            return NOT_SCORED_TEXT
        return f"{self.value:.3f} [{self.low:.3f}, {self.high:.3f}]"


NOT_SCORED_TEXT = "not scored"  # printed instead of a proportion if no rollout could be scored


@dataclass(frozen=True)
class EvalResult:
    """The scores of an evaluation.

    Args:
        greedy: Fraction of tasks that the greedy attempt solves.
        sampled: Mean over tasks of the fraction of sampled attempts that solve the task.
        pass_at_k: For each k, the estimated fraction of tasks solved at least once in k attempts.
        num_failed: Number of rollouts that could not be scored. A failed rollout counts as not
            solved. A proportion is NaN if it is computed from failed rollouts only.
        num_generated_actions: Number of tokens (or denoising steps) generated for all attempts.
        num_read_tokens: Number of prompt tokens computed for all attempts, see `Actor.read_tokens`.
            The attempts at one task share one computation of its prompt. With several ranks, the
            number may be larger, because each rank computes shared prefixes of prompts for itself.
        num_attempts: Number of attempts, the greedy ones included.
        first_error: Error of the first failed rollout; "" if no rollout failed.
        demonstration_scores: Scores of held-out demonstrations; None if the evaluation has none.
    """

    greedy: Proportion
    sampled: Proportion
    pass_at_k: Mapping[int, Proportion]
    num_failed: int = 0
    num_generated_actions: int = 0
    num_read_tokens: int = 0
    num_attempts: int = 0
    first_error: str = ""
    demonstration_scores: DemonstrationScores | None = None

    @property
    def tokens_per_answer(self) -> dict[str, float]:
        """Mean numbers of generated and read tokens of an attempt; {} if there were no attempts."""
        totals = {"generated": self.num_generated_actions, "read": self.num_read_tokens}
        count = self.num_attempts
        return {name: total / count for name, total in totals.items()} if count else {}

    def to_data(self) -> dict[str, Any]:
        """The scores by name, their intervals, tokens, and the number of failed rollouts.

        Proportions without a scored rollout are left out.
        """
        proportions = {"greedy": self.greedy, "sampled": self.sampled}
        proportions |= {f"pass@{k}": score for k, score in self.pass_at_k.items()}
        scores = {name: score for name, score in proportions.items() if score.is_scored}
        values = {name: score.value for name, score in scores.items()}
        intervals = {name: [score.low, score.high] for name, score in scores.items()}
        values |= self.demonstration_scores.to_data() if self.demonstration_scores else {}
        tokens = {"tokens_per_answer": self.tokens_per_answer} if self.num_attempts else {}
        return {**values, "intervals": intervals, "failed": self.num_failed, **tokens}

    def __str__(self) -> str:
        scores = [str(self.demonstration_scores)] if self.demonstration_scores else []
        if self.pass_at_k:
            scores += [f"greedy {self.greedy}", f"sampled {self.sampled}"]
        largest_k = max(self.pass_at_k, default=1)
        if largest_k > 1 and self.sampled.is_scored:
            scores.append(f"pass@{largest_k} {self.pass_at_k[largest_k]}")
        failures = f"; {self.num_failed} could not be scored" if self.num_failed else ""
        return ", ".join(scores) + failures


UNSCORED_PROPORTION = Proportion(math.nan, math.nan, math.nan)
RESULT_WITHOUT_ATTEMPTS = EvalResult(UNSCORED_PROPORTION, UNSCORED_PROPORTION, {})


def bootstrap_proportion(values: Sequence[float], num_resamples: int = 2000) -> Proportion:
    """The mean over tasks with its 95 % bootstrap interval.

    Args:
        values: One value per task.
        num_resamples: Number of bootstrap resamples, which are drawn with a fixed seed.
    """
    x = np.asarray(values, dtype=np.float64)
    indices = np.random.default_rng(0).integers(0, len(x), (num_resamples, len(x)))
    low, high = np.quantile(x[indices].mean(1), [0.025, 0.975])
    return Proportion(float(x.mean()), float(low), float(high))
