"""Rewards lie in the range that a method's components assume: before a run, and observed."""

from dataclasses import replace

import pytest
import torch

from grupo.algo.advantages import RescaleReward
from grupo.algo.filters import keep_all
from grupo.config.validate import check_recipe
from grupo.config.validate_rewards import check_rewards_in_range, declared_reward_range
from grupo.core.requires import Requires
from grupo.core.types import Group, Rollout, Task
from grupo.envs import RewardTerm, SingleTurn
from grupo.method import Method
from grupo.methods.a_grae import a_grae
from grupo.methods.dapo import dapo
from grupo.methods.etr import etr
from grupo.methods.forking_tokens import forking_tokens
from grupo.methods.mapo import mapo
from grupo.methods.max_rl import max_rl
from grupo.methods.ngrpo import ngrpo
from grupo.methods.prime import prime
from grupo.methods.spo_single_stream import spo_single_stream
from grupo.rewards import ExactMatch
from grupo.testing.batches import make_batch
from grupo.testing.smoke.run import echo_recipe
from grupo.toy.quickstart import RECIPE
from grupo.training.learner import Learner
from grupo.util.errors import ConfigError


def exact(*weights: float) -> SingleTurn:
    """An environment of reward terms between 0 and their weight."""
    return SingleTurn(tuple(RewardTerm(f"t{i}", ExactMatch(), w) for i, w in enumerate(weights)))


def with_rewards(method: Method, env: SingleTurn):
    success = replace(RECIPE.evaluation.success, reward_term="")
    evaluation = replace(RECIPE.evaluation, success=success)
    return RECIPE.replace(method=method, env=env, evaluation=evaluation)


def test_the_range_of_an_environment_is_that_of_its_weighted_terms():
    assert declared_reward_range(exact(1.0, -0.5, 0.0)) == (-0.5, 1.0)
    unknown = RewardTerm("length", lambda task, rollout: 3.0)
    assert declared_reward_range(SingleTurn((*exact(1.0).rewards, unknown))) is None


def test_an_environment_of_another_range_is_refused_before_the_run():
    with pytest.raises(ConfigError) as error:
        check_recipe(with_rewards(dapo(64, 16), exact(1.0, 0.5)))
    assert str(error.value) == (
        "method: it expects rewards from 0 to 1, and those of the environment are from 0 to 1.5."
        " Give the method reward_range=(0, 1.5) if it has this argument, or change the weights of"
        " the reward terms."
    )
    check_recipe(with_rewards(dapo(64, 16, reward_range=(0.0, 1.5)), exact(1.0, 0.5)))
    check_recipe(with_rewards(dapo(64, 16), exact(1.0)))
    check_recipe(with_rewards(Method(), exact(1.0, 0.5)))  # nothing assumes a range


@pytest.mark.parametrize(
    ("method", "reward", "allowed"),
    [
        (etr(), 1.5, "from 0 to 1"),
        (a_grae(), -0.5, "from 0 to 1"),
        (prime(), 2.0, "from 0 to 1"),
        (spo_single_stream(), -1.0, "from 0 to 1"),
        (max_rl(), -0.5, "of at least 0"),
        (mapo(), -0.5, "of at least 0"),
        (ngrpo(max_reward=2.0), 2.5, "of at most 2"),
    ],
)
def test_methods_whose_constants_assume_a_range_refuse_other_rewards(method, reward, allowed):
    def groups(reward):
        return [Group(Task("k", "?"), (Rollout(reward=0.0), Rollout(reward=reward)))]

    with pytest.raises(ConfigError, match=f"reward {reward:g} .*Allowed: rewards {allowed}"):
        check_rewards_in_range(method, groups(reward))
    check_rewards_in_range(method, groups(1.0))


def test_an_observed_reward_outside_of_the_range_is_an_error():
    groups = [Group(Task("k", "?"), (Rollout(reward=1.0), Rollout(reward=-1.0)))]
    with pytest.raises(ConfigError) as error:
        check_rewards_in_range(dapo(64, 16), groups)
    assert str(error.value) == (
        "env: the reward -1 of task 'k'. Allowed: rewards from 0 to 1, which a component of the"
        " method assumes. Give the method the environment's reward_range if it has this argument."
    )
    check_rewards_in_range(dapo(64, 16, reward_range=(-1.0, 1.0)), groups)
    check_rewards_in_range(Method(), groups)


@pytest.mark.parametrize("make_method", [dapo, forking_tokens])
def test_a_correct_overlong_answer_is_above_a_short_wrong_one(make_method):
    """Rewards 1 and 0 become 1 and -1; the penalty of -1 leaves 0 > -1, not 0 = 0."""
    batch = make_batch(group=[0, 0, 0], reward=[1.0, 0.0, 1.0], length=[4, 1, 1])
    method = make_method(4, 2)
    advantage = batch.with_advantage(method.advantage).advantage[:, 0]
    expected = torch.tensor([0.0, -1.0, 1.0], dtype=torch.float64)
    torch.testing.assert_close(advantage, expected, atol=1e-5, rtol=0)


def test_declarations_of_several_components_allow_what_all_allow():
    merged = Requires(reward_range=(0.0, 1.0)) | Requires(reward_range=(-1.0, 0.5)) | Requires()
    assert merged.reward_range == (0.0, 0.5)
    with pytest.raises(TypeError, match=r"reward_range: \(1\.0, 0\.0\)"):
        Requires(reward_range=(1.0, 0.0))


def test_a_range_whose_bounds_are_exchanged_is_refused():
    with pytest.raises(ConfigError, match=r"RescaleReward\.target: .* Allowed: the smallest, then"):
        RescaleReward(target=(1.0, -1.0))


def test_a_training_step_checks_its_rewards():
    def learner(reward_range: tuple[float, float]) -> Learner:
        method = dapo(4, 2, reward_range=reward_range).replace(filter=keep_all)
        return Learner(echo_recipe(method, max_steps=1).replace(prompts_per_step=2))

    with pytest.raises(ConfigError, match=r"env: the reward [01] of task .* from 2 to 3"):
        learner((2.0, 3.0)).step()
    learner((0.0, 1.0)).step()
