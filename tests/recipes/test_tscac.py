"""TSCAC: responses of a session, constraints on the gain, and both stages in a short run."""

import sys
from dataclasses import replace

import pytest

from grupo.algo.losses import MultiReferenceNLL
from grupo.core.types import Task
from grupo.evidence.claims.paired_table import paired_table
from grupo.evidence.claims.stored_runs import stored_runs
from grupo.pipeline import ExportStage, Pipeline, run_pipeline
from grupo.storage.pipeline_dirs import stage_folders
from grupo.util.importing import load_module_file
from tests.helpers.paths import ROOT

FOLDER = ROOT / "recipes" / "pipelines"


@pytest.fixture
def load(monkeypatch):
    """Loads a module of the folder, whose neighbours it imports."""
    monkeypatch.syspath_prepend(str(FOLDER))
    return lambda name: load_module_file(FOLDER / f"{name}.py")


def test_topics_and_repetitions_decide_what_a_video_is_worth(load):
    videos = load("short_videos")
    one = videos.responses(["cats", "food"], ["cats-film"])
    assert one == {"watch": pytest.approx(0.9), "likes": 0.1, "shares": 0.1}
    other_topic = videos.responses(["food", "songs"], ["cats-film"])
    assert other_topic["watch"] == pytest.approx(0.9 / 4)
    same_topic = videos.responses(["cats", "food"], ["cats-film", "cats-joke"])
    assert same_topic["likes"] == pytest.approx(0.1 + 0.9 / 2)
    again = videos.responses(["cats", "food"], ["cats-film", "food-joke", "cats-film"])
    assert again["watch"] == pytest.approx(0.9 + 0.2)


def test_a_gain_that_costs_likes_or_shares_counts_as_none(load):
    gain = load("tscac_table").constrained_gain
    start = {"watch": 2.0, "likes": 1.0, "shares": 1.0}
    assert gain({"watch": 3.0, "likes": 1.0, "shares": 1.2}, start) == 0.5
    assert gain({"watch": 3.0, "likes": 0.9, "shares": 1.2}, start) == 0.0


def short(stage):
    if isinstance(stage, ExportStage):
        return stage
    return replace(stage, recipe=stage.recipe.replace(max_steps=1))


@pytest.mark.slow
def test_stage_two_reads_the_policies_of_stage_one(load, tmp_path):
    tscac, videos = load("tscac"), sys.modules["short_videos"]
    model = videos.save_model(tmp_path / "behaviour", steps=2)
    stages = tscac.pipeline(str(model)).stages
    *_, main = stages
    assert [stage.start for stage in stages if not isinstance(stage, ExportStage)] == ["", "", ""]
    assert isinstance(main.recipe.method.loss.left, MultiReferenceNLL)
    assert {"logp@likes", "logp@shares", "value"} <= set(main.recipe.method.requires.signals)
    root = run_pipeline(Pipeline(tuple(map(short, stages))), tmp_path / "run")
    ended = [stage.name for stage in stage_folders(root) if stage.is_finished]
    assert ended == ["likes", "likes_model", "shares", "shares_model", "watch"]


def test_rewards_of_a_recipe_are_measured_and_only_those_with_a_weight_are_trained_on(load):
    recipe = load("tscac").actor_critic_recipe("model", {"likes": 1.0})
    assert {term.name: term.weight for term in recipe.env.rewards} == {
        "watch": 0.0,
        "likes": 1.0,
        "shares": 0.0,
    }


def test_the_table_of_the_page_is_that_of_the_runs(load):
    table = load("tscac_table")
    arms = dict.fromkeys(("behaviour policy", table.BASELINE, "TSCAC"))
    runs = stored_runs(ROOT / "docs" / "pipelines_runs" / "tscac.jsonl", arms, range(4))
    written = paired_table(runs, table.METRICS, table.BASELINE)
    page = (ROOT / "docs" / "pipelines_shown.md").read_text()
    assert set(written.splitlines()) <= set(page.splitlines())


def test_each_pair_of_topics_is_a_user(load):
    tasks = load("short_videos").sessions()
    assert len(tasks) == len({task.key for task in tasks}) == 12
    assert isinstance(tasks[0], Task)
