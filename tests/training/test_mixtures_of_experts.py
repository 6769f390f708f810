"""Mixtures of experts are trained, resumed and exported."""

from dataclasses import replace

import pytest
import torch
from safetensors.torch import load_file
from transformers import AutoModelForCausalLM

from grupo.models.causal_lm import CausalLM
from grupo.training.resume.extend import extend_run
from grupo.training.start import resume_training, run_training
from tests.helpers import training_recipes
from tests.helpers.moe_models import MOE, save_moe


@pytest.fixture(scope="module")
def moe(tmp_path_factory):
    root = tmp_path_factory.mktemp("moe")
    return {family: save_moe(root / family, family) for family in MOE}


def recipe_of(folder: str, steps: int, **fields):
    recipe = training_recipes.base(folder).replace(max_steps=steps, save_every=1)
    return recipe.replace(policy=replace(recipe.policy, **fields))


def weights_of(run):
    newest = max((run / "checkpoints").glob("step-*"))
    return load_file(newest / "weights.safetensors")


@pytest.mark.slow
@pytest.mark.parametrize("family", MOE)
def test_a_resumed_run_has_the_bits_of_an_unbroken_one(moe, family, tmp_path):
    fields = {"router_aux_loss": 0.01, "router_replay": True}
    run_training(recipe_of(moe[family], 3, **fields), tmp_path / "whole")
    run_training(recipe_of(moe[family], 2, **fields), tmp_path / "parts")
    extend_run(tmp_path / "parts", lambda recipe: recipe.replace(max_steps=3))
    resume_training(tmp_path / "parts")
    whole, parts = weights_of(tmp_path / "whole"), weights_of(tmp_path / "parts")
    assert whole.keys() == parts.keys()
    assert all(torch.equal(whole[name], parts[name]) for name in whole)


def test_an_exported_model_is_the_trained_one(moe, tmp_path):
    policy = CausalLM(moe["qwen3_moe"], max_new_tokens=4).build()
    with torch.no_grad():
        for parameter in policy.parameters():
            parameter.mul_(1.1)
    policy.export(tmp_path)
    model = AutoModelForCausalLM.from_pretrained(tmp_path)
    own = dict(policy.hf_model.named_parameters())
    assert all(torch.equal(x, own[name]) for name, x in model.named_parameters())
