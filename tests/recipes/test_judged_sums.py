"""Rows of a reward model of sums: right and wrong answers, and questions that are others."""

import json
from random import Random

from grupo.util.importing import load_module_file
from tests.helpers.paths import ROOT

SUMS = load_module_file(ROOT / "recipes" / "real" / "judged_sums.py")
HINTS = load_module_file(ROOT / "recipes" / "real" / "hinted_sums.py")


def table(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_wrong_sums_are_a_small_error_a_term_and_another_sum():
    for seed in range(50):
        near, term, *other = SUMS.wrong_sums(40, 85, Random(seed))
        assert int(near) - 125 in (-10, -2, -1, 1, 2, 10)
        assert term in ("40", "85")
        assert all(x != "125" and 20 <= int(x) <= 198 for x in other)


def test_equal_wrong_sums_are_one():
    # 10 + 10: both numbers are 10, and so is the sum minus 10
    found = [SUMS.wrong_sums(10, 10, Random(seed)) for seed in range(100)]
    assert all(len(set(answers)) == len(answers) for answers in found)
    assert any(answers[0] == "10" and len(answers) < 3 for answers in found)


def test_the_questions_of_the_policy_are_none_of_the_reward_model(tmp_path):
    SUMS.main(tmp_path, judged=20, questions=10, seed=1)
    judged, others = table(tmp_path / "judged.jsonl"), table(tmp_path / "asked.jsonl")
    assert (len(judged), len(others)) == (20, 10)
    assert not {row["question"] for row in judged} & {row["question"] for row in others}
    assert all(row["chosen"] == row["answer"] not in row["rejected"] for row in judged)
    assert set(others[0]) == {"prompt", "question", "answer"}


def test_the_truth_is_measured_and_not_trained_on():
    weights = {term.name: term.weight for term in SUMS.RECIPE.env.rewards}
    assert weights == {"liked": 1.0, "truth": 0.0}
    weights = {term.name: term.weight for term in HINTS.RECIPE.env.rewards}
    assert weights == {"answer": 1.0, "hint": 0.0}
