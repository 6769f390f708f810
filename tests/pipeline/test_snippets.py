"""The pipelines of `docs/pipelines.md`: each is built, and the one with a DPO stage runs."""

import json
import re
from typing import Any

import pytest

from grupo.core.serialization import from_data, to_data
from grupo.pipeline import CollectStage, VerifiedPairs, run_pipeline
from grupo.storage.pipeline_dirs import stage_folders
from tests.helpers.paths import ROOT
from tests.helpers.pipelines import short


@pytest.mark.slow
def test_the_pipelines_of_the_page_are_built_and_its_dpo_stage_trains(model, tmp_path):
    page = (ROOT / "docs" / "pipelines.md").read_text()
    names: dict[str, Any] = {"recipe": short(model)}
    for code in re.findall(r"```python\n(.*?)```", page, re.DOTALL):
        exec(code, names)
    assert names["PIPELINE"].names == ["sft", "rl"]
    root = run_pipeline(names["PREFERENCES"], tmp_path / "run")
    finished = [stage.name for stage in stage_folders(root) if stage.is_finished]
    assert finished == ["rl", "pairs", "dpo"]
    first = json.loads((root / "dpo" / "metrics.jsonl").read_text().splitlines()[0])
    assert any("preference_accuracy" in name for name in first)


def test_rows_by_a_verifier_are_saved_with_their_stage(model):
    stage = CollectStage("pairs", short(model), rows=VerifiedPairs(("consistent", "varied")))
    assert from_data(to_data(stage)) == stage
