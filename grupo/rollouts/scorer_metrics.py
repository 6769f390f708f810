"""Quality of a head that scores given answers: order of pairs, best-of-n, calibration, first error.

Intervals are bootstraps over tasks: the answers to one task are drawn together.
"""

import math
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from scipy.optimize import minimize
from scipy.special import expit

from grupo.rollouts.eval_result import UNSCORED_PROPORTION, Proportion, bootstrap_proportion

RESAMPLES = 1000  # of a statistic that is no mean over tasks
NO_ERROR = -1  # place of the first wrong step of an answer without one
Values = Float[np.ndarray, "n"]


@dataclass(frozen=True)
class GivenAnswerScore:
    """A given answer with its label, and the output of a head.

    Args:
        task: Key of the task.
        score: Output of the head for the whole answer.
        label: 1 for a good answer, otherwise 0.
        step_scores: Output of the head at the end of each labelled step.
        step_labels: Label of each of these steps, from 0 to 1.
    """

    task: str
    score: float
    label: float
    step_scores: tuple[float, ...] = ()
    step_labels: tuple[float, ...] = ()


def by_task(answers: Sequence[GivenAnswerScore]) -> list[list[GivenAnswerScore]]:
    """The answers to each task."""
    groups: dict[str, list[GivenAnswerScore]] = defaultdict(list)
    for answer in answers:
        groups[answer.task].append(answer)
    return list(groups.values())


def score_differences(answers: Sequence[GivenAnswerScore]) -> list[float]:
    """Score of the better minus score of the worse answer, of all pairs of unequal labels.

    >>> score_differences([GivenAnswerScore("t", 2.0, 1.0), GivenAnswerScore("t", 0.5, 0.0)])
    [1.5]
    """
    return [a.score - b.score for a in answers for b in answers if a.label > b.label]


def pair_accuracy(answers: Sequence[GivenAnswerScore]) -> Proportion:
    """Mean over tasks of the fraction of pairs in the right order; an equal score counts as half.

    A task has a pair for each good and each bad answer to it. Tasks without a pair are left out.
    """
    differences = [d for d in map(score_differences, by_task(answers)) if d]
    fractions = [float(np.mean(np.heaviside(d, 0.5))) for d in differences]
    return _mean_over_tasks(fractions)


@dataclass(frozen=True)
class BestOfN:
    """Mean labels of answers that were chosen among the n answers to a task, over tasks.

    Args:
        smallest: Smallest n.
        largest: Largest n.
        chosen: Mean label of the answer with the highest score; of equal scores their mean label.
        random: Mean label of all answers to the task.
        gain: Paired difference of both.
        possible: 1 where at least one answer is good.
    """

    smallest: int
    largest: int
    chosen: Proportion
    random: Proportion
    gain: Proportion
    possible: Proportion


def best_of_n(
    answers: Sequence[GivenAnswerScore],
    score: Callable[[GivenAnswerScore], float] = lambda answer: answer.score,
) -> BestOfN | None:
    """Choices by a score among the answers to each task; None if no task has two or more.

    Args:
        answers: The answers. Their labels are the known truth.
        score: Score of an answer.
    """
    groups = [group for group in by_task(answers) if len(group) > 1]
    if not groups:
        return None
    chosen = [_chosen_label(group, score) for group in groups]
    random = [float(np.mean([answer.label for answer in group])) for group in groups]
    return BestOfN(
        smallest=min(map(len, groups)),
        largest=max(map(len, groups)),
        chosen=bootstrap_proportion(chosen),
        random=bootstrap_proportion(random),
        gain=bootstrap_proportion([a - b for a, b in zip(chosen, random, strict=True)]),
        possible=bootstrap_proportion([max(a.label for a in group) for group in groups]),
    )


def _chosen_label(
    answers: Sequence[GivenAnswerScore], score: Callable[[GivenAnswerScore], float]
) -> float:
    scores = [score(answer) for answer in answers]
    best = max(scores)
    pairs = zip(answers, scores, strict=True)
    return float(np.mean([answer.label for answer, value in pairs if value == best]))


def calibration_error(
    probability: Values, label: Values, weight: Values | None = None, bins: int = 10
) -> float:
    """sum_b w_b |mean probability - mean label| over bins of equal width, w_b the bin's share.

    Source: Guo et al., 2017, arXiv:1706.04599, eq. 3.

    Args:
        probability: Predicted probabilities, (n,).
        label: Labels from 0 to 1, (n,).
        weight: Weight of each prediction, (n,); by default 1.
        bins: Number of bins from 0 to 1.

    >>> round(calibration_error(np.array([0.9, 0.9, 0.1]), np.array([1.0, 0.0, 0.0])), 4)
    0.3
    """
    w = np.ones_like(probability) if weight is None else weight
    place = np.minimum((probability * bins).astype(int), bins - 1)
    gap = np.bincount(place, w * (probability - label), minlength=bins)
    return float(np.abs(gap).sum() / w.sum()) if w.sum() else math.nan


@dataclass(frozen=True)
class LogisticMap:
    """sigmoid(slope s + offset): the probability of a score s.

    >>> LogisticMap(2.0, 0.0)(np.array([0.0])).tolist()
    [0.5]
    """

    slope: float = 1.0
    offset: float = 0.0

    def __call__(self, score: Values) -> Values:
        """Probabilities of scores, (n,)."""
        return expit(self.slope * score + self.offset)


def fit_logistic(score: Values, label: Values, *, offset: bool = True) -> LogisticMap:
    """The logistic map of largest likelihood, with Platt's targets.

    The targets (n_1 + 1) / (n_1 + 2) and 1 / (n_0 + 2) replace 1 and 0, so that separable scores
    have a finite slope. Source: Platt, 1999, "Probabilistic outputs for support vector machines".

    Args:
        score: Scores, (n,).
        label: Labels, 1 or 0, (n,).
        offset: Whether an offset is fitted; differences of scores have none.
    """
    good, bad = float(label.sum()), float((1 - label).sum())
    target = np.where(label > 0, (good + 1) / (good + 2), 1 / (bad + 2))

    def loss(parameters: np.ndarray) -> float:
        z = parameters[0] * score + (parameters[1] if offset else 0.0)
        return float(np.mean(np.logaddexp(0, z) - target * z))

    best = minimize(loss, np.array([1.0, 0.0] if offset else [1.0]), method="L-BFGS-B").x
    return LogisticMap(float(best[0]), float(best[1]) if offset else 0.0)


def first_error(labels: Sequence[float]) -> int:
    """Index of the first step whose probability or label is below 1/2, `NO_ERROR` if none is.

    >>> first_error([1.0, 0.25, 0.75]), first_error([0.5])
    (1, -1)
    """
    return next((i for i, label in enumerate(labels) if label < 0.5), NO_ERROR)


def step_f1(found: Sequence[int], true: Sequence[int], weight: Values | None = None) -> float:
    """Harmonic mean of the accuracy on answers with a wrong step and on those without one.

    An answer counts if its first wrong step is found, or if none is found and it has none. NaN if
    one of both kinds of answers is missing. Source: ProcessBench, Zheng et al., 2024,
    arXiv:2412.06559.

    Args:
        found: Index of the first step that the head holds for wrong, or `NO_ERROR`.
        true: Index of the first step that is wrong, or `NO_ERROR`.
        weight: Weight of each answer, (n,); by default 1.

    >>> step_f1([1, -1, -1], [1, 0, -1])  # 1/2 of wrong answers, and all of right ones
    0.6666666666666666
    """
    w = np.ones(len(true)) if weight is None else weight
    hit = np.equal(found, true)
    has_error = np.not_equal(true, NO_ERROR)
    sums = [(w * (has_error == kind)).sum() for kind in (True, False)]
    if not all(sums):
        return math.nan
    wrong, right = (
        (w * hit * (has_error == kind)).sum() / total
        for kind, total in zip((True, False), sums, strict=True)
    )
    return float(2 * wrong * right / (wrong + right)) if wrong + right else 0.0


def with_interval(
    statistic: Callable[[Values], float], tasks: Sequence[str], resamples: int = RESAMPLES
) -> Proportion:
    """A statistic with its 95 % bootstrap interval over tasks.

    Args:
        statistic: Function of the weight of each answer, which is the number of times that its task
            was drawn.
        tasks: The task of each answer.
        resamples: Number of resamples, which are drawn with a fixed seed. Those without a value are
            left out.
    """
    if not tasks:
        return UNSCORED_PROPORTION
    names, place = np.unique(tasks, return_inverse=True)
    rng = np.random.default_rng(0)
    drawn = rng.multinomial(len(names), np.full(len(names), 1 / len(names)), resamples)
    values = np.array([statistic(counts[place].astype(float)) for counts in drawn])
    value = statistic(np.ones(len(place)))
    if math.isnan(value):
        return UNSCORED_PROPORTION
    low, high = np.quantile(values[~np.isnan(values)], [0.025, 0.975])
    return Proportion(value, float(low), float(high))


def _mean_over_tasks(values: Sequence[float]) -> Proportion:
    return bootstrap_proportion(values) if values else UNSCORED_PROPORTION
