"""Models that are grown on the spot are there before the first cell starts."""

from dataclasses import replace

from grupo.compare import Comparison, Steps, run_comparison
from grupo.compare.toy_models import missing_toy_models
from grupo.rollouts.samplers import GroupSampler
from grupo.toy.quickstart import RECIPE, TOY_MODEL
from tests.helpers.prebuilt_models import Pot


def test_only_what_a_recipe_names_and_nobody_grew_is_wanted(recipe, tmp_path):
    grown = Pot(recipe.policy.model)  # it is there
    missing, other = Pot(str(tmp_path / "missing")), Pot(str(tmp_path / "other"))
    named = recipe.replace(policy=replace(recipe.policy, model=missing.place))
    assert missing_toy_models([grown, missing, other], [recipe, named]) == [missing]


def test_a_missing_model_is_grown_once_for_all_cells(tmp_path, monkeypatch):
    monkeypatch.setenv("GRUPO_HOME", str(tmp_path / "home"))
    held_out = replace(TOY_MODEL.eval_tasks, size=4)
    size = {"width": 16, "layers": 1, "heads": 2, "inner": 32, "batch": 4, "steps": 2}
    seedling = replace(TOY_MODEL, eval_tasks=held_out, **size)
    policy = replace(RECIPE.policy, model=str(seedling.model_dir), limit=8)
    method = RECIPE.method.replace(sampler=GroupSampler(2))
    recipe = RECIPE.replace(policy=policy, eval_tasks=held_out, prompts_per_step=2, method=method)
    said: list[str] = []
    monkeypatch.setattr(
        "grupo.training.callbacks.Silent.said", lambda self, line: said.append(line)
    )
    one = Comparison({"grpo": recipe}, Steps(1), seeds=1, toy_models=(seedling,))
    result = run_comparison(one, tmp_path / "out", workers=1)
    assert [outcome.status for outcome in result.run_statuses] == ["finished"]
    assert said.count(f"{seedling.model_dir} is grown first.") == 1
    assert (seedling.model_dir / "grown.json").is_file()
