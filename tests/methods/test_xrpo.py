"""XRPO: hand-computed novelty bonus of unlikely correct answers."""

from dataclasses import replace
from math import exp

import pytest
import torch

from grupo.methods.xrpo import NoveltyBonus, xrpo
from grupo.testing.batches import make_batch


def correct_batch(logp, length=None):
    n = len(logp)
    batch = make_batch(group=[0] * n, length=length)
    return replace(batch, old_logp=torch.tensor(logp, dtype=torch.float64))


def advantages(A, logp, weight=1.0, cap=1.0):
    batch = correct_batch(logp)
    return NoveltyBonus(weight, cap)(torch.tensor(A, dtype=torch.float64), batch).tolist()


def test_novelty_bonus_grows_as_likelihood_falls_up_to_cap():
    # means of log-probabilities: -1 over both, so s - mean(s) is -1/2 and 1/2
    bonus = 1 - exp(-0.5)
    assert bonus == pytest.approx(0.3935, abs=1e-4)
    assert advantages([1.5, 1.5], [[-1.5], [-0.5]]) == pytest.approx([1.5 + bonus, 1.5])
    assert advantages([0.2, 0.2], [[-1.5], [-0.5]]) == pytest.approx([0.4, 0.2])  # at most doubled


def test_wrong_answers_have_no_bonus():
    assert advantages([-1.0, 0.0], [[-9.0], [-9.5]]) == [-1.0, 0.0]


def test_likelihood_is_mean_over_actions():
    batch = correct_batch([[-1.5, -1.5], [-0.5, 77.0]], length=[2, 1])
    A = torch.tensor([1.5, 1.5], dtype=torch.float64)
    assert NoveltyBonus(1.0, 1.0)(A, batch).tolist() == pytest.approx([2.5 - exp(-0.5), 1.5])


def test_defaults_match_paper():
    assert xrpo().advantage.estimators[-1] == NoveltyBonus(novelty_coef=2.5, max_bonus_fraction=0.5)
