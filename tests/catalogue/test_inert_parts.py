"""Methods with parts that cannot act: ratios that are always 1, advantages that are not read."""

import pytest

from grupo.algo.advantages import Center, identity
from grupo.algo.losses import NLL, Clip, Loss, Reinforce
from grupo.algo.minibatches import Updates
from grupo.catalogue.entries import methods
from grupo.catalogue.inert_parts import (
    ADVANTAGE_SENTENCE,
    RATIO_SENTENCE,
    inert_ratio_sentence,
    unread_advantage_sentence,
)
from grupo.catalogue.pages import method_page
from grupo.cli.cost_lines import method_notes
from grupo.core.component import component
from grupo.method import Method
from grupo.recipe import updates_per_step
from tests.helpers.paths import ROOT
from tests.helpers.training_recipes import recipe

ENTRIES = {entry.key: entry for entry in methods()}


@component
class ShrinksWithRatio(Loss):
    """A loss whose weight is 1 at the ratio 1."""

    def __call__(self, pi, batch):
        weight = (batch.old_logp - pi.logp).exp().clamp(max=1.0).detach()
        return -weight * batch.advantage * pi.logp


@component
class NeedsMore(Loss):
    """A loss that reads what the batch of the check has not."""

    def __call__(self, pi, batch):
        return batch.inputs["pixels"] * pi.logp


@pytest.mark.parametrize("key", ["branch_grpo", "magistral", "tic_grpo"])
def test_methods_that_an_audit_found_are_found(key):
    assert inert_ratio_sentence(ENTRIES[key].method) == RATIO_SENTENCE
    assert RATIO_SENTENCE in method_page(ENTRIES[key])
    assert RATIO_SENTENCE in (ROOT / "docs" / "methods" / f"{key}.md").read_text()


@pytest.mark.parametrize("key", ["dapo", "grpo", "rloo", "dpo", "gspo", "sppo"])
def test_methods_of_several_updates_or_without_own_ratios_have_no_sentence(key):
    assert inert_ratio_sentence(ENTRIES[key].method) == ""
    assert RATIO_SENTENCE not in method_page(ENTRIES[key])


def test_another_update_lets_every_ratio_act():
    found = [e.method for e in ENTRIES.values() if inert_ratio_sentence(e.method)]
    assert all(updates_per_step(method.updates) == 1 for method in found)
    assert not any(inert_ratio_sentence(m.replace(updates=Updates(epochs=2))) for m in found)
    assert len(found) > 30


def test_a_weight_of_ratios_is_found_and_a_loss_without_ratios_is_not():
    assert inert_ratio_sentence(Method(loss=ShrinksWithRatio())) == RATIO_SENTENCE
    assert inert_ratio_sentence(Method(loss=Reinforce())) == ""
    assert inert_ratio_sentence(Method(loss=NeedsMore())) == ""


def test_the_note_is_printed_unless_rollouts_may_be_older():
    clipped = recipe("grpo", "model").replace(method=Method(loss=Clip(0.1, 0.3)))
    (note,) = method_notes(clipped)
    assert note == f"method: w{RATIO_SENTENCE[1:]}."
    assert list(method_notes(clipped.replace(max_staleness=1))) == []
    two_updates = clipped.method.replace(updates=Updates(minibatches=2))
    assert list(method_notes(clipped.replace(method=two_updates))) == []


@pytest.mark.parametrize("key", ["dpo", "nft", "gkd", "rft"])
def test_losses_without_advantages_are_found(key):
    assert unread_advantage_sentence(ENTRIES[key].method) == ADVANTAGE_SENTENCE
    assert ADVANTAGE_SENTENCE in method_page(ENTRIES[key])
    assert ADVANTAGE_SENTENCE in (ROOT / "docs" / "methods" / f"{key}.md").read_text()


@pytest.mark.parametrize("key", ["grpo", "etr", "kl_in_reward", "topr"])
def test_losses_with_advantages_have_no_sentence(key):
    assert unread_advantage_sentence(ENTRIES[key].method) == ""
    assert ADVANTAGE_SENTENCE not in method_page(ENTRIES[key])


def test_an_advantage_is_noted_if_it_computes_something_that_no_loss_reads():
    supervised = recipe("grpo", "model").replace(method=Method(loss=NLL(), advantage=Center()))
    (note,) = method_notes(supervised)
    assert note == f"method: t{ADVANTAGE_SENTENCE[1:]}."
    for advantage in (identity, Method().advantage):
        method = supervised.method.replace(advantage=advantage)
        assert list(method_notes(supervised.replace(method=method))) == []
    assert unread_advantage_sentence(Method(loss=NeedsMore(), advantage=Center())) == ""
