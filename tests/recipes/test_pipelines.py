"""The recipes of pipelines, each run with one or two steps a stage."""

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from grupo.core.types import Response, Rollout
from grupo.pipeline import CollectStage, Pipeline, SurveyStage, run_pipeline
from grupo.storage.pipeline_dirs import stage_folders
from grupo.testing.batches import make_batch
from grupo.training.resume.run_folder import RunFolder
from grupo.util.importing import load_module_file
from grupo.util.run_files import MERGED_FILE
from tests.helpers.paths import ROOT

FOLDER = ROOT / "recipes" / "pipelines"


@pytest.fixture
def load(monkeypatch):
    """Loads a module of the folder, whose neighbours it imports."""
    monkeypatch.syspath_prepend(str(FOLDER))
    return lambda name: load_module_file(FOLDER / f"{name}.py")


def short_stage(stage):
    """The stage with two steps, or data of few tasks."""
    few = replace(stage.recipe.evaluation, attempts=1, every=0)
    recipe = stage.recipe.replace(max_steps=2, prompts_per_step=8, evaluation=few)
    is_data = isinstance(stage, CollectStage | SurveyStage)
    return replace(stage, recipe=recipe, **({"count": 100} if is_data else {}))


def run(pipeline: Pipeline, folder: Path) -> list[str]:
    """Run a pipeline in a folder and return the names of its finished stages."""
    root = run_pipeline(pipeline, folder / "run")
    return [stage.name for stage in stage_folders(root) if stage.is_finished]


def answered(text: str, *, truncated: bool = False) -> Rollout:
    response = Response((1,), (0.0,), text=text, finish_reason="length" if truncated else "end")
    return Rollout((("395=", response),))


@pytest.mark.parametrize(
    ("text", "truncated", "reward"),
    [("406", False, 10.0), ("406", True, -10.0), ("407", False, 0.0), ("407", True, -10.0)],
)
def test_the_reward_of_tulu_3(text, truncated, reward, load):
    tulu3, digits = load("tulu3"), sys.modules["shifted_digits"]
    task, rollout = digits.shift_task("395"), answered(text, truncated=truncated)
    terms = {"correct": digits.correct, "unfinished": digits.unfinished}
    weights = {term.name: term.weight for term in tulu3.RLVR_ENV.rewards}
    total = sum(weights[name] * function(task, rollout) for name, function in terms.items())
    assert total == reward


@pytest.mark.slow
def test_tulu_3_runs(load, tmp_path):
    tulu3 = load("tulu3")
    model = sys.modules["shifted_digits"].save_model(tmp_path / "model")
    pipeline = tulu3.pipeline(str(model))
    sft = pipeline.stages[0]
    steps = replace(sft, recipe=sft.recipe.replace(max_steps=60))  # until some tasks are solved
    stages = [short_stage(stage) for stage in pipeline.stages[1:]]
    names = run(Pipeline((steps, *stages)), tmp_path)
    assert names == [stage.name for stage in pipeline.stages]
    advantage: Any = RunFolder.open(tmp_path / "run" / "rlvr").recipe.method.advantage
    assert advantage.value_head.start.folder == str(tmp_path / "run" / "exported" / "model")


def test_the_length_reward_of_light_r1(load):
    weak_brevity = load("light_r1").WeakBrevity()
    batch = make_batch(
        group=[0, 0, 0, 1], length=[100, 300, 400, 5], reward_terms={"correct": [1, 1, 0, 0]}
    )
    shaped = weak_brevity(torch.tensor([1.0, 1.0, 0.0, 0.0]), batch)
    torch.testing.assert_close(shaped.float(), torch.tensor([1.0, 0.9, 0.0, 0.0]))


@pytest.mark.slow
def test_distilled_votes_run(load, tmp_path):
    voted_digits = load("voted_digits")
    model = sys.modules["shifted_digits"].save_model(tmp_path / "model")
    stages = [short_stage(stage) for stage in voted_digits.pipeline(str(model)).stages]
    assert stages[1].recipe.evaluation.turn_strategy == voted_digits.VOTE
    assert run(Pipeline(tuple(stages)), tmp_path) == [stage.name for stage in stages]


@pytest.mark.slow
def test_light_r1_runs(load, tmp_path):
    light_r1 = load("light_r1")
    model = sys.modules["shifted_digits"].save_model(tmp_path / "model")
    pipeline = light_r1.pipeline(str(model))
    sft = pipeline.stages[0]
    steps = replace(sft, recipe=sft.recipe.replace(max_steps=60))  # until some tasks are solved
    stages = [short_stage(stage) for stage in pipeline.stages[1:]]
    names = run(Pipeline((steps, *stages)), tmp_path)
    assert names == [stage.name for stage in pipeline.stages]
    policy: Any = RunFolder.open(tmp_path / "run" / "grpo").recipe.policy
    assert policy.start.file == str(tmp_path / "run" / "grpo" / MERGED_FILE)
