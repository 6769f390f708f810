"""OP-GFN: target, loss and gradient of a group, by hand."""

from dataclasses import replace
from math import exp, log

import pytest

from grupo.methods.op_gfn import op_gfn
from grupo.testing.batches import make_batch
from tests.helpers.preference_batches import loss_and_gradient, pair_batch


def test_loss_and_gradient_of_a_group():
    # log-probabilities -1, -2, -3, the second is the best: q = (0.665, 0.245, 0.090)
    batch = pair_batch([0.0] * 3, length=(1,) * 3, group=(0,) * 3, reward=[0.0, 1.0, 0.5])
    loss, gradient = loss_and_gradient(op_gfn(), batch, change=[0.0, -1.0, -2.0])
    total = 1 + exp(-1) + exp(-2)
    assert loss == pytest.approx(log(total) + 1)  # 1.4076
    assert gradient == pytest.approx([1 / total, exp(-1) / total - 1, exp(-2) / total])


def test_answers_that_none_dominates_share_the_target():
    terms = {"right": [1.0, 0.0, 0.0], "short": [0.0, 1.0, 0.0]}
    batch = pair_batch([0.0] * 3, length=(1,) * 3, group=(0,) * 3, reward=[0.0] * 3)
    batch = replace(batch, reward_terms=make_batch([0] * 3, reward_terms=terms).reward_terms)
    _, gradient = loss_and_gradient(op_gfn(objectives=("right", "short")), batch)
    assert gradient == pytest.approx([1 / 3 - 1 / 2, 1 / 3 - 1 / 2, 1 / 3])


def test_likelihood_is_a_sum_over_tokens():
    batch = pair_batch([0.0, 0.0], length=(1, 2))
    assert loss_and_gradient(op_gfn(), batch)[0] == pytest.approx(log(1 + exp(-1)))
