"""Activations are recomputed if they were not cached or may be out of date."""

from collections.abc import Callable
from typing import Any

import pytest
import torch

from grupo.algo.optimizers import Adam
from grupo.algo.optimizers.update import optimizer_step
from grupo.core.batch import Batch
from grupo.core.reference_update import ReferenceUpdate
from grupo.core.response_use import generation_only
from grupo.inference.base import generate_all
from grupo.inference.local import LocalEngine
from grupo.kernels.llama.activation_cache import ActivationCache, cached_tokens
from grupo.kernels.prefix_cache import PrefixCache
from grupo.models import evaluator
from grupo.models.causal_policy import CausalPolicy
from tests.helpers.activation_recall import (
    NAMES,
    PROMPTS,
    assert_all_close,
    generate_rollouts,
    sampled_batch,
    with_cached_activations,
    with_hf_modules,
    with_recomputed_activations,
)
from tests.helpers.adapters import adapted_policy
from tests.helpers.engine_requests import request_for
from tests.helpers.fast_cases import fast_cases
from tests.helpers.llama_backends import backend_of, count_calls, policy_of, with_hf_backend
from tests.helpers.tiny_lm import batch_of


@pytest.mark.parametrize("stride", fast_cases(1, [6, 1]))
def test_any_changed_weight_makes_activations_recomputed(float64_policy, stride):
    policy = float64_policy  # in float32, rounding is as large as the tolerance
    names = [name for name, _ in policy.hf_model.base_model.named_parameters()]
    assert len(names) > 18
    for name in names[::stride]:
        policy.actor(7)
        batch = sampled_batch(policy, prompts=PROMPTS[:1])
        with_cached_activations(policy, batch)
        with torch.no_grad():
            policy.hf_model.base_model.get_parameter(name).mul_(0.99)
        assert_all_close(with_recomputed_activations(policy, batch), with_hf_modules(policy, batch))


def test_answers_that_are_not_trained_on_are_the_same_and_keep_no_activations(policy):
    trained_on = generate_rollouts(policy.actor(7))
    cache = backend_of(policy).activation_cache
    assert cache.used > 0
    with generation_only():
        actor = policy.actor(7)
    rollouts = generate_rollouts(actor)
    assert (cache.used, cache.buffers) == (0, ())
    assert not len(backend_of(policy).logit_cache.buffer)
    assert [r.text for r in rollouts] == [r.text for r in trained_on]
    batch = batch_of(policy, rollouts)
    assert_all_close(with_recomputed_activations(policy, batch), with_hf_modules(policy, batch))


def test_prompt_tokens_without_cached_output_are_recomputed(policy):
    inputs = sampled_batch(policy).inputs
    token, length, row = inputs["token"], inputs["length"], torch.arange(len(inputs["start"]))
    for back, count in ((1, 0), (2, 1)):
        column = inputs["start"] - back
        with count_calls() as counts:
            hidden = policy.evaluator.hidden_states(token, length, row, column)
        assert (counts["forward"], hidden.activation_index is None) == (count, count == 1)
        expected = with_hf_backend(policy).evaluator.hidden_states(token, length, row, column)
        torch.testing.assert_close(hidden.values, expected.values, rtol=1e-5, atol=1e-5)


def optimizer_step_changes_weights(policy: CausalPolicy, batch: Batch) -> None:
    optimizer = Adam()(policy.parameters())
    policy.signals(batch).logp.sum().backward()
    optimizer_step(optimizer, 1e-3, 1.0)


def fused_step_changes_weights(policy: CausalPolicy, batch: Batch) -> None:
    """An optimizer step that torch does not count, and of which the cache is not notified."""
    weights = policy.parameters()
    writes = [weight._version for weight in weights]
    policy.signals(batch).logp.sum().backward()
    torch.optim.AdamW(weights, 1e-3, fused=True).step()
    assert [weight._version for weight in weights] == writes


def writing_data_changes_weights(policy: CausalPolicy, _: Batch) -> None:
    """One number changes by its last bit, with a write that torch does not count."""
    data = policy.hf_model.base_model.norm.weight.data
    data[3] = data[3].nextafter(torch.tensor(9.0))


def loading_changes_weights(policy: CausalPolicy, _: Batch) -> None:
    policy.load({name: 0.99 * x for name, x in policy.weights().items()})


def weight_is_written_and_restored(policy: CausalPolicy, batch: Batch) -> None:
    """The values stay the same, but torch counts the writes."""
    weight = policy.hf_model.base_model.norm.weight
    with torch.no_grad():
        weight.mul_(2).div_(2)


def another_engine_starts(policy: CausalPolicy, batch: Batch) -> None:
    policy.actor(8)


def another_engine_samples(policy: CausalPolicy, batch: Batch) -> None:
    generate_rollouts(policy.actor(8), ("Go on",))


Change = Callable[[CausalPolicy, Batch], Any]


@pytest.mark.parametrize(
    "change",
    [
        optimizer_step_changes_weights,
        fused_step_changes_weights,
        writing_data_changes_weights,
        loading_changes_weights,
        weight_is_written_and_restored,
        another_engine_starts,
        another_engine_samples,
    ],
)
@pytest.mark.parametrize(
    "make_policy", fast_cases(1, [policy_of, adapted_policy]), ids=["full", "adapters"]
)
def test_outdated_activations_are_recomputed(folders, make_policy, change: Change):
    policy = make_policy(folders["llama"])
    batch = sampled_batch(policy, turns=2)
    with_cached_activations(policy, batch)
    change(policy, batch)
    assert_all_close(with_recomputed_activations(policy, batch), with_hf_modules(policy, batch))


@pytest.mark.parametrize("capacity", [0, 1, 30, 70])
def test_activations_that_did_not_fit_are_recomputed(llama, capacity):
    backend = backend_of(llama)
    sizes = (
        len(backend.weights.layers),
        backend.activation_layout.width,
        len(backend.weights.final_norm_weight),
    )
    backend.activation_cache = ActivationCache(*sizes, capacity)
    batch = sampled_batch(llama, turns=2)
    assert backend.activation_cache.used <= capacity
    assert_all_close(with_recomputed_activations(llama, batch), with_hf_modules(llama, batch))


def test_rows_that_did_not_fit_have_microbatches_of_their_own(llama):
    actor, backend = llama.actor(7), backend_of(llama)
    first = generate_rollouts(actor)
    backend.activation_cache.capacity = backend.activation_cache.used + 5
    second = generate_rollouts(actor.fork("more"), ("Another",))
    batch = batch_of(llama, [*second, *first])
    cached = set(range(len(second), len(second) + len(first)))
    sets = [set(rows.tolist()) for rows in llama.microbatches(batch)]
    assert sets == [cached, set(range(len(second)))]
    backend.max_recomputed_tokens = 1
    first_set, *others = [set(rows.tolist()) for rows in llama.microbatches(batch)]
    assert (first_set, sorted(others, key=min)) == (cached, [{row} for row in range(len(second))])


def test_two_caches_hold_as_many_tokens_as_their_memory():
    # 2 layers of 5 numbers, an output of 3 and 7 logits: 20 numbers for each token
    assert cached_tokens(2, 5, 3, 7) == (3 << 28) // 20


def test_fully_cached_rows_need_no_forward_pass_although_others_did_not_fit(llama):
    actor, cache = llama.actor(7), backend_of(llama).activation_cache
    first = batch_of(llama, generate_rollouts(actor))
    cache.capacity = cache.used + 5
    second = batch_of(llama, generate_rollouts(actor.fork("more"), ("Another",)))
    assert_all_close(with_cached_activations(llama, first), with_hf_modules(llama, first))
    assert_all_close(with_recomputed_activations(llama, second), with_hf_modules(llama, second))


def test_tokens_evicted_from_the_prefix_cache_are_recomputed(llama, monkeypatch):
    monkeypatch.setattr(evaluator, "PrefixCache", lambda tokens: PrefixCache(40))
    actor = llama.actor(7)
    first, second = (batch_of(llama, generate_rollouts(actor.fork(n), turns=2)) for n in range(2))
    third = batch_of(llama, generate_rollouts(actor.fork(3), ("Another",)))
    for batch, compute in (
        (first, with_recomputed_activations),
        (second, with_recomputed_activations),
        (third, with_cached_activations),
    ):
        assert_all_close(compute(llama, batch), with_hf_modules(llama, batch))


def test_rollouts_of_an_older_engine_are_recomputed(llama):
    older, newer = llama.actor(7), llama.actor(8)
    batches = [batch_of(llama, generate_rollouts(actor)) for actor in (older, newer, older)]
    newer_numbers = with_cached_activations(llama, batches[1])
    for batch in (batches[0], batches[2]):
        assert_all_close(with_recomputed_activations(llama, batch), with_hf_modules(llama, batch))
    assert_all_close(newer_numbers, with_hf_modules(llama, batches[1]))


def test_prefix_cache_of_older_weights_is_never_used(llama):
    older = llama.actor(7)
    rollouts = generate_rollouts(older)
    loading_changes_weights(llama, batch_of(llama, rollouts))
    newer = llama.actor(7)
    # the older engine's prefix cache holds all tokens but the last
    batch = batch_of(llama, generate_rollouts(older))
    assert_all_close(with_recomputed_activations(llama, batch), with_hf_modules(llama, batch))
    batch = batch_of(llama, generate_rollouts(newer))
    assert_all_close(with_cached_activations(llama, batch), with_hf_modules(llama, batch))


def test_reference_policy_needs_a_forward_pass_and_the_policy_does_not(llama):
    aux_models = llama.attach_aux_models(("logp@ref",), ReferenceUpdate(), ())
    llama.load({name: 0.9 * x for name, x in llama.weights().items()})
    batch = sampled_batch(llama)
    with torch.no_grad(), count_calls() as counts:
        reference = aux_models.signal_models["ref"].signals(batch)
    assert counts["forward"] == 1
    assert (reference.logp - batch.old_logp).abs().max() > 0.01
    assert_all_close(with_cached_activations(llama, batch), with_hf_modules(llama, batch))


def test_rollouts_of_a_detached_sampler_are_recomputed(llama):
    llama.use_weight_copy_for_generation()
    batch = sampled_batch(llama)
    assert_all_close(with_recomputed_activations(llama, batch), with_hf_modules(llama, batch))
    llama.sync_weights(llama.weight_sync.snapshot(), 1)
    newer = sampled_batch(llama, turns=2)
    assert_all_close(with_recomputed_activations(llama, newer), with_hf_modules(llama, newer))


def test_weights_that_change_during_sampling_are_noticed(llama):
    actor = llama.actor(7)
    generate_rollouts(actor)
    llama.load({name: 0.99 * x for name, x in llama.weights().items()})
    batch = batch_of(llama, generate_rollouts(actor, ("Go on",)))
    assert_all_close(with_recomputed_activations(llama, batch), with_hf_modules(llama, batch))


def test_backward_raises_after_activations_were_overwritten(llama):
    batch = sampled_batch(llama)
    logp_sum = llama.signals(batch).logp.sum()
    sampled_batch(llama, prompts=("Go on",))
    with pytest.raises(RuntimeError, match="another engine was started"):
        logp_sum.backward()


@pytest.mark.parametrize("change", [fused_step_changes_weights, writing_data_changes_weights])
@pytest.mark.parametrize("compute", [with_cached_activations, with_recomputed_activations])
def test_backward_raises_after_weights_were_written_without_a_count(llama, change, compute):
    batch = sampled_batch(llama)
    if compute is with_recomputed_activations:
        backend_of(llama).activation_cache.clear(None)
    compute(llama, batch)
    logp_sum = llama.signals(batch).logp.sum()
    change(llama, batch)
    with pytest.raises(RuntimeError, match="weights that a gradient needs have been written"):
        logp_sum.backward()


def test_scores_after_another_engine_has_sampled_ignore_the_overwritten_logits(llama):
    batch = sampled_batch(llama)
    with torch.no_grad():
        expected = llama.signals(batch, NAMES)
    distributions = llama.distributions(batch)
    sampled_batch(llama, prompts=("Go on",))
    scores = distributions.compute_signals(NAMES)
    for name in NAMES:
        torch.testing.assert_close(scores[name], expected[name][batch.mask], rtol=1e-5, atol=1e-5)


def test_prefix_cache_given_to_another_engine_makes_activations_recomputed(llama):
    batch = sampled_batch(llama)
    backend = backend_of(llama)
    tokenizer = llama.chat_tokenizer.tokenizer
    other = LocalEngine(
        backend,
        llama.lm_head,
        tokenizer,
        llama.stop_conditions,
        prefix_cache=backend.prefix_cache,
    )
    generate_all(other, [request_for("Go on", 3)])  # overwrites the activations of the batch
    assert_all_close(with_recomputed_activations(llama, batch), with_hf_modules(llama, batch))
