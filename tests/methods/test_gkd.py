import pytest
import torch

from grupo.algo.losses import JSD, ForwardKL
from grupo.core.batch import Signals
from grupo.methods.gkd import gkd
from grupo.testing.batches import make_batch


def test_loss_is_token_divergence_regardless_of_reward():
    method = gkd()
    batch = make_batch([0, 1], reward=[1.0, -1.0], length=[1, 2]).with_advantage(method.advantage)
    divergence = torch.tensor([[0.4, 9.0], [0.1, 0.3]], dtype=torch.float64, requires_grad=True)
    loss = (
        method.aggregation(batch) * method.loss(Signals({"jsd@teacher": divergence}), batch)
    ).sum()
    assert loss.item() == pytest.approx((0.4 + (0.1 + 0.3) / 2) / 2)
    (gradient,) = torch.autograd.grad(loss, divergence)
    assert gradient.tolist() == [[0.5, 0.0], [0.25, 0.25]]
    assert batch.advantage.abs().max() == 0


def test_divergence_argument_selects_loss():
    method = gkd().replace(loss=ForwardKL("teacher"))
    assert method.requires.all_signals == {"forward_kl@teacher"}
    assert method.requires.recomputed_signals == {"forward_kl@teacher"}


def test_default_hyperparameters():
    assert gkd().loss == JSD("teacher")
    assert gkd().requires.signals == frozenset()
