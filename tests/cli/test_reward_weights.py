"""Weights of reward functions on the command line."""

import pytest

from grupo.cli.build_recipe import RecipeArgs, env_from_reward_functions
from grupo.core.errors import ConfigError


@pytest.fixture
def rewards(tmp_path) -> str:
    path = tmp_path / "rewards.py"
    path.write_text("def correct(task, rollouts): ...\ndef length(task, rollouts): ...\n")
    return str(path)


@pytest.mark.parametrize(
    ("prefix", "name", "weight"),
    [("", "length", 1.0), ("0.2*", "length", 0.2), ("-1*", "length", -1.0), ("n=2e-1*", "n", 0.2)],
)
def test_a_reward_has_the_weight_and_the_name_before_it(rewards, prefix, name, weight):
    first, second = env_from_reward_functions(
        [f"{rewards}:correct", f"{prefix}{rewards}:length"]
    ).rewards
    assert (first.name, first.weight) == ("correct", 1.0)
    assert (second.name, second.weight) == (name, weight)


@pytest.mark.parametrize(
    ("prefix", "message"),
    [("many*", r"'many' before \* is not a number"), ("inf*", r"weight: inf")],
)
def test_another_weight_is_rejected(rewards, prefix, message):
    with pytest.raises(ConfigError, match=rf"^reward: .*{message}"):
        env_from_reward_functions([f"{prefix}{rewards}:length"])


def weights(rewards: str, field: str, text: str) -> list[float]:
    addresses = (f"{rewards}:correct", f"{rewards}:length")
    recipe = RecipeArgs(rewards=addresses, fields=((field, text),))()
    return [reward.weight for reward in recipe.env.rewards]


def test_a_field_sets_the_weight_of_one_reward(rewards):
    assert weights(rewards, "env.rewards.0.weight", "0.2") == [0.2, 1.0]
    assert weights(rewards, "env.rewards.1.weight", "-1") == [1.0, -1.0]


@pytest.mark.parametrize(
    ("field", "message"),
    [
        ("env.rewards.2.weight", r"env\.rewards\.2: there is no item '2'\. Allowed: 0 or 1\."),
        ("env.rewards.length.weight", r"env\.rewards\.length: there is no item 'length'"),
        ("env.rewards.0.wieght", r"env\.rewards\.0\.wieght: .*Did you mean 'weight'"),
        ("env.rewards.0", r"env\.rewards\.0: name a field of the item, as in env"),
    ],
)
def test_a_reward_that_is_not_there_is_rejected(rewards, field, message):
    with pytest.raises(ConfigError, match=message):
        weights(rewards, field, "0.2")
