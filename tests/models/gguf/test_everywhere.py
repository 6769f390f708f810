"""A GGUF file stands wherever the folder of a model stands."""

from dataclasses import replace

import pytest
import torch
from transformers import AutoModelForCausalLM

from grupo.core.types import Rollout
from grupo.inference.vllm import Vllm
from grupo.models.causal_lm import CausalLM
from grupo.models.config_file import check_config_file, reads_media
from grupo.models.gguf.cache import converted_folder
from grupo.models.loading import check_model_exists, load_config, load_tokenizer
from grupo.models.lora import Lora
from grupo.models.masked_diffusion import MaskedDiffusion
from grupo.models.model_size import read_model_size, read_parameter_shapes
from grupo.models.prompt_limit import read_prompt_limit
from grupo.models.quantization import Nf4
from grupo.models.vision_lm import VisionLM
from grupo.rewards.judges.frozen_model import load_frozen
from grupo.toy import quickstart
from grupo.training.resume.start_from import with_model
from grupo.util.errors import ConfigError


def test_its_size_and_shapes_are_those_of_its_folder(file):
    folder = str(converted_folder(file))
    assert read_model_size(str(file)) == read_model_size(folder)
    assert read_parameter_shapes(str(file)) == read_parameter_shapes(folder)


def test_its_configuration_and_tokenizer_are_read(file):
    check_config_file(str(file))
    check_model_exists(str(file))
    assert load_config(str(file)).hidden_size == 32
    assert load_tokenizer(str(file))("a")["input_ids"] != []


def test_it_reads_no_media_which_needs_no_conversion(file, cache):
    assert not reads_media(str(file))
    assert not cache.exists()


def test_its_largest_prompt_is_known_before_it_is_built(file):
    spec = CausalLM(str(file), max_new_tokens=4)
    limit = read_prompt_limit(spec)
    assert limit is not None
    assert (limit.context_length, limit.max_new_tokens) == (64, 4)
    built = spec.build().prompt_limit
    assert limit.encode(Rollout(), "the 12") == built.encode(Rollout(), "the 12")


def test_a_recipe_keeps_the_name_of_the_file(file):
    recipe = with_model(quickstart.RECIPE, str(file))
    assert recipe.policy.model == str(file)
    assert type(recipe.policy) is CausalLM


@pytest.mark.slow
def test_a_policy_is_built_and_exported(file, tmp_path):
    policy = CausalLM(str(file), max_new_tokens=4).build()
    policy.export(tmp_path / "export")
    exported = AutoModelForCausalLM.from_pretrained(tmp_path / "export")
    for name, parameter in exported.named_parameters():
        assert torch.equal(parameter, policy.hf_model.get_parameter(name))
    assert "quantization_config" not in (tmp_path / "export" / "config.json").read_text()
    again = CausalLM(str(tmp_path / "export"), max_new_tokens=4).build()
    assert again.chat_tokenizer.eos_token_ids == policy.chat_tokenizer.eos_token_ids
    messages = [{"role": "user", "content": "the  12"}]
    first, second = (
        each.chat_tokenizer.encode_observation(Rollout(), messages) for each in (policy, again)
    )
    assert first == second


def test_exported_adapters_name_the_folder_which_peft_loads(file, tmp_path):
    policy = CausalLM(str(file), lora=Lora(2), max_new_tokens=4).build()
    policy.export(tmp_path / "adapters", merge=False)
    started = with_model(quickstart.RECIPE, str(tmp_path / "adapters")).policy
    assert isinstance(started, CausalLM)
    assert started.model == str(converted_folder(file))
    assert started.start
    spec = replace(started, lora=started.start.lora, max_new_tokens=4)
    weights = spec.build().weights()
    assert weights.keys() == policy.weights().keys()
    assert all(torch.equal(weights[name], weight) for name, weight in policy.weights().items())


def test_its_weights_are_rounded_once_more_below_adapters(file):
    spec = CausalLM(str(file), lora=Lora(2), quantization=Nf4(), max_new_tokens=4)
    assert spec.build().hf_model.is_quantized


def test_a_server_gets_the_folder(file):
    spec = CausalLM(str(file), max_new_tokens=4, engine=Vllm(("http://127.0.0.1:9",)))
    server = spec.build().weight_sync.server
    assert server.model == str(converted_folder(file))
    server.close()


def test_a_judge_may_be_one(file):
    arguments = {"temperature": 0.0, "max_tokens": 4, "allow_pickle": False}
    judge = load_frozen(str(file), "float32", "cpu", **arguments)
    (reply,) = judge.replies([({"role": "user", "content": "the"},)])
    assert reply.completion_tokens <= 4


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        (MaskedDiffusion, "is no masked language model that loads"),
        (VisionLM, "is no model that reads images or audio that loads"),
    ],
)
def test_other_kinds_of_models_are_not_in_gguf_files(file, spec, message):
    with pytest.raises(ConfigError, match=message):
        spec(str(file)).build()
