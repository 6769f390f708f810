"""The last backward pass of a step frees cached activations and logits, with equal results."""

from dataclasses import replace

import pytest
import torch

from grupo.algo.losses import Clip
from grupo.kernels.last_backward import last_backward
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler
from grupo.training.update.gradients import accumulate_gradients
from tests.helpers.activation_recall import (
    assert_all_close,
    generate_rollouts,
    sampled_batch,
    signals_and_grads,
    with_cached_activations,
    with_recomputed_activations,
)
from tests.helpers.llama_backends import backend_of
from tests.helpers.tiny_lm import batch_of


def cached_bytes(policy) -> int:
    """Memory that the caches of activations and logits hold."""
    backend = backend_of(policy)
    return sum(x.nbytes for x in (*backend.activation_cache.buffers, backend.logit_cache.buffer))


@pytest.fixture
def batch(llama):
    return sampled_batch(llama)


def test_it_frees_the_caches_and_has_the_same_gradients(llama, batch):
    numbers = with_cached_activations(llama, batch)
    assert cached_bytes(llama)
    with last_backward():
        freeing = with_cached_activations(llama, batch)
    assert not cached_bytes(llama)
    assert all(map(torch.equal, freeing, numbers))


def test_the_same_tokens_can_be_evaluated_again(llama, batch):
    with last_backward():
        numbers = with_cached_activations(llama, batch)
    assert_all_close(with_recomputed_activations(llama, batch), numbers)


def test_caches_are_freed_after_all_passes_of_one_graph(llama, batch):
    def summed(rows):
        return sum(llama.signals(batch.select_rows(x), ("logp",)).logp.sum() for x in rows)

    def gradients(loss):
        llama.module.zero_grad()
        with last_backward():
            loss.backward()
        return [p.grad.clone() for p in llama.parameters()]

    halves = torch.arange(len(batch.mask)).chunk(2)
    by_halves = gradients(summed(halves))
    assert not cached_bytes(llama)
    assert_all_close(by_halves, gradients(summed([torch.arange(len(batch.mask))])))


@pytest.mark.parametrize("max_tokens", [1 << 14, 64])
def test_an_update_frees_them_in_its_last_microbatch(llama, max_tokens):
    llama.tokens_per_microbatch = max_tokens
    batch = sampled_batch(llama)
    advantage = torch.linspace(-1, 1, batch.mask.numel()).view(batch.mask.shape)
    method = Method(sampler=GroupSampler(2), loss=Clip())
    accumulate_gradients(llama, method, replace(batch, advantage=advantage))
    assert not cached_bytes(llama)


def test_rollouts_in_flight_keep_their_row_numbers(llama):
    """Rows that are cached later do not take the numbers of rows that were freed."""
    actor = llama.actor(7)
    first = batch_of(llama, generate_rollouts(actor))
    with last_backward():
        signals_and_grads(llama, first)
    used = backend_of(llama).activation_cache.used
    both = generate_rollouts(actor, turns=2)
    assert backend_of(llama).activation_cache.used > used > 0
    numbers = signals_and_grads(llama, batch_of(llama, both))
    backend_of(llama).activation_cache.clear(None)
    assert_all_close(numbers, signals_and_grads(llama, batch_of(llama, both)))
