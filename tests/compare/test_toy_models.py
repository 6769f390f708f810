"""Missing toy models are trained before the first run."""

from dataclasses import replace

import pytest

from grupo.compare import Comparison, Steps, run_comparison
from grupo.compare.toy_models import missing_toy_models
from grupo.rollouts.samplers import GroupSampler
from grupo.toy.quickstart import RECIPE, TOY_MODEL
from grupo.training.callbacks import NullCallback
from tests.helpers.in_process_runs import runs_in_process
from tests.helpers.prebuilt_models import PrebuiltModel


def test_only_missing_toy_models_of_recipes_are_needed(recipe, tmp_path):
    existing = PrebuiltModel(recipe.policy.model)  # it exists
    missing, other = (
        PrebuiltModel(str(tmp_path / "missing")),
        PrebuiltModel(str(tmp_path / "other")),
    )
    named = recipe.replace(policy=replace(recipe.policy, model=missing.folder))
    assert missing_toy_models([existing, missing, other], [recipe, named]) == [missing]


@pytest.mark.slow
def test_missing_toy_model_is_trained_once(tmp_path, monkeypatch):
    monkeypatch.setenv("GRUPO_HOME", str(tmp_path / "home"))
    held_out = replace(TOY_MODEL.eval_tasks, size=4)
    size = {
        "hidden_size": 16,
        "num_layers": 1,
        "num_heads": 2,
        "intermediate_size": 32,
        "prompts_per_step": 4,
        "max_steps": 2,
    }
    toy_model = replace(TOY_MODEL, eval_tasks=held_out, **size)
    policy = replace(RECIPE.policy, model=str(toy_model.model_dir), max_new_tokens=8)
    method = RECIPE.method.replace(sampler=GroupSampler(2))
    recipe = RECIPE.replace(policy=policy, eval_tasks=held_out, prompts_per_step=2, method=method)
    messages: list[str] = []
    monkeypatch.setattr(NullCallback, "on_message", lambda self, line: messages.append(line))
    comparison = Comparison({"grpo": recipe}, Steps(1), seeds=1, toy_models=(toy_model,))
    with runs_in_process():
        result = run_comparison(comparison, tmp_path / "out")
    assert [status.status for status in result.run_statuses] == ["finished"]
    assert messages.count(f"Making the toy model {toy_model.model_dir} first.") == 1
    assert (toy_model.model_dir / "toy_model.json").is_file()
