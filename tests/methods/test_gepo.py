"""GEPO: loss and gradient of a group, by hand."""

from math import exp, log

import pytest
import torch

from grupo.algo.losses import Logistic, LogRatio, Preference, all_ordered_pairs
from grupo.core.batch import Signals
from grupo.methods.dpo import dpo
from grupo.methods.gepo import gepo
from tests.helpers.preference_batches import loss_and_gradient, pair_batch


def group_of(*log_ratio, winners):
    count = len(log_ratio)
    return pair_batch(
        log_ratio,
        length=(1,) * count,
        group=(0,) * count,
        reward=[1.0] * winners + [0.0] * (count - winners),
    )


def test_loss_and_gradient_of_a_group():
    # means 0.4 and -0.2: -log sigmoid(0.06) = 0.6636, variance 0.01
    loss, gradient = loss_and_gradient(gepo(beta=0.1), group_of(0.5, 0.3, -0.2, winners=2))
    assert loss == pytest.approx(log(1 + exp(-0.06)) + 0.01)
    pull = 0.1 / (1 + exp(0.06))
    assert gradient == pytest.approx([-pull / 2 + 0.1, -pull / 2 - 0.1, pull])


def test_with_one_answer_of_each_it_is_dpo():
    pair = group_of(0.5, -0.2, winners=1)
    loss, gradient = loss_and_gradient(gepo(beta=0.1), pair)
    expected_loss, expected_gradient = loss_and_gradient(dpo(beta=0.1), pair)
    assert loss == pytest.approx(expected_loss, rel=1e-12)
    assert gradient == pytest.approx(expected_gradient, rel=1e-12)


def trained(method):
    """Mean and variance of the winners' log-ratios after training on one group of six answers."""
    h = torch.tensor([0.9, 0.0, -0.6, 0.3, 0.0, -0.3], dtype=torch.float64, requires_grad=True)
    optimizer = torch.optim.SGD([h], lr=1.0)
    batch = group_of(*[0.0] * 6, winners=3)
    for _ in range(200):
        optimizer.zero_grad()
        pi = Signals(logp=(batch.old_logp[:, 0] + h)[:, None])
        (method.aggregation(batch) * method.loss(pi, batch)).sum().backward()
        optimizer.step()
    return h.detach()


@pytest.mark.slow
def test_equivalent_answers_get_equal_scores_and_are_above_the_others():
    # the variance of DPO over all pairs: answers that score well already are pushed less
    ours = trained(gepo(beta=1.0))
    pairwise = trained(dpo().replace(loss=Preference(LogRatio(), Logistic(1.0), all_ordered_pairs)))
    assert ours[:3].min() > ours[3:].max()
    assert ours[:3].var() < 1e-6 < 0.01 < pairwise[:3].var()
