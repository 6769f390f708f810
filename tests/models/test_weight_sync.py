"""What training changes: kept, taken over, compared with where it began."""

from dataclasses import replace

import pytest
import torch

from grupo.core.errors import ConfigError
from grupo.core.reference_update import ReferenceUpdate
from grupo.models.causal_lm import CausalLM
from grupo.models.loading import Lora
from tests.helpers.tiny_lm import answers


@pytest.mark.parametrize("lora", [None, Lora(4)], ids=["full", "lora"])
def test_the_reference_stays_where_training_began(llama, lora):
    policy = replace(llama, lora=lora).build()
    batch = answers(policy)
    reference = policy.attach_aux_models(["logp@ref"], ReferenceUpdate(), []).scorers["ref"]
    with torch.no_grad():  # with a gradient, what was sampled need not be read again
        start = policy.signals(batch).logp
    assert torch.equal(reference.signals(batch).logp, start)
    with torch.no_grad():
        for parameter in policy.parameters():
            parameter.add_(0.05)
    assert (policy.signals(batch).logp - start).abs().max() > 0.01
    assert torch.equal(reference.signals(batch).logp, start)


def test_a_reference_is_not_trained(llama):
    assert llama.build().copy().parameters() == []


@pytest.mark.parametrize("lora", [None, Lora(4)], ids=["full", "lora"])
@pytest.mark.parametrize("family", ["llama", "qwen3"])  # the latter's embeddings are tied
def test_weights_come_back_bit_for_bit(folders, family, lora):
    spec = CausalLM(folders[family], max_new_tokens=8, lora=lora)
    moved, fresh = spec.build(), spec.build()
    with torch.no_grad():
        for parameter in moved.parameters():
            parameter.add_(torch.randn_like(parameter))
    kept = {name: weight.clone() for name, weight in moved.weights().items()}
    fresh.load(kept)
    batch = answers(moved)
    with torch.no_grad():  # with a gradient, who has read the rows need not read them again
        assert torch.equal(fresh.signals(batch).logp, moved.signals(batch).logp)
    assert all(torch.equal(weight, kept[name]) for name, weight in fresh.weights().items())
    assert answers(fresh).inputs["token"].tolist() == batch.inputs["token"].tolist()


def test_tied_embeddings_are_one_weight_and_stay_tied(folders):
    policy = CausalLM(folders["qwen3"], max_new_tokens=8).build()
    assert "lm_head.weight" not in policy.weights()
    policy.load({name: weight + 0.1 for name, weight in policy.weights().items()})
    assert policy.hf_model.lm_head.weight is policy.hf_model.model.embed_tokens.weight


def test_weights_of_another_model_are_refused(folders):
    small, large = (
        CausalLM(folders["llama"], max_new_tokens=8, lora=Lora(r)).build() for r in (1, 4)
    )
    with pytest.raises(ConfigError, match=r"^weights: .*lora_[AB].* differs from that of"):
        large.load(small.weights())
