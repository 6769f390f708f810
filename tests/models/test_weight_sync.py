"""Trained weights: saving, loading, and the reference."""

from dataclasses import replace

import pytest
import torch
from safetensors.torch import load_file

from grupo.core.reference_update import ReferenceUpdate
from grupo.models.adapters import base_weights
from grupo.models.causal_lm import CausalLM
from grupo.models.lora import Lora
from grupo.models.weight_sync import ServerWeights, checkpoint_weights
from grupo.util.errors import ConfigError
from tests.helpers.moe_models import save_moe
from tests.helpers.tiny_lm import answer_batch


@pytest.mark.parametrize("lora", [None, Lora(4)], ids=["full", "lora"])
def test_reference_keeps_the_initial_weights(llama, lora):
    policy = replace(llama, lora=lora).build()
    batch = answer_batch(policy)
    reference = policy.attach_aux_models(["logp@ref"], ReferenceUpdate(), []).signal_models["ref"]
    with torch.no_grad():  # with a gradient, cached activations are reused
        start = policy.signals(batch).logp
    assert torch.equal(reference.signals(batch).logp, start)
    with torch.no_grad():
        for parameter in policy.parameters():
            parameter.add_(0.05)
    assert (policy.signals(batch).logp - start).abs().max() > 0.01
    assert torch.equal(reference.signals(batch).logp, start)


def test_frozen_copy_has_no_trained_parameters(llama):
    assert llama.build().load_frozen_copy().parameters() == []


@pytest.mark.parametrize("lora", [None, Lora(4)], ids=["full", "lora"])
@pytest.mark.parametrize("family", ["llama", "qwen3"])  # tied embeddings in qwen3
def test_loaded_weights_are_bit_identical(folders, family, lora):
    spec = CausalLM(folders[family], max_new_tokens=8, lora=lora)
    trained, fresh = spec.build(), spec.build()
    with torch.no_grad():
        for parameter in trained.parameters():
            parameter.add_(torch.randn_like(parameter))
    saved = {name: weight.clone() for name, weight in trained.weights().items()}
    fresh.load(saved)
    batch = answer_batch(trained)
    with torch.no_grad():  # with a gradient, cached activations are reused
        assert torch.equal(fresh.signals(batch).logp, trained.signals(batch).logp)
    assert all(torch.equal(weight, saved[name]) for name, weight in fresh.weights().items())
    assert answer_batch(fresh).inputs["token"].tolist() == batch.inputs["token"].tolist()


def test_tied_embeddings_stay_tied(folders):
    policy = CausalLM(folders["qwen3"], max_new_tokens=8).build()
    assert "lm_head.weight" not in policy.weights()
    policy.load({name: weight + 0.1 for name, weight in policy.weights().items()})
    assert policy.hf_model.lm_head.weight is policy.hf_model.model.embed_tokens.weight


def test_weights_of_another_model_raise_config_error(folders):
    small, large = (
        CausalLM(folders["llama"], max_new_tokens=8, lora=Lora(r)).build() for r in (1, 4)
    )
    with pytest.raises(ConfigError, match=r"^weights: .*lora_[AB].* differs from that of"):
        large.load(small.weights())


def test_engines_of_a_copy_of_the_weights_keep_nothing_for_an_update(llama):
    policy = llama.build()
    assert policy.weight_sync.engine().engine.trained_on
    policy.use_weight_copy_for_generation()
    assert not policy.weight_sync.engine().engine.trained_on


LAST_UP_PROJECTION = {
    "qwen3_moe": "model.layers.1.mlp.experts.7.up_proj.weight",
    "mixtral": "model.layers.1.block_sparse_moe.experts.3.w3.weight",
    "olmoe": "model.layers.1.mlp.experts.7.up_proj.weight",
}


@pytest.mark.parametrize("family", LAST_UP_PROJECTION)
def test_servers_get_a_tensor_for_each_expert_as_checkpoints_have_it(tmp_path, family):
    policy = CausalLM(save_moe(tmp_path, family), max_new_tokens=4).build()
    weights = ServerWeights(policy, None, torch.float32).snapshot()
    stored = load_file(tmp_path / "model.safetensors")
    assert weights.keys() == stored.keys()
    assert all(torch.equal(weights[name], stored[name]) for name in stored)
    layer = policy.hf_model.model.layers[1].mlp.experts.gate_up_proj[-1]
    up = weights[LAST_UP_PROJECTION[family]]
    assert torch.equal(up, layer[len(layer) // 2 :])
    assert up.is_contiguous()


def test_weights_below_adapters_have_the_names_of_checkpoints(tmp_path):
    policy = CausalLM(save_moe(tmp_path, "olmoe"), max_new_tokens=4, lora=Lora(4)).build()
    weights = checkpoint_weights(policy.hf_model, base_weights(policy.module))
    stored = load_file(tmp_path / "model.safetensors")
    assert weights.keys() == stored.keys()
    assert all(torch.equal(weights[name], stored[name]) for name in stored)
