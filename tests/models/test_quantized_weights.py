"""Models whose config.json announces quantized weights are refused before they are loaded."""

import json

import pytest
import torch
from transformers import AutoConfig, AutoModelForCausalLM

from grupo.inference.vllm import Vllm
from grupo.models import loading
from grupo.models.causal_lm import CausalLM
from grupo.models.config_file import check_config_file
from grupo.models.quantized_weights import check_quantized_weights
from grupo.util.errors import ConfigError
from tests.helpers.mxfp4 import save_mxfp4
from tests.helpers.tiny_lm import answer_batch, save_model

ANNOUNCED = [
    ({"quant_method": "bitsandbytes", "load_in_8bit": True}, "load_in_8bit = True"),
    ({"load_in_8bit": True}, "quant_method = None, load_in_8bit = True"),
    ({"quant_method": "bitsandbytes", "load_in_4bit": True}, "load_in_4bit = True"),
    ({"quant_method": "gptq", "bits": 4}, "quant_method = 'gptq', bits = 4"),
    ({"quant_method": "awq", "bits": 4}, "quant_method = 'awq', bits = 4"),
    ({"quant_method": "fp8"}, "quant_method = 'fp8'"),
    ({"quant_method": "mxfp4"}, "quant_method = 'mxfp4'"),
    ({"quant_method": ["fp8"], "dequantize": True}, r"quant_method = \['fp8'\]"),
    ("8 bits", "'8 bits'"),
    ([], r"\[\]"),
]


@pytest.mark.parametrize(("settings", "shown"), ANNOUNCED)
def test_quantized_weights_are_refused_with_field_value_and_what_is_allowed(
    tmp_path, settings, shown
):
    folder = save_model(tmp_path / "model")
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "quantization_config": settings}))
    message = rf"config\.json: quantization_config: .*{shown}\. Allowed: weights of 16 or 32 bits"
    with pytest.raises(ConfigError, match=message):
        check_config_file(str(folder))
    with pytest.raises(ConfigError, match=message):
        loading.load(str(folder), torch.float32, torch.device("cpu"))


def test_settings_within_another_configuration_are_found():
    config = {"text_config": {"compression_config": {"quant_method": "compressed-tensors"}}}
    with pytest.raises(ConfigError, match=r"m: text_config\.compression_config: quant_method = "):
        check_quantized_weights("m", config)


@pytest.mark.parametrize("settings", [None, {"quant_method": "fp8", "dequantize": True}])
def test_weights_that_are_dequantized_while_they_are_loaded_are_allowed(settings):
    check_quantized_weights("m", {"quantization_config": settings, "hidden_size": 8})


def test_a_model_of_the_hub_is_refused_too(tmp_path, monkeypatch):
    folder = save_model(tmp_path / "model")
    config = AutoConfig.from_pretrained(folder)
    config.quantization_config = {"quant_method": "bitsandbytes", "load_in_8bit": True}
    monkeypatch.setattr(AutoConfig, "from_pretrained", lambda *_, **__: config)
    with pytest.raises(ConfigError, match="quantization_config: quant_method = 'bitsandbytes'"):
        loading.load(str(folder), torch.float32, torch.device("cpu"))


def test_experts_in_mxfp4_are_trained_and_exported_in_full_precision(tmp_path):
    whole = save_mxfp4(tmp_path / "model", dequantize=True)
    policy = CausalLM(str(tmp_path / "model"), max_new_tokens=4).build()
    own = dict(policy.hf_model.named_parameters())
    assert len(whole) == 4  # two matrices in each of two layers
    assert all(torch.equal(own[name], expected) for name, expected in whole.items())
    policy.signals(answer_batch(policy)).logp.sum().backward()
    with torch.no_grad():
        for name in whole:
            assert own[name].grad.abs().max() > 0
            own[name] -= 0.01 * own[name].grad
    policy.export(tmp_path / "exported")
    exported = AutoModelForCausalLM.from_pretrained(tmp_path / "exported").state_dict()
    assert all(torch.equal(exported[name], own[name]) for name in own)


def test_a_server_that_would_load_quantized_weights_is_refused(tmp_path):
    save_mxfp4(tmp_path / "model", dequantize=True)
    policy = CausalLM(str(tmp_path / "model"), max_new_tokens=4, engine=Vllm(python="python"))
    message = "engine: Vllm.*its server would load the quantized weights of .*16 or 32 bits"
    with pytest.raises(ConfigError, match=message):
        policy.build()
