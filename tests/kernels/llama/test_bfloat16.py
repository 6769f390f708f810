"""Products in bfloat16: exact rounding, and errors like those of the Hugging Face modules."""

import pytest
import torch
from safetensors.torch import load_file

from grupo.kernels import native
from grupo.kernels.backend import HFBackend
from grupo.kernels.llama.backend import NativeLlamaBackend
from grupo.kernels.llama.ctypes_structs import ModelShape
from grupo.kernels.llama.decode_step import PANELS
from grupo.kernels.llama.panels import multiply_panels, pack_panels, panels_size
from grupo.kernels.llama.products import BFloat16Products
from grupo.models.causal_lm import CausalLM
from grupo.models.lora import Lora
from grupo.training.callbacks import NullCallback
from grupo.training.start import resume_training, run_training
from tests.helpers import training_recipes
from tests.helpers.activation_recall import (
    sampled_batch,
    signals_and_grads,
    with_cached_activations,
)
from tests.helpers.adapters import adapted_model, adapted_policy
from tests.helpers.llama_backends import (
    FAMILIES,
    backend_of,
    hidden_and_grads,
    hidden_of,
    native_backend_of,
    policy_of,
    save_model,
    shared_rows,
    with_hf_backend,
)
from tests.helpers.llama_formulas import hidden_states

LIBRARY = native.library(torch.float32)
has_products = LIBRARY and native.call(LIBRARY, "has_bfloat16", ModelShape())
needs_products = pytest.mark.skipif(
    not has_products, reason="the processor or the compiler has no AVX512-BF16"
)
needs_library = pytest.mark.skipif(not LIBRARY, reason="there is no compiler")
SIZES = [(1, 1, 1), (1, 32, 2), (3, 33, 7), (8, 64, 64), (9, 70, 129), (17, 31, 600), (64, 96, 33)]
# rows of one to four tiles, some of which overlap; columns behind the last tile
TILED_SIZES = [(1, 32, 32), (16, 64, 96), (17, 96, 577), (32, 64, 64), (40, 33, 1536), (56, 64, 34)]
TILE_FLAGS = {"tiles": [], "no tiles": ["-mno-amx-tile", "-mno-amx-bf16"]}


def product(x, weight, library=LIBRARY):
    """`x @ weight.T` in C."""
    shape = ModelShape(threads=2)
    panels = torch.empty(panels_size(weight, torch.bfloat16), dtype=torch.bfloat16)
    pack_panels(library, shape, weight, panels)
    out = torch.full((len(x), len(weight)), torch.nan)
    multiply_panels(library, shape, x, panels, out)
    return out


@pytest.fixture(scope="module", params=TILE_FLAGS)
def library(request):
    """With and without the tile registers of AMX; the same where the processor has none."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(native, "COMPILE_FLAGS", native.COMPILE_FLAGS + TILE_FLAGS[request.param])
        native.library.cache_clear()
        yield native.library(torch.float32)
    native.library.cache_clear()


@needs_products
@pytest.mark.parametrize(("m", "n", "k"), SIZES + TILED_SIZES)
def test_products_are_those_of_rounded_numbers(library, m, n, k):
    generator = torch.Generator().manual_seed(m * n * k)
    x, weight = (torch.randn(rows, k, generator=generator) for rows in (m, n))
    rounded = [numbers.bfloat16().double() for numbers in (x, weight)]
    expected = rounded[0] @ rounded[1].T
    assert ((product(x, weight, library) - expected).abs() <= 1e-6 * k**0.5 * 4).all()


@needs_products
def test_numbers_are_rounded_as_torch_rounds():
    bits = torch.randint(-(2**31), 2**31 - 1, (3000,), generator=torch.Generator().manual_seed(0))
    numbers = bits.to(torch.int32).view(torch.float32)
    halves = torch.tensor([0x3F808000, 0x3F818000, 0x3F807FFF, 0x3F808001], dtype=torch.int32)
    numbers = torch.cat([numbers, halves.view(torch.float32)])
    # the instruction takes denormal numbers as 0
    numbers = numbers[numbers.isfinite() & (numbers.abs() > 1e-37)][:, None]
    numbers = numbers[numbers.bfloat16().isfinite()][:, None]
    assert torch.equal(product(numbers, torch.ones(1, 1)), numbers.bfloat16().float())
    assert product(torch.tensor([[torch.nan]]), torch.ones(1, 1)).isnan().all()
    assert torch.equal(
        product(torch.tensor([[torch.inf]]), torch.ones(1, 1)), torch.tensor([[torch.inf]])
    )


@needs_products
def test_logits_of_a_token_do_not_depend_on_the_batch():
    generator = torch.Generator().manual_seed(0)
    x, weight = (torch.randn(rows, 72, generator=generator) for rows in (37, 50))
    together = product(x, weight)
    assert all(torch.equal(product(row[None], weight)[0], together[i]) for i, row in enumerate(x))


def relative_errors(actual, exact):
    return [
        float((a.float() - b).norm() / b.norm().clamp(min=1e-12))
        for a, b in zip(actual, exact, strict=True)
    ]


@needs_products
@pytest.mark.parametrize("make_policy", [policy_of, adapted_policy], ids=["full", "adapters"])
@pytest.mark.parametrize("family", FAMILIES)
def test_errors_are_those_of_the_hf_modules(family, make_policy, tmp_path):
    folder = save_model(tmp_path / "model", FAMILIES[family]())
    exact, rounded = (make_policy(folder, dtype=dtype) for dtype in ("float32", "bfloat16"))
    rounded.load(exact.weights())
    assert backend_of(rounded).weights.multiplies_bfloat16
    batch = sampled_batch(exact)
    expected = signals_and_grads(exact, batch)
    errors = relative_errors(signals_and_grads(rounded, batch), expected)
    of_modules = relative_errors(signals_and_grads(with_hf_backend(rounded), batch), expected)
    assert max(errors) > 1e-4
    assert sum(errors) <= 1.25 * sum(of_modules)


def backend_above_bfloat16(model):
    """A backend of a model with adapters, whose frozen weights are stored in bfloat16."""
    configs = [layer.attention_config for layer in native_backend_of(model).weights.layers]
    for weight in model.parameters():
        if not weight.requires_grad:
            weight.data = weight.data.bfloat16()
    backend = NativeLlamaBackend(model, LIBRARY, torch.float32, dict(enumerate(configs)))
    backend.weights.multiplies_bfloat16 = True  # those of an update are torch's, on every processor
    return backend


@needs_library
@pytest.mark.parametrize("family", FAMILIES)
def test_errors_above_weights_in_bfloat16_are_at_most_those_of_the_modules(family):
    model = adapted_model(FAMILIES[family]())
    backend = backend_above_bfloat16(model)
    with torch.autocast("cpu", torch.bfloat16):
        hidden = hidden_of(backend, shared_rows(), torch.float32)
        actual = hidden_and_grads(model, hidden)
        of_modules = hidden_and_grads(
            model, hidden_of(HFBackend(model), shared_rows(), torch.bfloat16)
        )
    model.double()
    exact = torch.cat([hidden_states(model, row) for row in shared_rows()])
    expected = [x.float() for x in hidden_and_grads(model, exact)]
    errors = relative_errors(actual, expected)
    assert len(errors) == 1 + 2 * 2 * 7
    assert max(errors) > 1e-4
    assert sum(errors) <= 1.25 * sum(relative_errors(of_modules, expected))


@needs_library
def test_weights_stored_in_bfloat16_are_multiplied_as_they_are():
    model = adapted_model(FAMILIES["llama"]())
    backend = backend_above_bfloat16(model)
    hidden_of(backend, shared_rows(), torch.float32).sum().backward()
    assert backend.weights.rounded
    products = backend.weights.rounded[1]
    assert isinstance(products, BFloat16Products)
    stored = {name: p for name, p in model.base_model.named_parameters() if p.ndim > 1}
    del stored["embed_tokens.weight"]
    assert products.rounded.keys() == {p.data_ptr() for p in stored.values()}
    shared = {name for name, p in stored.items() if products.rounded[p.data_ptr()].is_set_to(p)}
    assert shared == {name for name in stored if "lora_" not in name}


@needs_library
def test_without_autocast_weights_stored_in_bfloat16_are_multiplied_in_it():
    backend = backend_above_bfloat16(adapted_model(FAMILIES["llama"]()))
    outside = hidden_of(backend, shared_rows(), torch.float32)
    with torch.autocast("cpu", torch.bfloat16):
        inside = hidden_of(backend, shared_rows(), torch.float32)
    assert torch.equal(outside, inside)


@needs_library
def test_changed_norms_and_biases_that_are_stored_in_bfloat16_are_used():
    model = adapted_model(FAMILIES["qwen2"]())
    backend, hidden = backend_above_bfloat16(model), []
    for changed in (model.base_model.norm, model.base_model.layers[0].self_attn.q_proj.base_layer):
        hidden.append(hidden_of(backend, shared_rows(), torch.float32).detach())
        for weight in changed.parameters():
            weight.data[:1].add_(0.5)
    hidden.append(hidden_of(backend, shared_rows(), torch.float32).detach())
    configs = dict(enumerate(layer.attention_config for layer in backend.weights.layers))
    fresh = NativeLlamaBackend(model, LIBRARY, torch.float32, configs)
    fresh.weights.multiplies_bfloat16 = True
    assert torch.equal(hidden[-1], hidden_of(fresh, shared_rows(), torch.float32))
    assert not torch.equal(hidden[0], hidden[1])
    assert not torch.equal(hidden[1], hidden[2])


@needs_library
def test_adapters_are_merged_into_weights_in_float32():
    model = adapted_model(FAMILIES["llama"]())
    layer = backend_above_bfloat16(model).weights.layers[0]
    linear = model.base_model.layers[0].mlp.down_proj
    a, b = (getattr(linear, f"lora_{x}")["default"].weight for x in "AB")
    expected = linear.base_layer.weight.float() + 4.5 / 3 * b @ a
    torch.testing.assert_close(layer.effective_weight("down"), expected, rtol=1e-6, atol=1e-6)


@needs_products
def test_weights_stored_in_bfloat16_are_packed_without_another_rounding():
    x, weight = torch.randn(5, 40), torch.randn(33, 40).bfloat16()
    assert torch.equal(product(x, weight), product(x, weight.float()))


@needs_products
def test_weights_with_merged_adapters_are_not_rounded(folders):
    policy = adapted_policy(folders["llama"], dtype="bfloat16")
    buffers = backend_of(policy).scratch.buffers
    sampled_batch(policy)
    assert buffers[PANELS].dtype == torch.float32
    with policy.module.disable_adapter():
        sampled_batch(policy)
    assert buffers[PANELS].dtype == torch.bfloat16


@needs_products
@pytest.mark.parametrize("make_policy", [policy_of, adapted_policy], ids=["full", "adapters"])
@pytest.mark.parametrize("turns", [1, 2])
def test_the_first_ratio_is_one(folders, make_policy, turns):
    policy = make_policy(folders["llama"], dtype="bfloat16")
    batch = sampled_batch(policy, turns)
    logp = with_cached_activations(policy, batch)[0]
    assert (logp - batch.old_logp)[batch.mask].abs().max() < 1e-5


@needs_products
def test_rows_with_cached_activations_are_one_microbatch(folders):
    policy = policy_of(folders["llama"], dtype="bfloat16")
    batch = sampled_batch(policy)
    backend_of(policy).max_recomputed_tokens = 1
    (rows,) = policy.microbatches(batch)
    assert sorted(rows.tolist()) == list(range(len(batch.mask)))


@needs_products
@pytest.mark.parametrize("lora", [None, Lora(2)], ids=["full", "adapters"])
def test_a_run_is_resumed_with_the_same_bits(folders, lora, tmp_path):
    policy = CausalLM(str(folders["llama"]), lora, "bfloat16", max_new_tokens=8)
    recipe = training_recipes.recipe("grpo", str(folders["llama"])).replace(policy=policy)

    class StopsAtTwo(NullCallback):
        def on_step_end(self, step, metrics):
            if step == 2:
                raise KeyboardInterrupt

    run_training(recipe, tmp_path / "whole")
    with pytest.raises(KeyboardInterrupt):
        run_training(recipe, tmp_path / "stopped", StopsAtTwo())
    resume_training(tmp_path / "stopped")
    for name in ("rollouts.jsonl", "responses.jsonl"):
        whole, stopped = ((tmp_path / run / name).read_text() for run in ("whole", "stopped"))
        assert whole == stopped
    weights = [
        load_file(max((tmp_path / run / "checkpoints").glob("step-*")) / "weights.safetensors")
        for run in ("whole", "stopped")
    ]
    assert weights[0].keys() == weights[1].keys()
    assert all(torch.equal(weights[0][name], weights[1][name]) for name in weights[0])


@needs_products
def test_float32_activations_are_not_taken_for_those_of_bfloat16(folders):
    policy = policy_of(folders["llama"], dtype="bfloat16")
    batch = sampled_batch(policy)
    rounded = signals_and_grads(policy, batch)
    policy.dtype = torch.float32
    exact = signals_and_grads(policy, batch)
    expected = signals_and_grads(policy_of(folders["llama"]), batch)
    assert max(relative_errors(exact, expected)) < 1e-5 < max(relative_errors(rounded, expected))
