"""Models that the native backend does not support are evaluated by the Hugging Face modules."""

from typing import Any

import pytest
import torch
from transformers import (
    GraniteConfig,
    LlamaConfig,
    Ministral3Config,
    MistralConfig,
    OlmoConfig,
    SmolLM3Config,
)

from grupo.kernels.backend import HFBackend
from grupo.kernels.llama.backend import NativeLlamaBackend
from grupo.kernels.packing import hf_attention
from grupo.models.causal_policy import CausalPolicy
from grupo.models.evaluator import backend_for
from tests.helpers.activation_recall import (
    assert_all_close,
    generate_rollouts,
    sampled_batch,
    signals_and_grads,
)
from tests.helpers.attention_models import SUPPORTED as PACKED
from tests.helpers.llama_backends import (
    FAMILIES,
    backend_of,
    count_calls,
    model_of,
    policy_of,
    with_hf_backend,
)
from tests.helpers.recurrent_model import random_model
from tests.helpers.tiny_lm import ENDS, WIDE

MODULES = ("layers.1", "layers.0.self_attn", "layers.1.mlp.down_proj", "norm")
SCALED_ROPE = {"rope_type": "default", "rope_theta": 1e4, "llama_4_scaling_beta": 0.5}
UNSUPPORTED: dict[str, Any] = {  # layers that differ from `layer.h`
    **{name: PACKED[name] for name in ("gpt2", "gemma2", "gemma3", "mixtral", "gpt_neox")},
    "residuals": lambda: GraniteConfig(**WIDE, **ENDS, residual_multiplier=0.5),
    "embeddings": lambda: GraniteConfig(**WIDE, **ENDS, embedding_multiplier=2.0),
    "gelu": lambda: LlamaConfig(**WIDE, **ENDS, hidden_act="gelu"),
    "biases of the MLP": lambda: LlamaConfig(**WIDE, **ENDS, mlp_bias=True),
    "attention biases": lambda: LlamaConfig(**WIDE, **ENDS, attention_bias=True),
    "layer norm without weights": lambda: OlmoConfig(**WIDE, **ENDS),
    "layers without rope": lambda: SmolLM3Config(**WIDE, **ENDS, no_rope_layers=[1, 0]),
}
SUPPORTED: dict[str, Any] = {
    **FAMILIES,
    "granite": lambda: GraniteConfig(**WIDE, **ENDS, attention_multiplier=0.3),
    "rope in all layers": lambda: SmolLM3Config(**WIDE, **ENDS, no_rope_layers=[1, 1]),
    "one key head": lambda: MistralConfig(**{**WIDE, "num_key_value_heads": 1}, **ENDS),
}


def assert_backend(model: Any, backend: type) -> None:
    """The model takes packed attention and gets this backend."""
    hf_attention.use_packed_attention(model)
    assert isinstance(backend_for(model), backend)


@pytest.mark.parametrize("name", UNSUPPORTED)
def test_other_model_families_use_the_hf_modules(name):
    model = model_of(UNSUPPORTED[name]())
    assert_backend(model, HFBackend)


@pytest.mark.parametrize("name", ["biases of the MLP", "attention biases"])
def test_zero_biases_are_trained_by_the_hf_modules(name):
    model = random_model(UNSUPPORTED[name]())
    assert not any(x.any() for n, x in model.named_parameters() if n.endswith("bias"))
    assert_backend(model, HFBackend)


@pytest.mark.parametrize("name", SUPPORTED)
def test_llama_style_models_use_the_native_backend(name):
    model = model_of(SUPPORTED[name]())
    assert_backend(model, NativeLlamaBackend)


@pytest.mark.parametrize("kind", ["dynamic", "longrope"])
def test_dynamic_rope_uses_the_hf_modules(kind):
    factors = {"short_factor": [1.0] * 4, "long_factor": [2.0] * 4} if kind == "longrope" else {}
    rope = {"rope_type": kind, "factor": 2.0, "rope_theta": 1e4, **factors}
    rope["original_max_position_embeddings"] = 32
    model = model_of(LlamaConfig(**WIDE, **ENDS, rope_parameters=rope))
    assert_backend(model, HFBackend)


@pytest.mark.parametrize(
    ("original_length", "backend"), [(32, HFBackend), (64, NativeLlamaBackend)]
)
def test_models_that_scale_late_positions_use_the_hf_modules(original_length, backend):
    rope = {**SCALED_ROPE, "original_max_position_embeddings": original_length}
    model = model_of(Ministral3Config(**WIDE, **ENDS, rope_parameters=rope))
    assert_backend(model, backend)


@pytest.mark.parametrize("module_name", MODULES)
def test_forward_hooks_are_called_and_may_change_outputs(llama: CausalPolicy, module_name):
    before, calls = generate_rollouts(llama.actor(7)), []

    def amplify(module: Any, args: Any, output: Any) -> Any:
        calls.append(1)
        if isinstance(output, torch.Tensor):
            return output * 1.5
        return output[0] * 1.5, *output[1:]

    module = llama.hf_model.base_model.get_submodule(module_name)
    handle = module.register_forward_hook(amplify)
    with count_calls() as counts:
        batch = sampled_batch(llama)
        calls_in_sampling = len(calls)
        numbers = signals_and_grads(llama, batch)
    assert not counts
    assert 0 < calls_in_sampling < len(calls)
    assert_all_close(numbers, signals_and_grads(with_hf_backend(llama), batch))
    assert generate_rollouts(llama.actor(7)) != before
    handle.remove()
    with count_calls() as counts:
        assert generate_rollouts(llama.actor(7)) == before
    assert counts["decode"] > 0


HOOKS = (
    ("", "forward_hook"),
    ("layers.0.mlp", "forward_pre_hook"),
    ("layers.0.mlp", "full_backward_hook"),
    ("layers.0.mlp", "full_backward_pre_hook"),
)


@pytest.mark.parametrize(("module_name", "kind"), HOOKS)
def test_hooks_of_every_kind_are_called(llama: CausalPolicy, module_name, kind):
    calls, module = [], llama.hf_model.base_model.get_submodule(module_name)
    getattr(module, f"register_{kind}")(lambda *_: calls.append(1))
    signals_and_grads(llama, sampled_batch(llama))
    assert calls


def test_native_backend_calls_hooks_of_the_embeddings(llama: CausalPolicy):
    calls = []
    llama.hf_model.get_input_embeddings().register_forward_hook(lambda *_: calls.append(1))
    with count_calls() as counts:
        sampled_batch(llama)
    assert len(calls) == sum(counts.values()) == 8


def test_hook_added_between_sampling_and_update_is_called(llama: CausalPolicy):
    batch, calls = sampled_batch(llama), []
    llama.hf_model.base_model.layers[0].register_forward_hook(lambda *_: calls.append(1))
    assert_all_close(
        signals_and_grads(llama, batch), signals_and_grads(with_hf_backend(llama), batch)
    )
    assert len(calls) == 2


def test_activations_sampled_with_a_hook_are_recomputed_without_it(llama: CausalPolicy):
    layer = llama.hf_model.base_model.layers[0]
    handle = layer.register_forward_hook(lambda module, args, output: output * 1.5)
    batch = sampled_batch(llama)
    handle.remove()
    with count_calls() as counts:
        numbers = signals_and_grads(llama, batch)
    assert counts["forward"] == 1
    assert_all_close(numbers, signals_and_grads(with_hf_backend(llama), batch))


@pytest.mark.usefixtures("bfloat16_here")
def test_bfloat16_uses_the_hf_modules_where_the_compiled_code_cannot_multiply_in_it(folders):
    policy = policy_of(folders["llama"], dtype="bfloat16")
    backend_of(policy).weights.multiplies_bfloat16 = False
    with count_calls() as counts:
        signals_and_grads(policy, sampled_batch(policy))
    assert not counts


def test_gradient_checkpointing_caches_nothing_and_recomputes_layers(folders):
    policy, plain = (policy_of(folders["llama"], gradient_checkpointing=x) for x in (True, False))
    calls = []
    with count_calls() as counts:
        batch = sampled_batch(policy)
        policy.hf_model.base_model.layers[1].mlp.register_forward_pre_hook(
            lambda *_: calls.append(1)
        )
        numbers = signals_and_grads(policy, batch)
    assert not counts
    assert backend_of(policy).activation_cache.used == 0
    assert len(calls) == 2
    assert_all_close(numbers, signals_and_grads(plain, batch))
