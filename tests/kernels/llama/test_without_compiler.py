"""Where more is asked of the modules than a lean body does, the modules do it."""

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
from grupo.models.evaluator import backend_for as chosen
from grupo.models.loading import Lora
from tests.helpers.activation_recall import assert_alike, learned, sampled, talked
from tests.helpers.attention_models import TAKEN
from tests.helpers.llama_backends import FAMILIES, body_of, by_modules, made, policy_of, worked
from tests.helpers.recurrent_model import grown
from tests.helpers.tiny_lm import ENDS, WIDE

PLACES = ("layers.1", "layers.0.self_attn", "layers.1.mlp.down_proj", "norm")
SCALED = {"rope_type": "default", "rope_theta": 1e4, "llama_4_scaling_beta": 0.5}
OTHERS: dict[str, Any] = {  # which are not as `rows.h` has it
    **{name: TAKEN[name] for name in ("gpt2", "gemma2", "gemma3", "mixtral", "gpt_neox")},
    "residuals": lambda: GraniteConfig(**WIDE, **ENDS, residual_multiplier=0.5),
    "embeddings": lambda: GraniteConfig(**WIDE, **ENDS, embedding_multiplier=2.0),
    "gelu": lambda: LlamaConfig(**WIDE, **ENDS, hidden_act="gelu"),
    "biases of the MLP": lambda: LlamaConfig(**WIDE, **ENDS, mlp_bias=True),
    "bias of what is seen": lambda: LlamaConfig(**WIDE, **ENDS, attention_bias=True),
    "means": lambda: OlmoConfig(**WIDE, **ENDS),
    "no angles": lambda: SmolLM3Config(**WIDE, **ENDS, no_rope_layers=[1, 0]),
}
THEIRS: dict[str, Any] = {  # which are
    **FAMILIES,
    "granite": lambda: GraniteConfig(**WIDE, **ENDS, attention_multiplier=0.3),
    "angles": lambda: SmolLM3Config(**WIDE, **ENDS, no_rope_layers=[1, 1]),
    "one head": lambda: MistralConfig(**{**WIDE, "num_key_value_heads": 1}, **ENDS),
}


def assert_chosen(model: Any, body: type) -> None:
    """It takes our attention, and that is who reads for it."""
    assert hf_attention.try_packed_attention(model)
    assert isinstance(chosen(model), body)


@pytest.mark.parametrize("name", OTHERS)
def test_models_of_other_families_keep_their_modules(name):
    model = made(OTHERS[name]())
    assert_chosen(model, HFBackend)


@pytest.mark.parametrize("name", ["biases of the MLP", "bias of what is seen"])
def test_biases_that_are_nothing_yet_are_learned_by_modules(name):
    model = grown(OTHERS[name]())
    assert not any(x.any() for n, x in model.named_parameters() if n.endswith("bias"))
    assert_chosen(model, HFBackend)


@pytest.mark.parametrize("name", THEIRS)
def test_models_of_the_family_are_lean(name):
    model = made(THEIRS[name]())
    assert_chosen(model, NativeLlamaBackend)


@pytest.mark.parametrize("kind", ["dynamic", "longrope"])
def test_angles_that_change_as_rows_grow_are_left_to_the_modules(kind):
    several = {"short_factor": [1.0] * 4, "long_factor": [2.0] * 4} if kind == "longrope" else {}
    told = {"rope_type": kind, "factor": 2.0, "rope_theta": 1e4, **several}
    told["original_max_position_embeddings"] = 32
    model = made(LlamaConfig(**WIDE, **ENDS, rope_parameters=told))
    assert_chosen(model, HFBackend)


@pytest.mark.parametrize(("first", "body"), [(32, HFBackend), (64, NativeLlamaBackend)])
def test_a_model_that_reads_late_places_otherwise_keeps_its_modules(first, body):
    told = {**SCALED, "original_max_position_embeddings": first}
    model = made(Ministral3Config(**WIDE, **ENDS, rope_parameters=told))
    assert_chosen(model, body)


def test_adapters_are_learned_by_modules(folders):
    policy: Any = policy_of(folders["llama"], lora=Lora(2))
    assert isinstance(policy.evaluator.body, HFBackend)


@pytest.mark.parametrize("place", PLACES)
def test_who_watches_a_module_is_called_and_may_change_what_it_says(llama: CausalPolicy, place):
    before, called = talked(llama.actor(7)), []

    def louder(module: Any, told: Any, said: Any) -> Any:
        called.append(1)
        return said * 1.5 if isinstance(said, torch.Tensor) else (said[0] * 1.5, *said[1:])

    handle = llama.hf_model.base_model.get_submodule(place).register_forward_hook(louder)
    with worked() as counts:
        batch = sampled(llama)
        sampling = len(called)
        found = learned(llama, batch)
    assert not counts
    assert 0 < sampling < len(called)
    assert_alike(found, learned(by_modules(llama), batch))
    assert talked(llama.actor(7)) != before
    handle.remove()
    with worked() as counts:
        assert talked(llama.actor(7)) == before
    assert counts["decode"] > 0


HOOKS = (
    ("", "forward_hook"),
    ("layers.0.mlp", "forward_pre_hook"),
    ("layers.0.mlp", "full_backward_hook"),
    ("layers.0.mlp", "full_backward_pre_hook"),
)


@pytest.mark.parametrize(("place", "kind"), HOOKS)
def test_hooks_of_every_kind_are_called(llama: CausalPolicy, place, kind):
    called, module = [], llama.hf_model.base_model.get_submodule(place)
    getattr(module, f"register_{kind}")(lambda *_: called.append(1))
    learned(llama, sampled(llama))
    assert called


def test_hooks_of_the_embeddings_are_called_by_lean_bodies_too(llama: CausalPolicy):
    called = []
    llama.hf_model.get_input_embeddings().register_forward_hook(lambda *_: called.append(1))
    with worked() as counts:
        sampled(llama)
    assert len(called) == sum(counts.values()) == 8


def test_a_hook_that_comes_between_sampling_and_learning_is_called(llama: CausalPolicy):
    batch, called = sampled(llama), []
    llama.hf_model.base_model.layers[0].register_forward_hook(lambda *_: called.append(1))
    assert_alike(learned(llama, batch), learned(by_modules(llama), batch))
    assert len(called) == 2


def test_what_was_sampled_under_a_hook_is_read_again_without_it(llama: CausalPolicy):
    layer = llama.hf_model.base_model.layers[0]
    handle = layer.register_forward_hook(lambda module, told, said: said * 1.5)
    batch = sampled(llama)
    handle.remove()
    with worked() as counts:
        found = learned(llama, batch)
    assert counts["forward"] == 1
    assert_alike(found, learned(by_modules(llama), batch))


@pytest.mark.usefixtures("bfloat16_here")
def test_what_is_computed_in_bfloat16_is_computed_by_modules(folders):
    policy = policy_of(folders["llama"], dtype="bfloat16")
    assert body_of(policy)
    with worked() as counts:
        learned(policy, sampled(policy))
    assert not counts


def test_a_checkpointed_model_keeps_nothing_and_reads_layers_twice(folders):
    policy, plain = (policy_of(folders["llama"], checkpointing=x) for x in (True, False))
    called = []
    with worked() as counts:
        batch = sampled(policy)
        policy.hf_model.base_model.layers[1].mlp.register_forward_pre_hook(
            lambda *_: called.append(1)
        )
        found = learned(policy, batch)
    assert not counts
    assert body_of(policy).activation_cache.used == 0
    assert len(called) == 2
    assert_alike(found, learned(plain, batch))
