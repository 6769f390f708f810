"""INPO: loss and gradient of a pair, by hand."""

from dataclasses import replace

import pytest
import torch

from grupo.methods.inpo import inpo
from grupo.methods.ipo import ipo
from grupo.testing.batches import make_batch
from tests.helpers.preference_batches import loss_and_gradient, pair_batch


def test_loss_and_gradient_of_a_pair():
    # differences of log-probabilities: policy 2.0, reference 0.6, old 0.9, a = 1/3:
    # 2.0 - 0.2 - 0.6 = 1.2; target 1 / (2 0.5) = 1
    batch = make_batch([0, 0], [1.0, 0.0], signals={"logp@ref": [[-0.4], [-1.0]]})
    batch = replace(batch, old_logp=torch.tensor([[-0.1], [-1.0]], dtype=torch.float64))
    loss, gradient = loss_and_gradient(inpo(eta=0.5), batch, change=[1.1, 0.0])
    assert loss == pytest.approx(0.04)
    assert gradient == pytest.approx([0.4, -0.4])


def test_best_and_worst_of_a_group_are_compared():
    reward = [0.2, 0.9, 0.5]
    batch = pair_batch([0.0] * 3, length=(1,) * 3, group=(0,) * 3, reward=reward)
    loss, gradient = loss_and_gradient(inpo(eta=0.5), batch)
    assert loss == pytest.approx(1.0)
    assert gradient == pytest.approx([2.0, -2.0, 0.0])


def test_with_the_reference_alone_it_is_ipo_of_sums():
    batch = pair_batch([0.75, 0.25])
    ours = loss_and_gradient(inpo(eta=0.5, ref_weight=1.0), batch)
    assert ours == loss_and_gradient(ipo(tau=0.5), batch)
