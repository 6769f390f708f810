"""Logits are cached while sampling; log-probabilities, entropies and gradients are exact."""

from collections.abc import Callable, Sequence

import pytest
import torch
from torch import Tensor

from grupo.inference.sampling_params import Sampling
from grupo.kernels import native
from grupo.kernels.llama.activation_cache import ScratchBuffers
from grupo.kernels.llama.ctypes_structs import ModelShape
from grupo.kernels.llama.logit_cache import CachedTokenScorer, LogitCache
from tests.helpers.activation_recall import (
    assert_all_close,
    sampled_batch,
    signals_and_grads,
    with_cached_activations,
)
from tests.helpers.llama_backends import backend_of, count_calls, policy_of, with_hf_backend

V, WIDTH, TOKENS = 37, 300, 20  # no multiples of the panel size 8 or 16, or of K_BLOCK = 256


def logit_cache(capacity: int = TOKENS) -> LogitCache:
    """A cache for the logits of `capacity` tokens."""
    library = native.library(torch.float64)
    if library is None:
        pytest.skip("there is no compiler")
    cache = LogitCache(library, ModelShape(num_threads=2), ScratchBuffers(), TOKENS)
    cache.capacity = capacity
    return cache


def random_tensor(*shape: int) -> Tensor:
    """Random numbers, the same for each shape."""
    torch.manual_seed(sum(shape))
    return torch.randn(*shape, dtype=torch.float64)


def with_grads(outputs: Sequence[Tensor], *inputs: Tensor) -> list[Tensor]:
    """The outputs, and the gradients of the inputs for a random weighting of the outputs."""
    weight = random_tensor(2, len(outputs[0]))
    total = (torch.stack(list(outputs)) * weight).sum()
    return [*outputs, *torch.autograd.grad(total, inputs)]


def formula(hidden: Tensor, weight: Tensor, token: Tensor, temperature: float) -> list[Tensor]:
    logp = (hidden @ weight.T / temperature).log_softmax(-1)
    return [logp.gather(1, token[:, None])[:, 0], -(logp.exp() * logp).sum(-1)]


@pytest.fixture
def inputs() -> tuple[Tensor, Tensor, Tensor]:
    """Hidden states, weights, tokens."""
    hidden, weight = random_tensor(TOKENS, WIDTH).requires_grad_(), random_tensor(V, WIDTH) / 10
    return hidden, weight.requires_grad_(), torch.randint(0, V, (TOKENS,))


CACHED: dict[str, Callable[[], Tensor]] = {
    "all": lambda: torch.arange(TOKENS),
    "some": lambda: torch.arange(3, 12),
    "none": lambda: torch.arange(0),
}


@pytest.mark.parametrize("chunk", [1 << 20, 3 * V], ids=["one chunk", "three tokens a chunk"])
@pytest.mark.parametrize("capacity", [TOKENS, 12, 0])
@pytest.mark.parametrize("cached", CACHED.values(), ids=CACHED)
@pytest.mark.parametrize("temperature", [1.0, 0.7])
def test_logp_entropy_and_gradients_match_the_formula(
    inputs, monkeypatch, temperature, cached, capacity, chunk
):
    monkeypatch.setattr("grupo.kernels.llama.logit_cache.CHUNK", chunk)
    (hidden, weight, token), cache, index = inputs, logit_cache(capacity), cached()
    if len(index):
        cache.logits(weight, hidden[index].detach(), index)
    used, order = cache.used, torch.randperm(TOKENS)
    outputs = CachedTokenScorer(cache, weight, order)(hidden[order], token, temperature)
    actual = with_grads(outputs, hidden, weight)
    assert cache.used == used  # temporary rows are released by the backward pass
    expected = with_grads(formula(hidden[order], weight, token, temperature), hidden, weight)
    for x, y in zip(actual, expected, strict=True):
        torch.testing.assert_close(x, y, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("count", [1, 6, 7, 13])
def test_logits_are_matrix_products_and_cached_by_activation_index(inputs, count):
    hidden, weight, _ = inputs
    cache, rows = logit_cache(), hidden[:count].detach()
    for activation_index in (None, torch.arange(count).flip(0)):
        logits = cache.logits(weight, rows, activation_index)
        torch.testing.assert_close(logits, rows @ weight.T, rtol=1e-12, atol=1e-12)
    assert cache.used == count
    assert torch.equal(cache.buffer[cache.logit_index[:count].flip(0)], logits)


@pytest.mark.parametrize("frozen", [0, 1], ids=["hidden states", "weights"])
def test_frozen_inputs_get_no_gradient(inputs, frozen):
    inputs[frozen].requires_grad_(False)
    hidden, weight, token = inputs
    actual = CachedTokenScorer(logit_cache(), weight, None)(hidden, token, 1.0)
    expected = formula(hidden, weight, token, 1.0)
    trained = inputs[1 - frozen]
    pairs = zip(with_grads(actual, trained), with_grads(expected, trained), strict=True)
    for x, y in pairs:
        torch.testing.assert_close(x, y, rtol=1e-10, atol=1e-10)


def test_without_a_gradient_nothing_is_cached(inputs):
    hidden, weight, token = inputs
    cache = logit_cache()
    with torch.no_grad():
        outputs = CachedTokenScorer(cache, weight, None)(hidden, token, 1.0)
    assert cache.used == 0
    torch.testing.assert_close(list(outputs), formula(hidden, weight, token, 1.0))


def test_pending_backward_passes_do_not_overwrite_each_other(inputs):
    hidden, weight, token = inputs
    scorer = CachedTokenScorer(logit_cache(2 * TOKENS), weight, None)
    actual = [scorer(x, token, 1.0) for x in (hidden, 2 * hidden)]
    expected = [formula(x, weight, token, 1.0) for x in (hidden, 2 * hidden)]
    for outputs, reference in zip(actual, expected, strict=True):
        numbers = with_grads(outputs, hidden, weight)
        reference_numbers = with_grads(reference, hidden, weight)
        torch.testing.assert_close(numbers, reference_numbers, rtol=1e-10, atol=1e-10)


def test_backward_pass_can_run_twice_with_retain_graph(inputs):
    hidden, weight, token = inputs
    cache = logit_cache()
    outputs = CachedTokenScorer(cache, weight, None)(hidden, token, 1.0)
    total = torch.stack(list(outputs)).sum()
    first = torch.autograd.grad(total, weight, retain_graph=True)
    cache.logits(weight, 3 * hidden.detach(), torch.arange(TOKENS))  # in the released rows
    assert torch.equal(*first, *torch.autograd.grad(total, weight))


def test_backward_raises_after_logits_were_overwritten(inputs):
    hidden, weight, token = inputs
    cache = logit_cache()
    logp, _ = CachedTokenScorer(cache, weight, None)(hidden, token, 1.0)
    cache.clear(None, cache.products)
    with pytest.raises(RuntimeError, match="another engine was started"):
        logp.sum().backward()


def test_without_room_logits_are_recomputed_and_equal(llama):
    batch = sampled_batch(llama)
    cached = with_cached_activations(llama, batch)
    cache = backend_of(llama).logit_cache
    cache.capacity = 0
    cache.clear(cache.weights_version, cache.products)
    with count_calls() as counts:
        recomputed = signals_and_grads(llama, batch)
    assert counts == {"head": 2}  # forward and backward
    assert_all_close(cached, recomputed)


def test_changed_head_weights_make_logits_recomputed(llama):
    batch = sampled_batch(llama)
    with torch.no_grad():
        llama.hf_model.lm_head.weight.mul_(1.1)
    with count_calls() as counts:
        numbers = signals_and_grads(llama, batch)
    assert counts == {"forward": 1, "head": 1}
    assert_all_close(numbers, signals_and_grads(with_hf_backend(llama), batch))


def test_head_with_a_hook_is_called(llama):
    batch, calls = sampled_batch(llama), []
    llama.hf_model.lm_head.register_forward_hook(lambda *_: calls.append(1))
    with count_calls() as counts:
        signals_and_grads(llama, batch)
    assert calls
    assert not counts


def test_truncated_sampling_uses_the_logits(folders):
    policy = policy_of(folders["llama"], sampling=Sampling(top_p=0.8))
    batch = sampled_batch(policy)
    assert_all_close(
        with_cached_activations(policy, batch), signals_and_grads(with_hf_backend(policy), batch)
    )
