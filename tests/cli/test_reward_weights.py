"""Weights of reward functions on the command line."""

import pytest

from grupo.cli.build_recipe import RecipeArgs, reward_terms
from grupo.util.errors import ConfigError


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
    first, second = reward_terms([f"{rewards}:correct", f"{prefix}{rewards}:length"])
    assert (first.name, first.weight) == ("correct", 1.0)
    assert (second.name, second.weight) == (name, weight)


@pytest.mark.parametrize(
    ("prefix", "message"),
    [("many*", r"'many' before \* is not a number"), ("inf*", r"weight: inf")],
)
def test_another_weight_is_rejected(rewards, prefix, message):
    with pytest.raises(ConfigError, match=rf"^reward: .*{message}"):
        reward_terms([f"{prefix}{rewards}:length"])


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


RECIPE = """
from grupo.envs import MultiTurn, RewardTerm, SingleTurn
from grupo.envs.games import Gymnasium
from grupo.envs.verifiers import Verifiers
from grupo.rewards import ReasoningGymVerifier
from grupo.rollouts.evaluate import SuccessCriterion
from grupo.toy import quickstart
from dataclasses import replace

VERIFIER = RewardTerm("solved", ReasoningGymVerifier())
GAME = quickstart.RECIPE.replace(
    env=MultiTurn(Gymnasium("CartPole-v1"), rewards=(VERIFIER,), max_turns=3),
    evaluation=replace(quickstart.RECIPE.evaluation, success=SuccessCriterion("solved")),
)
OTHER = GAME.replace(env=Verifiers("wordle"))
"""


@pytest.fixture
def recipe_file(tmp_path) -> str:
    path = tmp_path / "recipe.py"
    path.write_text(RECIPE)
    return str(path)


def test_rewards_become_the_terms_of_the_recipes_environment(rewards, recipe_file):
    recipe = RecipeArgs(f"{recipe_file}:GAME", rewards=(f"solved={rewards}:correct",))()
    assert (type(recipe.env).__name__, recipe.env.max_turns) == ("MultiTurn", 3)
    assert [term.name for term in recipe.env.rewards] == ["solved"]
    assert recipe.evaluation.success.reward_term == "solved"


def test_a_success_criterion_that_would_be_lost_is_refused(rewards, recipe_file):
    with pytest.raises(ConfigError, match=r"no reward function is named 'solved'\. Write --reward"):
        RecipeArgs(f"{recipe_file}:GAME", rewards=(f"{rewards}:correct",))()
    success = ("evaluation.success", "SuccessCriterion('correct', 0.5)")
    recipe = RecipeArgs(f"{recipe_file}:GAME", rewards=(f"{rewards}:correct",), fields=(success,))()
    assert str(recipe.evaluation.success) == "correct >= 0.5"


def test_an_environment_without_reward_terms_is_named(rewards, recipe_file):
    with pytest.raises(ConfigError, match=r"^reward: Verifiers has rewards of its own"):
        RecipeArgs(f"{recipe_file}:OTHER", rewards=(f"solved={rewards}:correct",))()
