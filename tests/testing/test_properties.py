"""Every method obeys every law, and every law can be broken."""

import random

import pytest
import torch

from grupo.algo.advantages import Center, PerRewardTerm, ScaleByStd, Whiten, chain
from grupo.algo.aggregation import ConstantLength, token_mean, token_sum
from grupo.algo.losses import KL, NLL, Clip, Entropy, Loss, Reinforce
from grupo.algo.ratios import sequence, turn
from grupo.catalogue import methods
from grupo.core import group_ops
from grupo.core.batch import Batch, PerAction, Signals
from grupo.core.component import component
from grupo.core.schedules import Cosine, Linear, Warmup
from grupo.method import Method
from grupo.testing import properties
from grupo.testing.smoke.check_properties import check_properties

OURS = {entry.key: entry.method for entry in methods()}
COMBINED = {
    "default": Method(),
    "sequence ratio": Method(loss=Clip(0.1, 0.1, sequence), aggregation=token_sum),
    "turn ratio": Method(loss=Clip(0.1, 0.1, turn), aggregation=ConstantLength(9)),
    "regularised": Method(
        loss=Reinforce() + 0.1 * KL() + (-0.01) * Entropy(), aggregation=token_mean
    ),
    "imitation": Method(loss=NLL()),
    "other baselines": Method(
        advantage=chain(Center(group_ops.median), ScaleByStd(std=group_ops.var))
    ),
    "parts": Method(advantage=PerRewardTerm(Center(), (("correct", 1.0), ("style", 0.5)))),
    "whole batch": Method(advantage=chain(Center(), Whiten())),
    "scheduled": Method(loss=Clip(Linear(0.1, 0.3), 0.2) + Warmup(0.5, Cosine(0.1)) * KL()),
}
PAIRS = [(law, name) for law in properties.PROPERTIES for name in (*OURS, *COMBINED)]


@pytest.mark.parametrize(("law", "name"), PAIRS, ids=lambda x: getattr(x, "__name__", x))
def test_every_method_obeys_every_law(law, name):
    law({**OURS, **COMBINED}[name])


def counts_padding(batch: Batch) -> PerAction:
    return torch.ones_like(batch.old_logp) / batch.mask.sum()


def by_place(x, batch):
    return x * torch.arange(len(x))


def by_number(x, batch):
    return x * batch.group


def less_the_mean_of_all(x, batch):
    return x - x.mean()


def writes(x, batch):
    return x.sub_(1.0)


def reads_unasked(x, batch):
    return x * batch.seen["confidence"].mean()


@component
class SumOfRow(Loss):
    """Reads what the policy says of padding."""

    def __call__(self, pi: Signals, batch: Batch) -> PerAction:
        return -batch.advantage * pi.logp.sum(1, keepdim=True)


@component
class AgainstTheOthers(Loss):
    """Couples rows, and does not say so."""

    def __call__(self, pi: Signals, batch: Batch) -> PerAction:
        logp = pi.logp * batch.mask
        return -batch.advantage * (logp - logp.mean()) ** 2


@component
class Dropped(Loss):
    """Not a function of its arguments: another part of the loss is dropped at each call."""

    def __call__(self, pi: Signals, batch: Batch) -> PerAction:
        return -batch.advantage * pi.logp * random.random()


@component
class Detached(Loss):
    """Stops its gradient, and does not say so."""

    def __call__(self, pi: Signals, batch: Batch) -> PerAction:
        return -batch.advantage * pi.logp * pi.logp.detach().exp()


@component
class Insists(Loss):
    """Says that it follows the advantage, and goes on without."""

    @property
    def zero_if_no_advantage(self) -> bool:
        return True

    def __call__(self, pi: Signals, batch: Batch) -> PerAction:
        return -(batch.advantage + 0.1) * pi.logp


@component
class Hidden:
    """Keeps its schedules where nobody finds them."""

    table: frozenset

    def __call__(self, x, batch):
        return x


class Nameless:
    """An ordinary object: every copy is another."""

    def __call__(self, x, batch):
        return x


BROKEN = [
    (
        properties.padding_changes_nothing,
        Method(loss=SumOfRow()),
        "when padding is added: they differ",
    ),
    (
        properties.padding_changes_nothing,
        Method(aggregation=counts_padding, loss=NLL()),
        "the loss is another when padding is added",
    ),
    (
        properties.masked_actions_get_no_gradient,
        Method(aggregation=counts_padding),
        "masked actions weigh up",
    ),
    (properties.masked_actions_get_no_gradient, Method(loss=SumOfRow()), "through 'logp'"),
    (
        properties.rollout_and_row_order_do_not_matter,
        Method(advantage=by_place),
        "rollouts are in another order",
    ),
    (
        properties.group_numbering_does_not_matter,
        Method(advantage=by_number),
        "have other numbers",
    ),
    (
        properties.other_groups_do_not_matter,
        Method(advantage=less_the_mean_of_all),
        "group 0 alone has",
    ),
    (properties.other_groups_do_not_matter, Method(loss=AgainstTheOthers()), "another gradient"),
    (
        properties.equal_rewards_give_finite_gradients,
        Method(advantage=chain(Center(), ScaleByStd(eps=0.0))),
        "the loss is nan when every reward is 0.0",
    ),
    (
        properties.inputs_are_not_modified,
        Method(advantage=writes),
        "it wrote into its input: reward",
    ),
    (
        properties.required_signals_are_sufficient,
        Method(advantage=reads_unasked),
        "'confidence' was not measured",
    ),
    (
        properties.microbatch_size_does_not_matter,
        Method(loss=AgainstTheOthers()),
        "with 1 rows at a time",
    ),
    (
        properties.two_backward_passes_equal_one,
        Method(loss=Dropped()),
        "in two passes: they differ",
    ),
    (
        properties.gradient_matches_finite_difference,
        Method(loss=Detached()),
        "and the gradient says",
    ),
    (
        properties.zero_advantage_gives_zero_loss,
        Method(loss=Insists()),
        "the loss is up to",
    ),
    (
        properties.schedules_resolve_to_numbers,
        Method(advantage=Hidden(frozenset({Linear(0, 1)}))),
        "stay when",
    ),
    (
        properties.copies_are_equal_with_full_repr,
        Method(advantage=Nameless()),
        "a copy is not equal",
    ),
    (properties.copies_are_equal_with_full_repr, Method(advantage=lambda x, b: x), "'<lambda>'"),
]


@pytest.mark.parametrize(("law", "method", "said"), BROKEN)
def test_a_broken_method_breaks_its_law(law, method, said):
    with pytest.raises(AssertionError) as refusal:
        law(method)
    assert said in str(refusal.value)


def test_every_law_has_a_method_that_breaks_it():
    assert {law for law, _, _ in BROKEN} == set(properties.PROPERTIES)


def test_a_report_card_says_what_holds_and_what_was_violated():
    card = {name: violated for name, _, violated in check_properties(Method(advantage=by_number))}
    assert [*card] == [law.__name__ for law in properties.PROPERTIES]
    broken = {name: said.partition(":")[0] for name, said in card.items() if said}
    assert broken == {
        "numbering_of_groups_does_not_matter": "the loss is another when groups have other numbers",
        "other_groups_do_not_matter": "group 1 alone has other advantages",
    }


def test_a_report_card_goes_on_when_a_piece_raises():
    card = check_properties(Method(aggregation=lambda batch: 1 / 0))
    assert card[0][2] == "it raised ZeroDivisionError: division by zero"
    assert (
        card[0][1] == "Columns of padding, and a row of nothing else, change neither loss nor "
        "gradient."
    )
    assert card[-2][2] == ""
