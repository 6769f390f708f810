"""The quality of a head as a whole: what is counted for which meaning of its number."""

from math import exp

import pytest

from grupo.report.scorers import scorer_lines, scorer_table
from grupo.rollouts.scorer_metrics import GivenAnswerScore
from grupo.rollouts.scorer_result import scorer_result

PAIRS = [
    GivenAnswerScore(task, score, label)
    for task in ("a", "b")
    for score, label in ((2.0, 1.0), (1.0, 0.0))
]
STEPPED = [
    GivenAnswerScore("a", -2.0, 0.0, (3.0, -2.0), (1.0, 0.0)),  # its first error is found
    GivenAnswerScore("a", 1.0, 1.0, (2.0, 1.0), (1.0, 1.0)),  # no error is found
    GivenAnswerScore("b", 2.0, 0.0, (-1.0, 2.0), (1.0, 0.0)),  # another error is found
]


def test_a_margin_is_calibrated_by_pairs_in_both_orders():
    result = scorer_result("score", "margin", PAIRS)
    gap = 1 - 1 / (1 + exp(-1))  # sigmoid(1) for pairs that are always right
    assert result.calibration.value == pytest.approx(gap)
    assert (result.num_tasks, result.num_answers, result.num_pairs, result.num_ties) == (2, 4, 2, 0)
    assert result.pairs.value == 1.0


def test_a_fit_to_other_answers_calibrates_a_margin():
    calibration = [GivenAnswerScore(f"other {a.task}", a.score, a.label) for a in PAIRS]
    result = scorer_result("score", "margin", PAIRS, calibration)
    assert result.calibrated
    assert result.calibrated.value == pytest.approx(1 / 4, abs=1e-4)  # targets 3/4 and 1/4


def test_a_probability_is_clipped():
    answers = [GivenAnswerScore("a", 1.5, 1.0), GivenAnswerScore("b", -0.5, 0.0)]
    assert scorer_result("value", "probability", answers).calibration.value == 0.0


def test_first_wrong_steps_are_found_by_logits():
    result = scorer_result("process", "logit", STEPPED)
    assert result.steps
    assert result.steps.value == pytest.approx(2 * 0.5 * 1.0 / 1.5)
    assert set(result.choices) == {"score", "minimum", "product"}
    assert result.minimum_at_last == pytest.approx(2 / 3)


def test_data_and_table_have_the_same_numbers():
    result = scorer_result("process", "logit", STEPPED)
    data = result.to_data()
    assert data["step_f1"] == pytest.approx(2 / 3)
    assert data["intervals"]["step_f1"][0] <= data["step_f1"] <= data["intervals"]["step_f1"][1]
    assert data["best_of_n/minimum/possible"] == 1.0
    rows = list(scorer_table(result).columns[0].cells)
    assert [str(cell) for cell in rows] == [
        "pairs in the right order",
        "calibration error: an answer is good",
        "best of 2 by the score",
        "    above a random one of them",
        "best of 2 by the minimum",
        "    above a random one of them",
        "best of 2 by the product",
        "    above a random one of them",
        "    a good one among them",
        "F1 of the first wrong step",
    ]
    assert "67 % of the" in " ".join(scorer_lines(result))
