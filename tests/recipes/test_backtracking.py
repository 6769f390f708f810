"""To backtrack or not: measures by hand, demonstrations, and a step of each stage."""

import json

import pytest

from grupo.tasks.countdown import countdown_task
from grupo.util.importing import load_module_file
from tests.helpers.paths import ROOT

SCRIPT = load_module_file(ROOT / "recipes" / "small_claims" / "backtracking.py")


def test_as_many_tokens_as_a_search_has_buy_several_answers():
    found = {"tokens": 10.0, "pass@1": 0.2, "pass@2": 0.4, "pass@3": 0.5}
    assert SCRIPT.at_tokens(found, 25.0) == pytest.approx(0.45)  # half way from 2 to 3 answers
    assert SCRIPT.at_tokens(found, 20.0) == pytest.approx(0.4)
    assert SCRIPT.at_tokens(found, 5.0) == pytest.approx(0.2)  # a shorter answer than one is none
    seed = {f"{s}, supervised": dict(found) for s in ("search", "direct")}
    seed["search, supervised"]["tokens"] = 25.0
    equal = {arm: x["equal_tokens"] for arm, x in SCRIPT.with_equal_tokens(seed).items()}
    assert equal["search, supervised"] == pytest.approx(0.2)
    assert equal["direct, supervised"] == pytest.approx(0.45)


def test_the_three_styles_of_a_task():
    task = countdown_task([2, 3, 7], 8)
    assert SCRIPT.search(task) == ["2+3=5 5+7=12 7-5=2 5*7=35 back 3-2=1 1+7=8 answer (3-2)+7"]
    assert SCRIPT.terse_search(task) == ["2+3=5 12 2 35 back 3-2=1 8 answer (3-2)+7"]
    assert SCRIPT.direct(task)[0] in {
        f"answer {x}" for x in ("(3-2)+7", "(7-2)+3", "(3+7)-2", "(7-3)*2")
    }


@pytest.mark.slow
def test_held_out_prompts_are_not_trained_on():
    tasks = SCRIPT.all_tasks()
    assert len({task.prompt for task in tasks}) == len(tasks) == SCRIPT.HELD_OUT + SCRIPT.TRAINING


@pytest.mark.slow
def test_a_seed_writes_both_stages_of_all_styles(monkeypatch, tmp_path):
    monkeypatch.setattr(SCRIPT, "SFT_STEPS", 2)
    monkeypatch.setattr(SCRIPT, "STEPS", 1)
    monkeypatch.setattr(SCRIPT, "HELD_OUT", 2)
    monkeypatch.setattr(SCRIPT, "TRAINING", 40)
    monkeypatch.setattr(SCRIPT, "ATTEMPTS", 2)
    monkeypatch.setattr(SCRIPT, "MAX_TOKENS", 20)
    SCRIPT.run_seed(tmp_path, 0)
    found = json.loads((tmp_path / "seed0.json").read_text())
    stages = ("supervised", "then GRPO")
    assert set(found) == {f"{style}, {stage}" for style in SCRIPT.STYLES for stage in stages}
    assert set(found["direct, supervised"]) == {"tokens", "pass@1", "pass@2"}
