"""Accuracy of self-consistency and best-of-n by number of attempts, from one set of attempts."""

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from grupo.core.extract_answer import Extractor
from grupo.core.types import Rollout
from grupo.rollouts.strategy_attempts import StrategyAttempts
from grupo.rollouts.turns.choices import mean_logp

NUM_ORDERS = 128  # smallest number of orders of the attempts over which the accuracy is averaged


@dataclass(frozen=True)
class AccuracyByAttempts:
    """For every n: the accuracy of a choice among n attempts, and the tokens of n attempts.

    The attempts are independent samples. The accuracy for n is a mean over several orders of these
    attempts. Over all orders, every attempt is the first one equally often.

    Args:
        accuracies: Mean accuracy (n, tasks) of the choice among 1, 2, … attempts.
        generated: Generated tokens of one attempt.
        read_first: Tokens that one attempt reads.
        read_more: Tokens that each further attempt at the same task reads. The prompt is not read
            again, because all attempts share it. Only the observations after the prompt count.
    """

    accuracies: np.ndarray
    generated: float
    read_first: float
    read_more: float

    @property
    def max_attempts(self) -> int:
        """The largest measured number of attempts."""
        return len(self.accuracies)

    def tokens(self, n: float) -> dict[str, float]:
        """Generated and read tokens of n attempts, by name."""
        read = self.read_first + (n - 1) * self.read_more
        return {"generated": n * self.generated, "read": read}

    def num_attempts_costing(self, tokens: float) -> float:
        """The number of attempts that generate and read this number of tokens.

        The result may be a fraction, below 1, or more than `max_attempts`.

        >>> AccuracyByAttempts(np.zeros((1, 1)), 10.0, 30.0, 0.0).num_attempts_costing(70)
        4.0
        """
        return 1 + (tokens - self.generated - self.read_first) / (self.generated + self.read_more)

    def accuracies_at(self, n: float) -> np.ndarray:
        """Accuracy (tasks) of n attempts, interpolated linearly between whole numbers.

        Args:
            n: Number of attempts; a number below 1 or above `max_attempts` counts as that bound.
        """
        position = min(max(n, 1.0), float(self.max_attempts)) - 1
        low = int(position)
        high = min(low + 1, self.max_attempts - 1)
        share = position - low
        return (1 - share) * self.accuracies[low] + share * self.accuracies[high]


def vote_curve(
    attempts: StrategyAttempts, success: Callable[[Rollout], bool], extract: Extractor
) -> AccuracyByAttempts:
    """The curve of `Vote(n, extract)`, computed from independent single attempts.

    Args:
        attempts: Single attempts; `attempts.rollouts[i][task]` is attempt i at a task.
        success: Decides whether a rollout solves its task.
        extract: Finds the answer in the text of a rollout.
    """
    answers = [
        [extract(rollout.text) or None for rollout in rollouts_of_attempt]
        for rollouts_of_attempt in attempts.rollouts
    ]
    return _curve(
        attempts, success, lambda task, order: _leaders([answers[i][task] for i in order])
    )


def best_of_n_curve(
    attempts: StrategyAttempts, success: Callable[[Rollout], bool]
) -> AccuracyByAttempts:
    """The curve of `BestOf(n, Likeliest())`, computed from independent single attempts."""
    logp = [
        [mean_logp(before=Rollout(), candidate=rollout) for rollout in rollouts_of_attempt]
        for rollouts_of_attempt in attempts.rollouts
    ]
    return _curve(attempts, success, lambda task, order: _largest([logp[i][task] for i in order]))


def _curve(
    attempts: StrategyAttempts,
    success: Callable[[Rollout], bool],
    chosen: Callable[[int, Sequence[int]], Iterator[int]],
) -> AccuracyByAttempts:
    """The curve of a choice.

    Args:
        attempts: Single attempts.
        success: Decides whether a rollout solves its task.
        chosen: Returns, for a task and an order of its attempts, which position in the order is
            chosen among the first attempt, among the first two attempts, and so on.
    """
    is_solved = attempts.solved(success)  # (attempts, tasks), 0.0 or 1.0
    num_attempts, num_tasks = is_solved.shape
    sums = np.zeros(is_solved.shape)
    orders = list(_orders(num_attempts))
    for task in range(num_tasks):
        for order in orders:
            sums[:, task] += [is_solved[order[i], task] for i in chosen(task, order)]
    num_later_observation_tokens = sum(
        len(response.observation)
        for rollouts_of_attempt in attempts.rollouts
        for rollout in rollouts_of_attempt
        for _, response in rollout.turns[1:]  # the first observation is the prompt
    )
    tokens = attempts.mean_tokens_per_attempt
    return AccuracyByAttempts(
        accuracies=sums / len(orders),
        generated=tokens["generated"],
        read_first=tokens["read"],
        read_more=num_later_observation_tokens / attempts.num_attempts,
    )


def _orders(count: int) -> Iterator[Sequence[int]]:
    """Random orders with all their rotations, so that each attempt comes first equally often."""
    rng = np.random.default_rng(0)
    for _ in range(-(-NUM_ORDERS // count)):
        order = rng.permutation(count).tolist()
        yield from (order[i:] + order[:i] for i in range(count))


def _leaders(answers: Sequence[Hashable | None]) -> Iterator[int]:
    """Yields the index that `most_voted` chooses among the first answer, the first two, and so on.

    >>> list(_leaders([None, "a", "b", "b"]))
    [0, 1, 1, 2]
    """
    votes: dict[Hashable, int] = {}
    first: dict[Hashable, int] = {}
    leader = 0
    for i, answer in enumerate(answers):
        if answer is not None:
            votes[answer] = votes.get(answer, 0) + 1
            first.setdefault(answer, i)
            key = votes[answer], -first[answer]
            if answers[leader] is None or key > (votes[answers[leader]], -leader):
                leader = first[answer]
        yield leader


def _largest(values: Sequence[float]) -> Iterator[int]:
    """Yields the index of the largest value so far; of equal values, the index of the first.

    >>> list(_largest([1.0, 3.0, 3.0, 4.0]))
    [0, 1, 1, 3]
    """
    best = 0
    for i, value in enumerate(values):
        if value > values[best]:
            best = i
        yield best
