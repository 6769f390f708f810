"""What sampling has read is read again if it may be something else by now, or is not kept."""

from collections.abc import Callable
from typing import Any

import pytest
import torch

from grupo.algo.optimizer import Adam, optimizer_step
from grupo.core.batch import Batch
from grupo.core.reference_update import ReferenceUpdate
from grupo.inference import local
from grupo.inference.base import generate_all
from grupo.inference.local import LocalEngine
from grupo.kernels.llama.activation_cache import ActivationCache
from grupo.models.causal_policy import CausalPolicy
from tests.helpers.activation_recall import (
    PROMPTS,
    as_modules,
    assert_alike,
    read_again,
    recalled,
    sampled,
    talked,
)
from tests.helpers.engine_requests import ask
from tests.helpers.llama_backends import body_of, by_modules, worked
from tests.helpers.tiny_lm import batch_of


def test_with_other_weights_of_any_kind_it_is_read_again(policy):
    batch = sampled(policy)
    names = [name for name, _ in policy.plain.base_model.named_parameters()]
    assert len(names) > 18
    for name in names:
        policy.actor(7)
        batch = sampled(policy, prompts=PROMPTS[:1])
        recalled(policy, batch)
        with torch.no_grad():
            policy.plain.base_model.get_parameter(name).mul_(0.99)
        assert_alike(read_again(policy, batch), as_modules(policy, batch))


def test_tokens_of_prompts_of_which_nothing_was_asked_are_read_again(policy):
    inputs = sampled(policy).inputs
    token, length, row = inputs["token"], inputs["length"], torch.arange(len(inputs["start"]))
    for back, count in ((1, 0), (2, 1)):
        column = inputs["start"] - back
        with worked() as counts:
            hidden, record = policy.evaluator.hidden_states(token, length, row, column)
        assert (counts["forward"], record is None) == (count, count == 1)
        theirs, _ = by_modules(policy).evaluator.hidden_states(token, length, row, column)
        torch.testing.assert_close(hidden, theirs, rtol=1e-5, atol=1e-5)


def by_optimizer(policy: CausalPolicy, batch: Batch) -> None:
    optimizer = Adam()(policy.parameters())
    policy.signals(batch).logp.sum().backward()
    optimizer_step(optimizer, 1e-3, 1.0)


def by_loading(policy: CausalPolicy, _: Batch) -> None:
    policy.load({name: 0.99 * x for name, x in policy.weights().items()})


def there_and_back(policy: CausalPolicy, batch: Batch) -> None:
    """The numbers are the same: nobody looks at them."""
    weight = policy.hf_model.base_model.norm.weight
    with torch.no_grad():
        weight.mul_(2).div_(2)


def by_another_engine(policy: CausalPolicy, batch: Batch) -> None:
    policy.actor(8)


def by_another_sample(policy: CausalPolicy, batch: Batch) -> None:
    talked(policy.actor(8), ("Go on",))


Change = Callable[[CausalPolicy, Batch], Any]


@pytest.mark.parametrize(
    "change", [by_optimizer, by_loading, there_and_back, by_another_engine, by_another_sample]
)
def test_what_is_no_more_as_it_was_is_read_again(llama, change: Change):
    batch = sampled(llama, turns=2)
    recalled(llama, batch)
    change(llama, batch)
    assert_alike(read_again(llama, batch), as_modules(llama, batch))


@pytest.mark.parametrize("room", [0, 1, 30, 70])
def test_what_there_was_no_room_for_is_read_again(llama, room):
    body = body_of(llama)
    sizes = len(body.layers), body.activation_layout.width, len(body.final_norm_weight)
    body.activation_cache = ActivationCache(
        *sizes, max_elements=room * (sizes[0] * sizes[1] + sizes[2]) + 1
    )
    assert body.activation_cache.capacity == room
    batch = sampled(llama, turns=2)
    assert body.activation_cache.used <= room
    assert_alike(read_again(llama, batch), as_modules(llama, batch))


def test_of_whom_all_is_kept_nothing_is_read_again_though_others_had_no_room(llama):
    act, records = llama.actor(7), body_of(llama).activation_cache
    first = batch_of(llama, talked(act))
    records.capacity = records.used + 5
    second = batch_of(llama, talked(act.fork("more"), ("Another",)))
    assert_alike(recalled(llama, first), as_modules(llama, first))
    assert_alike(read_again(llama, second), as_modules(llama, second))


def test_what_the_memory_forgot_is_read_again(llama, monkeypatch):
    monkeypatch.setattr(local, "CELLS", 40)
    act = llama.actor(7)
    first, second = (batch_of(llama, talked(act.fork(n), turns=2)) for n in range(2))
    third = batch_of(llama, talked(act.fork(3), ("Another",)))
    for batch, how in ((first, read_again), (second, read_again), (third, recalled)):
        assert_alike(how(llama, batch), as_modules(llama, batch))


def test_what_an_older_engine_says_is_read_again(llama):
    older, newer = llama.actor(7), llama.actor(8)
    batches = [batch_of(llama, talked(act)) for act in (older, newer, older)]
    found = recalled(llama, batches[1])
    for batch in (batches[0], batches[2]):
        assert_alike(read_again(llama, batch), as_modules(llama, batch))
    assert_alike(found, as_modules(llama, batches[1]))


def test_what_an_older_engine_remembers_of_older_weights_is_never_used(llama):
    older = llama.actor(7)
    begun = talked(older)
    by_loading(llama, batch_of(llama, begun))
    newer = llama.actor(7)
    again = talked(older), talked(newer)  # of the older, all but the last token is remembered
    for batch, how in zip((batch_of(llama, x) for x in again), (read_again, recalled), strict=True):
        assert_alike(how(llama, batch), as_modules(llama, batch))


def test_a_reference_reads_again_and_the_policy_need_not(llama):
    company = llama.attach_aux_models(("logp@ref",), ReferenceUpdate(), ())
    llama.load({name: 0.9 * x for name, x in llama.weights().items()})
    batch = sampled(llama)
    with torch.no_grad(), worked() as counts:
        theirs = company.scorers["ref"].signals(batch)
    assert counts["forward"] == 1
    assert (theirs.logp - batch.old_logp).abs().max() > 0.01
    assert_alike(recalled(llama, batch), as_modules(llama, batch))


def test_what_a_copy_says_with_weights_of_its_own_is_read_again(llama):
    llama.detach_sampler()
    batch = sampled(llama)
    assert_alike(read_again(llama, batch), as_modules(llama, batch))
    llama.sync_weights(llama.weight_sync.take(), 1)
    newer = sampled(llama, turns=2)
    assert_alike(read_again(llama, newer), as_modules(llama, newer))


def test_weights_that_change_while_an_engine_speaks_are_noticed(llama):
    act = llama.actor(7)
    talked(act)
    llama.load({name: 0.99 * x for name, x in llama.weights().items()})
    batch = batch_of(llama, talked(act, ("Go on",)))
    assert_alike(read_again(llama, batch), as_modules(llama, batch))


def test_a_gradient_whose_records_are_gone_is_refused(llama):
    batch = sampled(llama)
    said = llama.signals(batch).logp.sum()
    sampled(llama, prompts=("Go on",))
    with pytest.raises(RuntimeError, match="another engine has begun"):
        said.backward()


def test_whose_memory_is_given_to_another_engine_is_read_again(llama):
    batch = sampled(llama)
    told = llama.head, llama.chat_tokenizer.tokenizer, llama.bounds
    other = LocalEngine(body_of(llama), *told, prefix_cache=body_of(llama).prefix_cache)
    generate_all(other, [ask("Go on", 3)])  # its records lie where those of the batch were
    assert_alike(read_again(llama, batch), as_modules(llama, batch))
