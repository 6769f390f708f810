"""Pipelines of recipes/pipelines with short stages."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from grupo.core.types import Response, Rollout
from grupo.pipeline import Pipeline, run_pipeline
from grupo.storage.pipeline_dirs import stage_folders
from grupo.util.importing import load_module_file
from tests.helpers.paths import ROOT

FOLDER = ROOT / "recipes" / "pipelines"


@pytest.fixture
def load(monkeypatch):
    """Loads a module of the folder, whose neighbours it imports."""
    monkeypatch.syspath_prepend(str(FOLDER))
    return lambda name: load_module_file(FOLDER / f"{name}.py")


def short(stage: Any) -> Any:
    """The stage with two steps, or data of few tasks."""
    few = replace(stage.recipe.evaluation, attempts=1, every=0)
    recipe = stage.recipe.replace(max_steps=2, prompts_per_step=4, evaluation=few)
    return replace(stage, recipe=recipe, **({"count": 30} if stage.output_name else {}))


def run_short(pipeline: Pipeline, folder: Path) -> Path:
    """Run a pipeline with short stages, all of which end, and return its folder."""
    root = run_pipeline(Pipeline(tuple(map(short, pipeline.stages))), folder / "run")
    finished = [stage.name for stage in stage_folders(root) if stage.is_finished]
    assert finished == [stage.name for stage in pipeline.stages]
    return root


def rows_of(folder: Path) -> list[dict[str, Any]]:
    """The rows of a collection."""
    return [json.loads(line) for line in (folder / "tasks.jsonl").read_text().splitlines()]


def answered(text: str, *, forced: bool = False) -> Rollout:
    """A rollout with a text, whose thoughts may have been forced."""
    response = Response((1,), (0.0,), text=text, in_loss=not forced)
    return Rollout((("?", response),))
