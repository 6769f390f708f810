"""What sampling has read is read again if it may be something else by now, or is not kept."""

from collections.abc import Callable
from typing import Any

import pytest
import torch

from grupo.algo.optimizer import Adam, descend
from grupo.core.batch import Batch
from grupo.core.reference_update import Follow
from grupo.inference import local
from grupo.inference.base import answers
from grupo.inference.local import Local
from grupo.kernels.llama.activation_cache import Records
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
        policy.act(7)
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
            hidden, record = policy.reader.states(token, length, row, column)
        assert (counts["forward"], record is None) == (count, count == 1)
        theirs, _ = by_modules(policy).reader.states(token, length, row, column)
        torch.testing.assert_close(hidden, theirs, rtol=1e-5, atol=1e-5)


def by_optimizer(policy: CausalPolicy, batch: Batch) -> None:
    optimizer = Adam()(policy.parameters())
    policy.signals(batch).logp.sum().backward()
    descend(optimizer, 1e-3, 1.0)


def by_loading(policy: CausalPolicy, _: Batch) -> None:
    policy.load({name: 0.99 * x for name, x in policy.weights().items()})


def there_and_back(policy: CausalPolicy, batch: Batch) -> None:
    """The numbers are the same: nobody looks at them."""
    weight = policy.plain.base_model.norm.weight
    with torch.no_grad():
        weight.mul_(2).div_(2)


def by_another_engine(policy: CausalPolicy, batch: Batch) -> None:
    policy.act(8)


def by_another_sample(policy: CausalPolicy, batch: Batch) -> None:
    talked(policy.act(8), ("Go on",))


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
    sizes = len(body.layers), body.columns.width, len(body.final)
    body.records = Records(*sizes, numbers=room * (sizes[0] * sizes[1] + sizes[2]) + 1)
    assert body.records.room == room
    batch = sampled(llama, turns=2)
    assert body.records.used <= room
    assert_alike(read_again(llama, batch), as_modules(llama, batch))


def test_of_whom_all_is_kept_nothing_is_read_again_though_others_had_no_room(llama):
    act, records = llama.act(7), body_of(llama).records
    first = batch_of(llama, talked(act))
    records.room = records.used + 5
    second = batch_of(llama, talked(act.fork("more"), ("Another",)))
    assert_alike(recalled(llama, first), as_modules(llama, first))
    assert_alike(read_again(llama, second), as_modules(llama, second))


def test_what_the_memory_forgot_is_read_again(llama, monkeypatch):
    monkeypatch.setattr(local, "CELLS", 40)
    act = llama.act(7)
    first, second = (batch_of(llama, talked(act.fork(n), turns=2)) for n in range(2))
    third = batch_of(llama, talked(act.fork(3), ("Another",)))
    for batch, how in ((first, read_again), (second, read_again), (third, recalled)):
        assert_alike(how(llama, batch), as_modules(llama, batch))


def test_what_an_older_engine_says_is_read_again(llama):
    older, newer = llama.act(7), llama.act(8)
    batches = [batch_of(llama, talked(act)) for act in (older, newer, older)]
    found = recalled(llama, batches[1])
    for batch in (batches[0], batches[2]):
        assert_alike(read_again(llama, batch), as_modules(llama, batch))
    assert_alike(found, as_modules(llama, batches[1]))


def test_what_an_older_engine_remembers_of_older_weights_is_never_used(llama):
    older = llama.act(7)
    begun = talked(older)
    by_loading(llama, batch_of(llama, begun))
    newer = llama.act(7)
    again = talked(older), talked(newer)  # of the older, all but the last token is remembered
    for batch, how in zip((batch_of(llama, x) for x in again), (read_again, recalled), strict=True):
        assert_alike(how(llama, batch), as_modules(llama, batch))


def test_a_reference_reads_again_and_the_policy_need_not(llama):
    company = llama.accompanied(("logp@ref",), Follow(), ())
    llama.load({name: 0.9 * x for name, x in llama.weights().items()})
    batch = sampled(llama)
    with torch.no_grad(), worked() as counts:
        theirs = company.speakers["ref"].signals(batch)
    assert counts["forward"] == 1
    assert (theirs.logp - batch.old_logp).abs().max() > 0.01
    assert_alike(recalled(llama, batch), as_modules(llama, batch))


def test_what_a_copy_says_with_weights_of_its_own_is_read_again(llama):
    llama.speak_apart()
    batch = sampled(llama)
    assert_alike(read_again(llama, batch), as_modules(llama, batch))
    llama.speak(llama.voice.take(), 1)
    newer = sampled(llama, turns=2)
    assert_alike(read_again(llama, newer), as_modules(llama, newer))


def test_weights_that_change_while_an_engine_speaks_are_noticed(llama):
    act = llama.act(7)
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
    told = llama.head, llama.language.tokenizer, llama.bounds
    other = Local(body_of(llama), *told, memory=body_of(llama).memory)
    answers(other, [ask("Go on", 3)])  # its records lie where those of the batch were
    assert_alike(read_again(llama, batch), as_modules(llama, batch))
