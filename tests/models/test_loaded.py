"""Models in memory as policies: trained in place, released, refused where they cannot work."""

import warnings

import pytest
import torch
from peft import LoraConfig, get_peft_model
from transformers import (
    AutoModel,
    AutoModelForCausalLM,
    BertConfig,
    BertForMaskedLM,
    T5Config,
    T5ForConditionalGeneration,
)

from grupo.inference.vllm import Vllm
from grupo.models.causal_lm import CausalLM
from grupo.models.loaded import LoadedModel
from grupo.models.lora import Lora
from grupo.models.quantization import Nf4
from grupo.util.errors import ConfigError
from tests.helpers.tiny_lm import FAMILIES, answer_batch, save_model, tokenizer

ANSWER = {"max_new_tokens": 4, "device": "cpu"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return save_model(tmp_path_factory.mktemp("model"))


@pytest.fixture
def model(folder):
    return AutoModelForCausalLM.from_pretrained(folder)


def with_adapters(model, **options):
    config = LoraConfig(r=2, target_modules=["q_proj"], task_type="CAUSAL_LM", **options)
    with warnings.catch_warnings(action="ignore"):  # peft reads an old name of transformers
        return get_peft_model(model, config)


def test_a_loaded_model_is_the_policy_of_its_folder(folder, model):
    loaded = CausalLM(LoadedModel(model, tokenizer()), **ANSWER).build()
    from_folder = CausalLM(str(folder), **ANSWER).build()
    batch = answer_batch(from_folder)
    torch.testing.assert_close(
        loaded.signals(batch)["logp"], from_folder.signals(batch)["logp"], atol=1e-5, rtol=0
    )


def test_the_policy_trains_the_parameters_of_the_same_object(model):
    policy = CausalLM(LoadedModel(model, tokenizer()), **ANSWER).build()
    assert {id(p) for p in policy.parameters()} == {id(p) for p in model.parameters()}


def test_parameters_without_a_gradient_are_not_trained(model):
    model.model.embed_tokens.requires_grad_(False)
    policy = CausalLM(LoadedModel(model, tokenizer()), **ANSWER).build()
    frozen = id(model.model.embed_tokens.weight)
    assert frozen not in {id(p) for p in policy.parameters()}
    assert len(policy.parameters()) == len(list(model.parameters())) - 1


def test_trained_weights_are_stored_in_float32_and_buffers_are_untouched(folder):
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.bfloat16)
    buffers = {name: buffer.dtype for name, buffer in model.named_buffers()}
    CausalLM(LoadedModel(model, tokenizer()), **ANSWER).build()
    assert {p.dtype for p in model.parameters()} == {torch.float32}
    assert {name: buffer.dtype for name, buffer in model.named_buffers()} == buffers


def test_dropout_is_switched_off():
    config = FAMILIES["gpt2"](resid_pdrop=0.5, attn_pdrop=0.5, embd_pdrop=0.5)
    model = AutoModelForCausalLM.from_config(config)
    CausalLM(LoadedModel(model, tokenizer()), **ANSWER).build()
    dropouts = [m.p for m in model.modules() if isinstance(m, torch.nn.Dropout)]
    assert dropouts
    assert set(dropouts) == {0.0}


def test_a_released_model_generates_again(model):
    loaded = LoadedModel(model, tokenizer())
    attention = model.config._attn_implementation
    CausalLM(loaded, **ANSWER).build()
    assert model.config._attn_implementation != attention
    loaded.release()
    assert model.config._attn_implementation == attention
    inputs = tokenizer()("1 + 1 =", return_tensors="pt", return_token_type_ids=False)
    assert model.generate(**inputs, max_new_tokens=2).shape[1] > inputs["input_ids"].shape[1]


def test_the_reference_is_a_copy_of_the_weights_before_training(model):
    policy = CausalLM(LoadedModel(model, tokenizer()), **ANSWER).build()
    batch = answer_batch(policy)
    reference = policy.load_frozen_copy()
    before = policy.signals(batch)["logp"].detach().clone()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(1.5)
    torch.testing.assert_close(reference.signals(batch)["logp"], before, atol=1e-5, rtol=0)
    assert not torch.allclose(policy.signals(batch)["logp"], before, atol=1e-2)


def test_the_adapters_of_a_peft_model_are_trained_further(model):
    adapted = with_adapters(model, lora_dropout=0.3)
    policy = CausalLM(LoadedModel(adapted, tokenizer()), **ANSWER).build()
    assert policy.module is adapted
    assert policy.has_adapters
    assert set(policy.weights()) == {n for n, p in adapted.named_parameters() if p.requires_grad}
    assert policy.continues_adapters  # its reference has the adapters as they were given
    assert not any(getattr(m, "p", 0.0) for m in adapted.modules())


def test_new_adapters_on_a_loaded_model_are_trained(model):
    policy = CausalLM(LoadedModel(model, tokenizer()), lora=Lora(2), **ANSWER).build()
    assert policy.has_adapters
    assert all("lora_" in name for name in policy.weights())


def test_new_adapters_are_not_added_twice(model):
    spec = CausalLM(LoadedModel(model, tokenizer()), lora=Lora(2), **ANSWER)
    policy = spec.build()
    with pytest.raises(ConfigError, match=r"Allowed: the PeftModel itself, such as run\.policy"):
        spec.build()
    assert CausalLM(LoadedModel(policy.module, tokenizer()), **ANSWER).build().weights()


def test_a_model_is_described_by_class_and_size(model):
    loaded = LoadedModel(model, tokenizer())
    count = sum(p.numel() for p in model.parameters())
    assert str(loaded) == f"LlamaForCausalLM of {count:,} parameters"
    assert repr(CausalLM(loaded)).startswith(f"CausalLM(model=<{loaded}>")
    CausalLM(loaded, lora=Lora(2), **ANSWER).build()
    assert str(loaded) == f"LlamaForCausalLM of {count:,} parameters"


def test_two_loaded_models_are_equal_only_if_they_are_the_same(model):
    loaded = LoadedModel(model, tokenizer())
    assert CausalLM(loaded) == CausalLM(loaded)
    assert CausalLM(loaded) != CausalLM(LoadedModel(model, tokenizer()))


def masked():
    sizes = {"hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 1}
    return BertForMaskedLM(BertConfig(vocab_size=99, intermediate_size=8, **sizes))


def encoder_decoder():
    config = T5Config(vocab_size=99, d_model=8, d_ff=8, d_kv=4, num_layers=1, num_heads=2)
    return T5ForConditionalGeneration(config)


def headless():
    return AutoModel.from_config(FAMILIES["llama"]())


def on_meta_device():
    with torch.device("meta"):
        return AutoModelForCausalLM.from_config(FAMILIES["llama"]())


def untrained_adapters():
    adapted = with_adapters(AutoModelForCausalLM.from_config(FAMILIES["llama"]()))
    return adapted.requires_grad_(False)


def dora():
    return with_adapters(AutoModelForCausalLM.from_config(FAMILIES["llama"]()), use_dora=True)


def adapted_before():
    return with_adapters(AutoModelForCausalLM.from_config(FAMILIES["llama"]())).get_base_model()


@pytest.mark.parametrize(
    ("make_model", "message"),
    [
        (lambda: "model", r"LoadedModel\.model: a str\. Allowed: a model of AutoModelForCausalLM"),
        (lambda: torch.nn.Linear(1, 1), r"LoadedModel\.model: a Linear\. Allowed"),
        (masked, "BertForMaskedLM is no causal model"),
        (encoder_decoder, "T5ForConditionalGeneration is no causal model"),
        (headless, "LlamaModel is no causal model"),
        (on_meta_device, "LlamaForCausalLM on the devices meta. Allowed: one device"),
        (untrained_adapters, "is_trainable=True"),
        (dora, "a PeftModel with use_dora. Allowed: one plain LoRA adapter"),
        (adapted_before, "it has LoRA layers, of an earlier training"),
    ],
)
def test_models_that_cannot_be_policies_are_refused(make_model, message):
    with pytest.raises(ConfigError, match=message):
        LoadedModel(make_model(), tokenizer())


def test_a_model_without_its_tokenizer_is_refused(model):
    with pytest.raises(ConfigError, match=r"LoadedModel\.tokenizer: None\. Allowed: the model's"):
        LoadedModel(model)
    with pytest.raises(ConfigError, match=r"LoadedModel\.tokenizer: a str\."):
        LoadedModel(model, "gpt2")


def test_a_tokenizer_with_more_tokens_than_the_model_is_refused(model):
    larger = tokenizer()
    larger.add_tokens([f"<{i}>" for i in range(5)])
    with pytest.raises(ConfigError, match=r"the tokenizer of 'LlamaForCausalLM of .* the model"):
        LoadedModel(model, larger)


def test_a_bare_model_is_refused_without_its_long_text(model):
    with pytest.raises(ConfigError, match=r"of type LlamaForCausalLM\. Allowed: a string"):
        CausalLM(model)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"engine": Vllm()}, r"engine: .* Allowed with a model in memory: None"),
        ({"quantization": Nf4()}, r"quantization: .* Allowed with a model in memory: None"),
    ],
)
def test_fields_that_load_a_model_are_refused(model, fields, message):
    with pytest.raises(ConfigError, match=message):
        CausalLM(LoadedModel(model, tokenizer()), **fields).check()


def test_adapters_on_adapters_are_refused(model):
    loaded = LoadedModel(with_adapters(model), tokenizer())
    with pytest.raises(ConfigError, match="Allowed with a PeftModel"):
        CausalLM(loaded, lora=Lora(2)).check()
