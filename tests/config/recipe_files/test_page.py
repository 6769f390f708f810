"""The examples of docs/recipe_files.md."""

import re

import pytest

from grupo.config.recipe_files import load_recipe_file
from grupo.core.schedules import Cosine, Warmup
from grupo.models.lora import Lora
from tests.helpers.paths import ROOT

PAGE = (ROOT / "docs" / "recipe_files.md").read_text()
EXAMPLES = re.findall(r"```(toml|yaml)\n(.*?)```", PAGE, re.DOTALL)


@pytest.fixture
def recipes(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "rewards.py").write_text(
        "def correct(task, rollout):\n    return 1.0\n\ndef short(task, rollout):\n    return 1.0\n"
    )
    for kind, text in EXAMPLES:
        (tmp_path / f"recipe.{kind}").write_text(text)
    return {kind: load_recipe_file(f"recipe.{kind}") for kind, _ in EXAMPLES}


def test_both_examples_are_the_same_recipe(recipes):
    assert recipes["toml"] == recipes["yaml"]


def test_example_has_the_values_that_it_shows(recipes):
    recipe = recipes["toml"]
    assert recipe.learning_rate == Warmup(0.1, Cosine(1e-5, 0.0))
    assert recipe.policy.lora == Lora(16)
    assert recipe.policy.sampling.temperature == 0.9
    assert [term.weight for term in recipe.env.rewards] == [1.0, 0.1]
    assert recipe.method.sampler.group_size == 8
