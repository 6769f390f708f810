"""QLoRA: adapters on quantized weights that sampling and training share."""

from dataclasses import replace

import pytest
import torch

from grupo.core.types import Rollout
from grupo.inference.vllm import Vllm
from grupo.models.causal_lm import CausalLM
from grupo.models.lora import Lora
from grupo.models.quantization import Nf4
from grupo.util.errors import ConfigError
from tests.helpers.tiny_lm import batch_of, generate, save_model

bitsandbytes = pytest.importorskip("bitsandbytes")


@pytest.fixture
def spec(tmp_path) -> CausalLM:
    folder = str(save_model(tmp_path / "model"))
    return CausalLM(folder, Lora(2), max_new_tokens=8, device="cpu", quantization=Nf4())


def randomize_adapters(policy) -> None:
    with torch.no_grad():
        for parameter in policy.parameters():
            parameter.normal_(0, 0.1)


def test_linear_layers_have_4_bits_and_adapters_alone_are_trained(spec):
    policy = spec.build()
    layers = [x for x in policy.module.modules() if isinstance(x, bitsandbytes.nn.Linear4bit)]
    assert len(layers) > 3
    assert {layer.weight.dtype for layer in layers} == {torch.uint8}
    assert {layer.weight.quant_type for layer in layers} == {"nf4"}
    assert all("lora" in name for name in policy.weights())


def test_sampler_and_trainer_see_the_same_quantized_weights(spec):
    policy = spec.build()
    randomize_adapters(policy)
    action = generate(policy, ["Hi"], attempts=1)[0][0]
    batch = batch_of(policy, [Rollout((("Hi", action),))])
    assert policy.signals(batch).logp[0].tolist() == pytest.approx(action.logp, abs=1e-4)
    exact = replace(spec, quantization=None).build()
    exact.load(policy.weights())
    assert exact.signals(batch).logp[0].tolist() != pytest.approx(action.logp, abs=1e-2)


def test_weights_are_not_repacked_by_a_pass_without_gradients(spec):
    policy = spec.build()
    generate(policy, ["Hi"], attempts=1)
    layers = [x for x in policy.module.modules() if isinstance(x, bitsandbytes.nn.Linear4bit)]
    assert not any(layer.support_avx512bf16_for_cpu for layer in layers)
    assert not any(
        getattr(layer.weight.quant_state, "packing_format_for_cpu", False) for layer in layers
    )


def test_gradients_reach_the_adapters(spec):
    policy = spec.build()
    randomize_adapters(policy)
    action = generate(policy, ["Hi"], attempts=1)[0][0]
    policy.signals(batch_of(policy, [Rollout((("Hi", action),))])).logp.sum().backward()
    gradients = [p.grad for p in policy.parameters()]
    assert all(g is not None and g.isfinite().all() for g in gradients)
    assert sum(g.abs().sum().item() for g in gradients) > 0


def test_exported_model_is_the_trained_policy_in_full_precision(spec, tmp_path):
    policy = spec.build()
    randomize_adapters(policy)
    policy.export(tmp_path / "exported")
    action = generate(policy, ["Hi"], attempts=1)[0][0]
    batch = batch_of(policy, [Rollout((("Hi", action),))])
    exported = CausalLM(str(tmp_path / "exported"), max_new_tokens=8, device="cpu").build()
    expected, actual = (x.signals(batch).logp[0].tolist() for x in (policy, exported))
    assert actual == pytest.approx(expected, abs=1e-4)


def test_quantization_without_adapters_or_with_a_server_is_rejected(spec):
    with pytest.raises(ConfigError, match=r"quantized weights cannot be trained. Allowed: with ad"):
        replace(spec, lora=None).check()
    with pytest.raises(ConfigError, match=r"other weights than those that are trained. Allowed: w"):
        replace(spec, engine=Vllm()).check()
