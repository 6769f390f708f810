"""Every method trained for seconds: what its page claims of it, under another seed."""

import pytest
import torch

from grupo.catalogue import methods
from grupo.testing.smoke import train_on_echo
from grupo.testing.smoke.report_card import MIN_GAIN
from grupo.testing.smoke.run import echo_recipe
from grupo.training.learner import Learner

SEED = 3  # none of the table's


@pytest.mark.slow
@pytest.mark.parametrize("entry", methods(), ids=lambda entry: entry.key)
def test_it_learns_and_its_signal_turned_round_does_not(entry):
    torch.set_num_threads(1)
    one = train_on_echo(entry.method, seed=SEED)
    if "run" in entry.checked:
        other = train_on_echo(entry.method, seed=SEED, flipped=True)
        assert one.gain > MIN_GAIN
        assert other.gain < one.gain - MIN_GAIN
    assert 0 <= one.accuracy_after <= 1  # it went to the end, whatever it learned


@pytest.mark.slow
@pytest.mark.parametrize("entry", methods(), ids=lambda entry: entry.key)
def test_it_trains_with_its_own_groups_and_minibatches(entry):
    torch.set_num_threads(1)
    own = echo_recipe(entry.method, max_steps=2).replace(method=entry.method)
    learner = Learner(own)
    before = {name: x.clone() for name, x in learner.policy.weights().items()}
    numbers = [learner.step().metrics for _ in range(2)]
    assert all(n.get("grad_nonfinite", 0.0) == 0 for n in numbers)
    if any("loss" in n for n in numbers):  # else all its groups were dropped
        now = learner.policy.weights()
        assert any(not torch.equal(x, before[name]) for name, x in now.items())
