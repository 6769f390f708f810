"""Models that are grown on the spot are there before the first cell starts."""

from dataclasses import replace

from grupo.compare import Comparison, Steps, compare
from grupo.compare.toy_models import wanted
from grupo.rollouts.samplers import Independent
from grupo.toy.quickstart import RECIPE, SEEDLING
from tests.helpers.prebuilt_models import Pot


def test_only_what_a_recipe_names_and_nobody_grew_is_wanted(recipe, tmp_path):
    grown = Pot(recipe.policy.model)  # it is there
    missing, other = Pot(str(tmp_path / "missing")), Pot(str(tmp_path / "other"))
    named = recipe.but(policy=replace(recipe.policy, model=missing.place))
    assert wanted([grown, missing, other], [recipe, named]) == [missing]


def test_a_missing_model_is_grown_once_for_all_cells(tmp_path, monkeypatch):
    monkeypatch.setenv("GRUPO_HOME", str(tmp_path / "home"))
    held_out = replace(SEEDLING.held_out, size=4)
    size = {"width": 16, "layers": 1, "heads": 2, "inner": 32, "batch": 4, "steps": 2}
    seedling = replace(SEEDLING, held_out=held_out, **size)
    policy = replace(RECIPE.policy, model=str(seedling.home), limit=8)
    method = RECIPE.method.but(sample=Independent(2))
    recipe = RECIPE.but(policy=policy, held_out=held_out, prompts=2, method=method)
    said: list[str] = []
    monkeypatch.setattr(
        "grupo.training.callbacks.Silent.said", lambda self, line: said.append(line)
    )
    one = Comparison({"grpo": recipe}, Steps(1), seeds=1, grown=(seedling,))
    result = compare(one, tmp_path / "out", workers=1)
    assert [outcome.status for outcome in result.outcomes] == ["finished"]
    assert said.count(f"{seedling.home} is grown first.") == 1
    assert (seedling.home / "grown.json").is_file()
