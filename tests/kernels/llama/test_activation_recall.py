"""The update reuses the activations of sampling, without a forward pass."""

from dataclasses import replace

import pytest
import torch

from grupo.algo.losses import Clip, Entropy
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler
from grupo.training.update.gradients import accumulate_gradients
from tests.helpers.activation_recall import (
    assert_all_close,
    generate_rollouts,
    sampled_batch,
    with_cached_activations,
    with_hf_modules,
    with_recomputed_activations,
)
from tests.helpers.conversations import conversation
from tests.helpers.fast_cases import fast_cases
from tests.helpers.llama_backends import backend_of, count_calls, num_threads, with_hf_backend
from tests.helpers.tiny_lm import batch_of


@pytest.mark.parametrize("max_tokens", fast_cases(1, [1 << 14, 64]))
@pytest.mark.parametrize("turns", [1, 3])
def test_update_needs_no_forward_pass(policy, turns, max_tokens):
    policy.tokens_per_microbatch = max_tokens
    batch = sampled_batch(policy, turns)
    assert (len(list(policy.microbatches(batch))) > 1) == (max_tokens == 64)
    numbers = with_cached_activations(policy, batch)
    backend_of(policy).activation_cache.clear(None)
    assert_all_close(numbers, with_recomputed_activations(policy, batch))
    assert_all_close(numbers, with_hf_modules(policy, batch))


@pytest.mark.slow
@pytest.mark.parametrize(("attempts", "mostly_outputs"), fast_cases(1, [(1, False), (9, True)]))
def test_tokens_without_cached_output_are_never_read(llama, attempts, mostly_outputs):
    sampled_batch(llama)
    for buffer in backend_of(llama).activation_cache.buffers:
        buffer.fill_(torch.nan)
    batch = sampled_batch(llama, attempts=attempts)
    cache = backend_of(llama).activation_cache
    share = cache.has_output[: cache.used].double().mean()
    assert (share > 0.75) == mostly_outputs
    assert_all_close(with_cached_activations(llama, batch), with_hf_modules(llama, batch))


def test_recall_works_with_several_threads(llama):
    batch = sampled_batch(llama)
    with num_threads(3):
        numbers = with_cached_activations(llama, batch)
    assert_all_close(numbers, with_hf_modules(llama, batch))


def test_accumulated_gradients_need_no_forward_pass(llama):
    method = Method(sampler=GroupSampler(2), loss=Clip() + -0.1 * Entropy())
    batch = replace(sampled_batch(llama), advantage=torch.linspace(-1, 1, 8)[:, None].expand(8, 8))
    grads = []
    for policy in (llama, with_hf_backend(llama)):
        policy.module.zero_grad()
        with count_calls() as counts:
            accumulate_gradients(policy, method, batch)
        assert not counts
        grads.append([p.grad.clone() for p in policy.parameters()])
    assert_all_close(*grads)


def test_a_row_that_was_not_sampled_is_recomputed_alone(llama):
    rollouts = generate_rollouts(llama.actor(7))
    batch = batch_of(llama, [*rollouts, conversation(llama, "Hi", "Ho")])
    numbers = with_recomputed_activations(llama, batch, num_cached=1)
    assert_all_close(numbers, with_hf_modules(llama, batch))
    sampled_alone = batch_of(llama, rollouts)
    assert_all_close(
        with_cached_activations(llama, sampled_alone), with_hf_modules(llama, sampled_alone)
    )


def test_some_rows_and_tokens_of_a_batch_need_no_forward_pass(llama):
    batch = sampled_batch(llama, turns=2)
    selected = batch.select_rows(torch.tensor([5, 0, 3]))
    columns = torch.arange(selected.mask.shape[1]) % 5 > 1
    masked = replace(selected, mask=selected.mask & columns)
    assert_all_close(with_cached_activations(llama, masked), with_hf_modules(llama, masked))


@pytest.mark.slow
def test_recall_works_again_after_each_change_of_weights(llama):
    for _ in range(3):
        batch = sampled_batch(llama, turns=2)
        assert_all_close(with_cached_activations(llama, batch), with_hf_modules(llama, batch))
        llama.load({name: 0.99 * x for name, x in llama.weights().items()})


@pytest.mark.slow
def test_each_engine_can_use_the_whole_cache(llama):
    sampled_batch(llama)
    cache = backend_of(llama).activation_cache
    cache.capacity = cache.used
    batch = sampled_batch(llama)
    assert cache.used == cache.capacity
    assert_all_close(with_cached_activations(llama, batch), with_hf_modules(llama, batch))


@pytest.mark.slow
def test_an_update_frees_the_copy_of_the_weights_and_generation_makes_it_again(llama):
    actor = llama.actor(7)
    before = generate_rollouts(actor)
    backend = backend_of(llama)
    buffers = dict(backend.scratch.buffers)
    batch = batch_of(llama, before)
    with_cached_activations(llama, batch)
    freed = [buffers[name] for name in buffers.keys() - backend.scratch.buffers.keys()]
    weights = [x for layer in backend.weights.layers for x in layer.weights.values() if x.ndim > 1]
    head = backend.model.lm_head.weight
    # one buffer for the layers, whose memory is given back, and one for the head; both are padded
    assert len(freed) == 2
    assert sum(map(len, freed)) >= sum(x.numel() for x in (*weights, head))
    assert generate_rollouts(llama.actor(7)) == before
