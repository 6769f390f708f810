"""What sampling has read is not read again to learn of it."""

from dataclasses import replace

import pytest
import torch

from grupo.algo.losses import Clip, Entropy
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler
from grupo.training.update import accumulate_gradients
from tests.helpers.activation_recall import (
    as_modules,
    assert_alike,
    read_again,
    recalled,
    sampled,
    talked,
)
from tests.helpers.conversations import conversation
from tests.helpers.llama_backends import body_of, by_modules, threads, worked
from tests.helpers.tiny_lm import batch_of


@pytest.mark.parametrize("budget", [1 << 14, 64])
@pytest.mark.parametrize("turns", [1, 3])
def test_what_was_sampled_is_learned_of_without_reading_it(policy, turns, budget):
    policy.budget = budget
    batch = sampled(policy, turns)
    assert (len(list(policy.micro(batch))) > 1) == (budget == 64)
    found = recalled(policy, batch)
    body_of(policy).activation_cache.clear(())
    assert_alike(found, read_again(policy, batch))
    assert_alike(found, as_modules(policy, batch))


@pytest.mark.parametrize(("attempts", "most"), [(1, False), (9, True)])
def test_what_nobody_asked_for_is_not_looked_at(llama, attempts, most):
    sampled(llama)
    for kept in body_of(llama).activation_cache.buffers:
        kept.fill_(torch.nan)
    batch = sampled(llama, attempts=attempts)
    records = body_of(llama).activation_cache
    share = records.has_output[: records.used].double().mean()
    assert (share > 0.75) == most
    assert_alike(recalled(llama, batch), as_modules(llama, batch))


def test_it_is_so_with_several_threads(llama):
    batch = sampled(llama)
    with threads(3):
        found = recalled(llama, batch)
    assert_alike(found, as_modules(llama, batch))


def test_an_update_reads_nothing_again(llama):
    method = Method(sampler=GroupSampler(2), loss=Clip() + -0.1 * Entropy())
    batch = replace(sampled(llama), advantage=torch.linspace(-1, 1, 8)[:, None].expand(8, 8))
    grads = []
    for policy in (llama, by_modules(llama)):
        policy.module.zero_grad()
        with worked() as counts:
            accumulate_gradients(policy, method, batch)
        assert not counts
        grads.append([p.grad.clone() for p in policy.parameters()])
    assert_alike(*grads)


def test_a_row_that_nobody_sampled_has_its_line_read(llama):
    said = talked(llama.actor(7))
    batch = batch_of(llama, [*said, conversation(llama, "Hi", "Ho")])
    assert_alike(read_again(llama, batch), as_modules(llama, batch))
    assert_alike(recalled(llama, batch_of(llama, said)), as_modules(llama, batch_of(llama, said)))


def test_part_of_what_was_said_is_learned_of_without_reading_it(llama):
    batch = sampled(llama, turns=2)
    some = batch.select_rows(torch.tensor([5, 0, 3]))
    masked = replace(some, mask=some.mask & (torch.arange(some.mask.shape[1]) % 5 > 1))
    assert_alike(recalled(llama, masked), as_modules(llama, masked))


def test_with_new_weights_what_is_sampled_anew_is_found_again(llama):
    for _ in range(3):
        batch = sampled(llama, turns=2)
        assert_alike(recalled(llama, batch), as_modules(llama, batch))
        llama.load({name: 0.99 * x for name, x in llama.weights().items()})


def test_each_engine_has_all_the_room_there_is(llama):
    sampled(llama)
    records = body_of(llama).activation_cache
    records.capacity = records.used
    batch = sampled(llama)
    assert records.used == records.capacity
    assert_alike(recalled(llama, batch), as_modules(llama, batch))
