"""The proving ground: what it shows of methods that work, that do not, and that are not methods."""

import pytest

from grupo.algo.advantages import Center, chain, identity
from grupo.algo.losses import NLL, Loss, Reinforce
from grupo.catalogue import methods
from grupo.method import Method
from grupo.methods.grpo import grpo
from grupo.testing.smoke import report_card, train_on_echo
from grupo.testing.smoke.run import SmokeResult, echo_recipe
from grupo.testing.smoke.table import MethodResults, results_page


def nothing(x, batch):
    return x * 0


@pytest.fixture(scope="module")
def trials():
    return train_on_echo(grpo(), max_steps=25), train_on_echo(grpo(), max_steps=25, flipped=True)


def test_a_method_that_works_learns_and_turned_round_unlearns(trials):
    one, other = trials
    assert one.gain > 0.2
    assert other.gain < 0


def test_a_trial_is_the_same_every_time(trials):
    assert train_on_echo(grpo(), max_steps=25) == trials[0]


def test_a_method_without_signal_gains_nothing():
    assert abs(train_on_echo(Method(advantage=nothing, loss=Reinforce()), max_steps=15).gain) < 0.15


def test_a_card_says_that_nothing_was_learned_and_does_not_call_it_broken():
    lines = list(report_card(Method(advantage=chain(identity, nothing), loss=Reinforce())))
    said = {line.name: line for line in lines}
    assert said["it_learns"].status == "no"
    assert all(line.passed for line in lines)


class Unfinished(Loss):
    """A loss that nobody wrote."""


def test_a_card_says_what_a_piece_raised():
    *_, last = report_card(Method(loss=Unfinished()))
    assert (last.status, last.name, last.passed) == ("BROKEN", "it_trains", False)
    assert "NotImplementedError" in last.message


def test_a_method_that_imitates_is_turned_round_by_the_world():
    one = train_on_echo(Method(loss=NLL(), advantage=Center()), max_steps=1, flipped=True)
    assert 0 < one.accuracy_after < 1


@pytest.mark.parametrize("entry", methods(), ids=lambda entry: entry.key)
def test_everything_that_a_method_reads_is_to_be_had(entry):
    made = echo_recipe(entry.method)
    assert set(entry.method.required_reward_terms) - {"greedy", "tempered", "trunk"} <= set(
        made.env.parts
    )


def test_the_page_ranks_and_says_what_differs_beyond_noise():
    entries = {entry.key: entry for entry in methods()}

    def ending(share):
        return SmokeResult(0.3, share)

    def row(key, afters, turned=0.0):
        return MethodResults(entries[key], [ending(a) for a in afters], [ending(turned)] * 3)

    text = results_page([row("grpo", (0.8, 0.8, 0.8)), row("rloo", (0.9, 0.91, 0.9), 0.85)])
    first, second = text.strip().splitlines()[-2:]
    assert first.startswith("| [RLOO](methods/rloo.md) | 0.903 ± 0.014 | +0.103 ± 0.014 | more |")
    assert second == "| [GRPO](methods/grpo.md) | 0.800 ± 0.000 | +0.000 ± 0.000 |  | 0.000 | yes |"
    assert first.endswith("| 0.850 |  |")  # it gained as much when turned round
