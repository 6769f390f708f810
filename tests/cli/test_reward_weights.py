"""Weights of reward functions on the command line."""

import pytest

from grupo.cli.build_recipe import env_from_reward_functions
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
