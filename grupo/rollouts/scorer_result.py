"""The quality of a head on held-out answers, with intervals over tasks."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from grupo.core.head_output import HeadOutput, Values, as_probability
from grupo.rollouts.eval_result import Proportion
from grupo.rollouts.scorer_metrics import (
    BestOfN,
    GivenAnswerScore,
    LogisticMap,
    best_of_n,
    by_task,
    calibration_error,
    first_error,
    fit_logistic,
    pair_accuracy,
    score_differences,
    step_f1,
    with_interval,
)


@dataclass(frozen=True)
class ScorerResult:
    """The quality of a head that scores answers.

    Args:
        head: Name of the head.
        output: Meaning of its number.
        num_tasks: Number of tasks.
        num_answers: Number of answers.
        num_pairs: Number of pairs of a good and a bad answer to one task.
        num_ties: Number of pairs with equal scores, each of which counts as half right.
        pairs: Fraction of pairs in the right order, mean over tasks.
        calibration: Expected calibration error over ten bins: of the probability that an answer is
            good, or of a margin, that it is better than another.
        calibrated: The same after a logistic map that was fitted to other tasks; None without them.
        choices: Best-of-n by name of the score that chooses: "score", and of steps "minimum" and
            "product".
        steps: F1 of the first wrong step; None if no answer has labelled steps.
        minimum_at_last: Of answers with two labelled steps or more, the fraction whose lowest step
            is the last one; None without such answers.
    """

    head: str
    output: HeadOutput
    num_tasks: int
    num_answers: int
    num_pairs: int
    num_ties: int
    pairs: Proportion
    calibration: Proportion
    calibrated: Proportion | None
    choices: Mapping[str, BestOfN]
    steps: Proportion | None
    minimum_at_last: float | None

    def to_data(self) -> dict[str, Any]:
        """All numbers by name, with their intervals."""
        shares = {"pair_accuracy": self.pairs, "calibration_error": self.calibration}
        if self.calibrated:
            shares["calibration_error_after_fit"] = self.calibrated
        if self.steps:
            shares["step_f1"] = self.steps
        for name, choice in self.choices.items():
            for kind in ("chosen", "random", "gain", "possible"):
                shares[f"best_of_n/{name}/{kind}"] = getattr(choice, kind)
        scored = {name: share for name, share in shares.items() if share.is_scored}
        counts = {"tasks": self.num_tasks, "answers": self.num_answers, "pairs": self.num_pairs}
        return {
            "head": self.head,
            "output": self.output,
            **counts,
            "ties": self.num_ties,
            **{name: share.value for name, share in scored.items()},
            "intervals": {name: [share.low, share.high] for name, share in scored.items()},
            "minimum_at_last_step": self.minimum_at_last,
        }


def scorer_result(
    head: str,
    output: HeadOutput,
    answers: Sequence[GivenAnswerScore],
    calibration: Sequence[GivenAnswerScore] = (),
) -> ScorerResult:
    """The quality of a head.

    Args:
        head: Name of the head.
        output: Meaning of its number.
        answers: The held-out answers.
        calibration: Answers to other tasks, to which a logistic map is fitted.
    """
    differences = [d for group in by_task(answers) for d in score_differences(group)]
    stepped = [answer for answer in answers if answer.step_labels]
    return ScorerResult(
        head=head,
        output=output,
        num_tasks=len(by_task(answers)),
        num_answers=len(answers),
        num_pairs=len(differences),
        num_ties=differences.count(0.0),
        pairs=pair_accuracy(answers),
        calibration=_calibration_error(output, answers),
        calibrated=_calibrated_error(output, answers, calibration) if calibration else None,
        choices=_choices(output, answers, stepped),
        steps=_step_f1(output, stepped) if stepped else None,
        minimum_at_last=_minimum_at_last(stepped),
    )


@dataclass(frozen=True)
class _Predictions:
    """Scores, or differences of scores, whose sign or label is known, and their tasks."""

    values: Values
    labels: Values
    tasks: list[str]


def _predictions(output: HeadOutput, answers: Sequence[GivenAnswerScore]) -> _Predictions:
    """Labelled answers; of a margin every pair in both orders."""
    if output != "margin":
        scores, labels = [a.score for a in answers], [a.label for a in answers]
        return _Predictions(np.array(scores), np.array(labels), [a.task for a in answers])
    groups = by_task(answers)
    pairs = [(d, group[0].task) for group in groups for d in score_differences(group)]
    values = np.array([sign * d for sign in (1, -1) for d, _ in pairs])
    labels = np.array([float(sign > 0) for sign in (1, -1) for _ in pairs])
    return _Predictions(values, labels, [task for _ in range(2) for _, task in pairs])


def _calibration_error(output: HeadOutput, answers: Sequence[GivenAnswerScore]) -> Proportion:
    found = _predictions(output, answers)
    probability = as_probability(output, found.values)
    return with_interval(lambda w: calibration_error(probability, found.labels, w), found.tasks)


def _calibrated_error(
    output: HeadOutput, answers: Sequence[GivenAnswerScore], calibration: Sequence[GivenAnswerScore]
) -> Proportion:
    """The calibration error after a logistic map that was fitted to the calibration answers."""
    fitted, found = _predictions(output, calibration), _predictions(output, answers)
    to_probability: LogisticMap = fit_logistic(
        fitted.values, fitted.labels, offset=output != "margin"
    )
    probability = to_probability(found.values)
    return with_interval(lambda w: calibration_error(probability, found.labels, w), found.tasks)


def _choices(
    output: HeadOutput, answers: Sequence[GivenAnswerScore], stepped: Sequence[GivenAnswerScore]
) -> dict[str, BestOfN]:
    """Best-of-n by the score of the whole answer, and by its steps if all answers have them."""
    choices = {"score": best_of_n(answers)}
    if stepped and len(stepped) == len(answers):
        choices["minimum"] = best_of_n(answers, lambda answer: min(answer.step_scores))
        choices["product"] = best_of_n(answers, lambda answer: prod(_steps(output, answer)))
    return {name: choice for name, choice in choices.items() if choice}


def _steps(output: HeadOutput, answer: GivenAnswerScore) -> list[float]:
    return as_probability(output, np.array(answer.step_scores)).tolist()


def _step_f1(output: HeadOutput, stepped: Sequence[GivenAnswerScore]) -> Proportion:
    found = [first_error(_steps(output, answer)) for answer in stepped]
    true = [first_error(answer.step_labels) for answer in stepped]
    return with_interval(lambda w: step_f1(found, true, w), [answer.task for answer in stepped])


def _minimum_at_last(stepped: Sequence[GivenAnswerScore]) -> float | None:
    scores = [answer.step_scores for answer in stepped if len(answer.step_scores) > 1]
    return float(np.mean([min(s) == s[-1] for s in scores])) if scores else None
