"""Worked sums with planted errors: labels of steps and of answers, worked by hand."""

import json

import pytest

from grupo.util.importing import load_module_file
from tests.helpers.paths import ROOT

SUMS = load_module_file(ROOT / "recipes" / "real" / "labelled_sums.py")


@pytest.mark.parametrize(
    ("errors", "steps", "labels", "is_correct"),
    [
        ((0, 0), ["10 + 20 = 30", "30 + 5 = 35", "Answer: 35"], [True] * 3, True),
        ((2, 0), ["10 + 20 = 32", "32 + 5 = 37", "Answer: 37"], [False] * 3, False),
        ((0, -1), ["10 + 20 = 30", "30 + 5 = 34", "Answer: 34"], [True, False, False], False),
        ((2, -2), ["10 + 20 = 32", "32 + 5 = 35", "Answer: 35"], [False] * 3, True),
    ],
)
def test_later_steps_go_on_from_a_wrong_total(errors, steps, labels, is_correct):
    answer = SUMS.WorkedSum((10, 20, 5), errors)
    assert (answer.steps, answer.labels, answer.is_correct) == (steps, labels, is_correct)


def test_tables_hold_four_answers_to_each_sum(tmp_path):
    SUMS.main(tmp_path, tasks=5, others=2, seed=1)
    tables = {
        name: [json.loads(line) for line in (tmp_path / f"{name}.jsonl").read_text().splitlines()]
        for name in ("pairs", "answers", "steps")
    }
    assert {name: len(rows) for name, rows in tables.items()} == {
        "pairs": 5,
        "answers": 20,
        "steps": 20,
    }
    right = [row["label"] for row in tables["answers"]]
    clean = [all(row["labels"]) for row in tables["steps"]]
    assert (sum(right), sum(clean)) == (10, 5)  # half of the right answers have wrong steps
    others = (tmp_path / "other" / "pairs.jsonl").read_text().splitlines()
    prompts = {json.dumps(row["prompt"]) for row in tables["pairs"]}
    assert not prompts & {json.dumps(json.loads(line)["prompt"]) for line in others}
    assert len(others) == 2
