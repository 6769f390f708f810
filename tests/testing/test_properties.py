"""Every method obeys every law, and every law can be broken."""

import random

import pytest
import torch

from grupo.algo.advantages import Center, EachPart, ScaleByStd, Whiten, chain
from grupo.algo.aggregation import FixedLength, sequence_sum, token_mean
from grupo.algo.losses import KL, Clip, Entropy, Likelihood, Loss, Reinforce
from grupo.algo.ratios import sequence, turn
from grupo.catalogue import methods
from grupo.core import group_ops
from grupo.core.batch import Batch, PerAction, Signals
from grupo.core.component import piece
from grupo.core.schedules import Cosine, Linear, Warmup
from grupo.method import Method
from grupo.testing import properties
from grupo.testing.smoke.check_properties import check

OURS = {entry.key: entry.method for entry in methods()}
COMBINED = {
    "default": Method(),
    "sequence ratio": Method(loss=Clip(0.1, 0.1, sequence), weigh=sequence_sum),
    "turn ratio": Method(loss=Clip(0.1, 0.1, turn), weigh=FixedLength(9)),
    "regularised": Method(loss=Reinforce() + 0.1 * KL() + (-0.01) * Entropy(), weigh=token_mean),
    "imitation": Method(loss=Likelihood()),
    "other baselines": Method(
        credit=chain(Center(group_ops.median), ScaleByStd(std=group_ops.var))
    ),
    "parts": Method(credit=EachPart(Center(), (("correct", 1.0), ("style", 0.5)))),
    "whole batch": Method(credit=chain(Center(), Whiten())),
    "scheduled": Method(loss=Clip(Linear(0.1, 0.3), 0.2) + Warmup(0.5, Cosine(0.1)) * KL()),
}
PAIRS = [(law, name) for law in properties.LAWS for name in (*OURS, *COMBINED)]


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


@piece
class SumOfRow(Loss):
    """Reads what the policy says of padding."""

    def __call__(self, pi: Signals, batch: Batch) -> PerAction:
        return -batch.advantage * pi.logp.sum(1, keepdim=True)


@piece
class AgainstTheOthers(Loss):
    """Couples rows, and does not say so."""

    def __call__(self, pi: Signals, batch: Batch) -> PerAction:
        logp = pi.logp * batch.mask
        return -batch.advantage * (logp - logp.mean()) ** 2


@piece
class Dropped(Loss):
    """Not a function of its arguments: another part of the loss is dropped at each call."""

    def __call__(self, pi: Signals, batch: Batch) -> PerAction:
        return -batch.advantage * pi.logp * random.random()


@piece
class Detached(Loss):
    """Stops its gradient, and does not say so."""

    def __call__(self, pi: Signals, batch: Batch) -> PerAction:
        return -batch.advantage * pi.logp * pi.logp.detach().exp()


@piece
class Insists(Loss):
    """Says that it follows the advantage, and goes on without."""

    @property
    def follows_advantage(self) -> bool:
        return True

    def __call__(self, pi: Signals, batch: Batch) -> PerAction:
        return -(batch.advantage + 0.1) * pi.logp


@piece
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
        Method(weigh=counts_padding, loss=Likelihood()),
        "the loss is another when padding is added",
    ),
    (
        properties.masked_actions_get_no_gradient,
        Method(weigh=counts_padding),
        "masked actions weigh up",
    ),
    (properties.masked_actions_get_no_gradient, Method(loss=SumOfRow()), "through 'logp'"),
    (properties.order_does_not_matter, Method(credit=by_place), "rollouts are in another order"),
    (
        properties.numbering_of_groups_does_not_matter,
        Method(credit=by_number),
        "have other numbers",
    ),
    (
        properties.other_groups_do_not_matter,
        Method(credit=less_the_mean_of_all),
        "group 0 alone has",
    ),
    (properties.other_groups_do_not_matter, Method(loss=AgainstTheOthers()), "another gradient"),
    (
        properties.equal_rewards_give_finite_gradients,
        Method(credit=chain(Center(), ScaleByStd(eps=0.0))),
        "the loss is nan when every reward is 0.0",
    ),
    (properties.inputs_are_left_alone, Method(credit=writes), "it wrote into its input: reward"),
    (
        properties.its_needs_are_enough,
        Method(credit=reads_unasked),
        "'confidence' was not measured",
    ),
    (
        properties.micro_batches_do_not_matter,
        Method(loss=AgainstTheOthers()),
        "with 1 rows at a time",
    ),
    (properties.two_passes_equal_one, Method(loss=Dropped()), "in two passes: they differ"),
    (
        properties.gradient_is_the_slope_of_the_loss,
        Method(loss=Detached()),
        "and the gradient says",
    ),
    (
        properties.without_advantage_there_is_nothing_to_learn,
        Method(loss=Insists()),
        "the loss is up to",
    ),
    (
        properties.schedules_are_resolved,
        Method(credit=Hidden(frozenset({Linear(0, 1)}))),
        "stay when",
    ),
    (
        properties.compares_by_value_and_prints_fully,
        Method(credit=Nameless()),
        "a copy is not equal",
    ),
    (properties.compares_by_value_and_prints_fully, Method(credit=lambda x, b: x), "'<lambda>'"),
]


@pytest.mark.parametrize(("law", "method", "said"), BROKEN)
def test_a_broken_method_breaks_its_law(law, method, said):
    with pytest.raises(AssertionError) as refusal:
        law(method)
    assert said in str(refusal.value)


def test_every_law_has_a_method_that_breaks_it():
    assert {law for law, _, _ in BROKEN} == set(properties.LAWS)


def test_a_report_card_says_what_holds_and_what_was_violated():
    card = {name: violated for name, _, violated in check(Method(credit=by_number))}
    assert [*card] == [law.__name__ for law in properties.LAWS]
    broken = {name: said.partition(":")[0] for name, said in card.items() if said}
    assert broken == {
        "numbering_of_groups_does_not_matter": "the loss is another when groups have other numbers",
        "other_groups_do_not_matter": "group 1 alone has other advantages",
    }


def test_a_report_card_goes_on_when_a_piece_raises():
    card = check(Method(weigh=lambda batch: 1 / 0))
    assert card[0][2] == "it raised ZeroDivisionError: division by zero"
    assert (
        card[0][1] == "Columns of padding, and a row of nothing else, change neither loss nor "
        "gradient."
    )
    assert card[-2][2] == ""
