"""Smoke training of methods that learn, that do not learn, and that raise."""

import pytest

from grupo.algo.advantages import Center, chain, identity
from grupo.algo.losses import NLL, Clip, Loss, Reinforce
from grupo.catalogue.entries import methods
from grupo.core.controllers import LastValue
from grupo.method import Method
from grupo.methods.grpo import grpo
from grupo.testing.smoke import report_card, train_on_echo
from grupo.testing.smoke.run import SmokeResult, echo_recipe
from grupo.testing.smoke.table import MethodResults, results_page
from grupo.training.learner import Learner


def zero_advantage(x, batch):
    return x * 0


@pytest.fixture(scope="module")
def results():
    return train_on_echo(grpo(), max_steps=25), train_on_echo(grpo(), max_steps=25, flipped=True)


@pytest.mark.slow
def test_grpo_learns_and_unlearns_with_flipped_sign(results):
    normal, flipped = results
    assert normal.gain > 0.2
    assert flipped.gain < 0


@pytest.mark.slow
def test_a_smoke_run_is_reproducible(results):
    assert train_on_echo(grpo(), max_steps=25) == results[0]


@pytest.mark.slow
def test_a_method_with_zero_advantages_gains_nothing():
    method = Method(advantage=zero_advantage, loss=Reinforce())
    assert abs(train_on_echo(method, max_steps=15).gain) < 0.15


def test_a_controller_reads_its_metric_in_a_step_without_advantages():
    controlled = Clip(clip_high=LastValue("policy/entropy", 0.2))
    method = Method(advantage=zero_advantage, loss=controlled)
    learner = Learner(echo_recipe(method, max_steps=2))
    entropies = [learner.step().metrics["policy/entropy"] for _ in range(2)]
    assert learner.state.history.metrics["policy/entropy"] == entropies
    assert min(entropies) > 0


@pytest.mark.slow
def test_a_method_that_does_not_learn_passes_the_report_card():
    checks = list(report_card(Method(advantage=chain(identity, zero_advantage), loss=Reinforce())))
    by_name = {check.name: check for check in checks}
    assert by_name["learns"].status == "no"
    assert all(check.passed for check in checks)


class AbstractLoss(Loss):
    """A loss without `__call__`."""


def test_a_report_card_shows_the_exception_of_a_component():
    *_, last = report_card(Method(loss=AbstractLoss()))
    assert (last.status, last.name, last.passed) == ("FAILED", "trains", False)
    assert "NotImplementedError" in last.message


def test_the_environment_flips_the_signal_of_imitation():
    result = train_on_echo(Method(loss=NLL(), advantage=Center()), max_steps=1, flipped=True)
    assert 0 < result.accuracy_after < 1


@pytest.mark.parametrize("entry", methods(), ids=lambda entry: entry.key)
def test_the_echo_environment_provides_the_required_reward_terms(entry):
    provided = {*echo_recipe(entry.method).env.reward_terms, *entry.method.provides.reward_terms}
    assert set(entry.method.requires.reward_terms) <= provided


def test_the_page_ranks_methods_and_marks_significant_differences():
    entries = {entry.key: entry for entry in methods()}

    def row(key, accuracies, flipped=0.0):
        normal = [SmokeResult(0.3, accuracy) for accuracy in accuracies]
        return MethodResults(entries[key], normal, [SmokeResult(0.3, flipped)] * 3)

    text = results_page([row("grpo", (0.8, 0.8, 0.8)), row("rloo", (0.9, 0.91, 0.9), 0.85)])
    first, second = text.strip().splitlines()[-2:]
    assert first.startswith("| [RLOO](methods/rloo.md) | 0.903 ± 0.014 | +0.103 ± 0.014 | more |")
    assert second == "| [GRPO](methods/grpo.md) | 0.800 ± 0.000 | +0.000 ± 0.000 |  | 0.000 | yes |"
    assert first.endswith("| 0.850 |  |")  # it gained as much with flipped sign
