"""Exported folders load with transformers and peft."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from peft import AutoPeftModelForCausalLM
from transformers import AutoModelForCausalLM, AutoTokenizer, GenerationConfig

from grupo.models.causal_lm import CausalLM
from grupo.models.causal_policy import CausalPolicy
from grupo.models.lora import Lora
from tests.helpers.tiny_lm import FAMILIES, PROMPTS, dense_attention, generate, save_model

TEXT = "What is 2+2?"


def build_perturbed(spec: CausalLM) -> CausalPolicy:
    """The policy with perturbed weights."""
    policy = spec.build()
    with torch.no_grad():
        for parameter in policy.parameters():
            parameter.add_(0.1 * torch.randn_like(parameter))
    return policy


def logits(model: torch.nn.Module, policy: CausalPolicy) -> torch.Tensor:
    with torch.no_grad():
        return model.eval()(
            torch.tensor([policy.chat_tokenizer.tokenizer(TEXT)["input_ids"]])
        ).logits


@pytest.mark.parametrize("lora", [None, Lora(4)], ids=["full", "merged"])
@pytest.mark.parametrize("family", FAMILIES)
def test_exported_model_has_the_same_logits(folders, tmp_path, family, lora):
    policy = build_perturbed(CausalLM(folders[family], max_new_tokens=8, lora=lora))
    policy.export(tmp_path)
    model = AutoModelForCausalLM.from_pretrained(tmp_path)
    start = AutoModelForCausalLM.from_pretrained(folders[family])
    with dense_attention(policy) as dense_model:
        expected = logits(dense_model, policy)
    torch.testing.assert_close(logits(model, policy), expected, rtol=1e-4, atol=1e-4)
    assert (logits(start, policy) - expected).abs().max() > 0.01
    assert AutoTokenizer.from_pretrained(tmp_path)(TEXT) == policy.chat_tokenizer.tokenizer(TEXT)


def test_merged_export_does_not_change_the_policy(llama, tmp_path):
    policy = build_perturbed(replace(llama, lora=Lora(4)))
    names, actions = list(policy.weights()), generate(policy)
    policy.export(tmp_path)
    assert list(policy.weights()) == names
    assert generate(policy) == actions


@pytest.mark.filterwarnings(
    "ignore:`is_gradient:FutureWarning"
)  # peft calls a deprecated method of transformers
def test_separate_adapters_load_onto_their_base_model(llama, tmp_path):
    policy = build_perturbed(replace(llama, lora=Lora(4)))
    policy.export(tmp_path, merge=False)
    assert not (tmp_path / "model.safetensors").exists()
    model = AutoPeftModelForCausalLM.from_pretrained(tmp_path)
    with dense_attention(policy) as dense_model:
        torch.testing.assert_close(logits(model, policy), logits(dense_model, policy))


def test_exported_folder_generates_the_same(llama, tmp_path):
    policy = build_perturbed(llama)
    policy.export(tmp_path)
    assert generate(replace(llama, model=str(tmp_path)).build(), PROMPTS) == generate(
        policy, PROMPTS
    )


def test_generation_config_is_exported_unchanged(tmp_path):
    folder = save_model(tmp_path / "start")
    # some published models have this contradictory config
    config = {"temperature": 0.6, "top_p": 0.9, "do_sample": False, "eos_token_id": [0, 5]}
    (folder / "generation_config.json").write_text(json.dumps(config))
    policy = CausalLM(str(folder), max_new_tokens=8).build()
    assert policy.chat_tokenizer.eos_token_ids == (0, 5)
    policy.export(tmp_path / "out")
    exported = json.loads(Path(tmp_path / "out" / "generation_config.json").read_text())
    assert {name: exported[name] for name in config} == config
    assert GenerationConfig.from_pretrained(tmp_path / "out").eos_token_id == [0, 5]
