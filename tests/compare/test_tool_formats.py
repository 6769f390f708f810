"""The runs of a comparison keep the format of tool calls that the chat template has chosen."""

import shutil
from dataclasses import replace

import pytest

from grupo import CausalLM, Recipe
from grupo.compare.experiment import RunSpec
from grupo.compare.run_status import INTERRUPTED, status_of
from grupo.compare.scheduler import create_folder
from grupo.compare.validate import validate_dependencies
from grupo.envs import MultiTurn, RewardTerm
from grupo.envs.tools import ParsedCalls, Python, Toolbox
from grupo.methods.grpo import grpo
from grupo.tasks import ReasoningGym
from grupo.training.resume.run_folder import RunFolder
from grupo.util.errors import ConfigError
from tests.helpers.template_families import tokenizer_options
from tests.helpers.tiny_lm import save_model

REWARDS = (RewardTerm("parsed", ParsedCalls()),)


@pytest.fixture
def run(tmp_path) -> RunSpec:
    """A run that waits, of a policy with DeepSeek's template."""
    model = str(save_model(tmp_path / "model", tokenizer_options=tokenizer_options("deepseek_v31")))
    policy = CausalLM(model, max_new_tokens=8, apply_chat_template=True)
    env = MultiTurn(Toolbox((Python(),)), REWARDS)
    recipe = Recipe(policy, env, ReasoningGym("chain_sum", size=4), method=grpo())
    return RunSpec("grpo", "", 0, recipe, tmp_path / "run")


def with_toolbox(run, **fields):
    """The run with other fields of its toolbox."""
    env = run.recipe.env
    toolbox = replace(env.env_factory, **fields)
    return replace(run, recipe=run.recipe.replace(env=replace(env, env_factory=toolbox)))


def test_recipe_json_has_the_chosen_format_and_the_status_agrees_with_it(run):
    create_folder(run)
    env = RunFolder.open(run.folder).recipe.env
    assert (env.env_factory.format, env.env_factory.described_by) == ("deepseek", "prompt")
    assert (env.role, env.rewards[0].fn.format) == ("tool", "deepseek")
    shutil.rmtree(run.recipe.policy.model)  # the status reads no model
    assert status_of(run).status == INTERRUPTED


def test_a_comparison_with_another_format_is_another_one(run):
    create_folder(run)
    assert status_of(with_toolbox(run, format="deepseek")).status == INTERRUPTED
    with pytest.raises(ConfigError, match="was begun with env ="):
        status_of(with_toolbox(run, format="pythonic"))
    with pytest.raises(ConfigError, match="was begun with env ="):
        status_of(with_toolbox(run, max_result_chars=7))


def test_a_format_that_the_policy_cannot_follow_is_refused_before_any_run(run):
    with pytest.raises(ConfigError, match="format: 'mistral', and the policy's chat template"):
        validate_dependencies([with_toolbox(run, format="mistral")], [])
