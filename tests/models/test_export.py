"""What is exported, transformers and peft load."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from peft import AutoPeftModelForCausalLM
from transformers import AutoModelForCausalLM, AutoTokenizer, GenerationConfig

from grupo.models.causal_lm import CausalLM
from grupo.models.causal_policy import CausalPolicy
from grupo.models.loading import Lora
from tests.helpers.tiny_lm import FAMILIES, PROMPTS, dense, plant, spoken

TEXT = "What is 2+2?"


def moved(spec: CausalLM) -> CausalPolicy:
    """The policy some way from where it began."""
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
def test_an_exported_folder_has_the_same_logits(folders, tmp_path, family, lora):
    policy = moved(CausalLM(folders[family], max_new_tokens=8, lora=lora))
    policy.export(tmp_path)
    model = AutoModelForCausalLM.from_pretrained(tmp_path)
    start = AutoModelForCausalLM.from_pretrained(folders[family])
    with dense(policy) as plain:
        ours = logits(plain, policy)
    torch.testing.assert_close(logits(model, policy), ours, rtol=1e-4, atol=1e-4)
    assert (logits(start, policy) - ours).abs().max() > 0.01
    assert AutoTokenizer.from_pretrained(tmp_path)(TEXT) == policy.chat_tokenizer.tokenizer(TEXT)


def test_merging_leaves_the_policy_as_it_is(llama, tmp_path):
    policy = moved(replace(llama, lora=Lora(4)))
    before, said = policy.weights(), spoken(policy)
    policy.export(tmp_path)
    assert list(policy.weights()) == list(before)
    assert spoken(policy) == said


@pytest.mark.filterwarnings("ignore:`is_gradient:FutureWarning")  # how peft asks transformers
def test_adapters_apart_load_onto_their_base(llama, tmp_path):
    policy = moved(replace(llama, lora=Lora(4)))
    policy.export(tmp_path, merge=False)
    assert not (tmp_path / "model.safetensors").exists()
    model = AutoPeftModelForCausalLM.from_pretrained(tmp_path)
    with dense(policy) as plain:
        torch.testing.assert_close(logits(model, policy), logits(plain, policy))


def test_an_exported_folder_is_a_policy_that_says_the_same(llama, tmp_path):
    policy = moved(llama)
    policy.export(tmp_path)
    assert spoken(replace(llama, model=str(tmp_path)).build(), PROMPTS) == spoken(policy, PROMPTS)


def test_the_generation_config_is_kept(tmp_path):
    folder = plant(tmp_path / "start")
    # what some published models carry, though it contradicts itself
    given = {"temperature": 0.6, "top_p": 0.9, "do_sample": False, "eos_token_id": [0, 5]}
    (folder / "generation_config.json").write_text(json.dumps(given))
    policy = CausalLM(str(folder), max_new_tokens=8).build()
    assert policy.chat_tokenizer.eos_token_ids == (0, 5)
    policy.export(tmp_path / "out")
    kept = json.loads(Path(tmp_path / "out" / "generation_config.json").read_text())
    assert {name: kept[name] for name in given} == given
    assert GenerationConfig.from_pretrained(tmp_path / "out").eos_token_id == [0, 5]
