"""Models beside the policy in the estimate of memory, counted by hand."""

from grupo import CausalLM
from grupo.config.frozen_models import FrozenWeights, frozen_bytes, frozen_models
from grupo.envs import RewardTerm, SingleTurn
from grupo.models.base import AuxModel
from grupo.models.model_size import read_model_size
from grupo.rewards import ChatEndpoint, ExactMatch, Judge, LearnedReward, LocalModel
from grupo.rewards.judges import YesNo
from grupo.toy.quickstart import RECIPE
from tests.helpers.user_inputs import tiny_model


def judge(model):
    return Judge(model, "{completion}", YesNo("Right:"))


def with_rewards(*rewards):
    terms = tuple(RewardTerm(f"r{i}", reward) for i, reward in enumerate(rewards))
    return RECIPE.replace(env=SingleTurn(terms))


def test_a_local_judge_has_its_dtype_and_a_learned_reward_float32():
    rewards = judge(LocalModel("a", dtype="float32")), LearnedReward("b", dtype="float32")
    found = frozen_models(with_rewards(*rewards))
    assert found == [FrozenWeights("a", 4), FrozenWeights("b", 4)]


def test_a_model_that_two_judges_share_counts_once():
    model = LocalModel("a", dtype="float32")
    assert len(frozen_models(with_rewards(judge(model), judge(model)))) == 1


def test_a_teacher_counts_and_copies_of_the_policy_do_not():
    teacher = AuxModel("teacher", CausalLM("t", dtype="float32"))
    recipe = with_rewards(ExactMatch()).replace(aux_models=(teacher, AuxModel("hinted", "ref")))
    assert frozen_models(recipe) == [FrozenWeights("t", 4)]


def test_a_model_behind_an_address_has_no_weights_here():
    assert frozen_models(with_rewards(judge(ChatEndpoint("gpt-4o-mini")))) == []


def test_the_bytes_are_those_of_the_parameters(tmp_path):
    tiny_model(tmp_path / "m")
    path = str(tmp_path / "m")
    parameters = read_model_size(path).num_parameters
    recipe = with_rewards(judge(LocalModel(path, dtype="float32")))
    assert frozen_bytes(recipe) == 4 * parameters
