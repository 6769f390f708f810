"""The native backend computes LoRA adapters as peft's modules do, and leaves others to these."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from peft import LoraConfig
from torch import Tensor

from grupo.core.reference_update import ReferenceUpdate
from grupo.inference.base import generate_all
from grupo.kernels.backend import HFBackend
from grupo.kernels.llama.backend import NativeLlamaBackend
from grupo.kernels.llama.products import FullProducts
from grupo.kernels.packing import hf_attention
from grupo.models import evaluator
from grupo.models.evaluator import backend_for
from grupo.models.lora import Lora
from grupo.training.learner import Learner
from tests.helpers import training_components, training_recipes
from tests.helpers.activation_recall import (
    NAMES,
    assert_all_close,
    generate_rollouts,
    sampled_batch,
    signals_and_grads,
    with_cached_activations,
    with_hf_modules,
    with_recomputed_activations,
)
from tests.helpers.adapters import (
    ALPHA,
    RANK,
    adapted_model,
    adapted_policy,
    randomize_lora_b,
)
from tests.helpers.engine_requests import assert_same_replies, engine_of, request_for
from tests.helpers.llama_backends import (
    FAMILIES,
    count_calls,
    hidden_and_grads,
    hidden_of,
    native_backend_of,
    relative_error,
    shared_rows,
    with_hf_backend,
)
from tests.helpers.llama_formulas import hidden_states

SUBSETS: dict[str, Any] = {
    "all projections": {},
    "two projections": {"target_modules": ["q_proj", "down_proj"]},
    "one layer": {"target_modules": ["k_proj", "up_proj", "o_proj"], "layers_to_transform": [1]},
    "rank-stabilized": {"target_modules": ["v_proj", "gate_proj"], "use_rslora": True},
    "two ranks": {"rank_pattern": {"up_proj": 5}, "alpha_pattern": {"q_proj": 1}},
}


@pytest.mark.parametrize("last", [1, 99])
@pytest.mark.parametrize("subset", SUBSETS)
@pytest.mark.parametrize("family", ["llama", "qwen2", "qwen3"])
def test_float64_hidden_states_and_gradients_match_the_formulas(family, subset, last):
    model = adapted_model(FAMILIES[family](), **SUBSETS[subset]).double()
    backend = native_backend_of(model)
    with count_calls() as counts:
        hidden = hidden_of(backend, shared_rows(), torch.float64, last)
        actual = hidden_and_grads(model, hidden)
    formula = torch.cat([hidden_states(model, row)[-last:] for row in shared_rows()])
    expected = hidden_and_grads(model, formula)
    assert counts["forward"] == 1
    assert len(actual) == 1 + sum("lora_" in name for name, _ in model.named_parameters()) > 4
    assert all(x < 1e-10 for x in map(relative_error, actual, expected))


def test_float32_hidden_states_and_gradients_match_the_modules():
    model = adapted_model(FAMILIES["qwen2"]())
    backends = native_backend_of(model), HFBackend(model)
    actual, expected = (
        hidden_and_grads(model, hidden_of(backend, shared_rows(), torch.float32))
        for backend in backends
    )
    assert all(x < 1e-5 for x in map(relative_error, actual, expected))


def test_no_product_is_computed_for_the_gradient_of_a_frozen_weight(llama_with_adapters):
    sizes, original = [], FullProducts.weight_gradient

    def recording(*args: Tensor) -> Tensor:
        sizes.append(args[1].shape[1:] + args[2].shape[1:])
        return original(*args)

    batch = sampled_batch(llama_with_adapters)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(FullProducts, "weight_gradient", recording)
        signals_and_grads(llama_with_adapters, batch)
    assert len(sizes) == 2 * 7 * 2  # A and B of seven projections in two layers
    assert all(RANK in size for size in sizes)


@pytest.mark.slow
def test_effective_weight_is_the_weight_plus_the_scaled_product_of_both_matrices():
    model = adapted_model(FAMILIES["llama"](), target_modules=["k_proj"]).double()
    layer = native_backend_of(model).weights.layers[1]
    linear = model.base_model.layers[1].self_attn.k_proj
    a, b = (getattr(linear, f"lora_{x}")["default"].weight for x in "AB")
    expected = linear.base_layer.weight + 4.5 / 3 * b @ a
    torch.testing.assert_close(layer.effective_weight("k"), expected, rtol=1e-14, atol=1e-14)
    assert layer.effective_weight("q") is layer.weights["q"]


def add_adapter(model: Any, *active: str) -> None:
    """Adds a second adapter to one layer, and makes these the active ones."""
    linear = model.base_model.layers[1].self_attn.v_proj
    config = LoraConfig(r=2)
    linear.update_layer("second", 2, 4, config=config)
    torch.nn.init.normal_(linear.lora_B["second"].weight, std=0.2)
    linear.set_adapter(list(active))


CHANGES: dict[str, Callable[[Any], object]] = {
    "merged": lambda model: model.base_model.layers[1].mlp.up_proj.merge(),
    "another scale": lambda model: model.base_model.layers[0].self_attn.q_proj.scale_layer(2.0),
    "another adapter": lambda model: add_adapter(model, "second"),
    "both adapters": lambda model: add_adapter(model, "second", "default"),
}
UNSUPPORTED: dict[str, Any] = {
    "dora": {"use_dora": True},
    "bias": {"lora_bias": True, "target_modules": ["q_proj"]},
    "dropout": {"lora_dropout": 0.1},
}


@pytest.mark.parametrize("name", UNSUPPORTED)
def test_other_adapters_are_evaluated_by_the_modules(name):
    model = adapted_model(FAMILIES["qwen2"](), **UNSUPPORTED[name]).train()
    hf_attention.switch_to_packed_attention(model)
    assert isinstance(backend_for(model), HFBackend)


def test_dropout_in_evaluation_mode_is_none():
    model = adapted_model(FAMILIES["llama"](), lora_dropout=0.1).eval()
    backend = native_backend_of(model)
    assert backend.weights.is_plain
    model.train()
    assert not backend.weights.is_plain


@pytest.mark.parametrize("name", ["merged", "both adapters"])
def test_merged_and_several_adapters_are_evaluated_by_the_modules(name):
    model = adapted_model(FAMILIES["llama"]())
    CHANGES[name](model)
    hf_attention.use_packed_attention(model)
    assert isinstance(backend_for(model), HFBackend)


@pytest.mark.parametrize("name", CHANGES)
def test_adapters_that_are_changed_later_are_evaluated_by_the_modules(name):
    model = adapted_model(FAMILIES["llama"]())
    backend = native_backend_of(model)
    CHANGES[name](model)
    with count_calls() as counts, torch.no_grad():
        actual = hidden_of(backend, shared_rows(), torch.float32)
        expected = hidden_of(HFBackend(model), shared_rows(), torch.float32)
    assert not counts
    assert torch.equal(actual, expected)


@pytest.mark.slow
def test_disabled_adapters_need_no_modules(llama_with_adapters):
    policy = llama_with_adapters
    models = policy.attach_aux_models(("logp@ref",), ReferenceUpdate(), ())
    batch = sampled_batch(policy)
    with torch.no_grad(), count_calls() as counts:
        reference = models.signal_models["ref"].signals(batch, NAMES)
    assert counts["forward"] == 1
    with torch.no_grad(), policy.module.disable_adapter():
        expected = with_hf_backend(policy).signals(batch, NAMES)
    for name in NAMES:
        torch.testing.assert_close(reference[name], expected[name], rtol=1e-5, atol=1e-5)
    assert (reference.logp - batch.old_logp).abs().max() > 0.01
    assert_all_close(with_cached_activations(policy, batch), with_hf_modules(policy, batch))


@pytest.mark.slow
def test_reference_between_forward_and_backward_changes_no_gradient(llama_with_adapters):
    policy = llama_with_adapters
    models = policy.attach_aux_models(("logp@ref",), ReferenceUpdate(), ())
    batch, grads = sampled_batch(policy), []
    for needs_reference in (False, True):
        policy.module.zero_grad()
        total = policy.signals(batch).logp.sum()
        if needs_reference:
            with torch.no_grad():
                models.signal_models["ref"].signals(batch)
        total.backward()
        grads.append([p.grad.clone() for p in policy.parameters()])
    assert all(map(torch.equal, *grads))


@pytest.mark.slow
def test_disabled_adapters_generate_as_the_model_below_them(folders):
    policy, plain = adapted_policy(folders["llama"]), adapted_policy(folders["llama"], lora=None)
    requests = [request_for("Hi", 1), request_for("Go on", 2)]
    with policy.module.disable_adapter(), count_calls() as counts:
        replies = generate_all(engine_of(policy), requests)
    assert counts["decode"] > 0
    assert_same_replies(replies, generate_all(engine_of(plain), requests))


@pytest.mark.slow
def test_adapters_of_embeddings_and_of_the_head_are_computed_by_their_modules(folders):
    targets = ("embed_tokens", "lm_head", "q_proj")
    policy = adapted_policy(folders["llama"], lora=Lora(RANK, ALPHA, targets))
    batch = sampled_batch(policy)
    with count_calls() as counts:
        numbers = signals_and_grads(policy, batch)
    assert not counts
    assert len(numbers) == 2 + 2 * 4  # embeddings, head, and a projection of two layers
    assert_all_close(numbers, with_hf_modules(policy, batch))
    with torch.no_grad():
        policy.module.get_parameter(
            next(n for n, _ in policy.module.named_parameters() if "lora_embedding_A" in n)
        ).mul_(1.1)
    assert_all_close(with_recomputed_activations(policy, batch), with_hf_modules(policy, batch))


@pytest.mark.slow
def test_rollouts_of_a_detached_sampler_follow_its_adapters(llama_with_adapters):
    policy = llama_with_adapters
    policy.use_weight_copy_for_generation()
    before = generate_rollouts(policy.actor(7))
    randomize_lora_b(policy.module)
    assert generate_rollouts(policy.actor(7)) == before
    policy.sync_weights(policy.weight_sync.snapshot(), 1)
    batch = sampled_batch(policy)
    numbers = with_recomputed_activations(policy, batch)
    torch.testing.assert_close(numbers[0], batch.old_logp, rtol=1e-4, atol=2e-5)
    assert_all_close(numbers, with_hf_modules(policy, batch))


@pytest.mark.slow
def test_training_steps_equal_those_of_the_modules(tmp_path: Path, monkeypatch):
    training_components.save_models(tmp_path)
    recipe = training_recipes.recipe("lora", str(tmp_path))
    learner = Learner(recipe)
    monkeypatch.setattr(evaluator, "native_backend", lambda *args: None)
    other = Learner(recipe)
    backends: list[Any] = [x.policy.evaluator.backend for x in (learner, other)]
    assert [type(x) for x in backends] == [NativeLlamaBackend, HFBackend]
    for _ in range(2):
        with count_calls() as counts:
            metrics = learner.step().metrics
        assert counts["decode"] > 0
        expected = other.step().metrics
        for name in ("reward/mean", "grad_norm", "tokens/generated"):
            assert metrics[name] == pytest.approx(expected[name], rel=1e-5)
    weights = learner.policy.weights(), other.policy.weights()
    for name, weight in weights[0].items():
        torch.testing.assert_close(weight, weights[1][name], rtol=0, atol=1e-6)
