"""Products in bfloat16: exact rounding, and errors like those of the Hugging Face modules."""

import pytest
import torch
from safetensors.torch import load_file

from grupo.kernels import native
from grupo.kernels.llama.activation_cache import ScratchBuffers
from grupo.kernels.llama.ctypes_structs import ModelShape
from grupo.kernels.llama.panels import multiply_panels, pack_panels
from grupo.models.causal_lm import CausalLM
from grupo.training.callbacks import NullCallback
from grupo.training.trainer import resume, train
from tests.helpers import training_recipes
from tests.helpers.activation_recall import (
    sampled_batch,
    signals_and_grads,
    with_cached_activations,
)
from tests.helpers.llama_backends import (
    FAMILIES,
    backend_of,
    policy_of,
    save_model,
    with_hf_backend,
)

LIBRARY = native.library(torch.float32)
has_products = LIBRARY and native.call(LIBRARY, "has_bfloat16", ModelShape())
needs_products = pytest.mark.skipif(
    not has_products, reason="the processor or the compiler has no AVX512-BF16"
)
SIZES = [(1, 1, 1), (1, 32, 2), (3, 33, 7), (8, 64, 64), (9, 70, 129), (17, 31, 600), (64, 96, 33)]


def product(x, weight):
    """`x @ weight.T` in C."""
    shape = ModelShape(threads=2)
    panels = pack_panels(LIBRARY, shape, ScratchBuffers(), "w", weight, torch.bfloat16)
    out = torch.full((len(x), len(weight)), torch.nan)
    multiply_panels(LIBRARY, shape, x, panels, out)
    return out


@needs_products
@pytest.mark.parametrize(("m", "n", "k"), SIZES)
def test_products_are_those_of_rounded_numbers(m, n, k):
    generator = torch.Generator().manual_seed(m * n * k)
    x, weight = (torch.randn(rows, k, generator=generator) for rows in (m, n))
    rounded = [numbers.bfloat16().double() for numbers in (x, weight)]
    expected = rounded[0] @ rounded[1].T
    assert ((product(x, weight) - expected).abs() <= 1e-6 * k**0.5 * 4).all()


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
    x, weight = (torch.randn(rows, 40, generator=generator) for rows in (37, 50))
    together = product(x, weight)
    assert all(torch.equal(product(row[None], weight)[0], together[i]) for i, row in enumerate(x))


def relative_errors(actual, exact):
    return [
        float((a.float() - b).norm() / b.norm().clamp(min=1e-12))
        for a, b in zip(actual, exact, strict=True)
    ]


@needs_products
@pytest.mark.parametrize("family", FAMILIES)
def test_errors_are_those_of_the_hf_modules(family, tmp_path):
    folder = save_model(tmp_path / "model", FAMILIES[family]())
    exact, rounded = (policy_of(folder, dtype=dtype) for dtype in ("float32", "bfloat16"))
    assert backend_of(rounded).multiplies_bfloat16
    batch = sampled_batch(exact)
    expected = signals_and_grads(exact, batch)
    errors = relative_errors(signals_and_grads(rounded, batch), expected)
    of_modules = relative_errors(signals_and_grads(with_hf_backend(rounded), batch), expected)
    assert max(errors) > 1e-4
    assert sum(errors) <= 1.25 * sum(of_modules)


@needs_products
@pytest.mark.parametrize("turns", [1, 2])
def test_the_first_ratio_is_one(folders, turns):
    policy = policy_of(folders["llama"], dtype="bfloat16")
    batch = sampled_batch(policy, turns)
    logp = with_cached_activations(policy, batch)[0]
    assert (logp - batch.old_logp)[batch.mask].abs().max() < 1e-5


@needs_products
def test_a_run_is_resumed_with_the_same_bits(folders, tmp_path):
    policy = CausalLM(str(folders["llama"]), dtype="bfloat16", max_new_tokens=8)
    recipe = training_recipes.recipe("grpo", str(folders["llama"])).replace(policy=policy)

    class StopsAtTwo(NullCallback):
        def on_step_end(self, step, metrics):
            if step == 2:
                raise KeyboardInterrupt

    train(recipe, tmp_path / "whole")
    with pytest.raises(KeyboardInterrupt):
        train(recipe, tmp_path / "stopped", StopsAtTwo())
    resume(tmp_path / "stopped")
    for name in ("rollouts.jsonl", "actions.jsonl"):
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
