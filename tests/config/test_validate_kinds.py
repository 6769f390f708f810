"""A model, its name or a reward function in place of the component that needs it."""

import re

import pytest

from grupo import CausalLM, ConfigError, ReasoningGym, Recipe, RewardTerm, SingleTurn, train
from grupo.config.validate_kinds import check_kinds
from grupo.rewards import ExactMatch

RECIPE = Recipe(
    CausalLM("chat"), SingleTurn((RewardTerm("correct", ExactMatch()),)), ReasoningGym("chain_sum")
)


def brief(task, rollout):
    return -rollout.length / 100


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("policy", "Qwen/Qwen3-0.6B", "'Qwen/Qwen3-0.6B'. Allowed: a policy, such as CausalLM('Qw"),
        (
            "policy",
            object(),
            "of the type object. Allowed: a policy, such as CausalLM('folder",
        ),
        ("env", brief, "the function brief. Allowed: an environment, such as SingleTurn((RewardT"),
        (
            "env",
            [brief],
            "of the type list. Allowed: an environment, such as SingleTurn((Rew",
        ),
    ],
)
def test_a_field_of_another_kind_is_refused_with_an_example(field, value, message):
    with pytest.raises(ConfigError, match=re.escape(f"{field}: {message}")):
        check_kinds(RECIPE.replace(**{field: value}))


def test_a_file_in_place_of_a_recipe_is_refused(tmp_path):
    with pytest.raises(ConfigError, match=r"recipe: 'recipe\.py'\. Allowed: a Recipe\."):
        train("recipe.py", tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_a_recipe_of_components_is_accepted():
    check_kinds(RECIPE)
