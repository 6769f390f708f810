"""CALM and STORM: answers in the small language, corrections of flawed ones, and a short run."""

import json
import sys
from dataclasses import replace
from typing import Any

import pytest

from grupo.core.types import Response, Rollout
from grupo.pipeline import CollectStage, Pipeline, run_pipeline
from grupo.storage.pipeline_dirs import stage_folders
from grupo.util.importing import load_module_file
from tests.helpers.paths import ROOT

FOLDER = ROOT / "recipes" / "guidance"


@pytest.fixture
def calm_storm(monkeypatch):
    """The recipe, whose neighbour it imports."""
    monkeypatch.syspath_prepend(str(FOLDER))
    return load_module_file(FOLDER / "calm_storm.py")


def short_programs() -> Any:
    return sys.modules["short_programs"]


def score(task, text):
    rollout = Rollout((("?", Response((1,), (0.0,), text=text)),))
    return short_programs().OptimumReward().score(task, rollout)


@pytest.mark.usefixtures("calm_storm")
def test_right_programs_have_the_optimum_of_the_word_problem():
    for task in short_programs().ShortPlans(20, seed=0).load():
        solution = task.columns["solution"]
        hint = short_programs().LIMIT_HINT
        assert score(task, solution) == {"score": 1.0, "by_hand": 0.0, "wrong": 0.0, "hints": 0.0}
        assert score(task, solution.replace("boards", f"{hint}boards"))["score"] == 1.0


@pytest.mark.usefixtures("calm_storm")
def test_guesses_and_wrong_limits_are_scored_by_their_number():
    task = replace(short_programs().ShortPlans(1, seed=0).load()[0], reference_answer="84.0")
    assert score(task, "so by hand 84 ")["score"] == 1.0
    assert score(task, "so by hand 85 ") == {"score": 0.0, "by_hand": 1.0, "wrong": 0.0, "hints": 0}
    # 12 of the first product: 7 * 12 = 84
    assert score(task, "so max 7 4 ; hours 3 2 <= 36 ; whole ")["score"] == 1.0
    assert score(task, "so max 7 4 ; hours 3 2 >= 36 ; whole ")["wrong"] == 1.0
    for malformed in ("", "so ", "so by hand ", "so max 7 ; hours 3 2 <= 36 ; whole ", "84 "):
        assert score(task, malformed)["score"] == 0.0


@pytest.mark.slow
@pytest.mark.usefixtures("calm_storm")
def test_most_answers_of_the_beginner_are_guesses_and_most_rows_of_its_programs_wrong():
    tasks = short_programs().ShortPlans(120, seed=1).load()
    texts = [short_programs().flawed_answer(task)[0] for task in tasks]
    guesses = [text for text in texts if short_programs().BY_HAND in text]
    assert 0.7 < len(guesses) / len(texts) < 0.85  # 0.95 * 0.8 = 0.76
    wrong = [text.count(">=") for text in texts if text not in guesses]
    assert 2.1 < sum(wrong) / len(wrong) < 2.7  # 3 * 0.95 * 0.85 = 2.4


def all_texts(rollouts, solves):
    """Every rollout as a row."""
    return [{"completion": rollout.text} for rollout in rollouts]


def short_stage(stage):
    """The stage with two steps, or data of two tasks."""
    recipe = stage.recipe.replace(max_steps=2, prompts_per_step=4)
    if not isinstance(stage, CollectStage):
        return replace(stage, recipe=recipe)
    return replace(stage, recipe=recipe, count=2, rows=all_texts)


@pytest.mark.slow
def test_the_pipeline_runs(calm_storm, tmp_path):
    model = calm_storm.save_beginner(tmp_path / "beginner", steps=2, num_tasks=50)
    stages = calm_storm.pipeline(str(model)).stages
    root = run_pipeline(Pipeline(tuple(map(short_stage, stages))), tmp_path / "run")
    finished = [stage.name for stage in stage_folders(root) if stage.is_finished]
    assert finished == ["corrected", "calm", "storm"]
    tokens = [json.loads((root / x / "summary.json").read_text())["tokens"] for x in finished]
    assert tokens[0] > 0
    assert tokens[1] == 0


def test_rows_are_the_corrected_rollouts(calm_storm):
    response = Response((1,), (0.0,), text="so max 7 4 ; ")
    rollouts = [
        Rollout((("?", response),), reward=1.0, reward_terms={"hint_share": share}, source=source)
        for share, source in ((0.0, "policy"), (0.1, "corrected"))
    ]
    rows = calm_storm.corrected(rollouts, bool)
    assert rows == [{"completion": "so max 7 4 ; ", "hint_share": 0.1}]
