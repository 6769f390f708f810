"""An unmodified agent of Pydantic AI trains a toy model."""

import pytest

pytest.importorskip("pydantic_ai", reason="Pydantic AI is not installed: make test-agents")

from grupo.training.resume.run_folder import RunFolder
from grupo.training.start import run_training
from grupo.util.importing import load_module
from tests.helpers.env_runs import recorded
from tests.helpers.paths import ROOT


@pytest.mark.slow
def test_ten_steps_with_an_unmodified_agent_raise_the_reward(tmp_path, monkeypatch):
    monkeypatch.setenv("GRUPO_HOME", str(tmp_path))
    recipe = load_module(str(ROOT / "recipes" / "agents" / "retrying_agent.py"))
    recipe.save_model()
    run_training(recipe.RECIPE, tmp_path / "run")
    metrics = recorded(RunFolder.open(tmp_path / "run"), "metrics")
    assert len(metrics) == 10
    assert sum(step["rollouts/failed"] for step in metrics) == 0
    rewards = [step["reward/mean"] for step in metrics]
    assert sum(rewards[-3:]) / 3 > sum(rewards[:3]) / 3 + 0.2
    differences = [step.get("sampler_mismatch/logp_diff_max", 0.0) for step in metrics]
    assert max(differences) < 1e-3  # a step whose rewards are equal trains on nothing
