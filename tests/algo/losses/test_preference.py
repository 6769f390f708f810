"""The loss of pairs: what score, link, pairing and margin do to it, beside the methods' tests."""

from math import exp, log

import pytest
import torch

from grupo.algo.losses import (
    ConstantMargin,
    ExponentialLink,
    Logistic,
    LogRatio,
    Preference,
    RewardMargin,
    SquaredError,
    all_ordered_pairs,
    rollout_logp,
)
from grupo.algo.losses.scores import MeanLogRatio, log_odds
from grupo.testing.batches import make_batch, perturb_logp


def group_loss(loss, batch, changes):
    """The loss on each group's first action."""
    return loss(perturb_logp(batch, changes), batch)[:, 0].tolist()


def test_loss_of_a_group_is_the_mean_over_its_pairs():
    batch = make_batch([0] * 3, reward=[2.0, 1.0, 0.0])
    loss = Preference(LogRatio(), SquaredError(0.0), all_ordered_pairs)
    # differences 1, 3 and 2
    values = group_loss(loss, batch, [[3.0], [2.0], [0.0]])
    assert values == pytest.approx([(1 + 9 + 4) / 3] * 3)


def test_margin_is_subtracted_from_the_difference():
    batch = make_batch([0, 0], reward=[1.0, 0.0])
    loss = Preference(LogRatio(), ExponentialLink(1.0), margin=ConstantMargin(0.5))
    assert group_loss(loss, batch, [[2.0], [0.0]]) == pytest.approx([exp(-1.5)] * 2)


def test_reward_margin_adds_its_terms():
    terms = {"a": [1.0, 0.0], "b": [0.0, 3.0]}
    batch = make_batch([0, 0], reward=[1.0, 0.0], reward_terms=terms)
    margin = RewardMargin((("a", 2.0), ("b", 0.5)))  # 2 - 1.5
    loss = Preference(LogRatio(), SquaredError(0.0), margin=margin)
    assert group_loss(loss, batch, [[0.0], [0.0]]) == pytest.approx([0.25] * 2)
    assert margin.requires.reward_terms == {"a", "b"}


def test_reference_may_be_another_model():
    batch = make_batch([0, 0], reward=[1.0, 0.0], signals={"logp@other": [[-3.0], [-1.0]]})
    loss = Preference(LogRatio("other"), SquaredError(0.0))
    assert group_loss(loss, batch, [[0.0], [0.0]]) == pytest.approx([4.0] * 2)
    assert MeanLogRatio("other").requires.signals == {"logp@other"}


def test_metrics_are_the_difference_and_whether_it_is_positive():
    batch = make_batch([0, 0, 1, 1], reward=[1.0, 0.0] * 2)
    pi = perturb_logp(batch, [[2.0], [0.5], [0.0], [1.0]])
    metrics = Preference(rollout_logp, Logistic(1.0)).metrics(pi, batch)
    assert metrics["preference_margin"][:, 0].tolist() == [1.5, 1.5, -1.0, -1.0]
    assert metrics["preference_accuracy"][:, 0].tolist() == [1.0, 1.0, 0.0, 0.0]
    assert not metrics["preference_margin"].requires_grad


def test_odds_of_a_certain_answer_are_finite():
    batch = make_batch([0], logp=0.0)
    pi = perturb_logp(batch, [[0.0]])
    odds = log_odds(pi, batch)
    assert odds.item() == pytest.approx(log(1e6), rel=1e-5)
    assert torch.autograd.grad(odds.sum(), pi.logp)[0].isfinite().all()
