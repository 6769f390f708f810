"""Recipes with sharded weights that cannot be trained are refused before anything is loaded."""

from dataclasses import replace

import pytest

from grupo.algo.optimizers import SGD, Adafactor, Adam, Adam8bit, Muon
from grupo.config.validate import check_recipe
from grupo.core.reference_update import ReferenceUpdate
from grupo.inference.soft_tokens import SoftThinkingConfig
from grupo.models.base import AuxModel
from grupo.models.multi_policy_spec import MultiPolicy, RolePolicy
from grupo.models.sharding import FSDP2
from grupo.models.soft_thinking_lm import SoftThinkingLM
from grupo.toy.quickstart import RECIPE
from grupo.util.errors import ConfigError

SHARDED = replace(RECIPE.policy, sharding=FSDP2())
ONLY_HERE = (
    r"sharding: FSDP2\(…\). Allowed here: None, because only a CausalLM that is the policy of the"
    r" recipe can be sharded."
)


@pytest.mark.parametrize("optimizer", [Adam(), SGD(0.9)])
def test_optimizers_that_update_each_number_on_its_own_are_allowed(optimizer):
    check_recipe(RECIPE.replace(policy=SHARDED, optimizer=optimizer))


@pytest.mark.parametrize("optimizer", [Muon(), Adafactor(), Adam8bit()])
def test_optimizers_that_need_whole_matrices_are_refused(optimizer):
    message = r"which needs whole matrices. Allowed with policy.sharding: Adam or SGD"
    with pytest.raises(ConfigError, match=message):
        check_recipe(RECIPE.replace(policy=SHARDED, optimizer=optimizer))


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        (
            {"policy": MultiPolicy(RECIPE.policy, (RolePolicy("second", SHARDED),))},
            r"policy.roles\[0\].policy.",
        ),
        ({"policy": SoftThinkingLM(SHARDED, SoftThinkingConfig())}, "policy.base."),
        ({"aux_models": (AuxModel("teacher", SHARDED),)}, r"aux_models\[0\].model."),
    ],
)
def test_only_the_policy_of_the_recipe_can_be_sharded(changes, field):
    with pytest.raises(ConfigError, match=field + ONLY_HERE):
        check_recipe(RECIPE.replace(**changes))


def test_a_reference_that_follows_is_not_rounded_to_the_type_of_gathered_weights():
    policy = replace(SHARDED, dtype="bfloat16", sharding=FSDP2(param_dtype="bfloat16"))
    method = RECIPE.method.replace(reference=ReferenceUpdate(0.5, 2))
    message = "in which a reference that follows the policy would be rounded"
    with pytest.raises(ConfigError, match=message):
        check_recipe(RECIPE.replace(policy=policy, method=method))
    check_recipe(RECIPE.replace(policy=policy))
