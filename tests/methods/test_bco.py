"""BCO: loss and gradient of pairs and of labelled answers, by hand."""

from math import exp, log

import pytest
import torch

from grupo.methods.bco import bco
from tests.helpers.preference_batches import loss_and_gradient, pair_batch


def test_loss_and_gradient_of_a_pair():
    # d = (4 - 2) / 2 = 1: l(0.1 (4 - 1)) + l(0.1 (1 + 2))
    loss, gradient = loss_and_gradient(bco(beta=0.1), pair_batch([4.0, -2.0]))
    assert loss == pytest.approx(2 * log(1 + exp(-0.3)))
    pull = 0.1 / (1 + exp(0.3))
    assert gradient == pytest.approx([-pull, pull])


def test_answers_of_different_prompts_share_the_shift():
    # chosen 4 and 2, rejected -1: d = (3 - 1) / 2 = 1
    batch = pair_batch([4.0, 2.0, -1.0], length=(1,) * 3, group=(0, 1, 2), reward=(1.0, 1.0, 0.0))
    loss, _ = loss_and_gradient(bco(beta=0.1), batch)
    parts = [log(1 + exp(-0.3)), log(1 + exp(-0.1)), log(1 + exp(-0.2))]
    assert loss == pytest.approx(sum(parts) / 3)


def test_rollouts_without_rows_in_a_minibatch_do_not_shift_it():
    batch = pair_batch(
        [4.0, -2.0, 90.0, 50.0], length=(1,) * 4, group=(0, 0, 1, 1), reward=(1.0, 0.0) * 2
    )
    minibatch = batch.select_rows(torch.tensor([0, 1]))
    assert loss_and_gradient(bco(beta=0.1), minibatch)[0] == pytest.approx(2 * log(1 + exp(-0.3)))
