"""ACE: one correct answer and two incorrect ones with known log-ratios to the reference."""

from math import exp, log

import pytest
import torch

from grupo.methods.ace import OverconfidencePenalty, ace
from grupo.testing.batches import make_batch

A = torch.tensor([1.0, -1.0, -1.0], dtype=torch.float64)


def batch_with_log_ratio(c):
    """Answers whose log-probability moved by `c` from the reference's, over two actions."""
    reference = [[-1 - x / 2, -1 - x / 2] for x in c]
    return make_batch(group=[0] * len(c), length=[2] * len(c), signals={"logp@ref": reference})


def test_negative_advantages_are_amplified_by_the_softplus_of_the_log_ratio():
    penalised = OverconfidencePenalty(1.0)(A, batch_with_log_ratio([2.0, 0.5, -3.0]))
    expected = [1.0, -(1 + log(1 + exp(0.5))), -(1 + log(1 + exp(-3.0)))]
    assert penalised.tolist() == pytest.approx(expected)
    assert expected[1:] == pytest.approx([-1.97408, -1.04859], abs=1e-5)


def test_error_of_unchanged_probability_is_amplified_by_log_2():
    penalised = OverconfidencePenalty(0.5)(A, batch_with_log_ratio([0.0, 0.0, 0.0]))
    assert penalised.tolist() == pytest.approx([1.0, -1 - log(2) / 2, -1 - log(2) / 2])


def test_relu_does_not_amplify_less_likely_errors():
    penalised = OverconfidencePenalty(1.0, torch.relu)(A, batch_with_log_ratio([2.0, 0.5, -3.0]))
    assert penalised.tolist() == pytest.approx([1.0, -1.5, -1.0])


def test_penalty_coef_0_is_grpo():
    batch = make_batch(group=[0, 0], reward=[1.0, 0.0], signals={"logp@ref": [[-2.0], [-3.0]]})
    plain = batch.with_advantage(ace(penalty_coef=0.0).advantage).advantage
    assert plain.flatten().tolist() == pytest.approx([0.5**0.5, -(0.5**0.5)], rel=1e-5)


def test_defaults():
    assert ace().requires.all_signals == {"logp@ref"}
