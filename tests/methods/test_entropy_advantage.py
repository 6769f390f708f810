import pytest
import torch

from grupo.methods.entropy_advantage import AddEntropy, entropy_advantage
from grupo.testing.batches import make_batch


def test_entropy_bonus_is_capped_at_half_of_advantage():
    batch = make_batch([0, 0], length=[2, 2], signals={"entropy": [[0.5, 3.0], [0.5, 3.0]]})
    A = AddEntropy()(torch.tensor([1.0, -1.0]).double(), batch)
    assert A.tolist() == [[pytest.approx(1.2), 1.5], [pytest.approx(-0.8), -0.5]]


def test_zero_advantage_receives_no_entropy_bonus():
    batch = make_batch([0, 0], [1.0, 1.0], signals={"entropy": [[2.0], [2.0]]})
    assert entropy_advantage().advantage(batch.reward, batch).eq(0).all()


def test_default_hyperparameters():
    assert entropy_advantage().advantage.estimators[-1] == AddEntropy(
        entropy_coef=0.4, advantage_divisor=2.0
    )
    assert entropy_advantage().requires.all_signals == {"entropy"}
